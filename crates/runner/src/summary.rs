//! What a load came to.

use model::message::{Interval, Outcome, Phase};
use model::record::Summary;

use crate::load::Driven;

/// The summary of a load that has ended.
pub(crate) fn of(driven: &Driven, outcome: &Outcome) -> Summary {
    let window = || driven.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let seconds = outcome.window_us as f64 / 1e6;
    Summary {
        window_us: outcome.window_us,
        transactions: outcome.window_transactions,
        failed: outcome.failed_transactions,
        tps: if seconds > 0.0 { outcome.window_transactions as f64 / seconds } else { 0.0 },
        latency: outcome.latency.clone(),
        service: outcome.service.clone(),
        connect_us: driven.connect_us,
        driver_cpu_us: outcome.cpu_us,
        driver_busy_max: window().map(|interval| interval.busy).fold(0.0, f64::max),
        driver_lag_max_us: window().map(|interval| interval.lag_max_us).fold(0.0, f64::max),
        driver_engine: Some(outcome.engine.clone()),
        driver_engine_reason: outcome.engine_reason.clone(),
        statistics: Some(diagnose::within_run(&driven.intervals, latencies)),
    }
}

/// The latencies of all scripts in an interval; none where a histogram can't be read.
fn latencies(interval: &Interval) -> Option<Vec<(u64, u64)>> {
    let histograms = interval.scripts.iter().filter(|script| !script.latency_ns.is_empty());
    let values = histograms.map(|script| store::hlog::values(&script.latency_ns).ok());
    Some(values.collect::<Option<Vec<_>>>()?.concat())
}
