//! The collectors' figures in a bundle.

use std::collections::BTreeMap;

use model::cell::Level;
use model::metrics::Series;
use model::record::TrialRecord;
use model::units::Span;

use crate::blocks::Switch;
use crate::trial::{METRICS_HZ, WAITS_HZ};

/// The collectors of one trial, and their CPU time while they were on.
#[derive(Debug, Default)]
pub(crate) struct Collectors {
    /// By name.
    pub(crate) each: BTreeMap<String, Collector>,
    /// CPU time of pgdyno's own process, without the driver, as a share of one CPU while they were on.
    pub(crate) pgdyno_share: Option<f64>,
    /// The same for the server's backends that serve collectors.
    pub(crate) backends_share: Option<f64>,
    /// Both as a share of their own CPU time and that of the driver and the load's backends.
    pub(crate) share_of_all: Option<f64>,
}

/// One collector over a whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Collector {
    pub(crate) readings: f64,
    /// Its reading rate, as a multiple of the default.
    pub(crate) times: f64,
    /// Wall time of its readings, in microseconds.
    pub(crate) spent_us: f64,
    /// That time as a share of the load's time while they were on.
    pub(crate) share: f64,
}

impl Collectors {
    /// The collectors of a trial with these switches.
    pub(crate) fn new(record: &TrialRecord, switched: &[Switch]) -> Self {
        let us = |length: Level<Span>| length.known().map_or(0.0, |length| length.us() as f64);
        let (warmup_us, window_us) = (us(record.trial.cell.warmup), us(record.trial.cell.duration));
        let off_us: i64 =
            switched.windows(2).filter(|next| !next[0].on).map(|next| next[1].at_us - next[0].at_us).sum();
        let on_us = window_us - off_us as f64;
        let metrics = &record.metrics;
        let each = metrics.all("collector.reads").filter_map(|series| {
            let name = series.label.clone()?;
            let readings = last(series)?;
            let spent_us = last(metrics.get("collector.spent_us", Some(&name))?)?;
            let default_hz = if name == "waits" { WAITS_HZ } else { METRICS_HZ };
            let times = readings / ((warmup_us + on_us) / 1e6 * default_hz);
            Some((name, Collector { readings, times, spent_us, share: spent_us / (warmup_us + on_us) }))
        });
        let growth = |role: &str| {
            let (from_us, to_us) = (warmup_us as i64, (warmup_us + window_us) as i64);
            metrics.growth("role.run_us", Some(role), from_us, to_us)
        };
        // Collectors run only while they are on; the load always runs.
        let (pgdyno_share, backends_share) =
            (growth("pgdyno").map(|us| us / on_us), growth("collector").map(|us| us / on_us));
        let share_of_all = || {
            let ours = pgdyno_share? + backends_share?;
            Some(ours / (ours + (growth("driver")? + growth("load")?) / window_us))
        };
        Self { each: each.collect(), pgdyno_share, backends_share, share_of_all: share_of_all() }
    }

    /// The lowest reading rate of a collector, as a multiple of the default.
    pub(crate) fn times(&self) -> Option<f64> {
        self.each.values().map(|collector| collector.times).reduce(f64::min)
    }
}

fn last(series: &Series) -> Option<f64> {
    series.points.iter().rev().find_map(|point| point.value)
}
