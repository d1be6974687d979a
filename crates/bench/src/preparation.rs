//! Steps before and after the load: queries to the server, and the scripts of setup and teardown.
//!
//! The driver runs these scripts as a load of one transaction: they have the language and variables of the others.

use std::io::Write;
use std::time::Duration;

use driver::{
    Control, DriverMessage, ErrorPolicy, Group, Level, Load, Observer, OnError, Record, WeightedScript,
};
use model::record::ClockReading;
use model::version::server_version_num;
use script::{Script, Seeds, Value};
use wire::blocking::Session;

use crate::description::server_name;
use crate::error::{RunError, ScriptFailure};
use crate::interrupt::Interrupt;
use crate::plan::Plan;

/// Connects to the server for the first time, and returns its version as a number.
pub(crate) fn query_version(plan: &Plan, interrupt: &Interrupt) -> Result<u32, RunError> {
    let connection = plan.load.connection.clone();
    let session = interrupt.run(
        || format!("connecting to {}", server_name(&plan.load.connection)),
        move || Ok(Session::connect(&connection)?),
    )?;
    Ok(session.server_version().and_then(server_version_num).unwrap_or_default())
}

/// Queries the scale of pgbench's tables, if the scripts need it.
pub(crate) fn query_scale(plan: &mut Plan, interrupt: &Interrupt) -> Result<(), RunError> {
    let Some(slot) = plan.unknown_scale else { return Ok(()) };
    let connection = plan.load.connection.clone();
    let branches: u64 = interrupt.run(
        || "reading the scale of pgbench's tables".to_owned(),
        move || {
            Session::connect(&connection)?
                .query_one("SELECT count(*) FROM pgbench_branches")
                .map_err(|source| RunError::Scale { database: connection.database.clone(), source })
        },
    )?;
    plan.scale = u32::try_from(branches).ok();
    plan.load.main.variables.set(slot, Value::Int(i64::from(plan.scale.unwrap_or(1))))?;
    Ok(())
}

/// Runs a script once, with the variables and the connection of a load. The server's notices go to `notices`. An error
/// of a command ends the script.
pub(crate) fn run_script(
    script: &Script,
    load: &Load,
    control: Control,
    notices: &mut dyn Write,
) -> Result<(), ScriptFailure> {
    let seeds = Seeds {
        clients: load.seeds.clients[..1].to_vec(),
        default_seed: None,
        threads: load.seeds.threads[..1].to_vec(),
    };
    let scripts = vec![WeightedScript { script: script.clone(), weight: 1 }];
    let group = Group::new(1, scripts, load.main.variables.clone());
    let load = Load {
        errors: ErrorPolicy { rules: Vec::new(), otherwise: OnError::Abort, ..ErrorPolicy::pgbench(Some(1)) },
        engine: load.engine,
        ..Load::new(load.connection.clone(), group, seeds)
    };
    let mut messages = Messages { notices, errors: Vec::new() };
    driver::run(load, control, &mut messages)?;
    if messages.errors.is_empty() { Ok(()) } else { Err(ScriptFailure::Commands(messages.errors.join("\n"))) }
}

/// Observer that passes notices on and keeps errors.
struct Messages<'a> {
    notices: &'a mut dyn Write,
    errors: Vec<String>,
}

impl Observer for Messages<'_> {
    fn connected(&mut self, _: Duration, _: &[i32]) {}

    fn started(&mut self, _: ClockReading, _: Duration) {}

    fn interval(&mut self, _: &Record) {}

    fn on_message(&mut self, message: &DriverMessage) {
        match message.level {
            // A notice that can't be shown is no reason to stop.
            Level::Plain => drop(self.notices.write_all(message.text.as_bytes())),
            Level::Error if message.line > 0 => {
                self.errors.push(format!("line {}: {}", message.line, message.text.trim_end()));
            }
            Level::Error => self.errors = vec![message.text.clone()],
            Level::Debug | Level::Info => {}
        }
    }
}
