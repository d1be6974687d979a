//! Changes over time: the series of each cell over versions, commits, kernels or dates, its change points, and common
//! changes. The rules are those of the crate `stats`.

mod accept;
mod error;
mod gate;
mod git;
mod run_histories;
mod series;
mod steps;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use model::acceptance::Acceptance;
use model::merit::Merit;
use model::metrics::Kind;
use model::record::{Status, Trial};
use plaintext::figures::counted;
use stats::{ChangePoint, Event};
use store::StoreReader;

use crate::compare::{Gate, Gates, reasons};
use crate::judgement::{Direction, Outcome, Refusal, Runs, is_usable};
use crate::levels::Levels;
use crate::metric::{Metric, metrics_like};
use crate::select::{Selector, trials_of_any};
use steps::Keys;

pub use accept::Decision;
pub use error::HistoryError;
pub use gate::GateOutcome;
pub use run_histories::run_histories;
pub use steps::{HistoryAxis, Order, Step};

/// A history to compute.
pub struct Request<'a> {
    /// The metric.
    pub metric: Metric,
    /// The axis of the history.
    pub over: HistoryAxis,
    /// The trials, those of any of them; without one, all trials of the store. Those whose schedule decides the metric are
    /// left out.
    pub selectors: Vec<Selector>,
    /// Whether to leave out cells that are judged by another metric.
    pub only_own: bool,
    /// Levels that identify the control, to which figures are relative.
    pub control: Option<Selector>,
    /// Steps to omit, by key or label.
    pub without: Vec<String>,
    /// Bounds on changes.
    pub gates: Vec<Gate>,
    /// Gates check changes in this many of the newest steps; `None` for all.
    pub newest: Option<usize>,
    /// Repository that orders commits; without it, the positions that trials recorded do.
    pub repository: Option<&'a Path>,
}

/// A metric over steps.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The metric.
    pub metric: Metric,
    /// Counter or gauge; `None` for a metric that is not collected.
    pub kind: Option<Kind>,
    /// The control that figures are relative to, as written.
    pub control: Option<String>,
    /// The axis of the history.
    pub over: HistoryAxis,
    /// The selectors as written, separated by spaces; empty for all trials.
    pub selector: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The reason for that order.
    pub order: Order,
    /// One series per cell.
    pub series: Vec<Series>,
    /// The changes, in order of position.
    pub shifts: Vec<Shift>,
    /// The acceptances that match shifts, and others of this metric that match none.
    pub accepted: Vec<Acceptance>,
    /// Outcomes of the gates.
    pub gates: Vec<GateOutcome>,
    /// Gates checked changes in this many of the newest steps; `None` for all.
    pub newest: Option<usize>,
    /// The selected trials.
    pub trials: Selected,
}

/// The trials of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// Number of trials, including those of the control and of omitted steps.
    pub trials: usize,
    /// Number of runs.
    pub runs: usize,
    /// Names of the campaigns.
    pub campaigns: Vec<String>,
    /// The gates that made trials invalid, each with its number of trials.
    pub invalid: Vec<(String, usize)>,
    /// The gates that made trials suspect, each with its number of trials.
    pub suspect: Vec<(String, usize)>,
    /// Number of trials without a known step.
    pub without_step: usize,
    /// Labels of steps that were omitted on request.
    pub without: Vec<String>,
    /// Number of trials without a control in their run, and so without a figure.
    pub without_control: usize,
    /// Number of trials that were left out, as their schedule decides the metric.
    pub scheduled: usize,
}

/// The series of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its levels in all factors except the axis of the history.
    pub cell: Levels,
    /// The runs of each step, with figures relative to the control if there is one.
    pub points: Vec<Runs>,
    /// The medians of the points.
    pub medians: Vec<Option<f64>>,
    /// Whether it was searched for change points.
    pub tested: Tested,
    /// Its change points, in order.
    pub changes: Vec<ChangePoint>,
    /// For each change point, the index of its acceptance.
    pub accepted: Vec<Option<usize>>,
}

/// Whether a series was searched for change points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// It was searched.
    Yes,
    /// It has too few points.
    FewPoints,
    /// A point is zero or negative, and has no ratio.
    NoRatio,
    /// It was emulated in real time: its figures depend on the emulating machines.
    Emulated,
    /// No run has the figure.
    NoFigure,
    /// It has no usable trial.
    Invalid,
}

/// A change at one position, in one cell or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Its change points with the indices of their series.
    pub event: Event,
    /// Direction of the change.
    pub outcome: Outcome,
}

/// The verdict for a change with this ratio.
fn outcome(ratio: f64) -> Outcome {
    let direction = if ratio < 1.0 { Direction::Lower } else { Direction::Higher };
    Outcome::Change { direction, unstable: false }
}

impl Shift {
    fn new(event: Event) -> Self {
        Self { outcome: outcome(event.ratio), event }
    }

    /// For each change point, the index of its acceptance.
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
    /// Whether any gate is hit, or not decided.
    pub fn gates_state(&self) -> Gates {
        Gates::new(self.gates.iter().map(|gate| (!gate.hit.is_empty(), !gate.undecided.is_empty())))
    }

    /// The verdict on a change point.
    pub fn verdict_on(&self, change: &ChangePoint) -> Outcome {
        outcome(change.effect.ratio)
    }

    /// Name of the verdict on a change point.
    pub fn name_of(&self, change: &ChangePoint) -> &'static str {
        self.verdict_on(change).name(self.metric.better())
    }

    /// Whether a cell has no usable trial.
    pub fn is_invalid(&self) -> bool {
        self.series.iter().any(|series| series.tested == Tested::Invalid)
    }
}

/// The data read from a trial.
struct TrialData {
    figure: Option<f64>,
    kind: Option<Kind>,
    /// Kernel of the machine.
    kernel: Option<String>,
}

/// The metric that the cells of these trials are judged by, all trials without a selector.
///
/// # Errors
/// Nothing is selected, or cells are judged by different metrics.
pub fn default_metric(reader: &StoreReader, selectors: &[Selector]) -> Result<Metric, HistoryError> {
    let selected = trials_of_any(reader, selectors)?;
    let merits: BTreeSet<Merit> = selected.iter().map(|trial| Merit::of(&trial.cell)).collect();
    let metrics: Vec<Metric> = merits.into_iter().map(Metric::of).collect();
    match metrics.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(HistoryError::SeveralMetrics { metrics }),
    }
}

/// Computes the history of a metric.
///
/// # Errors
/// Nothing is selected or can be read, or the trials have no known step or would be averaged over different servers.
pub fn history(reader: &StoreReader, request: &Request<'_>) -> Result<History, HistoryError> {
    check(request)?;
    let mut selected = trials_of_any(reader, &request.selectors)?;
    selected.retain(|trial| !request.only_own || Metric::of(Merit::of(&trial.cell)) == request.metric);
    let before = selected.len();
    selected.retain(|trial| !request.metric.is_scheduled(&trial.cell));
    let scheduled = before - selected.len();
    if selected.is_empty() {
        let known = Refusal::Scheduled.in_words().to_owned();
        return Err(HistoryError::NoFigure { metric: request.metric.clone(), known });
    }
    let mut controls = controls(request, reader.trials(), &selected);
    let (read, collected) = read(reader, request, selected.iter().chain(&controls).copied());
    let first = selected.first().map(|trial| trial.id.as_str());
    selected.retain(|trial| !reader.is_left_out(&trial.id));
    controls.retain(|trial| !reader.is_left_out(&trial.id));
    if let Some(first) = first.filter(|_| selected.is_empty()) {
        return Err(HistoryError::Unreadable(Box::new(reader.error(first))));
    }

    let keys = Keys::new(request.over, &selected);
    let mut trials: Vec<(&Trial, String)> = Vec::new();
    let mut summary = Selected { scheduled, ..summarize(&selected) };
    for trial in selected.iter().copied().filter(|trial| !is_control(request, trial)) {
        let kernel = read.get(trial.id.as_str()).and_then(|read| read.kernel.as_deref());
        match keys.key(trial, kernel) {
            Some(key) => trials.push((trial, key)),
            None => summary.without_step += 1,
        }
    }
    require_trials(request, &trials, &summary)?;
    let no_order = |refs| {
        let path = request.repository.unwrap_or(Path::new("")).to_owned();
        HistoryError::Repository { path, refs }
    };
    let (mut steps, order) = keys.steps(&trials, request.repository).map_err(no_order)?;
    for wanted in &request.without {
        let step = steps.remove(step(&steps, wanted)?);
        trials.retain(|(_, of)| *of != step.key);
        summary.without.push(step.label);
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
        summary.without_control = usable().filter(|(trial, _)| figure(trial).is_none()).count();
        if relative.is_empty() {
            return Err(HistoryError::NoControl { control: control.to_string() });
        }
    }
    let series = series::cell_series(request.over, &steps, &trials, figure)?;
    let changes: Vec<Vec<ChangePoint>> = series.iter().map(|series| series.changes.clone()).collect();
    let mut history = History {
        metric: request.metric.clone(),
        kind: read.values().find_map(|read| read.kind),
        control: request.control.as_ref().map(ToString::to_string),
        over: request.over,
        selector: request.selectors.iter().map(Selector::to_string).collect::<Vec<_>>().join(" "),
        steps,
        order,
        series,
        shifts: stats::events(&changes).into_iter().map(Shift::new).collect(),
        accepted: Vec::new(),
        gates: Vec::new(),
        newest: request.newest,
        trials: summary,
    };
    history.mark_accepted(reader.store().acceptances()?);
    history.gates = request.gates.iter().map(|gate| gate::outcome(gate, &history)).collect();
    Ok(history)
}

fn check(request: &Request<'_>) -> Result<(), HistoryError> {
    if let Some(control) = request.control.as_ref().filter(|control| !control.has_only_levels()) {
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

/// The control's trials in the runs of the selected trials, whether or not they are selected themselves.
fn controls<'a>(request: &Request<'_>, all: &'a [Trial], selected: &[&Trial]) -> Vec<&'a Trial> {
    if request.control.is_none() {
        return Vec::new();
    }
    let runs: HashSet<&str> = selected.iter().map(|trial| trial.run.id.as_str()).collect();
    all.iter().filter(|trial| is_control(request, trial) && runs.contains(trial.run.id.as_str())).collect()
}

/// Reads the trials' figures, and the names of all collected metrics; what can't be read is left out. Complete bundles
/// are read only if heads do not have the figure.
fn read<'a>(
    reader: &StoreReader,
    request: &Request<'_>,
    trials: impl Iterator<Item = &'a Trial>,
) -> (HashMap<&'a str, TrialData>, Vec<String>) {
    let (mut read, mut collected) = (HashMap::new(), Vec::new());
    for trial in trials {
        let needs_kernel = request.over == HistoryAxis::Kernel && trial.imported.is_none();
        if !is_usable(trial) && !needs_kernel || read.contains_key(trial.id.as_str()) {
            continue;
        }
        let of_trial = match (request.metric.needs_record(), needs_kernel) {
            (false, false) => {
                TrialData { figure: request.metric.head_value(trial), kind: None, kernel: None }
            }
            (false, true) => {
                let Some(environment) = reader.environment(&trial.id) else { continue };
                TrialData {
                    figure: request.metric.head_value(trial).filter(|_| is_usable(trial)),
                    kind: None,
                    kernel: environment.kernel,
                }
            }
            (true, _) => {
                let Some(record) = reader.load(&trial.id) else { continue };
                collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                collected.sort_unstable();
                collected.dedup();
                TrialData {
                    figure: request.metric.value(&record).filter(|_| is_usable(trial)),
                    kind: request.metric.kind(&record),
                    kernel: record.environment.kernel,
                }
            }
        };
        read.insert(trial.id.as_str(), of_trial);
    }
    (read, collected)
}

fn summarize(selected: &[&Trial]) -> Selected {
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
        scheduled: 0,
    }
}

fn require_trials(
    request: &Request<'_>,
    trials: &[(&Trial, String)],
    summary: &Selected,
) -> Result<(), HistoryError> {
    match &request.control {
        _ if !trials.is_empty() => Ok(()),
        Some(control) if summary.without_step == 0 => {
            Err(HistoryError::OnlyControl { control: control.to_string() })
        }
        _ => Err(HistoryError::NoStep {
            trials: counted(summary.without_step, "trial"),
            over: request.over,
            next: match request.over {
                HistoryAxis::Commit => {
                    "a commit is the `ref` of a server that its campaign builds from a git repository; otherwise use \
                     version or date"
                }
                HistoryAxis::Date => "`pgdyno import csv --started` takes it from a column",
                HistoryAxis::Version | HistoryAxis::Kernel => {
                    "it was imported without; set it with `pgdyno import --set` or `--factor`"
                }
            },
        }),
    }
}

/// Index of the step with this key or label, or of the run with this beginning of an id.
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
