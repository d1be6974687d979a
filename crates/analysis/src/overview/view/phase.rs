//! The phases of a trial whose workload has several.

use model::record;
use serde::Serialize;

use super::{Background, Finding, Latency};
use crate::metric::Metric;

/// Results of a phase of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Its name.
    pub phase: String,
    /// Whether its figures are those of the trial.
    pub judged: bool,
    /// Number of its clients, without those of background workloads; null if unknown.
    pub clients: Option<u32>,
    /// `valid`, `suspect` or `invalid`; null if it did not run.
    #[cfg_attr(test, ts(type = "'valid' | 'suspect' | 'invalid' | null"))]
    pub validity: Option<&'static str>,
    /// Findings of the validity gates.
    pub findings: Vec<Finding>,
    /// Length of its window in microseconds.
    pub window_us: Option<u64>,
    /// Transactions that ended in the window.
    pub transactions: Option<u64>,
    /// Transactions that failed.
    pub failed: Option<u64>,
    /// Transactions per second in the window.
    pub tps: Option<f64>,
    /// Rows inserted, changed or deleted per second; null if the workload does not say how many a transaction has.
    pub rows_per_second: Option<f64>,
    /// Latency of the window's transactions.
    pub latency: Option<Latency>,
    /// The longest of these.
    pub max_us: Option<f64>,
    /// Fewest transactions per second in a full second of the window.
    pub worst_second_tps: Option<f64>,
    /// Longest time in the window without the end of a successful transaction, in microseconds.
    pub longest_stall_us: Option<u64>,
    /// Results of each background workload.
    #[serde(rename = "beside")]
    pub background: Vec<Background>,
}

impl Phase {
    /// The phases of a trial in the order in which they run; empty if its workload has none.
    pub fn of(trial: &record::Trial) -> Vec<Self> {
        let names = trial.cell.phase_names();
        names
            .into_iter()
            .filter_map(|name| Some(Self::new(name, &trial.of_phase(name)?, trial.is_judged(name))))
            .collect()
    }

    fn new(name: &str, phase: &record::Trial, judged: bool) -> Self {
        let summary = phase.summary.as_ref();
        let has_result = summary.is_some() || !phase.validity.findings.is_empty();
        Self {
            phase: name.to_owned(),
            judged,
            clients: phase.cell.clients.into_known(),
            validity: has_result.then(|| phase.validity.status.as_str()),
            findings: phase.validity.findings.iter().map(Finding::new).collect(),
            window_us: summary.and_then(|summary| summary.window_us),
            transactions: summary.and_then(|summary| summary.transactions),
            failed: summary.and_then(|summary| summary.failed),
            tps: summary.map(|summary| summary.tps),
            rows_per_second: Metric::Rows.head_value(phase),
            latency: summary.and_then(|summary| summary.latency.as_ref()).map(Latency::new),
            max_us: summary.and_then(|summary| summary.latency.as_ref()?.max_us),
            worst_second_tps: summary.and_then(|summary| summary.worst_second_tps),
            longest_stall_us: summary.and_then(|summary| summary.longest_stall_us),
            background: summary.iter().flat_map(|summary| &summary.background).map(Background::new).collect(),
        }
    }

    /// Whether the rate of a background workload was not held.
    pub fn missed_rate(&self) -> bool {
        self.findings.iter().any(|finding| finding.gate == diagnose::BACKGROUND_RATE)
    }
}
