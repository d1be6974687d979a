//! `pgdyno fleet status`: agents, runs, and what needs attention.

use jiff::Timestamp;
use model::fleet::{AgentState, AgentStatus, FleetStatus, RunStatus};
use model::units::Size;
use plaintext::figures::{counted, duration};
use plaintext::table::{GAP, Table};
use serde::Serialize;

/// Version of the document.
const SCHEMA: u32 = 1;

/// The JSON document.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Version of the document.
    schema: u32,
    #[serde(flatten)]
    status: &'a FleetStatus,
}

impl<'a> Document<'a> {
    /// That of a fleet.
    pub fn new(status: &'a FleetStatus) -> Self {
        Self { schema: SCHEMA, status }
    }
}

/// A row for each agent, as of `now`.
pub fn agents(agents: &[AgentStatus], now: Timestamp) -> Table {
    let mut table = Table::new(["agent", "does", "labels", "#CPUs", "#memory", "kernel", "pgdyno"]);
    for AgentStatus { facts, state, is_draining, .. } in agents {
        table.push(vec![
            facts.name.clone(),
            does(state, *is_draining, now),
            if facts.labels.is_empty() { GAP.to_owned() } else { facts.labels.join(" ") },
            facts.cpus.map_or_else(|| GAP.to_owned(), |cpus| cpus.to_string()),
            facts.memory_bytes.map_or_else(|| GAP.to_owned(), rounded),
            facts.kernel.clone(),
            facts.pgdyno_version.clone(),
        ]);
    }
    table
}

/// What an agent does.
fn does(state: &AgentState, is_draining: bool, now: Timestamp) -> String {
    let since = |since: Timestamp| duration(now.duration_since(since).as_secs_f64().max(0.0));
    match state {
        AgentState::Idle if is_draining => "stops".to_owned(),
        AgentState::Idle => "waits".to_owned(),
        AgentState::Load { agent, since: at } => format!("load for {agent}: {}", since(*at)),
        AgentState::Running { campaign, block, since: at, trials, .. } => {
            format!("{campaign} {block}: {}, {}", counted(*trials, "trial"), since(*at))
        }
    }
}

/// Bytes in whole gigabytes or megabytes.
fn rounded(bytes: u64) -> String {
    let unit = if bytes >= 1 << 30 { 30 } else { 20 };
    Size::from_bytes(bytes >> unit << unit).to_string()
}

/// A row for each run.
pub fn runs(runs: &[RunStatus]) -> Table {
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

/// What needs attention, a sentence each.
pub fn notes(status: &FleetStatus) -> Vec<String> {
    let of_agents = status.agents.iter().flat_map(|AgentStatus { facts, trouble, .. }| {
        trouble.iter().chain(&facts.findings).map(|note| format!("{}: {note}", facts.name))
    });
    let of_runs = status.runs.iter().flat_map(|RunStatus { run, set_aside, .. }| {
        set_aside.iter().map(|aside| {
            format!("block {} of run {} was set aside: {}", aside.block, run.run, aside.reasons.join("; "))
        })
    });
    of_agents.chain(of_runs).collect()
}
