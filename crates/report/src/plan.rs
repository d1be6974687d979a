//! A plan as text, table and JSON.

use crate::chart::Terminal;
use crate::text_width::fitted;
use analysis::power::PowerCheck;
use diagnose::Confound;
use model::cell::Cell;
use model::dataset::OwnDatabase;
use model::factor::Factor;
use model::load_hosts::RequestedHosts;
use model::plan::{Order, Plan, PlannedTrial, RunSettings};
use model::server::ServerSpec;
use model::workload::Custom;
use plaintext::figures::{bytes, counted, duration};
use plaintext::table::{Format, Table};
use serde::Serialize;

/// Factors that the table shows even if all cells have the same level.
const ALWAYS_SHOWN: [Factor; 5] =
    [Factor::Server, Factor::Settings, Factor::Workload, Factor::Scale, Factor::Clients];

/// Digits of a hash that tell databases apart.
const HASH_DIGITS: usize = 12;

/// `plan --format json`, schema 2.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    schema: u32,
    campaign: &'a str,
    tags: &'a [String],
    run: RunSettings,
    /// The hosts that the load comes from; absent for this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_hosts: Option<&'a RequestedHosts>,
    /// Seconds.
    estimated_s: f64,
    servers: &'a [ServerSpec],
    cells: &'a [Cell],
    trials: &'a [PlannedTrial],
    /// The workloads other than pgbench's.
    workloads: Vec<&'a Custom>,
    confounds: Vec<ConfoundDocument<'a>>,
    /// Power of the comparisons; null if nothing is compared, or the noise is unknown.
    power: Option<&'a PowerCheck>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ConfoundDocument<'a> {
    #[cfg_attr(test, schemars(with = "String"))]
    factor: Factor,
    baseline: &'a str,
    level: &'a str,
    what: &'a str,
    before: &'a str,
    after: &'a str,
}

impl<'a> Document<'a> {
    /// Document of a plan, with the known confounds and power of its comparisons.
    pub fn new(plan: &'a Plan, confounds: &'a [Confound], power: Option<&'a PowerCheck>) -> Self {
        let confound = |Confound { factor, baseline, level, what, before, after }: &'a Confound| {
            ConfoundDocument { factor: *factor, baseline, level, what, before, after }
        };
        Self {
            schema: 2,
            campaign: &plan.campaign,
            tags: &plan.tags,
            run: plan.run,
            load_hosts: plan.load_hosts.as_ref(),
            estimated_s: plan.estimate().seconds(),
            servers: &plan.servers,
            cells: &plan.cells,
            trials: &plan.trials,
            workloads: plan.custom_workloads(),
            confounds: confounds.iter().map(confound).collect(),
            power,
        }
    }
}

/// The plan in the format; as a table, which fits a terminal, with its size and its workloads before.
pub fn text(plan: &Plan, format: Format, terminal: Option<Terminal>) -> String {
    let trials = table(plan);
    if format != Format::Table {
        return trials.render(format);
    }
    let width = terminal.map_or(usize::MAX, |terminal| terminal.width);
    fitted(&format!("{}{}\n", headline(plan), workloads(plan)), terminal) + &trials.fitted(width)
}

/// `quick: 20 cells × 3 repeats = 60 trials of 10s (warm-up 2s), about 3 min in all; seed 1`.
///
/// Of paired trials: `quick: 8 cells in 4 comparisons, 3 to 500 sessions each until it is decided, about 2 s a session, at most
/// 4 min in all; seed 1`.
pub fn headline(plan: &Plan) -> String {
    if plan.run.order == Order::Bisect {
        let most = plan.run.max_time.map(|time| format!(", at most {} in all", duration(time.seconds())));
        return format!(
            "{}: bisection of {}, as many sessions as find the change{}; seed {}\n",
            plan.campaign,
            counted(plan.comparisons().len(), "level"),
            most.unwrap_or_default(),
            plan.run.seed
        );
    }
    if plan.run.order == Order::Paired {
        let comparisons = plan.comparisons().len();
        let sessions = plan.trials.len().div_ceil(2).max(1);
        let most = plan.run.max_time.map(|time| format!(", at most {} in all", duration(time.seconds())));
        let until = if plan.run.repeats.min < plan.run.repeats.max { " until it is decided" } else { "" };
        return format!(
            "{}: {} cells in {}, {} sessions each{until}, about {} a session{}; seed {}\n",
            plan.campaign,
            plan.cells.len(),
            counted(comparisons, "comparison"),
            plan.run.repeats,
            duration(plan.estimate().seconds() / sessions as f64),
            most.unwrap_or_default(),
            plan.run.seed
        );
    }
    let from = match plan.load_hosts.as_ref().map(RequestedHosts::count) {
        None => String::new(),
        Some(1) => "; load from another host".to_owned(),
        Some(count) => format!("; load from {count} hosts"),
    };
    format!(
        "{}: {} cells × {} repeats = {} trials of {} (warm-up {}), about {} in all{from}; seed {}\n",
        plan.campaign,
        plan.cells.len(),
        plan.run.repeats,
        plan.trials.len(),
        durations(plan),
        Factor::Warmup.levels(&plan.cells).join(", "),
        duration(plan.estimate().seconds()),
        plan.run.seed
    )
}

/// Durations of the measured windows, such as `10s, 60s`.
fn durations(plan: &Plan) -> String {
    let (iterating, timed): (Vec<Cell>, Vec<Cell>) =
        plan.cells.iter().cloned().partition(|cell| cell.workload.ends_by_itself());
    let mut durations = Factor::Duration.levels(&timed);
    if !iterating.is_empty() {
        durations.push("as long as their iterations or traces take".to_owned());
    }
    durations.join(", ")
}

/// `on the dump shop (1a2b3c4d5e6f, 34 MB)`.
fn on_database(own: &OwnDatabase) -> String {
    let hash = own.content.iter().map(|hash| hash.chars().take(HASH_DIGITS).collect());
    let facts: Vec<String> = hash.chain(own.bytes.map(bytes)).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("on the {} {}{facts}", own.kind.in_words(), own.name)
}

/// The workloads other than pgbench's that have a description, a database or background workloads, a line each.
fn workloads(plan: &Plan) -> String {
    let line = |custom: &Custom| {
        let background = custom.background.iter().map(|background| {
            let rate = background.rate.get().map(|rate| format!(" at {rate}/s")).unwrap_or_default();
            let start = (!background.start.is_zero()).then(|| format!(" from {} on", background.start));
            let (name, start) = (background.workload.name(), start.unwrap_or_default());
            format!("{name} (clients: {}{rate}{start})", background.clients)
        });
        let background = background.collect::<Vec<_>>().join(", ");
        let background = (!background.is_empty()).then(|| format!("in the background {background}"));
        let own = custom.dataset.as_ref().map(on_database);
        let phases: Vec<&str> = custom.phases.iter().map(|phase| phase.name.as_str()).collect();
        let phases =
            custom.judged_phase().map(|judged| format!("phases {} (judged: {judged})", phases.join(", ")));
        let background = background.filter(|_| phases.is_none());
        let parts: Vec<String> =
            custom.description.clone().into_iter().chain(own).chain(phases).chain(background).collect();
        (!parts.is_empty()).then(|| format!("{}: {}\n", custom.name, parts.join("; ")))
    };
    let lines: String = plan.custom_workloads().into_iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A row for each trial, in their order.
fn table(plan: &Plan) -> Table {
    let varied = Factor::varied(&plan.cells);
    let shown: Vec<Factor> = Factor::ALL
        .into_iter()
        .filter(|factor| ALWAYS_SHOWN.contains(factor) || varied.contains(factor))
        .collect();
    let mark = |factor: &Factor| if factor.is_number() { "#" } else { "" };
    let heads = shown.iter().map(|factor| format!("{}{}", mark(factor), factor.name()));
    let mut table = Table::new(["#trial", "#repeat"].map(str::to_owned).into_iter().chain(heads));
    for trial in &plan.trials {
        let cell = plan.cell(trial);
        let mut row = vec![trial.position.to_string(), trial.repeat.to_string()];
        row.extend(shown.iter().map(|factor| factor.shown_level(cell)));
        table.push(row);
    }
    table
}
