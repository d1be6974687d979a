//! Relations in the shared buffers, before and after the load.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use model::metric;
use model::metrics::{Metrics, Point, Series};

use super::collector::{Collected, Collector, Context, Started};
use crate::clock::now;
use crate::error::CollectError;
use crate::postgres::buffers;

/// Buffers of each relation before the load.
struct BuffersBefore(Vec<(String, u64)>);

pub(super) fn start(context: &Context<'_>) -> Started {
    if !context.subject.collect.buffers {
        return Ok(None);
    }
    Ok(read_buffers(context)?.map(|before| Box::new(BuffersBefore(before)) as Box<dyn Collector>))
}

impl Collector for BuffersBefore {
    fn finish(self: Box<Self>, context: &Context<'_>, _: &AtomicBool) -> Result<Collected, CollectError> {
        let Some(load) = context.clock.wait_for_start() else { return Ok(Collected::default()) };
        let after = read_buffers(context)?.unwrap_or_default();
        let at_us = now().monotonic_us - load.origin_us;
        Ok(Collected { metrics: Metrics(series(self.0, after, at_us)), ..Collected::default() })
    }
}

fn read_buffers(context: &Context<'_>) -> Result<Option<Vec<(String, u64)>>, CollectError> {
    buffers(&mut context.session(context.tested_database(), "buffers")?)
}

/// Buffers by relation, before and after the load; zero for a relation without any.
fn series(before: Vec<(String, u64)>, after: Vec<(String, u64)>, at_us: i64) -> Vec<Series> {
    let mut relations: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (place, seen) in [before, after].into_iter().enumerate() {
        for (relation, buffers) in seen {
            relations.entry(relation).or_default()[place] = buffers;
        }
    }
    let point = |at_us, buffers| Point { at_us, value: Some(buffers as f64) };
    relations
        .into_iter()
        .map(|(relation, [before, after])| {
            let points = vec![point(0, before), point(at_us, after)];
            Series::new(metric!("pg.buffercache.buffers"), Some(relation), points)
        })
        .collect()
}
