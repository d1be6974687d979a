//! From trials to the view: which cells stand side by side, and what their trials come to.

use std::collections::BTreeMap;

use model::plan::{Cell, Plan, SettingsVariant};
use model::record::{Environment, Setting, Status, Trial};
use model::spec::Campaign;
use model::workload::{Protocol, Transport, Workload};
use stats::Sample;

use crate::environment;
use crate::view::{self, View};

/// What is known of a trial beside its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The machine.
    pub environment: Environment,
    /// The server's settings.
    pub settings: Vec<Setting>,
}

/// Makes the view of some trials; `surroundings` are by the trial's id, and may lack some.
///
/// Panels are the combinations of workload, scale, protocol and transport; columns those of server and settings; rows
/// the numbers of clients; all in the order of the campaign. Every trial is shown, and only those that are not invalid
/// are used. Cells that have no trial are gaps: nothing is averaged over cells.
pub fn analyse(trials: &[Trial], surroundings: &BTreeMap<String, Surroundings>) -> View {
    let mut trials: Vec<&Trial> = trials.iter().collect();
    trials.sort_by(|a, b| (&a.run.id, a.position, &a.id).cmp(&(&b.run.id, b.position, &b.id)));
    let runs = runs(&trials);
    let layout = Layout::of(&trials);
    let columns = layout.columns.iter().map(|key| column(key, &layout, &trials)).collect();
    View {
        schema: view::SCHEMA,
        runs: runs.into_iter().map(|trials| run(&trials)).collect(),
        columns: unique_labels(columns),
        panels: layout.panels.iter().map(|key| panel(key, &layout, &trials)).collect(),
        environment: environment::describe(&layout.columns, &trials, surroundings),
    }
}

/// What tells panels apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PanelKey {
    workload: Workload,
    scale: u32,
    protocol: Protocol,
    transport: Transport,
}

impl PanelKey {
    fn of(cell: &Cell) -> Self {
        Self {
            workload: cell.workload,
            scale: cell.scale,
            protocol: cell.protocol,
            transport: cell.transport,
        }
    }
}

/// What tells columns apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKey {
    server: String,
    settings: SettingsVariant,
}

impl ColumnKey {
    pub(crate) fn holds(&self, cell: &Cell) -> bool {
        self.server == cell.server && self.settings == cell.settings
    }
}

/// Panels and columns that have trials, in order.
struct Layout {
    panels: Vec<PanelKey>,
    columns: Vec<ColumnKey>,
}

impl Layout {
    fn of(trials: &[&Trial]) -> Self {
        let mut layout = Self { panels: Vec::new(), columns: Vec::new() };
        for cell in in_order(trials) {
            let panel = PanelKey::of(&cell);
            if !layout.panels.contains(&panel) {
                layout.panels.push(panel);
            }
            if !layout.columns.iter().any(|column| column.holds(&cell)) {
                layout.columns.push(ColumnKey { server: cell.server, settings: cell.settings });
            }
        }
        layout
    }

    fn settings_vary(&self) -> bool {
        self.columns.iter().any(|column| column.settings.name != self.columns[0].settings.name)
    }
}

/// The cells that have trials: those of a plan as the plan has them, then others by version.
fn in_order(trials: &[&Trial]) -> Vec<Cell> {
    let mut others: Vec<&Cell> = trials.iter().map(|trial| &trial.cell).collect();
    others.sort_by_cached_key(|cell| (version_key(&cell.server), (*cell).clone()));
    others.dedup();
    let mut ordered: Vec<Cell> = Vec::new();
    for trials in runs(trials) {
        let planned = plan(trials[0]).map(|plan| plan.cells).unwrap_or_default();
        ordered.extend(planned.into_iter().filter(|cell| others.contains(&cell)));
    }
    ordered.extend(others.into_iter().cloned());
    ordered
}

/// Sorts `9.6` before `18`.
fn version_key(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// The trials by run; `trials` are sorted by run.
fn runs<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
    trials.chunk_by(|a, b| a.run.id == b.run.id).map(<[_]>::to_vec).collect()
}

/// The plan that a trial's run followed; none where this release can't read its campaign any more.
fn plan(trial: &Trial) -> Option<Plan> {
    let campaign = Campaign::parse(&trial.run.campaign_toml).ok()?;
    Plan::of(&campaign, trial.run.seed).ok()
}

fn run(trials: &[&Trial]) -> view::Run {
    let run = &trials[0].run;
    let started = trials.iter().fold(trials[0].started, |first, trial| first.min(trial.started));
    let ended = trials.iter().fold(trials[0].ended, |last, trial| last.max(trial.ended));
    view::Run {
        id: run.id.clone(),
        campaign: run.campaign.clone(),
        campaign_toml: run.campaign_toml.clone(),
        seed: run.seed.to_string(),
        pgdyno_version: run.pgdyno_version.clone(),
        started,
        ended,
        trials: trials.len(),
        plan: plan(trials[0]).map(|plan| view::PlanFacts {
            trials: plan.trials.len(),
            duration_us: plan.run.duration.us(),
            warmup_us: plan.run.warmup.us(),
            repeats: plan.run.repeats,
            order: plan.run.order,
            threads: plan.run.threads,
        }),
    }
}

fn column(key: &ColumnKey, layout: &Layout, trials: &[&Trial]) -> view::Column {
    let mut versions: Vec<String> = Vec::new();
    let mut banners: Vec<String> = Vec::new();
    for trial in trials.iter().filter(|trial| key.holds(&trial.cell)) {
        let known = [(&trial.server_version, &mut versions), (&trial.server_banner, &mut banners)];
        for (answer, answers) in known {
            if let Some(answer) = answer.as_ref().filter(|answer| !answers.contains(answer)) {
                answers.push(answer.clone());
            }
        }
    }
    let version = if versions.is_empty() { key.server.clone() } else { versions.join(", ") };
    let settings = match layout.settings_vary() {
        true => format!(" {}", key.settings.name),
        false => String::new(),
    };
    view::Column {
        label: format!("PostgreSQL {version}{settings}"),
        server: key.server.clone(),
        settings: key.settings.name.clone(),
        versions,
        banners,
    }
}

/// Numbers the columns that would have an earlier one's label: `18` and `18.1` may be the same server.
fn unique_labels(mut columns: Vec<view::Column>) -> Vec<view::Column> {
    for later in 1..columns.len() {
        let label = columns[later].label.clone();
        let earlier = columns[..later].iter().filter(|column| column.label == label).count();
        if earlier > 0 {
            columns[later].label = format!("{label} (as {})", columns[later].server);
        }
    }
    columns
}

fn panel(key: &PanelKey, layout: &Layout, trials: &[&Trial]) -> view::Panel {
    let trials: Vec<&Trial> =
        trials.iter().copied().filter(|trial| PanelKey::of(&trial.cell) == *key).collect();
    let mut clients: Vec<u32> = trials.iter().map(|trial| trial.cell.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    view::Panel {
        workload: key.workload.name(),
        scale: key.scale,
        protocol: key.protocol.name(),
        transport: key.transport.name(),
        database_bytes: trials.iter().filter_map(|trial| trial.database_bytes).max(),
        rows: clients.into_iter().map(|clients| row(clients, layout, &trials)).collect(),
    }
}

fn row(clients: u32, layout: &Layout, trials: &[&Trial]) -> view::Row {
    let mut points: Vec<Option<view::Point>> = layout
        .columns
        .iter()
        .map(|column| {
            let of_cell = |trial: &&&Trial| trial.cell.clients == clients && column.holds(&trial.cell);
            point(trials.iter().filter(of_cell).copied().collect())
        })
        .collect();
    let baseline = points.first().and_then(Option::as_ref).and_then(|point| point.median);
    for point in points.iter_mut().skip(1).flatten() {
        point.change = change(point.median, baseline);
    }
    view::Row { clients, points }
}

fn change(median: Option<f64>, baseline: Option<f64>) -> Option<f64> {
    let baseline = baseline.filter(|baseline| *baseline > 0.0)?;
    Some(median? / baseline - 1.0)
}

fn point(mut trials: Vec<&Trial>) -> Option<view::Point> {
    if trials.is_empty() {
        return None;
    }
    trials.sort_by(|a, b| (&a.run.id, a.repeat, a.attempt).cmp(&(&b.run.id, b.repeat, b.attempt)));
    let usable = |trial: &&&Trial| trial.validity.status != Status::Invalid;
    let tps: Vec<f64> =
        trials.iter().filter(usable).filter_map(|trial| trial.summary.as_ref()).map(|s| s.tps).collect();
    let n = tps.len();
    let sample = Sample::of(tps);
    Some(view::Point {
        n,
        median: sample.as_ref().map(Sample::median),
        min: sample.as_ref().map(Sample::minimum),
        max: sample.as_ref().map(Sample::maximum),
        change: None,
        runs: trials.into_iter().map(trial).collect(),
    })
}

fn trial(trial: &Trial) -> view::Trial {
    let summary = trial.summary.as_ref();
    view::Trial {
        id: trial.id.clone(),
        run: trial.run.id.clone(),
        repeat: trial.repeat,
        attempt: trial.attempt,
        position: trial.position,
        started: trial.started,
        validity: trial.validity.status.name(),
        findings: trial
            .validity
            .findings
            .iter()
            .map(|finding| view::Finding {
                gate: finding.gate.clone(),
                validity: finding.status.name(),
                evidence: finding.evidence.clone(),
            })
            .collect(),
        tps: summary.map(|summary| summary.tps),
        transactions: summary.map(|summary| summary.transactions),
        failed: summary.map(|summary| summary.failed),
        latency: summary.and_then(|summary| summary.latency.as_ref()).map(|latency| view::Latency {
            mean_us: latency.mean_us,
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
        }),
        commit_surplus: trial.accounting.surplus(),
    }
}
