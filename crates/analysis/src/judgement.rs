//! Verdicts on a matrix of pairs of cells, in terms of the compared metric.

use model::cell::RecordedCell;
use model::machine::Acceleration;
use model::metrics::Better;
use model::record::{Finding, Status, Trial};
use stats::{Comparison, Interval, MIN_RUNS, Spread, Verdict, holm, verdicts};

use crate::metric::Metric;

mod caution;
mod paired;

pub use caution::Caution;
use caution::cautions;
pub use paired::PairedComparison;
pub(crate) use paired::{Attempt, CommonSessions, attempt, deciding_row, paired_runs};

use crate::design::{Design, Figures};

pub use crate::design::{SessionKey, Sessions};

/// Result of comparing the runs of two cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The figures; `None` if a side has none, or one that is not positive.
    pub comparison: Option<Comparison>,
    /// p, adjusted by Holm over the matrix; `None` for fewer than 3 runs on a side.
    pub p_holm: Option<f64>,
    /// The comparison by sessions, if the cells have common ones: it decides, instead of the runs' figures.
    pub paired: Option<PairedComparison>,
    /// The verdict.
    pub outcome: Outcome,
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Lower than the baseline.
    Lower,
    /// Higher than the baseline.
    Higher,
}

/// The verdict on two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It changed.
    Change {
        /// Direction of the change.
        direction: Direction,
        /// Whether a side is unstable: it changed despite that.
        unstable: bool,
    },
    /// It did not change by more than the margin.
    Equivalent,
    /// Neither a change nor equivalence is shown.
    Inconclusive,
    /// A side is unstable, and the difference is not clear despite that.
    Unstable,
    /// Fewer than 3 runs on a side, or 3 sessions.
    Insufficient,
    /// There is no verdict, whatever the figures.
    Refused(Refusal),
    /// A side has no run with a comparable figure.
    NoFigure,
    /// A side has no usable trial.
    Invalid,
}

/// Reason for refusing a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A side was emulated in real time: its figures depend on the emulating machine.
    Emulated,
    /// The figure is throughput, and both sides have a rate: it is the schedule's.
    Scheduled,
    /// The driver was saturated in most trials of both sides: its speed was compared.
    Driver,
    /// In most sessions, other processes took the CPUs that the drivers of both sides were pinned to.
    Foreign,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Emulated, Self::Scheduled, Self::Driver, Self::Foreign];

    /// The reason in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Emulated => "emulated in real time: no verdict",
            Self::Scheduled => {
                "throughput at a rate is the schedule's: no verdict; compare latency.p99 and latency.mean"
            }
            Self::Driver => {
                "the driver was saturated on both sides, so that its speed was compared: no verdict; raise run.threads, \
                 give the driver more CPUs, or run fewer clients"
            }
            Self::Foreign => {
                "other processes took the driver's CPUs, and no change of the server affects its waiting for them: no verdict; \
                 stop them, or measure without pins"
            }
        }
    }
}

/// Figures of two cells to compare, with the largest ratio that is not a relevant change, the spreads at which the
/// figure's runs are noisy and wide, and the design of the campaigns.
#[derive(Clone, Copy, Debug)]
struct Samples<'a> {
    /// The baseline's.
    a: &'a [f64],
    /// The variant's.
    b: &'a [f64],
    /// The margin.
    margin: f64,
    /// The spreads.
    spread: Spread,
    /// The design.
    design: &'a Design,
}

/// Compares each second sample with the first one. All pairs together are the matrix for the
/// adjustment of p.
fn judge(pairs: &[Samples<'_>]) -> Vec<Judgement> {
    let compared = |&Samples { a, b, margin, spread, design }: &Samples<'_>| {
        Some(design.apply(Comparison::with_spread(a, b, spread)?.with_margin(margin)))
    };
    let comparisons: Vec<Option<Comparison>> = pairs.iter().map(compared).collect();
    let known: Vec<Comparison> = comparisons.iter().flatten().cloned().collect();
    let mut verdicts = verdicts(&known).into_iter();
    let adjusted = holm(&known.iter().filter_map(p).collect::<Vec<f64>>());
    let mut adjusted = adjusted.into_iter();
    comparisons
        .into_iter()
        .map(|comparison| Judgement {
            p_holm: comparison.as_ref().and_then(p).and_then(|_| adjusted.next()),
            outcome: comparison
                .as_ref()
                .and_then(|comparison| Some(Outcome::new(verdicts.next()?, comparison.is_unstable())))
                .unwrap_or(Outcome::NoFigure),
            comparison,
            paired: None,
        })
        .collect()
}

/// The p that counts as tested, as in [`stats::verdicts`].
fn p(comparison: &Comparison) -> Option<f64> {
    let least = comparison.a.n.min(comparison.b.n);
    comparison.estimate.filter(|_| least >= MIN_RUNS).map(|estimate| estimate.p)
}

impl Outcome {
    fn new(verdict: Verdict, unstable: bool) -> Self {
        match verdict {
            Verdict::Insufficient => Self::Insufficient,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::Inconclusive if unstable => Self::Unstable,
            Verdict::Inconclusive => Self::Inconclusive,
            // The rules are for throughputs, for which lower is worse. The ratio itself is neutral.
            Verdict::Regression => Self::Change { direction: Direction::Lower, unstable },
            Verdict::Improvement => Self::Change { direction: Direction::Higher, unstable },
        }
    }

    /// Direction of the change; `None` if no change is shown.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Change { direction, .. } => Some(direction),
            _ => None,
        }
    }

    /// Name of the outcome. For a metric without a better direction, a change is `LOWER` or `HIGHER`, without a
    /// judgement.
    pub fn name(self, better: Better) -> &'static str {
        match self {
            Self::Change { direction, unstable } => match (better, direction, unstable) {
                (Better::Higher, Direction::Lower, false) | (Better::Lower, Direction::Higher, false) => {
                    "REGRESSION"
                }
                (Better::Higher, Direction::Lower, true) | (Better::Lower, Direction::Higher, true) => {
                    "REGRESSION*"
                }
                (Better::Neither, Direction::Lower, false) => "LOWER",
                (Better::Neither, Direction::Lower, true) => "LOWER*",
                (Better::Neither, Direction::Higher, false) => "HIGHER",
                (Better::Neither, Direction::Higher, true) => "HIGHER*",
                (_, _, false) => "IMPROVEMENT",
                (_, _, true) => "IMPROVEMENT*",
            },
            Self::Equivalent => "EQUIVALENT",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Unstable => "UNSTABLE",
            Self::Insufficient => "INSUFFICIENT",
            Self::Refused(_) => "NO VERDICT",
            Self::NoFigure => "NO FIGURE",
            Self::Invalid => "INVALID",
        }
    }

    /// Whether it is a verdict: a change, or equivalence.
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Change { .. } | Self::Equivalent)
    }

    /// Whether it is a change for the worse; `None` if no change is shown, or the metric has no better direction.
    pub fn is_worse(self, better: Better) -> Option<bool> {
        match (better, self.direction()?) {
            (Better::Neither, _) => None,
            (Better::Higher, direction) => Some(direction == Direction::Lower),
            (Better::Lower, direction) => Some(direction == Direction::Higher),
        }
    }
}

/// A cell of a variant compared with the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the [`Pair`].
    pub pair: usize,
    /// Index of the cell in it.
    pub cell: usize,
    /// The baseline's runs.
    pub a: Runs,
    /// The variant's runs.
    pub b: Runs,
    /// The sessions of both sides, if they have none in common.
    pub sessions: Option<Sessions>,
    /// Result of the comparison.
    pub judged: Judgement,
}

/// The trials of one side of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Acceleration common to all of them: trials with different ones are not compared.
    pub acceleration: Acceleration,
    /// Ids of the usable trials that have the figure.
    pub trials: Vec<String>,
    /// Their figures, in the same order.
    pub values: Vec<f64>,
    /// Their sessions with the number of their repeat, in the same order.
    pub blocks: Vec<(SessionKey, u32)>,
    /// Number of usable trials without the figure.
    pub without: usize,
    /// Number of suspect ones among the usable trials.
    pub suspect: usize,
    /// Number of invalid trials.
    pub invalid: usize,
    /// The gates that found something in these trials, each with the number of trials: first those that made them
    /// invalid, then those of the trials in `trials`.
    pub findings: Vec<GateCount>,
    /// The rate, if there is one: transactions started per second.
    pub rate: Option<f64>,
    /// Number of usable trials in which fewer transactions ended in the window than were due.
    pub behind: usize,
}

/// The number of trials in which a gate found something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateCount {
    /// The gate.
    pub gate: String,
    /// Whether it made them invalid or suspect, or noted something.
    pub status: Status,
    /// Number of trials.
    pub trials: usize,
}

impl Runs {
    /// The figures with their blocks.
    pub(crate) fn figures(&self) -> Figures<'_> {
        Figures { values: &self.values, blocks: &self.blocks }
    }

    /// Whether their time is counted in instructions.
    pub(crate) fn is_counted(&self) -> bool {
        self.acceleration == Acceleration::Icount
    }

    /// Whether a gate found something in at least half of the trials that are used.
    fn has_mostly(&self, gate: &str) -> bool {
        self.suspect_trials(gate) * 2 >= self.trials.len().max(1)
    }

    /// Whether a gate found something in a used trial, if only to note it.
    fn has_any(&self, gate: &str) -> bool {
        self.findings.iter().any(|of| of.gate == gate && of.status != Status::Invalid)
    }

    /// Number of used trials that a gate made suspect.
    fn suspect_trials(&self, gate: &str) -> usize {
        let of_gate = self.findings.iter().find(|of| of.status == Status::Suspect && of.gate == gate);
        of_gate.map_or(0, |of| of.trials)
    }

    fn add(&mut self, finding: &Finding) {
        let known =
            self.findings.iter_mut().find(|of| of.gate == finding.gate && of.status == finding.status);
        match known {
            Some(of) => of.trials += 1,
            None => {
                let (gate, status) = (finding.gate.clone(), finding.status);
                self.findings.push(GateCount { gate, status, trials: 1 });
            }
        }
    }
}

impl Row {
    /// The ratio of geometric means, or that within blocks or sessions; with a single run on a side, the ratio has no
    /// interval. `None` without figures.
    pub fn ratio(&self) -> Option<f64> {
        match &self.judged.paired {
            Some(paired) => paired.sequence.ratio(),
            None => Some(self.judged.comparison.as_ref()?.ratio()),
        }
    }

    /// The interval of the ratio: with 95% confidence, or by sessions with 99%.
    pub fn interval(&self) -> Option<Interval> {
        match &self.judged.paired {
            Some(paired) => paired.sequence.interval(),
            None => self.judged.comparison.as_ref()?.estimate?.confidence_interval(0.95),
        }
    }

    /// The largest ratio that is not a relevant change; `None` without figures.
    pub fn margin(&self) -> Option<f64> {
        match &self.judged.paired {
            Some(paired) => Some(paired.sequence.margin()),
            None => Some(self.judged.comparison.as_ref()?.margin),
        }
    }

    /// What else a reader of the verdict has to know of the trials of both sides.
    pub fn cautions(&self) -> Vec<Caution> {
        cautions([&self.a, &self.b])
    }
}

/// The same cell on both sides of a pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellPair {
    /// Index of the [`Pair`].
    pub(crate) pair: usize,
    /// Index of the cell in it.
    pub(crate) cell: usize,
    /// The baseline's runs.
    pub(crate) a: Runs,
    /// The variant's runs.
    pub(crate) b: Runs,
    /// The largest ratio that is not a relevant change.
    pub(crate) margin: f64,
    /// The compared metric.
    pub(crate) metric: Metric,
    /// The design of their campaigns.
    pub(crate) design: Design,
    /// The comparison by common sessions, if there are any.
    pub(crate) paired: Option<PairedComparison>,
}

/// The rows of some cells. All of them together are the matrix for the adjustment of p; cells with common sessions are no part of it.
pub(crate) fn judge_cells(cells: Vec<CellPair>) -> Vec<Row> {
    // Cells without a verdict do not count as comparisons, nor for the adjustment of p.
    let sample = |cell: &CellPair| match (refusal(cell), &cell.paired) {
        (Some(_), _) | (_, Some(_)) => (Vec::new(), Vec::new()),
        _ => (cell.a.values.clone(), cell.b.values.clone()),
    };
    let samples: Vec<(Vec<f64>, Vec<f64>)> = cells.iter().map(sample).collect();
    let pairs = samples.iter().zip(&cells).map(|((a, b), CellPair { margin, metric, design, .. })| Samples {
        a,
        b,
        margin: *margin,
        spread: metric.spread(),
        design,
    });
    let judged = judge(&pairs.collect::<Vec<_>>());
    cells
        .into_iter()
        .zip(judged)
        .map(|(pair, mut judged)| {
            let refused = refusal(&pair);
            let CellPair { pair, cell, a, b, design, paired, .. } = pair;
            if [&a, &b].into_iter().any(|runs| runs.values.is_empty() && runs.without == 0) {
                judged.outcome = Outcome::Invalid;
            } else if let Some(refusal) = refused {
                judged.outcome = Outcome::Refused(refusal);
            } else if let Some(paired) = paired {
                judged.outcome = Outcome::new(paired.sequence.verdict(), false);
                judged.paired = Some(paired);
            }
            Row { pair, cell, a, b, sessions: design.sessions, judged }
        })
        .collect()
}

/// Why there is no verdict on two cells, whatever their figures.
fn refusal(CellPair { a, b, metric, paired, .. }: &CellPair) -> Option<Refusal> {
    let both_have_mostly = |gate| metric.depends_on_driver() && a.has_mostly(gate) && b.has_mostly(gate);
    if [a, b].into_iter().any(|runs| runs.acceleration == Acceleration::Tcg) {
        Some(Refusal::Emulated)
    } else if metric.is_throughput() && a.rate.is_some() && b.rate.is_some() {
        Some(Refusal::Scheduled)
    } else if both_have_mostly("driver-saturated") {
        Some(Refusal::Driver)
    } else if paired.is_some() && both_have_mostly("foreign-cpu") {
        Some(Refusal::Foreign)
    } else {
        None
    }
}

/// Whether figures of a trial may be used: it is not invalid.
pub fn is_usable(trial: &Trial) -> bool {
    trial.validity.status != Status::Invalid
}

/// Acceleration of a cell's trials; the machine itself if unknown.
pub(crate) fn acceleration(cell: &RecordedCell) -> Acceleration {
    cell.acceleration.known().copied().unwrap_or(Acceleration::None)
}

/// Figures of the usable trials of a cell, and the numbers of the others.
pub fn runs(trials: &[&Trial], figure: impl Fn(&Trial) -> Option<f64>) -> Runs {
    let mut runs = Runs {
        acceleration: trials.first().map_or(Acceleration::None, |trial| acceleration(&trial.cell)),
        rate: trials.first().and_then(|trial| trial.cell.rate.known()?.get()),
        ..Runs::default()
    };
    for trial in trials.iter().filter(|trial| !is_usable(trial)) {
        runs.invalid += 1;
        // The first is the cause of the others.
        if let Some(finding) =
            trial.validity.findings.iter().find(|finding| finding.status == Status::Invalid)
        {
            runs.add(finding);
        }
    }
    for trial in trials.iter().filter(|trial| is_usable(trial)) {
        let Some(value) = figure(trial) else {
            runs.without += 1;
            continue;
        };
        runs.suspect += usize::from(trial.validity.status == Status::Suspect);
        runs.behind += usize::from(runs.rate.is_some_and(|rate| is_behind(trial, rate)));
        trial.validity.findings.iter().for_each(|finding| runs.add(finding));
        runs.trials.push(trial.id.clone());
        runs.values.push(value);
        runs.blocks.push((SessionKey::new(trial), trial.repeat));
    }
    runs
}

/// Whether fewer transactions ended in a trial's window than the schedule has: by more than 1%, and by more than chance
/// makes fewer arrivals, three standard deviations of their Poisson distribution.
fn is_behind(trial: &Trial, rate: f64) -> bool {
    let Some(summary) = &trial.summary else { return false };
    let Some(seconds) = summary.window_us.map(|us| us as f64 / 1e6) else { return false };
    let due = rate * seconds;
    summary.tps * seconds < due * 0.99 - 3.0 * due.sqrt()
}

#[cfg(test)]
mod tests {
    use stats::MARGIN;

    use super::*;

    fn samples<'a>(a: &'a [f64], b: &'a [f64], design: &'a Design) -> Samples<'a> {
        Samples { a, b, margin: MARGIN, spread: Spread::MEAN, design }
    }

    const STEADY: [f64; 5] = [100.0, 100.5, 99.5, 100.2, 99.8];
    const HALF: [f64; 5] = [50.0, 50.5, 49.5, 50.2, 49.8];

    #[test]
    fn outcomes_are_reversed_if_lower_is_better() {
        let design = Design::default();
        let judged = judge(&[samples(&STEADY, &HALF, &design), samples(&HALF, &STEADY, &design)]);
        let names = |better| [judged[0].outcome.name(better), judged[1].outcome.name(better)];
        assert_eq!(names(Better::Higher), ["REGRESSION", "IMPROVEMENT"]);
        assert_eq!(names(Better::Lower), ["IMPROVEMENT", "REGRESSION"]);
        assert_eq!(names(Better::Neither), ["LOWER", "HIGHER"]);
        assert_eq!(judged[0].outcome.is_worse(Better::Neither), None);
    }

    /// Incomparable cells do not count among the comparisons that p is adjusted for.
    #[test]
    fn a_pair_without_figures_keeps_its_position() {
        let design = Design::default();
        let noisy = [100.0, 103.0, 97.0, 101.5, 98.5];
        let judged = judge(&[
            samples(&STEADY, &[0.0; 3], &design),
            samples(&STEADY, &noisy, &design),
            samples(&[1.0], &STEADY, &design),
            samples(&[], &STEADY, &design),
        ]);
        let names: Vec<&str> = judged.iter().map(|judged| judged.outcome.name(Better::Higher)).collect();
        assert_eq!(names, ["NO FIGURE", "EQUIVALENT", "INSUFFICIENT", "NO FIGURE"]);
        let alone = judged[1].comparison.as_ref().unwrap().estimate.unwrap().p;
        assert_eq!((judged[1].p_holm, judged[2].p_holm), (Some(alone), None));
    }
}
