//! From trials to the view: which cells stand side by side, and what their trials come to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use diagnose::{Confound, Facts, KernelOptions};
use model::cell::{Cell, Pin, SettingsVariant};
use model::factor::Factor;
use model::machine::SysctlVariant;
use model::plan::Plan;
use model::record::{Environment, Setting, Status, Trial};
use model::spec::Campaign;
use model::units::Rate;
use model::workload::{Custom, Workloads};
use stats::Sample;

use crate::beside::beside;
use crate::compare::figures;
use crate::emulation::notes;
use crate::environment;
use crate::metric::Metric;
use crate::profile::{Kind, Profile, TrialProfile, tree, way, way_off_cpu};
use crate::scalability;
use crate::spans::{lone_us, raw_read};
use crate::verdicts::judge_columns;
use crate::version;
use crate::view::{self, Spans, View};

/// What is known of a trial beside its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The machine.
    pub environment: Environment,
    /// The server's settings, mostly shared with other trials.
    pub settings: Arc<Vec<Setting>>,
    /// How its kernel was configured; none where that is not known, or it was no other kernel's than all trials'.
    pub kernel_options: Option<Arc<KernelOptions>>,
    /// Its profiles.
    pub profiles: Vec<TrialProfile>,
    /// Its transactions one by one, where they were kept.
    pub spans: Option<Spans>,
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
    let layout = Layout::of(&trials, &releases(&trials, surroundings));
    let confounds = find_confounds(&runs, surroundings);
    let columns = layout.columns.iter().map(|key| column(key, &layout, &trials, surroundings)).collect();
    let mut panels: Vec<view::Panel> =
        layout.panels.iter().map(|key| panel(key, &layout, &trials, surroundings)).collect();
    add_spans(&mut panels, &trials, surroundings);
    let cells: Vec<Cell> = layout.panels.iter().map(|key| key.0.clone()).collect();
    let comparisons = judge_columns(&mut panels, &cells, layout.columns.len());
    View {
        schema: view::SCHEMA,
        runs: runs.into_iter().map(|trials| run(&trials)).collect(),
        columns: unique_labels(columns),
        comparisons,
        profiles: profiles(&panels, surroundings),
        notes: notes(cells.iter().map(|cell| cell.acceleration)),
        panels,
        environment: view::Environment {
            confounds,
            ..environment::describe(&layout.columns, &trials, surroundings)
        },
    }
}

/// Puts to each trial its transactions one by one, and what a lone one takes.
fn add_spans(panels: &mut [view::Panel], trials: &[&Trial], surroundings: &BTreeMap<String, Surroundings>) {
    let of = |trial: &Trial| surroundings.get(&trial.id)?.spans.as_ref();
    let points = panels.iter_mut().flat_map(|panel| &mut panel.rows).flat_map(|row| &mut row.points);
    for shown in points.flatten().flat_map(|point| &mut point.runs) {
        let Some(trial) = trials.iter().find(|trial| trial.id == shown.id) else { continue };
        shown.spans = of(trial)
            .cloned()
            .map(|spans| Spans { lone_us: lone_us(&trial.cell, trials.iter().copied(), of), ..spans });
    }
}

/// The factors that tell columns apart.
pub(crate) const COLUMN: [Factor; 7] = [
    Factor::Server,
    Factor::Settings,
    Factor::Kernel,
    Factor::KernelArgs,
    Factor::Sysctl,
    Factor::Host,
    Factor::Pin,
];

/// What tells panels apart: a cell without its column and its row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PanelKey(Cell);

impl PanelKey {
    /// Factors that are named in a panel's title only where they are not as usual, or vary.
    const CONDITIONS: [Factor; 10] = [
        Factor::Acceleration,
        Factor::Cpus,
        Factor::Storage,
        Factor::Threads,
        Factor::Rate,
        Factor::Duration,
        Factor::Warmup,
        Factor::Cache,
        Factor::Memory,
        Factor::Disk,
    ];

    fn of(cell: &Cell) -> Self {
        let mut foreign = cell.foreign.clone();
        foreign.retain(|factor, _| !COLUMN.contains(factor) && *factor != Factor::Clients);
        Self(Cell {
            foreign,
            server: String::new(),
            settings: SettingsVariant { name: String::new(), values: BTreeMap::new() },
            kernel: None,
            kernel_args: String::new(),
            sysctl: SysctlVariant::none(),
            host: None,
            pin: Pin::none(),
            clients: 0,
            ..cell.clone()
        })
    }

    /// What is not as usual, and what other panels have otherwise.
    fn conditions(&self, panels: &[Self]) -> Vec<String> {
        let unusual = self.0.unusual();
        let says = |factor: Factor| {
            let level = factor.level(&self.0);
            let varies = panels.iter().any(|panel| factor.level(&panel.0) != level);
            let is_unusual = unusual.contains(&factor) && factor.known_level(&self.0).is_some();
            (varies || is_unusual).then(|| format!("{} {level}", factor.name()))
        };
        Self::CONDITIONS.into_iter().filter_map(says).collect()
    }
}

/// What tells columns apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKey(Cell);

impl ColumnKey {
    fn of(cell: &Cell) -> Self {
        let foreign = cell.foreign.iter().filter(|(factor, _)| COLUMN.contains(factor));
        Self(Cell {
            server: cell.server.clone(),
            settings: cell.settings.clone(),
            kernel: cell.kernel.clone(),
            kernel_args: cell.kernel_args.clone(),
            sysctl: cell.sysctl.clone(),
            host: cell.host.clone(),
            pin: cell.pin.clone(),
            foreign: foreign.map(|(factor, level)| (*factor, level.clone())).collect(),
            ..Cell::unknown()
        })
    }

    fn level(&self, factor: Factor) -> Option<String> {
        factor.known_level(&self.0)
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
    fn of(trials: &[&Trial], releases: &BTreeMap<String, String>) -> Self {
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
        put_kernels_in_order(&mut layout.columns, releases, |column| &column.0);
        layout
    }

    /// Whether the columns differ in a factor.
    fn vary(&self, factor: Factor) -> bool {
        self.columns.iter().any(|column| column.level(factor) != self.columns[0].level(factor))
    }
}

/// The cells that have trials, each once: those of a plan as the plan has them, those of an imported run as they were
/// written down, then others by version; but kernels in the order of their versions, after the first one, which is the
/// baseline.
pub(crate) fn in_order(trials: &[&Trial]) -> Vec<Cell> {
    let mut others: Vec<&Cell> = trials.iter().map(|trial| &trial.cell).collect();
    others.sort_by_cached_key(|cell| {
        let kernel = cell.kernel.as_deref().map(|kernel| version::place(kernel, None));
        (version::place(&cell.server, None), kernel, (*cell).clone())
    });
    others.dedup();
    let mut ordered: Vec<Cell> = Vec::new();
    for trials in runs(trials) {
        let cells = match trials[0].imported {
            Some(_) => trials.iter().map(|trial| trial.cell.clone()).collect(),
            None => plan(&trials).map(|plan| plan.cells).unwrap_or_default(),
        };
        ordered.extend(cells.into_iter().filter(|cell| others.contains(&cell)));
    }
    ordered.extend(others.into_iter().cloned());
    let mut known: BTreeSet<Cell> = BTreeSet::new();
    ordered.retain(|cell| known.insert(cell.clone()));
    put_kernels_in_order(&mut ordered, &BTreeMap::new(), |cell| cell);
    ordered
}

/// Among what differs in the kernel alone, puts kernels in their order; everything else stays where it is, and so does the
/// first kernel before all others. `releases` are those of kernels by their levels, as far as they are known.
fn put_kernels_in_order<T: Clone>(
    all: &mut [T],
    releases: &BTreeMap<String, String>,
    cell: impl Fn(&T) -> &Cell,
) {
    let level = |one: &T| Factor::Kernel.level(cell(one));
    let Some(baseline) = all.first().map(level) else { return };
    let mut alike: BTreeMap<Cell, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        let mut without = Cell { kernel: None, ..cell(one).clone() };
        without.foreign.remove(&Factor::Kernel);
        alike.entry(without).or_default().push(at);
    }
    for places in alike.into_values() {
        let mut sorted: Vec<T> = places.iter().map(|at| all[*at].clone()).collect();
        sorted.sort_by_cached_key(|one| {
            let level = level(one);
            let place = version::place(&level, releases.get(&level).map(String::as_str));
            (level != baseline, place)
        });
        for (at, one) in places.into_iter().zip(sorted) {
            all[at] = one;
        }
    }
}

/// The kernels that trials ran under, by the level of `kernel`; where a level was several kernels, one of them.
fn releases(trials: &[&Trial], surroundings: &BTreeMap<String, Surroundings>) -> BTreeMap<String, String> {
    let release = |trial: &&Trial| {
        let kernel = surroundings.get(&trial.id)?.environment.kernel.clone()?;
        Some((Factor::Kernel.known_level(&trial.cell)?, kernel))
    };
    trials.iter().filter_map(release).collect()
}

/// The trials by run; `trials` are sorted by run.
fn runs<'a>(trials: &[&'a Trial]) -> Vec<Vec<&'a Trial>> {
    trials.chunk_by(|a, b| a.run.id == b.run.id).map(<[_]>::to_vec).collect()
}

/// The plan that the run of some trials followed; none where this release can't read its campaign any more. Of a workload
/// that is not pgbench's it knows what the trials say.
pub(crate) fn plan(trials: &[&Trial]) -> Option<Plan> {
    let run = &trials.first()?.run;
    let campaign = Campaign::parse(&run.campaign_toml).ok()?;
    let mut workloads = Workloads::default();
    workloads.learn(trials.iter().map(|trial| &trial.cell.workload));
    let levels = campaign.workload_levels().map(|level| level.get_ref());
    for name in levels.chain(campaign.workloads.keys().map(|name| name.get_ref())) {
        workloads.0.entry(name.clone()).or_insert_with(|| Arc::new(Custom::unknown(name)));
    }
    Plan::with(&campaign, run.seed?, &workloads).ok()
}

fn run(trials: &[&Trial]) -> view::Run {
    let run = &trials[0].run;
    view::Run {
        id: run.id.clone(),
        campaign: run.campaign.clone(),
        campaign_toml: run.campaign_toml.clone(),
        seed: run.seed.map(|seed| seed.to_string()),
        imported: trials[0]
            .imported
            .as_ref()
            .map(|imported| imported.files.iter().map(|file| file.name.clone()).collect()),
        pgdyno_version: run.pgdyno_version.clone(),
        started: trials.iter().filter_map(|trial| trial.started).min(),
        ended: trials.iter().filter_map(|trial| trial.ended).max(),
        trials: trials.len(),
        plan: plan(trials).map(|plan| view::PlanFacts {
            trials: plan.trials.len(),
            duration: Factor::Duration.levels(&plan.cells).join(", "),
            warmup: Factor::Warmup.levels(&plan.cells).join(", "),
            repeats: plan.run.repeats.to_string(),
            order: plan.run.order,
        }),
    }
}

/// What a trial says of its server: the settings in force, and how it was built.
pub(crate) fn facts_of(trial: &Trial, known: &Surroundings) -> Facts {
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

/// The machine's facts. What a server says of itself is told by its settings and builds.
pub(crate) fn facts_of_machine(environment: &Environment) -> Facts {
    let machine = Environment { server: Default::default(), ..environment.clone() };
    let mut facts: Facts =
        machine.flatten().into_iter().map(|(name, value)| (format!("machine {name}"), value)).collect();
    if let Some(host) = &environment.hostname {
        facts.insert("machine hostname".to_owned(), host.clone());
    }
    facts
}

/// What tells which server a trial has, and under which kernel.
fn place(cell: &Cell) -> [String; COLUMN.len()] {
    COLUMN.map(|factor| factor.level(cell))
}

/// What differs between the levels that the runs compare, and is no factor of theirs.
fn find_confounds(
    runs: &[Vec<&Trial>],
    surroundings: &BTreeMap<String, Surroundings>,
) -> Vec<view::Confound> {
    let mut found: Vec<view::Confound> = Vec::new();
    for trials in runs {
        let Some(plan) = plan(trials) else { continue };
        let mut facts: HashMap<[String; COLUMN.len()], Facts> = HashMap::new();
        for trial in trials {
            let Some(known) = surroundings.get(&trial.id).filter(|known| !known.settings.is_empty()) else {
                continue;
            };
            facts.entry(place(&trial.cell)).or_insert_with(|| {
                let mut facts = facts_of_machine(&known.environment);
                facts.retain(|what, _| diagnose::comes_of_kernel(what));
                facts.extend(facts_of(trial, known));
                facts
            });
        }
        let confounds = diagnose::confounds(&plan, |cell| facts.get(&place(cell)));
        for Confound { factor, baseline, level, what, before, after } in confounds {
            let confound = view::Confound { factor: factor.name(), baseline, level, what, before, after };
            if !found.contains(&confound) {
                found.push(confound);
            }
        }
    }
    found
}

fn column(
    key: &ColumnKey,
    layout: &Layout,
    trials: &[&Trial],
    surroundings: &BTreeMap<String, Surroundings>,
) -> view::Column {
    let mut versions: Vec<String> = Vec::new();
    let mut banners: Vec<String> = Vec::new();
    let mut kernels: Vec<String> = Vec::new();
    for trial in trials.iter().filter(|trial| key.holds(&trial.cell)) {
        let kernel = surroundings.get(&trial.id).and_then(|known| known.environment.kernel.clone());
        let known = [
            (&trial.server_version, &mut versions),
            (&trial.server_banner, &mut banners),
            (&kernel, &mut kernels),
        ];
        for (answer, answers) in known {
            if let Some(answer) = answer.as_ref().filter(|answer| !answers.contains(answer)) {
                answers.push(answer.clone());
            }
        }
    }
    let (server, settings) = (key.level(Factor::Server), key.level(Factor::Settings));
    let version = versions.join(", ");
    let named = |name: &String| match name.starts_with(|c: char| c.is_ascii_digit()) {
        true if versions.is_empty() => format!("PostgreSQL {name}"),
        true => format!("PostgreSQL {version}"),
        false if versions.is_empty() => name.clone(),
        false => format!("{name} (PostgreSQL {version})"),
    };
    let mut label = server.as_ref().map(named).unwrap_or_default();
    let mut add = |factor: Factor, before: &str| {
        // Where nothing is known of the server, the rest is all there is to tell.
        if let Some(level) = key.level(factor).filter(|_| layout.vary(factor) || server.is_none()) {
            label += &format!("{before}{level}");
        }
    };
    add(Factor::Settings, " ");
    add(Factor::Kernel, ", kernel ");
    add(Factor::KernelArgs, ", kernel_args ");
    add(Factor::Sysctl, ", sysctl ");
    add(Factor::Host, ", on ");
    add(Factor::Pin, ", pin ");
    let label = match label.trim_start_matches([',', ' ']) {
        "" => "imported".to_owned(),
        label => label.to_owned(),
    };
    let levels = COLUMN.into_iter().filter_map(|factor| Some((factor.name(), key.level(factor)?))).collect();
    view::Column { label, server, settings, levels, versions, banners, kernels }
}

/// Numbers the columns that would have an earlier one's label: `18` and `18.1` may be the same server.
fn unique_labels(mut columns: Vec<view::Column>) -> Vec<view::Column> {
    for later in 1..columns.len() {
        let label = columns[later].label.clone();
        let earlier = columns[..later].iter().filter(|column| column.label == label).count();
        if earlier > 0 {
            columns[later].label = match &columns[later].server {
                Some(server) => format!("{label} (as {server})"),
                None => format!("{label} ({})", earlier + 1),
            };
        }
    }
    columns
}

fn panel(
    key: &PanelKey,
    layout: &Layout,
    trials: &[&Trial],
    surroundings: &BTreeMap<String, Surroundings>,
) -> view::Panel {
    let trials: Vec<&Trial> =
        trials.iter().copied().filter(|trial| PanelKey::of(&trial.cell) == *key).collect();
    let mut clients: Vec<Option<u32>> = trials.iter().map(|trial| clients_of(trial)).collect();
    clients.sort_unstable();
    clients.dedup();
    let rows: Vec<view::Row> = clients.into_iter().map(|clients| row(clients, layout, &trials)).collect();
    // With a rate, throughput is the schedule's.
    let sweep = |column: usize| if key.0.rate == Rate::MAX { scalability::of(&rows, column) } else { None };
    view::Panel {
        workload: Factor::Workload.known_level(&key.0),
        scale: Factor::Scale.known_level(&key.0).map(|_| key.0.scale),
        protocol: Factor::Protocol.known_level(&key.0),
        transport: Factor::Transport.known_level(&key.0),
        conditions: key.conditions(&layout.panels),
        database_bytes: trials.iter().filter_map(|trial| trial.database_bytes).max(),
        memory_bytes: memory_bytes(&trials, surroundings),
        scalability: (0..layout.columns.len()).map(sweep).collect(),
        rows,
    }
}

/// The memory that the servers of some trials could have, where it was the same for all.
fn memory_bytes(trials: &[&Trial], surroundings: &BTreeMap<String, Surroundings>) -> Option<u64> {
    let of = |trial: &&Trial| {
        let machine = surroundings.get(&trial.id)?.environment.memory_bytes?;
        let limit = trial.limits.as_ref().and_then(|limits| limits.memory_bytes);
        Some(limit.map_or(machine, |limit| limit.min(machine)))
    };
    let first = trials.first().and_then(of)?;
    trials.iter().all(|trial| of(trial) == Some(first)).then_some(first)
}

fn profiles(panels: &[view::Panel], surroundings: &BTreeMap<String, Surroundings>) -> Vec<view::Profile> {
    let mut profiles = Vec::new();
    for (panel, rows) in panels.iter().map(|panel| &panel.rows).enumerate() {
        for row in rows {
            for (column, point) in row.points.iter().enumerate() {
                for kind in Kind::ALL {
                    let parts: Vec<TrialProfile> = point
                        .iter()
                        .flat_map(|point| &point.runs)
                        .filter(|run| run.validity != Status::Invalid.name())
                        .filter_map(|run| surroundings.get(&run.id))
                        .flat_map(|known| known.profiles.iter().filter(|profile| profile.kind == kind))
                        .cloned()
                        .collect();
                    let Some(profile) = Profile::of(&parts) else { continue };
                    let first = profile.taken.first();
                    let taken = match kind {
                        Kind::OnCpu => first.map(|taken| way(taken, taken.lost)),
                        Kind::OffCpu => first.and_then(way_off_cpu),
                    };
                    profiles.push(view::Profile {
                        kind: kind.name(),
                        panel,
                        clients: row.clients,
                        column,
                        taken: taken.unwrap_or_default(),
                        us_per_sample: profile.us_per_sample,
                        transactions: profile.transactions,
                        reservations: profile.reservations(),
                        roles: profile.stacks.iter().map(tree).collect(),
                        trials: profile.trials,
                    });
                }
            }
        }
    }
    profiles
}

fn clients_of(trial: &Trial) -> Option<u32> {
    Factor::Clients.known_level(&trial.cell).map(|_| trial.cell.clients)
}

fn row(clients: Option<u32>, layout: &Layout, trials: &[&Trial]) -> view::Row {
    let points = layout
        .columns
        .iter()
        .map(|column| {
            let of_cell = |trial: &&&Trial| clients_of(trial) == clients && column.holds(&trial.cell);
            point(trials.iter().filter(of_cell).copied().collect())
        })
        .collect();
    view::Row { clients, points }
}

fn point(mut trials: Vec<&Trial>) -> Option<view::Point> {
    if trials.is_empty() {
        return None;
    }
    trials.sort_by(|a, b| (&a.run.id, a.repeat, a.attempt).cmp(&(&b.run.id, b.repeat, b.attempt)));
    let tps = figures::runs(&trials, |trial| Metric::Tps.of_head(trial)).values;
    let instructions = figures::runs(&trials, |trial| Metric::Instructions.of_head(trial)).values;
    let class = stats::Cell::of(&tps).and_then(|cell| cell.class());
    let first_run_apart = stats::first_run_apart(&tps);
    let n = tps.len();
    let sample = Sample::of(tps);
    Some(view::Point {
        n,
        median: sample.as_ref().map(Sample::median),
        min: sample.as_ref().map(Sample::minimum),
        max: sample.as_ref().map(Sample::maximum),
        instructions: Sample::of(instructions).as_ref().map(Sample::median),
        class: class.map(|class| class.to_string()),
        first_run_apart: first_run_apart.map(|ratio| ratio - 1.0),
        verdict: None,
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
        findings: trial.validity.findings.iter().map(view::Finding::of).collect(),
        tps: summary.map(|summary| summary.tps),
        instructions_per_transaction: summary.and_then(|summary| summary.instructions_per_transaction),
        transactions: summary.and_then(|summary| summary.transactions),
        failed: summary.and_then(|summary| summary.failed),
        latency: summary.and_then(|summary| summary.latency.as_ref()).map(view::Latency::of),
        beside: summary.map(|summary| summary.beside.iter().map(beside).collect()).unwrap_or_default(),
        commit_surplus: trial.accounting.surplus(),
        raw_read: trial.raw_read.as_ref().map(raw_read),
        spans: None,
    }
}
