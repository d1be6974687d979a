//! What a bundle says of the collectors.

use std::collections::BTreeMap;

use model::metrics::Series;
use model::record::TrialRecord;

/// The collectors of one trial, and who worked for them.
#[derive(Debug, Default)]
pub(crate) struct Collectors {
    /// By name.
    pub(crate) each: BTreeMap<String, Collector>,
    /// CPU time of pgdyno's own process, without the driver, as a share of one processor in the window.
    pub(crate) pgdyno_share: Option<f64>,
    /// The same of the server's backends that answer collectors.
    pub(crate) backends_share: Option<f64>,
    /// Both as a share of the CPU time that they, the driver and the load's backends took.
    pub(crate) share_of_all: Option<f64>,
}

/// One collector over a whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Collector {
    pub(crate) readings: f64,
    /// Time that passed while it read, in microseconds.
    pub(crate) spent_us: f64,
    /// That time as a share of the load's, warm-up included.
    pub(crate) share: f64,
}

impl Collectors {
    pub(crate) fn of(record: &TrialRecord) -> Self {
        let (warmup_us, window_us) = (record.trial.cell.warmup.us(), record.trial.cell.duration.us());
        let metrics = &record.metrics;
        let each = metrics.all("collector.reads").filter_map(|series| {
            let name = series.of.clone()?;
            let readings = last(series)?;
            let spent_us = last(metrics.get("collector.spent_us", Some(&name))?)?;
            let share = spent_us / (warmup_us + window_us) as f64;
            Some((name, Collector { readings, spent_us, share }))
        });
        let share = |role: &str| {
            let (from_us, to_us) = (warmup_us as i64, (warmup_us + window_us) as i64);
            Some(metrics.growth("role.run_us", Some(role), from_us, to_us)? / window_us as f64)
        };
        let (pgdyno_share, backends_share) = (share("pgdyno"), share("collector"));
        let share_of_all = || {
            let ours = pgdyno_share? + backends_share?;
            Some(ours / (ours + share("driver")? + share("load")?))
        };
        Self { each: each.collect(), pgdyno_share, backends_share, share_of_all: share_of_all() }
    }
}

fn last(series: &Series) -> Option<f64> {
    series.points.iter().rev().find_map(|point| point.value)
}
