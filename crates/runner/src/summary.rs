//! What a load came to.

use diagnose::instructions_per_transaction;
use model::cell::Cell;
use model::machine::Acceleration;
use model::message::{BesideOutcome, Outcome, Phase};
use model::metrics::Metrics;
use model::record::{BesideSummary, Latency, Summary};

use crate::load::Driven;

/// The summary of a cell's load that has ended, beside which this was collected.
pub(crate) fn of(driven: &Driven, outcome: &Outcome, cell: &Cell, collected: &Metrics) -> Summary {
    let (from_us, to_us) = window_of(cell, outcome.window_us);
    let count = || instructions_per_transaction(collected, from_us, to_us, outcome.window_transactions);
    let window = || driven.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let seconds = outcome.window_us as f64 / 1e6;
    Summary {
        window_us: Some(outcome.window_us),
        transactions: Some(outcome.window_transactions),
        failed: Some(outcome.failed_transactions),
        tps: if seconds > 0.0 { outcome.window_transactions as f64 / seconds } else { 0.0 },
        instructions_per_transaction: match cell.acceleration {
            Acceleration::Icount => count(),
            Acceleration::None | Acceleration::Kvm | Acceleration::Tcg => None,
        },
        latency: outcome.latency.clone().map(Latency::from),
        service: outcome.service.clone().map(Latency::from),
        beside: outcome.beside.iter().map(|beside| of_beside(beside, seconds)).collect(),
        connect_us: Some(driven.connect_us),
        driver_cpu_us: Some(outcome.cpu_us),
        driver_busy_max: window().filter_map(|interval| interval.busy).reduce(f64::max),
        driver_lag_max_us: window().filter_map(|interval| interval.lag_max_us).reduce(f64::max),
        driver_engine: Some(outcome.engine.clone()),
        driver_engine_reason: outcome.engine_reason.clone(),
        statistics: cell
            .workload
            .is_steady()
            .then(|| diagnose::within_run(&driven.intervals, store::hlog::latencies)),
    }
}

/// A window of this length, from its start to its end in microseconds after the load's start.
pub(crate) fn window_of(cell: &Cell, window_us: u64) -> (i64, i64) {
    let from_us = cell.warmup.us() as i64;
    (from_us, from_us + window_us as i64)
}

fn of_beside(beside: &BesideOutcome, seconds: f64) -> BesideSummary {
    BesideSummary {
        workload: beside.workload.clone(),
        transactions: beside.window_transactions,
        failed: beside.failed_transactions,
        tps: if seconds > 0.0 { beside.window_transactions as f64 / seconds } else { 0.0 },
        latency: beside.latency.clone().map(Latency::from),
    }
}
