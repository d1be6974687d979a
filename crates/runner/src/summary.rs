//! The figures of a load.

use diagnose::instructions_per_transaction;
use model::cell::Cell;
use model::machine::Acceleration;
use model::message::{BackgroundOutcome, Interval, Outcome, Phase};
use model::metrics::Metrics;
use model::record::{BackgroundSummary, Latency, Summary};
use model::units::Span;

use crate::load::LoadResult;

/// Shortest interval that counts as a full second: the last one of a window is shorter.
const FULL_SECOND_US: u64 = 990_000;

/// The summary of a cell's load that has ended, with the metrics collected during it. Its window began after `lead`. The throughput of a paired trial is that of its slices.
pub(crate) fn summarize(
    load: &LoadResult,
    outcome: &Outcome,
    cell: &Cell,
    lead: Span,
    metrics: &Metrics,
    slices_tps: Option<f64>,
) -> Summary {
    let (from_us, to_us) = window_after(lead, outcome.window_us);
    let count = || instructions_per_transaction(metrics, from_us, to_us, outcome.window_transactions);
    let window = || load.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let seconds = outcome.window_us as f64 / 1e6;
    let per_second = |transactions: u64| if seconds > 0.0 { transactions as f64 / seconds } else { 0.0 };
    Summary {
        window_us: Some(outcome.window_us),
        transactions: Some(outcome.window_transactions),
        failed: Some(outcome.failed_transactions),
        tps: slices_tps.unwrap_or(per_second(outcome.window_transactions)),
        instructions_per_transaction: match cell.acceleration {
            Acceleration::Icount => count(),
            Acceleration::None | Acceleration::Kvm | Acceleration::Tcg => None,
        },
        latency: outcome.latency.clone().map(Latency::from),
        service: outcome.service.clone().map(Latency::from),
        worst_second_tps: worst_second(&load.intervals),
        longest_stall_us: outcome.longest_stall_us,
        background: outcome
            .background
            .iter()
            .map(|background| summarize_background(background, cell, seconds))
            .collect(),
        connect_us: Some(load.connect_us),
        driver_cpu_us: Some(outcome.cpu_us),
        driver_busy_max: window().filter_map(|interval| interval.busy).reduce(f64::max),
        driver_lag_max_us: window().filter_map(|interval| interval.lag_max_us).reduce(f64::max),
        driver_engine: Some(outcome.engine.clone()),
        driver_engine_reason: outcome.engine_reason.clone(),
        statistics: cell
            .workload
            .is_steady()
            .then(|| diagnose::run_statistics(&load.intervals, store::hlog::window_latencies)),
    }
}

/// Start and end of a window of this length after a lead, in microseconds after the load's start.
pub(crate) fn window_after(lead: Span, window_us: u64) -> (i64, i64) {
    let from_us = lead.us() as i64;
    (from_us, from_us + window_us as i64)
}

/// Fewest transactions per second in a full second of the window.
fn worst_second(intervals: &[Interval]) -> Option<f64> {
    let is_full =
        |interval: &&Interval| interval.phase == Phase::Measure && interval.width_us >= FULL_SECOND_US;
    let tps = |interval: &Interval| {
        let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
        transactions as f64 / (interval.width_us as f64 / 1e6)
    };
    intervals.iter().filter(is_full).map(tps).reduce(f64::min)
}

fn summarize_background(background: &BackgroundOutcome, cell: &Cell, seconds: f64) -> BackgroundSummary {
    let mut planned = cell.workload.custom().into_iter().flat_map(|custom| &custom.background);
    let planned = planned.find(|planned| planned.workload.name() == background.workload);
    BackgroundSummary {
        rate: planned.and_then(|planned| planned.rate.get()),
        missed: background.missed,
        workload: background.workload.clone(),
        transactions: background.window_transactions,
        failed: background.failed_transactions,
        tps: if seconds > 0.0 { background.window_transactions as f64 / seconds } else { 0.0 },
        latency: background.latency.clone().map(Latency::from),
    }
}
