//! Verdicts on a matrix of pairs of cells, in terms of the compared metric.

use model::cell::RecordedCell;
use model::machine::Acceleration;
use model::metrics::Better;
use model::record::{Status, Trial};
use stats::{Comparison, MIN_RUNS, Verdict, holm, verdicts};

/// Result of comparing the runs of two cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The figures; `None` if a side has none, or one that is not positive.
    pub comparison: Option<Comparison>,
    /// Welch's p, adjusted by Holm over the matrix; `None` for fewer than 3 runs on a side.
    pub p_holm: Option<f64>,
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
    /// Fewer than 3 runs on a side.
    Insufficient,
    /// A side was emulated in real time: its figures depend on the emulating machine.
    Emulated,
    /// A side has no run with a comparable figure.
    NoFigure,
    /// A side has no usable trial.
    Invalid,
}

/// Compares each second sample with the first one, with the given margin. All pairs together are the matrix for the
/// adjustment of p.
pub fn judge(pairs: &[(&[f64], &[f64], f64)]) -> Vec<Judgement> {
    let compared = |&(a, b, margin): &(&[f64], &[f64], f64)| Some(Comparison::new(a, b)?.with_margin(margin));
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
        })
        .collect()
}

/// The p that counts as tested, as in [`stats::verdicts`].
fn p(comparison: &Comparison) -> Option<f64> {
    let least = comparison.a.n.min(comparison.b.n);
    comparison.welch.filter(|_| least >= MIN_RUNS).map(|welch| welch.p)
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
            Self::Emulated => "NO VERDICT",
            Self::NoFigure => "NO FIGURE",
            Self::Invalid => "INVALID",
        }
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
    /// Number of usable trials without the figure.
    pub without: usize,
    /// Number of suspect ones among the usable trials.
    pub suspect: usize,
    /// Number of invalid trials.
    pub invalid: usize,
}

impl Runs {
    /// Whether their time is counted in instructions.
    pub(crate) fn is_counted(&self) -> bool {
        self.acceleration == Acceleration::Icount
    }
}

impl Row {
    /// The ratio of geometric means; with a single run on a side, the ratio has no interval. `None` without figures.
    pub fn ratio(&self) -> Option<f64> {
        let comparison = self.judged.comparison.as_ref()?;
        Some(comparison.b.geometric_mean / comparison.a.geometric_mean)
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
}

/// The rows of some cells. All of them together are the matrix for the adjustment of p.
pub(crate) fn judge_cells(cells: Vec<CellPair>) -> Vec<Row> {
    let is_emulated =
        |a: &Runs, b: &Runs| [a, b].into_iter().any(|runs| runs.acceleration == Acceleration::Tcg);
    // Cells without a verdict do not count as comparisons, nor for the adjustment of p.
    let sample = |CellPair { a, b, .. }: &'_ CellPair| match is_emulated(a, b) {
        true => (Vec::new(), Vec::new()),
        false => (a.values.clone(), b.values.clone()),
    };
    let samples: Vec<(Vec<f64>, Vec<f64>)> = cells.iter().map(sample).collect();
    let pairs = samples.iter().zip(&cells).map(|((a, b), cell)| (a.as_slice(), b.as_slice(), cell.margin));
    let judged = judge(&pairs.collect::<Vec<_>>());
    cells
        .into_iter()
        .zip(judged)
        .map(|(CellPair { pair, cell, a, b, .. }, mut judged)| {
            if [&a, &b].into_iter().any(|runs| runs.values.is_empty() && runs.without == 0) {
                judged.outcome = Outcome::Invalid;
            } else if is_emulated(&a, &b) {
                judged.outcome = Outcome::Emulated;
            }
            Row { pair, cell, a, b, judged }
        })
        .collect()
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
        ..Runs::default()
    };
    for trial in trials {
        match (is_usable(trial), figure(trial)) {
            (false, _) => runs.invalid += 1,
            (true, None) => runs.without += 1,
            (true, Some(value)) => {
                runs.suspect += usize::from(trial.validity.status == Status::Suspect);
                runs.trials.push(trial.id.clone());
                runs.values.push(value);
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use stats::MARGIN;

    use super::*;

    const STEADY: [f64; 5] = [100.0, 100.5, 99.5, 100.2, 99.8];
    const HALF: [f64; 5] = [50.0, 50.5, 49.5, 50.2, 49.8];

    #[test]
    fn outcomes_are_reversed_if_lower_is_better() {
        let judged = judge(&[(&STEADY, &HALF, MARGIN), (&HALF, &STEADY, MARGIN)]);
        let names = |better| [judged[0].outcome.name(better), judged[1].outcome.name(better)];
        assert_eq!(names(Better::Higher), ["REGRESSION", "IMPROVEMENT"]);
        assert_eq!(names(Better::Lower), ["IMPROVEMENT", "REGRESSION"]);
        assert_eq!(names(Better::Neither), ["LOWER", "HIGHER"]);
        assert_eq!(judged[0].outcome.is_worse(Better::Neither), None);
    }

    /// Incomparable cells do not count among the comparisons that p is adjusted for.
    #[test]
    fn a_pair_without_figures_keeps_its_position() {
        let noisy = [100.0, 103.0, 97.0, 101.5, 98.5];
        let judged = judge(&[
            (&STEADY, &[0.0; 3], MARGIN),
            (&STEADY, &noisy, MARGIN),
            (&[1.0], &STEADY, MARGIN),
            (&[], &STEADY, MARGIN),
        ]);
        let names: Vec<&str> = judged.iter().map(|judged| judged.outcome.name(Better::Higher)).collect();
        assert_eq!(names, ["NO FIGURE", "EQUIVALENT", "INSUFFICIENT", "NO FIGURE"]);
        let alone = judged[1].comparison.as_ref().unwrap().welch.unwrap().p;
        assert_eq!((judged[1].p_holm, judged[2].p_holm), (Some(alone), None));
    }
}
