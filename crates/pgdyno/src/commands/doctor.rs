//! `pgdyno doctor`: whether this machine is fit to measure on.

mod noise;
mod text;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use diagnose::{Check, State};
use host::Cache;
use model::fitness::Facts;
use plaintext::table::{Format, Table};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{FormatArg, note, print, print_json};

/// How long the machine is watched, and how long its disk is tried at most.
const WATCHED: Duration = Duration::from_secs(2);

/// Say whether this machine is fit to measure on
///
/// Looks at processors, memory, disk and kernel, watches for two seconds what else runs, and times small writes in
/// the cache, where servers' data will be. Each check is ok, warn (figures will be noisier, or other than
/// elsewhere), bad (figures can't be trusted) or unknown, with what was seen and what to do about it. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno doctor\n  \
                        pgdyno doctor --noise --runs 20\n  \
                        pgdyno doctor --format json | jq -r '.checks[] | select(.state == \"bad\") | .evidence'\n\n\
                        Exit codes: 0 nothing is bad, 1 error, 4 something is bad.")]
pub(crate) struct DoctorArgs {
    /// Measure the same cells again and again, compare them with themselves, and say which change can be seen here
    #[arg(long)]
    noise: bool,

    #[command(flatten)]
    noise_args: noise::NoiseArgs,

    #[command(flatten)]
    format: FormatArg,
}

/// `doctor --format json`, schema 1.
#[derive(Serialize)]
struct DoctorDocument<'a> {
    schema: u32,
    /// The worst state of all checks.
    state: &'static str,
    checks: Vec<CheckDocument<'a>>,
}

#[derive(Serialize)]
struct CheckDocument<'a> {
    group: &'static str,
    name: &'static str,
    state: &'static str,
    evidence: &'a str,
    advice: Option<&'a str>,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if self.noise {
            return noise::run(&self.noise_args, self.format.get());
        }
        let facts = look()?;
        let checks = diagnose::fitness(&facts);
        let worst = checks.iter().map(|check| check.state).max().unwrap_or(State::Unknown);
        match self.format.get() {
            Format::Table => print(&text::page(&facts, &checks, &text::Style::of_stdout()))?,
            Format::Json => print_json(&document(worst, &checks))?,
            format => print(&table(&checks).render(format))?,
        }
        Ok(if worst == State::Bad { Exit::InvalidMeasurement } else { Exit::Ok })
    }
}

fn look() -> anyhow::Result<Facts> {
    let cache = Cache::open()?;
    if std::io::stderr().is_terminal() {
        note(&format!("watching the machine for {} s …", WATCHED.as_secs()));
    }
    let mut facts = collect::fitness(cache.directory(), WATCHED);
    if std::io::stderr().is_terminal() {
        note("\r\x1b[K");
    }
    facts.io_uring = Some(driver::try_uring().map_err(|error| error.to_string()));
    Ok(facts)
}

fn document(worst: State, checks: &[Check]) -> DoctorDocument<'_> {
    let checks = checks.iter().map(|check| CheckDocument {
        group: check.group,
        name: check.name,
        state: check.state.name(),
        evidence: &check.evidence,
        advice: check.advice.as_deref(),
    });
    DoctorDocument { schema: 1, state: worst.name(), checks: checks.collect() }
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(["group", "check", "state", "evidence", "advice"]);
    for Check { group, name, state, evidence, advice } in checks {
        table.push(vec![
            (*group).to_owned(),
            (*name).to_owned(),
            state.name().to_owned(),
            evidence.clone(),
            advice.clone().unwrap_or_default(),
        ]);
    }
    table
}
