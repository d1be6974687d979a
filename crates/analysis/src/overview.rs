//! Overview of some trials: the cells next to each other, with the results of their trials.

mod answers;
mod bisections;
mod cpu_cause;
mod environment;
mod findings;
mod paired;
mod parts;
mod read;
mod scalability;
mod statements;
mod verdicts;
pub mod view;

use std::collections::{BTreeMap, HashMap};

use diagnose::{Confound, Facts};
use model::cell::{Levels as _, RecordedCell};
use model::factor::{Factor, Place};
use model::merit::Merit;
use model::metrics::Better;
use model::record::{Status, Trial};
use stats::Sample;

use crate::context::TrialContext;
use crate::emulation::notes;
use crate::facts::{facts_of, facts_of_machine};
use crate::judgement::runs as runs_of;
use crate::layout::{ColumnKey, Layout, PanelKey, clients_of, column_levels, plan, releases, runs};
use crate::metric::{Metric, better, figures, presentation};
use crate::profile::{Kind, Profile, TrialProfile, description, off_cpu_description, trees};
use crate::spans::{Spans, lone_us};
use answers::{answer_alone, answers_on_columns};
use bisections::{answer_on_bisection, bisections};
use paired::{paired_cells, paired_comparisons};
use parts::{own_figure, phase, script};
use statements::compared_statements;
use verdicts::judge_columns;
use view::View;

pub use answers::explain_answers;
pub use findings::by_cause;
pub use read::{read, read_run, read_trials};

/// Creates the view of some trials; `contexts` are by trial id, and may lack some.
///
/// Panels are the combinations of workload, scale, protocol and transport; columns those of server and settings; rows
/// the numbers of clients; all in the order of the campaign. All trials are shown, and all but invalid ones are used.
/// Cells without a trial are gaps: nothing is averaged over cells.
pub fn overview(trials: &[Trial], contexts: &BTreeMap<String, TrialContext>) -> View {
    let mut trials: Vec<&Trial> = trials.iter().collect();
    trials.sort_by(|a, b| (&a.run.id, a.position, &a.id).cmp(&(&b.run.id, b.position, &b.id)));
    let runs = runs(&trials);
    let layout = Layout::new(&trials, &releases(&trials, contexts));
    let confounds = find_confounds(&runs, contexts);
    let columns = layout.columns.iter().map(|key| column(key, &layout, &trials, contexts)).collect();
    let columns = unique_labels(columns);
    let mut panels: Vec<view::Panel> =
        layout.panels.iter().map(|key| panel(key, &layout, &trials, contexts)).collect();
    add_spans(&mut panels, &trials, contexts);
    let cells: Vec<RecordedCell> = layout.panels.iter().map(|key| key.0.clone()).collect();
    let paired = paired_cells(&trials);
    let judged = judge_columns(&mut panels, &cells, layout.columns.len(), &trials, contexts, &paired);
    let (paired, of_pairs) = paired_comparisons(&paired, &layout, &columns, &trials);
    let statements = compared_statements(&panels, &columns, &trials, contexts);
    let bisections = bisections(&runs, contexts, &layout, &panels);
    let mut answers: Vec<view::Answer> =
        bisections.iter().map(|one| answer_on_bisection(one, &panels, &trials)).collect();
    // What a bisection compares on its way is no answer.
    if bisections.len() < runs.len() {
        answers.extend(answers_on_columns(&judged, &columns, &panels, &confounds, &trials));
        answers.extend(of_pairs);
    }
    answers.extend(answer_alone(&columns, &panels).filter(|_| answers.is_empty()));
    answers.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.size.total_cmp(&a.size)));
    View {
        schema: view::SCHEMA,
        findings: by_cause(panels.iter().flat_map(view::Panel::findings)),
        runs: runs.into_iter().map(|trials| run(&trials)).collect(),
        bisections,
        paired,
        statements,
        columns,
        answers,
        profiles: profiles(&panels, contexts),
        notes: notes(cells.iter().filter_map(|cell| cell.acceleration.into_known())),
        panels,
        environment: view::Environment {
            confounds,
            ..environment::describe(&layout.columns, &trials, contexts)
        },
        left_out: Vec::new(),
        made_by: None,
    }
}

/// Adds to each trial its transactions, and the duration of a lone one.
fn add_spans(panels: &mut [view::Panel], trials: &[&Trial], contexts: &BTreeMap<String, TrialContext>) {
    let spans_of = |trial: &Trial| contexts.get(&trial.id)?.spans.as_ref();
    let points = panels.iter_mut().flat_map(|panel| &mut panel.rows).flat_map(|row| &mut row.points);
    for shown in points.flatten().flat_map(|point| &mut point.runs) {
        let Some(trial) = trials.iter().find(|trial| trial.id == shown.id) else { continue };
        shown.spans = spans_of(trial)
            .cloned()
            .map(|spans| Spans { lone_us: lone_us(&trial.cell, trials.iter().copied(), spans_of), ..spans });
    }
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

/// Differences between the levels that the runs compare, other than declared factors.
fn find_confounds(runs: &[Vec<&Trial>], contexts: &BTreeMap<String, TrialContext>) -> Vec<view::Confound> {
    let mut found: Vec<view::Confound> = Vec::new();
    for trials in runs {
        let Some(plan) = plan(trials) else { continue };
        let mut facts: HashMap<Vec<String>, Facts> = HashMap::new();
        for trial in trials {
            let Some(known) = contexts.get(&trial.id).filter(|known| !known.settings.is_empty()) else {
                continue;
            };
            facts.entry(column_levels(&trial.cell)).or_insert_with(|| {
                let mut facts = facts_of_machine(&known.environment);
                facts.retain(|what, _| diagnose::is_kernel_fact(what));
                facts.extend(facts_of(trial, known));
                facts
            });
        }
        let confounds = diagnose::confounds(&plan, |cell| facts.get(&column_levels(cell)));
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
    contexts: &BTreeMap<String, TrialContext>,
) -> view::Column {
    let mut versions: Vec<String> = Vec::new();
    let mut banners: Vec<String> = Vec::new();
    let mut kernels: Vec<String> = Vec::new();
    for trial in trials.iter().filter(|trial| key.holds(&trial.cell)) {
        let kernel = contexts.get(&trial.id).and_then(|known| known.environment.kernel.clone());
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
        // If the server is unknown, the label consists of the other factors.
        if let Some(level) = key.level(factor).filter(|_| layout.vary(factor) || server.is_none()) {
            label += &format!("{before}{level}");
        }
    };
    for factor in Factor::at(Place::Column) {
        match factor {
            Factor::Server => {}
            Factor::Settings => add(factor, " "),
            Factor::Host => add(factor, ", on "),
            _ => add(factor, &format!(", {} ", factor.name())),
        }
    }
    let label = match label.trim_start_matches([',', ' ']) {
        "" => "imported".to_owned(),
        label => label.to_owned(),
    };
    let levels =
        Factor::at(Place::Column).filter_map(|factor| Some((factor.name(), key.level(factor)?))).collect();
    view::Column { label, server, settings, levels, versions, banners, kernels }
}

/// Makes labels of columns unique: `18` and `18.1` may be the same server.
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
    contexts: &BTreeMap<String, TrialContext>,
) -> view::Panel {
    let trials: Vec<&Trial> =
        trials.iter().copied().filter(|trial| PanelKey::new(&trial.cell) == *key).collect();
    let mut clients: Vec<Option<u32>> = trials.iter().map(|trial| clients_of(trial)).collect();
    clients.sort_unstable();
    clients.dedup();
    let figures = CellFigures {
        merit: Merit::of(&key.0),
        scripts: Metric::of_scripts(&key.0),
        phases: Metric::of_phases(&key.0),
        own: Metric::own(&key.0),
        contexts,
    };
    let mut rows: Vec<view::Row> =
        clients.into_iter().map(|clients| row(clients, layout, &trials, &figures)).collect();
    if figures.merit == Merit::Length {
        add_ratios_to_one_client(&mut rows);
    }
    // Latency has no knee.
    let sweep = |column: usize| match figures.merit.better() {
        Better::Higher => scalability::fit(&rows, column),
        _ => None,
    };
    let presentation = presentation(figures.merit);
    let own = key.0.own_database();
    view::Panel {
        workload: Factor::Workload.known_level(&key.0),
        scale: key.0.scale.into_known().filter(|_| own.is_none()),
        dataset: own.map(|own| own.name.clone()),
        protocol: Factor::Protocol.known_level(&key.0),
        transport: Factor::Transport.known_level(&key.0),
        conditions: key.conditions(&layout.panels),
        database_bytes: trials.iter().filter_map(|trial| trial.database_bytes).max(),
        memory_bytes: memory_bytes(&trials, contexts),
        scalability: (0..layout.columns.len()).map(sweep).collect(),
        figure: view::Figure {
            metric: Metric::of(figures.merit).to_string(),
            label: presentation.label,
            unit: presentation.unit,
            better: better(figures.merit),
            secondary: presentation.secondary,
        },
        rows,
    }
}

/// Memory available to the trials' servers, if it was the same for all.
fn memory_bytes(trials: &[&Trial], contexts: &BTreeMap<String, TrialContext>) -> Option<u64> {
    let memory_of = |trial: &&Trial| {
        let machine = contexts.get(&trial.id)?.environment.memory_bytes?;
        let limit = trial.limits.as_ref().and_then(|limits| limits.memory_bytes);
        Some(limit.map_or(machine, |limit| limit.min(machine)))
    };
    let first = trials.first().and_then(memory_of)?;
    trials.iter().all(|trial| memory_of(trial) == Some(first)).then_some(first)
}

fn profiles(panels: &[view::Panel], contexts: &BTreeMap<String, TrialContext>) -> Vec<view::Profile> {
    let mut profiles = Vec::new();
    for (panel, rows) in panels.iter().map(|panel| &panel.rows).enumerate() {
        for row in rows {
            for (column, point) in row.points.iter().enumerate() {
                for kind in Kind::ALL {
                    let parts: Vec<TrialProfile> = point
                        .iter()
                        .flat_map(|point| &point.runs)
                        .filter(|run| run.validity != Status::Invalid.as_str())
                        .filter_map(|run| contexts.get(&run.id))
                        .flat_map(|known| known.profiles.iter().filter(|profile| profile.kind == kind))
                        .cloned()
                        .collect();
                    let Some(profile) = Profile::merge(&parts) else { continue };
                    let first = profile.taken.first();
                    let taken = match kind {
                        Kind::OnCpu => first.map(|taken| description(taken, taken.lost)),
                        Kind::OffCpu => first.and_then(off_cpu_description),
                    };
                    profiles.push(view::Profile {
                        kind: kind.name(),
                        panel,
                        clients: row.clients,
                        column,
                        taken: taken.unwrap_or_default(),
                        us_per_sample: profile.us_per_sample,
                        counted: profile.is_counted(),
                        transactions: profile.transactions,
                        reservations: profile.limitations(),
                        roles: trees(&profile),
                        trials: profile.trials,
                    });
                }
            }
        }
    }
    profiles
}

/// The figures of a panel's cells.
struct CellFigures<'a> {
    merit: Merit,
    /// What its scripts are judged by.
    scripts: Vec<Metric>,
    /// What its phases are judged by.
    phases: Vec<Metric>,
    /// The figures of its workload's own.
    own: Vec<Metric>,
    contexts: &'a BTreeMap<String, TrialContext>,
}

impl CellFigures<'_> {
    /// The figure of a trial and the one next to it, as shown.
    fn of(&self, trial: &Trial) -> [Option<f64>; 2] {
        let factor = presentation(self.merit).factor;
        let context = self.contexts.get(&trial.id);
        let blocks = context.and_then(|known| known.blocks);
        let scripts = context.map_or(&[][..], |known| &known.scripts);
        figures(self.merit, trial, blocks, scripts).map(|figure| Some(figure? * factor))
    }

    fn scripts(&self, trial: &Trial) -> Vec<view::Script> {
        let known = self.contexts.get(&trial.id).into_iter().flat_map(|known| &known.scripts);
        known.map(view::Script::new).collect()
    }
}

/// The lengths of transactions as multiples of those with one client.
fn add_ratios_to_one_client(rows: &mut [view::Row]) {
    let means = |row: &view::Row| -> Vec<Option<f64>> {
        row.points.iter().map(|point| point.as_ref()?.mean).collect()
    };
    let Some(alone) = rows.iter().find(|row| row.clients == Some(1)).map(means) else { return };
    for row in rows {
        for (point, alone) in row.points.iter_mut().zip(&alone) {
            if let Some(point) = point {
                point.secondary = point.mean.zip(*alone).map(|(mean, alone)| mean / alone);
            }
        }
    }
}

fn row(clients: Option<u32>, layout: &Layout, trials: &[&Trial], figures: &CellFigures<'_>) -> view::Row {
    let points = layout
        .columns
        .iter()
        .map(|column| {
            let of_cell = |trial: &&&Trial| clients_of(trial) == clients && column.holds(&trial.cell);
            point(trials.iter().filter(of_cell).copied().collect(), figures)
        })
        .collect();
    view::Row { clients, points }
}

fn point(mut trials: Vec<&Trial>, figures: &CellFigures<'_>) -> Option<view::Point> {
    if trials.is_empty() {
        return None;
    }
    trials.sort_by(|a, b| (&a.run.id, a.repeat, a.attempt).cmp(&(&b.run.id, b.repeat, b.attempt)));
    let [shown, secondary] = [0, 1].map(|which| runs_of(&trials, |trial| figures.of(trial)[which]).values);
    let spread = Metric::of(figures.merit).spread();
    let class = stats::Cell::new(&shown).and_then(|cell| cell.with_spread(spread).class());
    let first_run_apart = stats::first_run_apart(&shown);
    let is_paired = trials.iter().any(|trial| trial.paired.is_some());
    let n = shown.len();
    let sample = Sample::new(shown);
    Some(view::Point {
        n,
        mean: sample.as_ref().and_then(Sample::geometric_mean),
        min: sample.as_ref().map(Sample::minimum),
        max: sample.as_ref().map(Sample::maximum),
        secondary: Sample::new(secondary).as_ref().and_then(Sample::geometric_mean),
        // Sessions of pairs are compared with each other, not with those of before: their spread says nothing.
        class: class.filter(|_| !is_paired).map(|class| class.to_string()),
        first_run_apart: first_run_apart.filter(|_| !is_paired).map(|ratio| ratio - 1.0),
        verdict: None,
        scripts: figures
            .scripts
            .iter()
            .filter_map(|metric| script(metric, &trials, figures.contexts))
            .collect(),
        phases: figures.phases.iter().filter_map(|metric| phase(metric, &trials)).collect(),
        figures: figures.own.iter().map(|metric| own_figure(metric, &trials)).collect(),
        runs: trials.into_iter().map(|one| trial(one, figures)).collect(),
    })
}

fn trial(trial: &Trial, figures: &CellFigures<'_>) -> view::Trial {
    let summary = trial.summary.as_ref();
    view::Trial {
        id: trial.id.clone(),
        run: trial.run.id.clone(),
        repeat: trial.repeat,
        attempt: trial.attempt,
        position: trial.position,
        started: trial.started,
        validity: trial.validity.status.as_str(),
        findings: trial.validity.findings.iter().map(view::Finding::new).collect(),
        figure: figures.of(trial)[0],
        tps: summary.map(|summary| summary.tps),
        instructions_per_transaction: summary.and_then(|summary| summary.instructions_per_transaction),
        transactions: summary.and_then(|summary| summary.transactions),
        failed: summary.and_then(|summary| summary.failed),
        latency: summary.and_then(|summary| summary.latency.as_ref()).map(view::Latency::new),
        background: summary
            .map(|summary| summary.background.iter().map(view::Background::new).collect())
            .unwrap_or_default(),
        scripts: figures.scripts(trial),
        phases: view::Phase::of(trial),
        figures: trial.figures.clone(),
        commit_surplus: trial.accounting.surplus(),
        raw_read: trial.raw_read.as_ref().map(view::RawRead::new),
        spans: None,
    }
}
