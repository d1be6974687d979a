//! The report of a load or a search. Its JSON is `pgdyno.bench/1` (docs/bench.md).

use driver::Load;
use serde::Serialize;

use crate::description::{LoadDescription, ServerDescription};
use crate::error::RunError;
use crate::find_max::Search;
use crate::measure::Measurement;
use crate::omission;
use crate::plan::Plan;
use crate::results::{Interval, Results};
use crate::threads_probe::ThreadsProbe;
use crate::warnings::{self, Warning};

/// The version of the document.
const SCHEMA: &str = "pgdyno.bench/1";

/// The outcome of a bench.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    pgdyno_version: &'static str,
    /// RFC 3339; null if the load never started.
    pub(crate) started: Option<String>,
    pub(crate) interrupted: bool,
    pub(crate) server: ServerDescription,
    pub(crate) load: LoadDescription,
    #[serde(flatten)]
    pub(crate) results: Results,
    pub(crate) find_max: Option<Search>,
    /// Null without --probe-threads, and if the probe failed.
    pub(crate) threads_probe: Option<ThreadsProbe>,
    pub(crate) warnings: Vec<Warning>,
    intervals: Vec<Interval>,
}

/// How a bench ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// As planned.
    Complete,
    /// Some clients were aborted, or the rate that was found was not confirmed.
    Partial,
    /// All clients were aborted, or no rate meets the objectives.
    Failed,
    /// By an interrupt.
    Interrupted,
}

impl Report {
    /// The report of a plan's load, or of its search with the search's last load.
    pub(crate) fn new(
        plan: &Plan,
        server_version: u32,
        load: &Load,
        measurement: &Measurement,
        find_max: Option<Search>,
        interrupted: bool,
    ) -> Self {
        let stall = match &measurement.window {
            Some(window) if !load.main.arrivals.is_open() => omission::stall(window, &measurement.intervals),
            _ => None,
        };
        let results = Results::new(load, measurement, stall.as_ref());
        Self {
            schema: SCHEMA,
            pgdyno_version: model::release::VERSION,
            started: measurement.started.map(|started| started.to_string()),
            interrupted,
            server: ServerDescription::new(&load.connection, server_version),
            load: LoadDescription::new(plan, load),
            warnings: warnings::warnings(&results, load.clients(), stall.as_ref()),
            results,
            find_max,
            threads_probe: None,
            intervals: measurement.intervals.iter().map(Interval::new).collect(),
        }
    }

    /// Adds the warning that other pgdynos measured on the host meanwhile, by what they measured.
    pub fn warn_of_others(&mut self, others: &[&str]) {
        self.warnings.extend(warnings::other_pgdynos(others));
    }

    /// Adds a probe of other numbers of threads. The load's figures stand if it failed.
    pub(crate) fn add_probe(&mut self, probe: Result<ThreadsProbe, RunError>) {
        match probe {
            Ok(probe) => {
                self.warnings.extend(warnings::threads(&probe));
                self.threads_probe = Some(probe);
            }
            Err(error) if error.is_interrupted() => {}
            Err(error) => self.warnings.push(warnings::probe_failed(&error)),
        }
    }

    /// The probe of other numbers of threads; None without one, and if it failed.
    pub fn threads_probe(&self) -> Option<&ThreadsProbe> {
        self.threads_probe.as_ref()
    }

    /// The warnings as sentences.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(|warning| &*warning.text)
    }

    /// How the bench ended.
    pub fn conclusion(&self) -> Conclusion {
        if self.interrupted {
            return Conclusion::Interrupted;
        }
        let aborted = self.results.clients_aborted;
        if aborted > 0 {
            return if aborted == self.load.clients { Conclusion::Failed } else { Conclusion::Partial };
        }
        match &self.find_max {
            Some(Search { rate_per_s: None, .. }) => Conclusion::Failed,
            Some(Search { confirmed: false, .. }) => Conclusion::Partial,
            _ => Conclusion::Complete,
        }
    }
}
