//! `pgdyno fleet status`: agents, queue, and what runs where.

use clap::Args;
use fleet::facts::{AgentState, AgentStatus};
use fleet::status::{FleetStatus, RunStatus};
use jiff::Timestamp;
use model::units::Size;
use plaintext::figures::{counted, duration};
use plaintext::table::{Format, GAP, Table};
use serde::Serialize;

use crate::exit::Exit;
use crate::fleet_args::FleetArgs;
use crate::output::{FormatArg, note, print, print_json, print_table};

/// Version of the JSON document.
const FORMAT: u32 = 1;

/// Show the agents of a fleet, its runs, and what runs where
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno fleet status\n  \
                        pgdyno fleet status --format json | jq -r '.agents[] | select(.state == \"idle\") | .facts.name'")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    format: FormatArg,
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    #[serde(flatten)]
    status: &'a FleetStatus,
}

impl StatusArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let status = self.fleet.connect("pgdyno fleet status")?.status()?;
        let format = self.format.get();
        if format == Format::Json {
            print_json(&Document { format: FORMAT, status: &status })?;
            return Ok(Exit::Ok);
        }
        if status.agents.is_empty() {
            note("no agent answers: start `pgdyno agent` on a machine of the fleet\n");
        } else {
            print_table(&agents(&status.agents), format)?;
        }
        if !status.runs.is_empty() {
            if format == Format::Table && !status.agents.is_empty() {
                print("\n")?;
            }
            print_table(&runs(&status.runs), format)?;
        }
        if format == Format::Table {
            notes(&status);
        }
        Ok(Exit::Ok)
    }
}

fn agents(agents: &[AgentStatus]) -> Table {
    let mut table = Table::new(["agent", "does", "labels", "#CPUs", "#memory", "kernel", "pgdyno"]);
    for AgentStatus { facts, state, is_draining, .. } in agents {
        let does = match state {
            AgentState::Idle if *is_draining => "stops".to_owned(),
            AgentState::Idle => "waits".to_owned(),
            AgentState::Load { agent, since } => {
                let seconds = Timestamp::now().duration_since(*since).as_secs_f64().max(0.0);
                format!("load for {agent}: {}", duration(seconds))
            }
            AgentState::Running { campaign, block, since, trials, .. } => {
                let seconds = Timestamp::now().duration_since(*since).as_secs_f64().max(0.0);
                format!("{campaign} {block}: {}, {}", counted(*trials, "trial"), duration(seconds))
            }
        };
        table.push(vec![
            facts.name.clone(),
            does,
            if facts.labels.is_empty() { GAP.to_owned() } else { facts.labels.join(" ") },
            facts.cpus.map_or_else(|| GAP.to_owned(), |cpus| cpus.to_string()),
            facts.memory_bytes.map_or_else(|| GAP.to_owned(), rounded),
            facts.kernel.clone(),
            facts.pgdyno_version.clone(),
        ]);
    }
    table
}

/// Bytes in whole gigabytes or megabytes.
fn rounded(bytes: u64) -> String {
    let unit = if bytes >= 1 << 30 { 30 } else { 20 };
    Size::from_bytes(bytes >> unit << unit).to_string()
}

fn runs(runs: &[RunStatus]) -> Table {
    let mut table =
        Table::new(["run", "campaign", "from", "#waiting", "#running", "#complete", "#set aside", "#trials"]);
    for RunStatus { run, waiting, running, complete, set_aside, trials } in runs {
        table.push(vec![
            run.run.clone(),
            run.campaign.clone(),
            run.coordinator.clone(),
            waiting.to_string(),
            running.len().to_string(),
            complete.to_string(),
            set_aside.len().to_string(),
            trials.to_string(),
        ]);
    }
    table
}

/// What needs attention.
fn notes(status: &FleetStatus) {
    for AgentStatus { facts, trouble, .. } in &status.agents {
        if let Some(trouble) = trouble {
            note(&format!("{}: {trouble}\n", facts.name));
        }
        for finding in &facts.findings {
            note(&format!("{}: {finding}\n", facts.name));
        }
    }
    for run in &status.runs {
        for (block, reasons) in &run.set_aside {
            note(&format!("block {block} of run {} was set aside: {}\n", run.run.run, reasons.join("; ")));
        }
    }
}
