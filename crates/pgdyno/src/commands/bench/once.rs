//! What is done once, before and after the load: the scripts of set-up and teardown, and questions to the server.
//!
//! Scripts are run by the driver, as a load of one transaction, so that they are in the same language as the others, with
//! the same variables.

use std::time::Duration;

use anyhow::{Context, bail};
use driver::{Control, ErrorPolicy, Group, Level, Load, Observer, OnError, Record, Said, WeightedScript};
use model::record::ClockReading;
use script::{Script, Seeds, Value};
use wire::blocking::Session;

use super::plan::Plan;
use crate::output::note;

/// Asks the server for its version, and for the scale of pgbench's tables where the scripts need it. Returns the version
/// as a number.
///
/// # Errors
/// The server cannot be reached, or has no such tables.
pub(super) fn ask_server(plan: &mut Plan) -> anyhow::Result<u32> {
    let mut session = Session::connect(&plan.load.connection)?;
    if let Some(slot) = plan.unknown_scale {
        let rows = session.query("SELECT count(*) FROM pgbench_branches").with_context(|| {
            let database = &plan.load.connection.database;
            format!(
                "the scale of pgbench's tables could not be asked for; where they are missing, `pgdyno pgbench -i \
                 {database}` makes them"
            )
        })?;
        let scale = rows.into_iter().flatten().flatten().next().and_then(|count| count.parse::<u32>().ok());
        plan.scale = scale;
        plan.load.main.variables.set(slot, Value::Int(i64::from(scale.unwrap_or(1))))?;
    }
    Ok(session.server_version())
}

/// Runs a script once, with the variables and the connection of a load. `what` is what messages call it.
///
/// # Errors
/// The server cannot be reached, or a command fails: the script ends there.
pub(super) fn run(what: &str, script: &Script, of: &Load, control: Control) -> anyhow::Result<()> {
    execute(script, of, control).with_context(|| format!("{what} failed"))
}

fn execute(script: &Script, of: &Load, control: Control) -> anyhow::Result<()> {
    let seeds = Seeds {
        clients: of.seeds.clients[..1].to_vec(),
        default_seed: None,
        threads: of.seeds.threads[..1].to_vec(),
    };
    let scripts = vec![WeightedScript { script: script.clone(), weight: 1 }];
    let load = Load {
        errors: ErrorPolicy { rules: Vec::new(), otherwise: OnError::Abort, ..ErrorPolicy::pgbench(Some(1)) },
        engine: of.engine,
        ..Load::new(of.connection.clone(), Group::new(1, scripts, of.main.variables.clone()), seeds)
    };
    let mut listener = Listener::default();
    driver::run(load, control, &mut listener)?;
    match listener.problem {
        Some(problem) => bail!(problem),
        None => Ok(()),
    }
}

#[derive(Default)]
struct Listener {
    problem: Option<String>,
}

impl Observer for Listener {
    fn connected(&mut self, _: Duration, _: &[i32]) {}

    fn started(&mut self, _: ClockReading) {}

    fn interval(&mut self, _: &Record) {}

    fn said(&mut self, said: &Said) {
        match said.level {
            Level::Plain => note(&said.text),
            Level::Error if said.line > 0 => {
                let known = self.problem.take().map(|problem| format!("{problem}\n")).unwrap_or_default();
                self.problem = Some(format!("{known}line {}: {}", said.line, said.text.trim_end()));
            }
            Level::Error => self.problem = Some(said.text.clone()),
            Level::Debug | Level::Info => {}
        }
    }
}
