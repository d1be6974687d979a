//! Figures of one script of a workload that has several.

use model::cell::RecordedCell;
use model::message::{Phase, ScriptInterval};
use model::record::TrialRecord;
use store::hlog::script_latencies;

use super::{LatencyFigure, Window};

/// The scripts of a cell that run, if there are several.
pub(crate) fn scripts(cell: &RecordedCell) -> Vec<&str> {
    let custom = cell.workload.known().and_then(|workload| workload.custom());
    let scripts = custom.into_iter().flat_map(|custom| &custom.scripts).filter(|script| script.weight > 0);
    let names: Vec<&str> = scripts.map(|script| script.name.as_str()).collect();
    if names.len() > 1 { names } else { Vec::new() }
}

/// Transactions per second of a script in a trial's window, or its latency in microseconds; `None` if it has none.
pub(super) fn value(
    record: &TrialRecord,
    script: &str,
    latency: Option<LatencyFigure>,
    window: &Window,
) -> Option<f64> {
    let measured = record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let of_script: Vec<&ScriptInterval> =
        measured.flat_map(|interval| &interval.scripts).filter(|of| of.script == script).collect();
    let Some(figure) = latency else {
        let transactions: u64 = of_script.iter().map(|of| of.transactions).sum();
        return (!of_script.is_empty() && window.seconds() > 0.0)
            .then(|| transactions as f64 / window.seconds());
    };
    let values = of_script.into_iter().map(script_latencies).collect::<Option<Vec<_>>>()?.concat();
    Some(latency_ns(values, figure)? / 1e3)
}

/// A figure of values with their numbers. A percentile is the smallest value that as large a share does not exceed.
fn latency_ns(mut values: Vec<(u64, u64)>, figure: LatencyFigure) -> Option<f64> {
    let count: u64 = values.iter().map(|(_, count)| count).sum();
    if count == 0 {
        return None;
    }
    let share = match figure {
        LatencyFigure::Mean => {
            let sum: f64 = values.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
            return Some(sum / count as f64);
        }
        LatencyFigure::P50 => 0.5,
        LatencyFigure::P95 => 0.95,
        LatencyFigure::P99 => 0.99,
    };
    values.sort_unstable();
    let rank = ((share * count as f64).ceil() as u64).max(1);
    let mut seen = 0;
    values.into_iter().find_map(|(value, count)| {
        seen += count;
        (seen >= rank).then_some(value as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = || vec![(300, 1), (100, 98), (200, 1)];
        let all = [LatencyFigure::Mean, LatencyFigure::P50, LatencyFigure::P95, LatencyFigure::P99];
        let found = all.map(|figure| latency_ns(values(), figure).unwrap());
        assert_eq!(found, [103.0, 100.0, 100.0, 200.0]);
        assert_eq!(latency_ns(Vec::new(), LatencyFigure::P50), None);
    }
}
