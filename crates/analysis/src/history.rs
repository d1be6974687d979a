//! When did it change? The series of each cell over versions, commits, kernels or dates, its change points, and what
//! changed together. The rules are the crate `stats`'.

mod accept;
mod error;
mod gate;
mod git;
mod of_run;
mod series;
mod steps;

use std::collections::HashMap;
use std::path::Path;

use model::acceptance::Acceptance;
use model::metrics::Kind;
use model::record::{Status, Trial};
use plaintext::figures::counted;
use stats::{ChangePoint, Event};
use store::{Store, StoreError};

use crate::compare::{Gate, reasons};
use crate::judgement::{Direction, Outcome, Runs, is_usable};
use crate::levels::Levels;
use crate::metric::{Metric, metrics_like};
use crate::select::Selector;
use steps::Keys;

pub use accept::Decision;
pub use error::HistoryError;
pub use gate::GateOutcome;
pub use of_run::histories_of_run;
pub use steps::{Order, Over, Step};

/// What history is asked for.
pub struct Request<'a> {
    /// The figure.
    pub metric: Metric,
    /// What it goes over.
    pub over: Over,
    /// Which trials; of all runs where it does not say.
    pub selector: Selector,
    /// What each figure is taken relative to: levels of the cell that is the control.
    pub control: Option<Selector>,
    /// Steps that are left out, by key or label.
    pub without: Vec<String>,
    /// Changes that are too much.
    pub gates: Vec<Gate>,
    /// Gates look at changes in so many of the newest steps; none for all.
    pub newest: Option<usize>,
    /// Repository that orders commits; without it, what their trials recorded does.
    pub repository: Option<&'a Path>,
}

/// A metric over steps.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The metric.
    pub metric: Metric,
    /// Whether it is a counter or a gauge; none of what is not collected.
    pub kind: Option<Kind>,
    /// What the figures are relative to, as it was written.
    pub control: Option<String>,
    /// What it goes over.
    pub over: Over,
    /// As it was written; empty for all trials.
    pub selector: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Why they have it.
    pub order: Order,
    /// One for each cell.
    pub series: Vec<Series>,
    /// What changed, in order of place.
    pub shifts: Vec<Shift>,
    /// The acceptances that shifts are accepted by, and others of this metric that fit none.
    pub accepted: Vec<Acceptance>,
    /// What the gates come to.
    pub gates: Vec<GateOutcome>,
    /// Gates looked at changes in so many of the newest steps; none for all.
    pub newest: Option<usize>,
    /// What was selected.
    pub trials: Selected,
}

/// The trials of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// How many, those of the control and those left out included.
    pub trials: usize,
    /// Of how many runs.
    pub runs: usize,
    /// Of which campaigns.
    pub campaigns: Vec<String>,
    /// The gates that made trials invalid, each with the number of its trials.
    pub invalid: Vec<(String, usize)>,
    /// The gates that made trials suspect, each with the number of its trials.
    pub suspect: Vec<(String, usize)>,
    /// How many do not say at which step they are.
    pub without_step: usize,
    /// The labels of steps that were left out because somebody said so.
    pub without: Vec<String>,
    /// How many have no control in their run, and so no figure.
    pub without_control: usize,
}

/// The series of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its levels in all factors but the one that the history goes over.
    pub cell: Levels,
    /// One for each step: its runs, with figures relative to the control where there is one.
    pub points: Vec<Runs>,
    /// The medians of the points.
    pub medians: Vec<Option<f64>>,
    /// Whether it was searched for changes.
    pub tested: Tested,
    /// Its change points, in order.
    pub changes: Vec<ChangePoint>,
    /// For each change point, the place of what it is accepted by.
    pub accepted: Vec<Option<usize>>,
}

/// Whether a series was searched for change points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// It was.
    Yes,
    /// It has too few points.
    FewPoints,
    /// A point is zero or less, which has no ratio.
    NoRatio,
    /// It was emulated in real time: its figures are of the machines that emulated it.
    Emulated,
    /// No run has the figure.
    NoFigure,
    /// No trial may be used.
    Invalid,
}

/// What changed at one place, in one cell or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Its change points with the places of their series.
    pub event: Event,
    /// Which way.
    pub outcome: Outcome,
}

/// A change of this ratio, as a verdict.
fn outcome(ratio: f64) -> Outcome {
    let direction = if ratio < 1.0 { Direction::Lower } else { Direction::Higher };
    Outcome::Change { direction, unstable: false }
}

impl Shift {
    fn new(event: Event) -> Self {
        Self { outcome: outcome(event.ratio), event }
    }

    /// For each change point, the place of what it is accepted by.
    pub fn accepted(&self, history: &History) -> Vec<Option<usize>> {
        let acceptance = |(series, change): &(usize, ChangePoint)| {
            let series = &history.series[*series];
            let place = series.changes.iter().position(|other| other == change)?;
            series.accepted[place]
        };
        self.event.changes.iter().map(acceptance).collect()
    }
}

impl History {
    /// Whether a gate is hit.
    pub fn hits_a_gate(&self) -> bool {
        self.gates.iter().any(|gate| !gate.hit.is_empty())
    }

    /// The verdict on a change point.
    pub fn name_of(&self, change: &ChangePoint) -> &'static str {
        outcome(change.effect.ratio).name(self.metric.better())
    }

    /// Whether a cell has no trial that may be used.
    pub fn is_invalid(&self) -> bool {
        self.series.iter().any(|series| series.tested == Tested::Invalid)
    }
}

/// What a trial has to say.
struct Read {
    figure: Option<f64>,
    kind: Option<Kind>,
    /// The kernel of the machine.
    kernel: Option<String>,
}

/// The history of a metric.
///
/// # Errors
/// Nothing is selected, the trials do not say where they stand or would be averaged over different things, or a bundle
/// can't be read.
pub fn history(store: &Store, request: &Request<'_>) -> Result<History, HistoryError> {
    check(request)?;
    let all = store.trials()?;
    let selected = request.selector.trials_of_all_runs(store, &all)?;
    let controls = controls(request, &all, &selected);
    let (read, collected) = read(store, request, selected.iter().chain(&controls).copied())?;

    let keys = Keys::new(request.over, &selected);
    let mut trials: Vec<(&Trial, String)> = Vec::new();
    let mut about = about(&selected);
    for trial in selected.iter().copied().filter(|trial| !is_control(request, trial)) {
        let kernel = read.get(trial.id.as_str()).and_then(|read| read.kernel.as_deref());
        match keys.key(trial, kernel) {
            Some(key) => trials.push((trial, key)),
            None => about.without_step += 1,
        }
    }
    some_are_left(request, &trials, &about)?;
    let no_order = |refs| {
        let path = request.repository.unwrap_or(Path::new("")).to_owned();
        HistoryError::Repository { path, refs }
    };
    let (mut steps, order) = keys.steps(&trials, request.repository).map_err(no_order)?;
    for wanted in &request.without {
        let step = steps.remove(step(&steps, wanted)?);
        trials.retain(|(_, of)| *of != step.key);
        about.without.push(step.label);
    }

    let figure = |trial: &Trial| read.get(trial.id.as_str()).and_then(|read| read.figure);
    if read.values().all(|read| read.figure.is_none()) && !read.is_empty() {
        let known = metrics_like(&request.metric, &collected);
        return Err(HistoryError::NoFigure { metric: request.metric.clone(), known });
    }
    let relative = match &request.control {
        None => HashMap::new(),
        Some(control) => series::relative(control, &trials, &controls, figure),
    };
    let figure = |trial: &Trial| match request.control {
        None => figure(trial),
        Some(_) => relative.get(trial.id.as_str()).copied(),
    };
    if let Some(control) = &request.control {
        let usable = || trials.iter().filter(|(trial, _)| is_usable(trial));
        about.without_control = usable().filter(|(trial, _)| figure(trial).is_none()).count();
        if relative.is_empty() {
            return Err(HistoryError::NoControl { control: control.to_string() });
        }
    }
    let series = series::of_cells(request.over, &steps, &trials, figure)?;
    let changes: Vec<Vec<ChangePoint>> = series.iter().map(|series| series.changes.clone()).collect();
    let mut history = History {
        metric: request.metric.clone(),
        kind: read.values().find_map(|read| read.kind),
        control: request.control.as_ref().map(ToString::to_string),
        over: request.over,
        selector: request.selector.to_string(),
        steps,
        order,
        series,
        shifts: stats::events(&changes).into_iter().map(Shift::new).collect(),
        accepted: Vec::new(),
        gates: Vec::new(),
        newest: request.newest,
        trials: about,
    };
    history.mark_accepted(store.acceptances()?);
    history.gates = request.gates.iter().map(|gate| gate::outcome(gate, &history)).collect();
    Ok(history)
}

fn check(request: &Request<'_>) -> Result<(), HistoryError> {
    if let Some(control) = request.control.as_ref().filter(|control| !control.is_levels_alone()) {
        return Err(HistoryError::Control(control.to_string()));
    }
    match request.gates.iter().find(|gate| gate.metric != request.metric) {
        None => Ok(()),
        Some(gate) => Err(HistoryError::Gate {
            gate: gate.to_string(),
            of: gate.metric.clone(),
            metric: request.metric.clone(),
        }),
    }
}

fn is_control(request: &Request<'_>, trial: &Trial) -> bool {
    request.control.as_ref().is_some_and(|control| control.has_levels_of(trial))
}

/// The control's trials in the runs that are selected, whether or not they are selected themselves.
fn controls<'a>(request: &Request<'_>, all: &'a [Trial], selected: &[&Trial]) -> Vec<&'a Trial> {
    let runs: std::collections::HashSet<&str> = selected.iter().map(|trial| trial.run.id.as_str()).collect();
    all.iter().filter(|trial| is_control(request, trial) && runs.contains(trial.run.id.as_str())).collect()
}

/// Values of the trials, and the names of all metrics that were collected. Bundles are read
/// whole only where heads do not say it.
fn read<'a>(
    store: &Store,
    request: &Request<'_>,
    trials: impl Iterator<Item = &'a Trial>,
) -> Result<(HashMap<&'a str, Read>, Vec<String>), StoreError> {
    let (mut read, mut collected) = (HashMap::new(), Vec::new());
    for trial in trials {
        let asks_machine = request.over == Over::Kernel && trial.imported.is_none();
        if !is_usable(trial) && !asks_machine || read.contains_key(trial.id.as_str()) {
            continue;
        }
        let of_trial = match (request.metric.needs_record(), asks_machine) {
            (false, false) => Read { figure: request.metric.head_value(trial), kind: None, kernel: None },
            (false, true) => Read {
                figure: request.metric.head_value(trial).filter(|_| is_usable(trial)),
                kind: None,
                kernel: store.environment(&trial.id)?.kernel,
            },
            (true, _) => {
                let record = store.load(&trial.id)?;
                collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                collected.sort_unstable();
                collected.dedup();
                Read {
                    figure: request.metric.value(&record).filter(|_| is_usable(trial)),
                    kind: request.metric.kind(&record),
                    kernel: record.environment.kernel,
                }
            }
        };
        read.insert(trial.id.as_str(), of_trial);
    }
    Ok((read, collected))
}

fn about(selected: &[&Trial]) -> Selected {
    let distinct = |of: &dyn Fn(&Trial) -> String| {
        let mut all: Vec<String> = selected.iter().map(|trial| of(trial)).collect();
        all.sort();
        all.dedup();
        all
    };
    Selected {
        trials: selected.len(),
        runs: distinct(&|trial| trial.run.id.clone()).len(),
        campaigns: distinct(&|trial| trial.run.campaign.clone()),
        invalid: reasons(selected, Status::Invalid),
        suspect: reasons(selected, Status::Suspect),
        without_step: 0,
        without: Vec::new(),
        without_control: 0,
    }
}

fn some_are_left(
    request: &Request<'_>,
    trials: &[(&Trial, String)],
    about: &Selected,
) -> Result<(), HistoryError> {
    match &request.control {
        _ if !trials.is_empty() => Ok(()),
        Some(control) if about.without_step == 0 => {
            Err(HistoryError::OnlyControl { control: control.to_string() })
        }
        _ => Err(HistoryError::NoStep {
            trials: counted(about.without_step, "trial"),
            over: request.over,
            next: match request.over {
                Over::Commit => {
                    "a commit is the `ref` of a server that its campaign builds from a git repository; else go over \
                     version or date"
                }
                Over::Date => "`pgdyno import csv --started` takes it from a column",
                Over::Version | Over::Kernel => {
                    "it was imported without; `pgdyno import --set` or `--factor` says it of a file"
                }
            },
        }),
    }
}

/// The place of a step that is named by its key or label, or of a run by the beginning of its id.
fn step(steps: &[Step], wanted: &str) -> Result<usize, HistoryError> {
    let exactly = steps.iter().position(|step| step.key == wanted || step.label == wanted);
    let begins = |step: &&Step| step.key != step.label && step.key.starts_with(&wanted.to_ascii_uppercase());
    let alone = match steps.iter().filter(begins).count() {
        1 => steps.iter().position(|step| begins(&step)),
        _ => None,
    };
    exactly.or(alone).ok_or_else(|| {
        let known: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
        HistoryError::UnknownStep { wanted: wanted.to_owned(), known: known.join(", ") }
    })
}
