//! From trials to the view: which cells stand side by side, and what their trials come to.

use std::collections::{BTreeMap, HashMap};

use diagnose::{Confound, Facts};
use model::factor::Factor;
use model::plan::{Cell, Pin, Plan, SettingsVariant};
use model::record::{Environment, Setting, Status, Trial};
use model::spec::Campaign;
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
    let confounds = find_confounds(&runs, surroundings);
    let columns = layout.columns.iter().map(|key| column(key, &layout, &trials)).collect();
    View {
        schema: view::SCHEMA,
        runs: runs.into_iter().map(|trials| run(&trials)).collect(),
        columns: unique_labels(columns),
        panels: layout.panels.iter().map(|key| panel(key, &layout, &trials)).collect(),
        environment: view::Environment {
            confounds,
            ..environment::describe(&layout.columns, &trials, surroundings)
        },
    }
}

/// What tells panels apart: a cell without its column and its row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PanelKey(Cell);

impl PanelKey {
    /// Factors that are not named in every panel's title, with the level that goes without saying.
    const CONDITIONS: [(Factor, &'static str); 7] = [
        (Factor::Threads, "1"),
        (Factor::Rate, "max"),
        (Factor::Duration, ""),
        (Factor::Warmup, ""),
        (Factor::Cache, "warm"),
        (Factor::Memory, "none"),
        (Factor::Disk, "none"),
    ];

    fn of(cell: &Cell) -> Self {
        Self(Cell {
            server: String::new(),
            settings: SettingsVariant { name: String::new(), values: BTreeMap::new() },
            kernel: None,
            host: None,
            pin: Pin::none(),
            clients: 0,
            ..cell.clone()
        })
    }

    /// What is not as usual, and what other panels have otherwise.
    fn conditions(&self, panels: &[Self]) -> Vec<String> {
        let says = |factor: Factor, usual: &str| {
            let level = factor.level(&self.0);
            let varies = panels.iter().any(|panel| factor.level(&panel.0) != level);
            let unusual = !usual.is_empty() && level != usual;
            (varies || unusual).then(|| format!("{} {level}", factor.name()))
        };
        Self::CONDITIONS.into_iter().filter_map(|(factor, usual)| says(factor, usual)).collect()
    }
}

/// What tells columns apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKey {
    server: String,
    settings: SettingsVariant,
    kernel: Option<String>,
    host: Option<String>,
    pin: Pin,
}

impl ColumnKey {
    fn of(cell: &Cell) -> Self {
        Self {
            server: cell.server.clone(),
            settings: cell.settings.clone(),
            kernel: cell.kernel.clone(),
            host: cell.host.clone(),
            pin: cell.pin.clone(),
        }
    }

    pub(crate) fn holds(&self, cell: &Cell) -> bool {
        *self == Self::of(cell)
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
                layout.columns.push(ColumnKey::of(&cell));
            }
        }
        layout
    }

    /// Whether the columns differ in something.
    fn vary<T: PartialEq>(&self, of: impl Fn(&ColumnKey) -> T) -> bool {
        self.columns.iter().any(|column| of(column) != of(&self.columns[0]))
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
            duration: Factor::Duration.levels(&plan.cells).join(", "),
            warmup: Factor::Warmup.levels(&plan.cells).join(", "),
            repeats: plan.run.repeats.to_string(),
            order: plan.run.order,
        }),
    }
}

/// What a trial says of its server: the settings in force, and how it was built.
fn facts_of(trial: &Trial, known: &Surroundings) -> Facts {
    let mut facts = diagnose::facts_of_settings(&known.settings);
    let config = known.environment.server.pg_config.as_ref();
    for (name, key) in [("build CFLAGS", "CFLAGS"), ("build configure", "CONFIGURE")] {
        if let Some(value) = config.and_then(|config| config.get(key)) {
            facts.insert(name.to_owned(), value.clone());
        }
    }
    // `version()` ends in "…, compiled by gcc (GCC) 7.5.0, 64-bit".
    let compiler = trial.server_banner.as_ref().and_then(|banner| banner.split_once("compiled by "));
    if let Some((compiler, _)) = compiler.and_then(|(_, rest)| rest.rsplit_once(',')) {
        facts.insert("build CC".to_owned(), compiler.to_owned());
    }
    facts
}

/// What differs between the levels that the runs compare, and is no factor of theirs.
fn find_confounds(
    runs: &[Vec<&Trial>],
    surroundings: &BTreeMap<String, Surroundings>,
) -> Vec<view::Confound> {
    let mut found: Vec<view::Confound> = Vec::new();
    for trials in runs {
        let Some(plan) = plan(trials[0]) else { continue };
        let mut facts: HashMap<(String, String), Facts> = HashMap::new();
        for trial in trials {
            let Some(known) = surroundings.get(&trial.id).filter(|known| !known.settings.is_empty()) else {
                continue;
            };
            facts
                .entry((trial.cell.server.clone(), trial.cell.settings.name.clone()))
                .or_insert_with(|| facts_of(trial, known));
        }
        let confounds =
            diagnose::confounds(&plan, |cell| facts.get(&(cell.server.clone(), cell.settings.name.clone())));
        for Confound { factor, baseline, level, what, before, after } in confounds {
            let confound = view::Confound { factor: factor.name(), baseline, level, what, before, after };
            if !found.contains(&confound) {
                found.push(confound);
            }
        }
    }
    found
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
    let is_version = key.server.starts_with(|c: char| c.is_ascii_digit());
    let mut label = match is_version {
        true => format!("PostgreSQL {version}"),
        false => format!("{} (PostgreSQL {version})", key.server),
    };
    if layout.vary(|column| column.settings.name.clone()) {
        label += &format!(" {}", key.settings.name);
    }
    if layout.vary(|column| column.kernel.clone()) {
        label += &format!(", kernel {}", key.kernel.as_deref().unwrap_or("any"));
    }
    if layout.vary(|column| column.host.clone()) {
        label += &format!(", on {}", key.host.as_deref().unwrap_or("any host"));
    }
    if layout.vary(|column| column.pin.name.clone()) {
        label += &format!(", pin {}", key.pin.name);
    }
    view::Column { label, server: key.server.clone(), settings: key.settings.name.clone(), versions, banners }
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
        workload: key.0.workload.name(),
        scale: key.0.scale,
        protocol: key.0.protocol.name(),
        transport: key.0.transport.name(),
        conditions: key.conditions(&layout.panels),
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
                threshold: finding.threshold.clone(),
                advice: finding.advice.clone(),
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
