//! Execution of a plan: setup, the load or the search, teardown.

use std::io::Write;

use driver::Load;

use crate::error::RunError;
use crate::find_max::{Search, find_max};
use crate::interrupt::Interrupt;
use crate::interval_log::IntervalLog;
use crate::live::{Live, LiveView};
use crate::measure::{Measurement, measure};
use crate::plan::Plan;
use crate::preparation::{query_scale, query_version, run_script};
use crate::report::Report;
use crate::threads_probe::probe_threads;

/// The outcome of a plan.
pub struct Outcome {
    /// The report, or the error.
    pub report: Result<Report, RunError>,
    /// Whether the teardown succeeded. It runs even if the load failed.
    pub teardown: Result<(), RunError>,
}

/// Runs a plan. The load is shown on `view`; notices of setup and teardown go to `notices`.
pub fn run(
    mut plan: Plan,
    interrupt: &Interrupt,
    view: Option<&mut dyn LiveView>,
    notices: &mut dyn Write,
) -> Outcome {
    let mut log = None;
    if let Some(path) = &plan.interval_log {
        let names = plan.load.main.scripts.iter().map(|script| script.script.name().to_owned()).collect();
        match IntervalLog::create(path, names) {
            Ok(created) => log = Some(created),
            Err(error) => return Outcome { report: Err(error), teardown: Ok(()) },
        }
    }
    let mut live = Live::new(view);
    // Without an answer of the server, there is nothing to tear down.
    let version = match query_version(&plan, interrupt) {
        Ok(version) => version,
        Err(error) => return Outcome { report: Err(error), teardown: Ok(()) },
    };
    let report = report(&mut plan, version, interrupt, &mut live, log.as_mut(), notices);
    let teardown = plan.teardown.as_ref().map_or(Ok(()), |script| {
        if interrupt.is_requested() {
            live.line("interrupted: running the teardown; another Ctrl-C ends pgdyno at once");
        }
        run_script(script, &plan.load, interrupt.uninterruptible(), notices)
            .map_err(|source| RunError::Script { phase: "teardown", source })
    });
    Outcome { report, teardown }
}

fn report(
    plan: &mut Plan,
    version: u32,
    interrupt: &Interrupt,
    live: &mut Live<'_>,
    log: Option<&mut IntervalLog>,
    notices: &mut dyn Write,
) -> Result<Report, RunError> {
    if let Some(setup) = &plan.setup {
        let outcome = run_script(setup, &plan.load, interrupt.control(), notices);
        interrupt.check(|| "running the setup".to_owned())?;
        outcome.map_err(|source| RunError::Script { phase: "setup", source })?;
    }
    query_scale(plan, interrupt)?;
    if plan.default_script {
        live.line("no script is named: running the built-in tpcb-like");
    }
    let (load, measurement, search) = run_load(plan, interrupt, live, log)?;
    let probe = (!plan.other_threads.is_empty() && !interrupt.is_requested())
        .then(|| probe_threads(&load, &plan.other_threads, &measurement, plan.seed, interrupt, live));
    let mut report = Report::new(plan, version, &load, &measurement, search, interrupt.is_requested());
    if let Some(probe) = probe {
        report.add_probe(probe);
    }
    Ok(report)
}

fn run_load(
    plan: &Plan,
    interrupt: &Interrupt,
    live: &mut Live<'_>,
    log: Option<&mut IntervalLog>,
) -> Result<(Load, Measurement, Option<Search>), RunError> {
    if let Some(search) = &plan.search {
        let found = find_max(&plan.load, search, interrupt, live, log)?;
        return Ok((found.load, found.measurement, Some(found.search)));
    }
    live.begin(&plan.load, None);
    let measurement = measure(plan.load.clone(), interrupt.control(), live, log, &|_| false)?;
    measurement.check_began(&plan.load, interrupt)?;
    Ok((plan.load.clone(), measurement, None))
}
