//! Figures of one script of a workload that has several.

use model::cell::RecordedCell;
use model::merit::Merit;
use model::message::{Phase, ScriptInterval};
use model::record::{Latency, TrialRecord};
use store::hlog::script_window_latencies;

use super::{LatencyFigure, Metric, Window};

/// Results of a script in a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptSummary {
    /// The script's name.
    pub script: String,
    /// Transactions that ended in the window.
    pub transactions: u64,
    /// Failed transactions, in any phase; `None` if unknown.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: f64,
    /// Mean, p50, p95 and p99 of the window's transactions, in an open loop those that were to start in it; `None` if
    /// there were none.
    pub latency: Option<Latency>,
}

/// The scripts of a cell that run, if there are several. Of streams, the statements are judged.
pub(crate) fn scripts(cell: &RecordedCell) -> Vec<&str> {
    let custom = cell.workload.known().and_then(|workload| workload.custom());
    let custom = custom.filter(|custom| custom.trace.is_none());
    let scripts = custom.into_iter().flat_map(|custom| &custom.scripts).filter(|script| script.weight > 0);
    let names: Vec<&str> = scripts.map(|script| script.name.as_str()).collect();
    if names.len() > 1 { names } else { Vec::new() }
}

impl Metric {
    /// The metrics that the scripts of a cell are judged by, if there are several.
    pub(crate) fn of_scripts(cell: &RecordedCell) -> Vec<Self> {
        let latency = Some(LatencyFigure::of_scripts(Merit::of(cell)));
        let metric = |script: &str| Self::Script { script: script.to_owned(), latency };
        scripts(cell).into_iter().map(metric).collect()
    }
}

impl Metric {
    /// Whether it is compared next to what a cell is judged by: that of a part, which is a script or a phase, or one of the
    /// workload's own.
    pub(crate) const fn is_of_part(&self) -> bool {
        matches!(self, Self::Script { .. } | Self::Phase { .. } | Self::Own(_))
    }

    /// All that are compared next to what a cell is judged by.
    pub(crate) fn of_parts(cell: &RecordedCell) -> Vec<Self> {
        [Self::of_scripts(cell), Self::of_phases(cell), Self::own(cell)].concat()
    }

    /// The figures of a cell's workload that queries of its own return.
    pub(crate) fn own(cell: &RecordedCell) -> Vec<Self> {
        let custom = cell.workload.known().and_then(|workload| workload.custom());
        custom.into_iter().flat_map(|custom| custom.figures.keys().cloned().map(Self::Own)).collect()
    }

    /// The throughput of the phases of a cell that are not judged.
    pub(crate) fn of_phases(cell: &RecordedCell) -> Vec<Self> {
        let custom = cell.workload.known().and_then(|workload| workload.custom());
        let phases =
            custom.into_iter().flat_map(|custom| &custom.phases).filter(|phase| phase.load.is_some());
        phases.map(|phase| Self::Phase { phase: phase.name.clone(), metric: Box::new(Self::Tps) }).collect()
    }
}

impl LatencyFigure {
    /// The figure that scripts are judged by in cells with this figure of merit.
    pub(crate) const fn of_scripts(merit: Merit) -> Self {
        match merit {
            Merit::Latency => Self::P99,
            _ => Self::Mean,
        }
    }
}

/// Results of each script of a trial that has several.
pub(crate) fn script_summaries(record: &TrialRecord) -> Vec<ScriptSummary> {
    let Some(window) = Window::from_record(record) else { return Vec::new() };
    let summary = |script: &str| {
        let latencies = Latencies::new(record, script);
        let figure = |figure| latencies.as_ref().and_then(|latencies| latencies.figure(figure));
        let mean_us = figure(LatencyFigure::Mean);
        Some(ScriptSummary {
            script: script.to_owned(),
            transactions: in_window(record, script).map(|of| of.transactions).sum(),
            failed: everywhere(record, script).map(|of| of.failed).sum(),
            tps: value(record, script, None, &window)?,
            latency: mean_us.map(|mean_us| Latency {
                mean_us: Some(mean_us),
                p50_us: figure(LatencyFigure::P50),
                p95_us: figure(LatencyFigure::P95),
                p99_us: figure(LatencyFigure::P99),
                ..Latency::default()
            }),
        })
    };
    scripts(&record.trial.cell).into_iter().filter_map(summary).collect()
}

/// Transactions per second of a script in a trial's window, or its latency in microseconds; `None` if it has none.
pub(super) fn value(
    record: &TrialRecord,
    script: &str,
    latency: Option<LatencyFigure>,
    window: &Window,
) -> Option<f64> {
    let Some(figure) = latency else {
        let of_script: Vec<u64> = in_window(record, script).map(|of| of.transactions).collect();
        return (!of_script.is_empty() && window.seconds() > 0.0)
            .then(|| of_script.iter().sum::<u64>() as f64 / window.seconds());
    };
    Latencies::new(record, script)?.figure(figure)
}

fn in_window<'a>(record: &'a TrialRecord, script: &'a str) -> impl Iterator<Item = &'a ScriptInterval> {
    let measured = record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    measured.flat_map(|interval| &interval.scripts).filter(move |of| of.script == script)
}

fn everywhere<'a>(record: &'a TrialRecord, script: &'a str) -> impl Iterator<Item = &'a ScriptInterval> {
    record.intervals.iter().flat_map(|interval| &interval.scripts).filter(move |of| of.script == script)
}

/// Latencies in nanoseconds, ascending, each with its number.
struct Latencies(Vec<(u64, u64)>);

impl Latencies {
    /// Those of a script in the window; `None` if they can't be read.
    fn new(record: &TrialRecord, script: &str) -> Option<Self> {
        let values = everywhere(record, script).map(script_window_latencies).collect::<Option<Vec<_>>>()?;
        Some(Self::from(values.concat()))
    }

    /// In microseconds; `None` if there are none. A percentile is the smallest value that as large a share does not exceed.
    fn figure(&self, figure: LatencyFigure) -> Option<f64> {
        let count: u64 = self.0.iter().map(|(_, count)| count).sum();
        if count == 0 {
            return None;
        }
        let share = match figure {
            LatencyFigure::Mean => {
                let sum: f64 = self.0.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
                return Some(sum / count as f64 / 1e3);
            }
            LatencyFigure::P50 => 0.5,
            LatencyFigure::P95 => 0.95,
            LatencyFigure::P99 => 0.99,
        };
        let rank = ((share * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(value, count)| {
            seen += count;
            (seen >= rank).then_some(*value as f64 / 1e3)
        })
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(mut values: Vec<(u64, u64)>) -> Self {
        values.sort_unstable();
        Self(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let latencies = Latencies::from(vec![(300_000, 1), (100_000, 98), (200_000, 1)]);
        let all = [LatencyFigure::Mean, LatencyFigure::P50, LatencyFigure::P95, LatencyFigure::P99];
        let found = all.map(|figure| latencies.figure(figure).unwrap());
        assert_eq!(found, [103.0, 100.0, 100.0, 200.0]);
        assert_eq!(Latencies::from(Vec::new()).figure(LatencyFigure::P50), None);
    }
}
