//! The verdicts on a matrix of pairs of cells, in the words of what is compared.

use model::cell::RecordedCell;
use model::machine::Acceleration;
use model::metrics::Better;
use model::record::{Status, Trial};
use stats::{COUNTED_MARGIN, Comparison, LEAST_RUNS, MARGIN, Verdict, holm, verdicts};

/// What the runs of two cells come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The figures; none where a side has none, or one that is not above zero.
    pub comparison: Option<Comparison>,
    /// Welch's p, adjusted by Holm over the matrix; none with fewer than 3 runs on a side.
    pub p_holm: Option<f64>,
    /// The verdict.
    pub outcome: Outcome,
}

/// Which way something changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It is less than in the baseline.
    Lower,
    /// It is more than in the baseline.
    Higher,
}

/// The verdict on two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It changed.
    Change {
        /// Which way.
        direction: Direction,
        /// Whether a side is unstable: it changed in spite of that.
        unstable: bool,
    },
    /// It did not change by more than the margin.
    Equivalent,
    /// Neither is shown.
    Inconclusive,
    /// A side is unstable, and the difference is not clear in spite of that.
    Unstable,
    /// Fewer than 3 runs on a side.
    Insufficient,
    /// A side was emulated in real time: its figures are of the machine that emulated it.
    Emulated,
    /// A side has no run with a figure that can be compared.
    NoFigure,
    /// A side has no trial that may be used.
    Invalid,
}

/// Compares each second sample with the first one, by the margin that is with them. All of them together are the matrix
/// over which p is adjusted.
pub fn judge(pairs: &[(&[f64], &[f64], f64)]) -> Vec<Judged> {
    let compared = |&(a, b, margin): &(&[f64], &[f64], f64)| Some(Comparison::new(a, b)?.with_margin(margin));
    let comparisons: Vec<Option<Comparison>> = pairs.iter().map(compared).collect();
    let known: Vec<Comparison> = comparisons.iter().flatten().cloned().collect();
    let mut verdicts = verdicts(&known).into_iter();
    let adjusted = holm(&known.iter().filter_map(p).collect::<Vec<f64>>());
    let mut adjusted = adjusted.into_iter();
    comparisons
        .into_iter()
        .map(|comparison| Judged {
            p_holm: comparison.as_ref().and_then(p).and_then(|_| adjusted.next()),
            outcome: comparison
                .as_ref()
                .and_then(|_| verdicts.next())
                .map_or(Outcome::NoFigure, Outcome::from_verdict),
            comparison,
        })
        .collect()
}

/// The p that counts as tested, as [`stats::verdicts`] takes it.
fn p(comparison: &Comparison) -> Option<f64> {
    let least = comparison.a.n.min(comparison.b.n);
    comparison.welch.filter(|_| least >= LEAST_RUNS).map(|welch| welch.p)
}

impl Outcome {
    fn from_verdict(verdict: Verdict) -> Self {
        let change = |direction, unstable| Self::Change { direction, unstable };
        match verdict {
            Verdict::Insufficient => Self::Insufficient,
            Verdict::Unstable => Self::Unstable,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::Inconclusive => Self::Inconclusive,
            // The rules are of throughputs: there, less is worse. A ratio knows neither.
            Verdict::Regression => change(Direction::Lower, false),
            Verdict::Improvement => change(Direction::Higher, false),
            Verdict::UnstableRegression => change(Direction::Lower, true),
            Verdict::UnstableImprovement => change(Direction::Higher, true),
        }
    }

    /// Which way it changed; none where no change is shown.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Change { direction, .. } => Some(direction),
            _ => None,
        }
    }

    /// Its name. Of a metric of which nobody knows whether more is better, a change is `LOWER` or `HIGHER` and no
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

    /// Whether it is a change for the worse; none where no change is shown, or nobody can say.
    pub fn is_worse(self, better: Better) -> Option<bool> {
        match (better, self.direction()?) {
            (Better::Neither, _) => None,
            (Better::Higher, direction) => Some(direction == Direction::Lower),
            (Better::Lower, direction) => Some(direction == Direction::Higher),
        }
    }
}

/// One cell of a variant against the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The place of the [`Pair`].
    pub pair: usize,
    /// The place of the cell in it.
    pub cell: usize,
    /// The baseline's runs.
    pub a: Runs,
    /// The variant's runs.
    pub b: Runs,
    /// What they come to.
    pub judged: Judged,
}

/// The trials of one side of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// What they ran on: that of all of them, as no others stand side by side.
    pub acceleration: Acceleration,
    /// Ids of the trials that may be used and have the figure.
    pub trials: Vec<String>,
    /// Their figures, in the same order.
    pub values: Vec<f64>,
    /// How many may be used and do not have the figure.
    pub without: usize,
    /// How many of those that may be used are suspect.
    pub suspect: usize,
    /// How many may not be used.
    pub invalid: usize,
}

impl Row {
    /// The ratio of geometric means; with a single run on a side, which has no interval, of these. None without
    /// figures.
    pub fn ratio(&self) -> Option<f64> {
        let comparison = self.judged.comparison.as_ref()?;
        Some(comparison.b.geometric_mean / comparison.a.geometric_mean)
    }
}

/// The rows of some cells, each with its pair, its place in that, and the runs of both sides. All of them together are the
/// matrix over which p is adjusted.
pub fn judged(cells: Vec<(usize, usize, Runs, Runs)>) -> Vec<Row> {
    let is_emulated =
        |a: &Runs, b: &Runs| [a, b].into_iter().any(|runs| runs.acceleration == Acceleration::Tcg);
    // What has no verdict is no comparison, and none that p is adjusted for.
    let sample = |(_, _, a, b): &'_ (usize, usize, Runs, Runs)| match is_emulated(a, b) {
        true => (Vec::new(), Vec::new()),
        false => (a.values.clone(), b.values.clone()),
    };
    let samples: Vec<(Vec<f64>, Vec<f64>)> = cells.iter().map(sample).collect();
    let counted = |(_, _, a, b): &(usize, usize, Runs, Runs)| {
        [a, b].into_iter().all(|runs| runs.acceleration == Acceleration::Icount)
    };
    let margin = |cell| if counted(cell) { COUNTED_MARGIN } else { MARGIN };
    let pairs = samples.iter().zip(&cells).map(|((a, b), cell)| (a.as_slice(), b.as_slice(), margin(cell)));
    let judged = judge(&pairs.collect::<Vec<_>>());
    cells
        .into_iter()
        .zip(judged)
        .map(|((pair, cell, a, b), mut judged)| {
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

/// What executed the instructions of a cell's trials; the machine itself where that is not known.
pub(crate) fn acceleration(cell: &RecordedCell) -> Acceleration {
    cell.acceleration.known().copied().unwrap_or(Acceleration::None)
}

/// Figures of the usable trials of a cell, and the number of the others.
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
    fn of_what_is_better_when_it_is_less_the_words_turn_round() {
        let judged = judge(&[(&STEADY, &HALF, MARGIN), (&HALF, &STEADY, MARGIN)]);
        let names = |better| [judged[0].outcome.name(better), judged[1].outcome.name(better)];
        assert_eq!(names(Better::Higher), ["REGRESSION", "IMPROVEMENT"]);
        assert_eq!(names(Better::Lower), ["IMPROVEMENT", "REGRESSION"]);
        assert_eq!(names(Better::Neither), ["LOWER", "HIGHER"]);
        assert_eq!(judged[0].outcome.is_worse(Better::Neither), None);
    }

    /// What can't be compared is not counted among the comparisons that p is adjusted for.
    #[test]
    fn a_pair_without_figures_keeps_its_place() {
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
