//! Comparison of the cells of two selections, each with a verdict: the rules are those of the crate `stats`.

pub(crate) mod advice;
mod differences;
mod figures;
mod gate;
mod matching;
mod other_tests;
mod sentence;

use model::factor::Factor;
use model::metrics::Kind;
use model::record::{Status, Trial};
use store::StoreReader;

use crate::design::Campaigns;
use crate::judgement::{Outcome, Row, Runs, deciding_row};
use crate::levels::Levels;
use crate::margin::{Margin, MetricMargin};
use crate::metric::{LatencyFigure, Metric};
use crate::select::{RunSelection, SelectError, Selector};
use crate::statements::{ComparedStatements, PlayedCell, compare_statements};
use differences::FactsCache;
use figures::FiguresCache;
use matching::{Selected, Shared, match_cells};

pub use advice::Advice;
pub use differences::Differences;
pub use gate::{Gate, GateError, GateOutcome, Gates};
pub use other_tests::{OtherTests, other_tests};
pub(crate) use sentence::{MAX_SMALL_SHARE, extreme, result};
pub use sentence::{cell_of, change_in_words, gate_sentences, interval, sentence};

/// A comparison to make.
#[derive(Clone, Debug)]
pub struct Request {
    /// The baseline and its variants: at least two.
    pub selectors: Vec<Selector>,
    /// The run of selectors that do not name an origin.
    pub run: RunSelection,
    /// Metrics in display order; if empty, the cells' figures of merit, each with the metric next to it.
    pub metrics: Vec<Metric>,
    /// Bounds on changes of metrics. A gate's metric is compared in all cells, even if it is not among the metrics.
    pub gates: Vec<Gate>,
    /// Margins in place of the campaigns' `effect`.
    pub margins: Vec<Margin>,
}

/// Error of a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A side selects nothing.
    #[error("{side} ({selector}): {source}")]
    Select {
        /// Name of the side, such as `A`.
        side: char,
        /// The selector as written.
        selector: String,
        /// The reason.
        source: SelectError,
    },
    /// Fewer than two sides, or too many.
    #[error("expected a baseline and one to 25 variants, got {0} selectors")]
    Sides(usize),
    /// A selector occurs twice.
    #[error("{one} and {other} are the same selector, \"{selector}\"")]
    Same {
        /// Name of the first.
        one: char,
        /// Name of the second.
        other: char,
        /// The selector as written.
        selector: String,
    },
    /// A trial is on both sides.
    #[error(
        "{a} and {b} have {count} trials in common, such as {first}: change the selectors so that they do not overlap"
    )]
    Overlap {
        /// The baseline.
        a: String,
        /// The variant.
        b: String,
        /// Number of common trials.
        count: usize,
        /// One of them.
        first: String,
    },
    /// Several cells of a side would be treated as one.
    #[error(
        "{side} has several levels of {factor} ({levels}) for one cell ({cell}): select one of them, as in `{factor}=…`"
    )]
    SeveralCells {
        /// The side.
        side: String,
        /// The factor in which the cells differ.
        factor: &'static str,
        /// Its levels.
        levels: String,
        /// The combined cell.
        cell: String,
    },
    /// The sides have no cell in common.
    #[error(
        "{a} and {b} share no cell: compared cells have equal levels in all factors that the selectors do not fix{levels}\n{next}"
    )]
    NothingShared {
        /// The baseline.
        a: String,
        /// The variant.
        b: String,
        /// Factors with the levels of both sides, one per line.
        levels: String,
        /// What to do.
        next: String,
    },
    /// No trial has a metric.
    #[error("no compared trial has the metric {metric}: {known}")]
    NoFigure {
        /// The requested metric.
        metric: Metric,
        /// The available metrics.
        known: String,
    },
}

impl CompareError {
    /// Whether the command line is wrong, regardless of the store's contents.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Sides(_) | Self::Same { .. })
    }
}

/// A comparison of a baseline with its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The baseline, then its variants.
    pub sides: Vec<Side>,
    /// One per variant: its cells, matched with those of the baseline.
    pub pairs: Vec<Pair>,
    /// Rows by metric.
    pub metrics: Vec<MetricRows>,
    /// Outcomes of the gates.
    pub gates: Vec<GateOutcome>,
    /// The statements of the cells that play a trace.
    pub statements: Vec<ComparedStatements>,
}

/// One side of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// `A` is the baseline.
    pub name: char,
    /// The selector as written.
    pub selector: String,
    /// Runs with their campaigns.
    pub runs: Vec<(String, String)>,
    /// Number of selected trials, including invalid ones.
    pub trials: usize,
    /// The gates that made trials invalid, each with its number of trials.
    pub invalid: Vec<(String, usize)>,
    /// The gates that made trials suspect, each with its number of trials.
    pub suspect: Vec<(String, usize)>,
}

/// The cells of a variant, matched with those of the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the variant among the sides.
    pub variant: usize,
    /// The factors that the selectors fix.
    pub fixed: Vec<Factor>,
    /// The shared cells, by their levels in all other factors.
    pub cells: Vec<Levels>,
    /// The baseline's cells that the variant lacks. They are in no figure.
    pub only_baseline: Vec<Levels>,
    /// The variant's cells that the baseline lacks. They are in no figure.
    pub only_variant: Vec<Levels>,
    /// Other differences between the sides.
    pub differences: Differences,
}

/// All comparisons of one metric: the matrix for the adjustment of p.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRows {
    /// The metric.
    pub metric: Metric,
    /// Counter or gauge; `None` for a metric that is not collected.
    pub kind: Option<Kind>,
    /// Rows by variant, then by cell.
    pub rows: Vec<Row>,
    /// For each pair, what would decide its undecided cells.
    pub advice: Vec<Vec<Advice>>,
}

impl Compared {
    /// Whether any gate is hit, or not decided.
    pub fn gates_state(&self) -> Gates {
        Gates::new(self.gates.iter().map(|gate| (!gate.hit.is_empty(), !gate.undecided.is_empty())))
    }

    /// Outcomes of the gates, in sentences.
    pub fn gates_in_words(&self) -> Vec<String> {
        self.gates.iter().flat_map(|outcome| gate_sentences(self, outcome)).collect()
    }

    /// The outcome of each comparison, if no metrics were asked for: that of the figure that cells are judged by, of several the
    /// one that decides or keeps it open.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        let first = self.metrics.first().into_iter().flat_map(|of| &of.rows);
        first.map(|first| {
            let decides = |row: &&Row| row.judged.paired.as_ref().is_some_and(|paired| paired.decides);
            let is_same = |row: &&Row| (row.pair, row.cell) == (first.pair, first.cell);
            let others = self.metrics.iter().skip(1);
            let others = others.flat_map(|of| of.rows.iter().map(|row| (row, &of.metric)));
            let others = others.filter(|(row, _)| is_same(row) && decides(row));
            let rows: Vec<(&Row, &Metric)> =
                std::iter::once((first, &self.metrics[0].metric)).chain(others).collect();
            rows[deciding_row(rows.iter().copied())].0.judged.outcome
        })
    }

    /// Whether a cell can't be compared because a side has no usable trial.
    pub fn is_invalid(&self) -> bool {
        self.metrics.iter().flat_map(|of| &of.rows).any(|row| row.judged.outcome == Outcome::Invalid)
    }
}

/// Compares each variant with the baseline, cell by cell.
///
/// # Errors
/// A selector selects nothing, none of its trials can be read, or the sides share no cell.
pub fn compare(reader: &StoreReader, request: &Request) -> Result<Compared, CompareError> {
    let names: Vec<char> = ('A'..='Z').collect();
    if !(2..=names.len()).contains(&request.selectors.len()) {
        return Err(CompareError::Sides(request.selectors.len()));
    }
    for (at, selector) in request.selectors.iter().enumerate() {
        if let Some(earlier) = request.selectors[..at].iter().position(|other| other.is_same(selector)) {
            let selector = selector.to_string();
            return Err(CompareError::Same { one: names[earlier], other: names[at], selector });
        }
    }
    let mut sides = request
        .selectors
        .iter()
        .zip(names)
        .map(|(selector, name)| {
            let failed = |source| CompareError::Select { side: name, selector: selector.to_string(), source };
            let trials = selector.trials(reader, &request.run).map_err(failed)?;
            Ok(Selected { name, selector, trials })
        })
        .collect::<Result<Vec<_>, CompareError>>()?;
    let (mut facts, mut figures) = (FactsCache::default(), FiguresCache::new(request));
    let matched = loop {
        let mut matched = Vec::new();
        for variant in &sides[1..] {
            let pair = match_cells(&sides[0], variant)?;
            figures.read(reader, &pair.shared);
            let differences = facts.differences(reader, &pair.shared);
            matched.push((pair, differences));
        }
        // Without the trials that can't be read, other cells may match.
        if !drop_left_out(reader, &mut sides)? {
            break matched;
        }
    };
    let shared: Vec<&[Shared<'_>]> = matched.iter().map(|(pair, _)| pair.shared.as_slice()).collect();
    let all: Vec<&Trial> = reader.trials().iter().collect();
    let metrics = figures.rows(&shared, &all)?;
    let statements = compare_statements(&played_cells(reader, &shared, &request.margins));
    let pairs = matched.into_iter().enumerate().map(|(at, (pair, differences))| Pair {
        variant: at + 1,
        fixed: pair.fixed,
        cells: pair.shared.into_iter().map(|cell| cell.levels).collect(),
        only_baseline: pair.only_a,
        only_variant: pair.only_b,
        differences,
    });
    let mut compared = Compared {
        sides: sides.iter().map(side).collect(),
        pairs: pairs.collect(),
        metrics,
        gates: Vec::new(),
        statements,
    };
    compared.gates = request.gates.iter().map(|gate| gate.outcome(&compared)).collect();
    Ok(compared)
}

/// The cells whose two sides play the same trace, with what they played.
fn played_cells<'a>(
    reader: &StoreReader,
    shared: &[&'a [Shared<'a>]],
    margins: &[Margin],
) -> Vec<PlayedCell> {
    let mut campaigns = Campaigns::default();
    let mean = Metric::Latency(LatencyFigure::Mean);
    let mut cells = Vec::new();
    for (pair, of_pair) in shared.iter().enumerate() {
        for (cell, shared) in of_pair.iter().enumerate() {
            let of_both = || shared.a.iter().chain(&shared.b).copied();
            let effect = campaigns.smallest_effect(of_both().map(|trial| &trial.run));
            let margin = MetricMargin::new(&mean, margins, std::iter::empty());
            let margin = margin.of(effect, &Runs::default(), &Runs::default());
            cells.extend(PlayedCell::read(reader, [pair, cell], [&shared.a, &shared.b], margin));
        }
    }
    cells
}

/// Drops the trials that the reader has left out; whether there were any.
fn drop_left_out(reader: &StoreReader, sides: &mut [Selected<'_>]) -> Result<bool, CompareError> {
    let mut dropped = false;
    for side in sides {
        let before = side.trials.len();
        let first = side.trials.first().copied();
        side.trials.retain(|trial| !reader.is_left_out(&trial.id));
        dropped |= side.trials.len() < before;
        if let Some(first) = first.filter(|_| side.trials.is_empty()) {
            return Err(CompareError::Select {
                side: side.name,
                selector: side.selector.to_string(),
                source: reader.error(&first.id).into(),
            });
        }
    }
    Ok(dropped)
}

fn side(side: &Selected<'_>) -> Side {
    let mut runs: Vec<(String, String)> =
        side.trials.iter().map(|trial| (trial.run.id.clone(), trial.run.campaign.clone())).collect();
    runs.sort();
    runs.dedup();
    Side {
        name: side.name,
        selector: side.selector.to_string(),
        runs,
        trials: side.trials.len(),
        invalid: reasons(&side.trials, Status::Invalid),
        suspect: reasons(&side.trials, Status::Suspect),
    }
}

/// Reasons for this status: the first gate with it of each trial, with the number of trials.
pub(crate) fn reasons(trials: &[&Trial], status: Status) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.validity.status == status) {
        let gate = trial.validity.findings.iter().find(|finding| finding.status == status);
        let gate = gate.map_or("no reason recorded", |finding| finding.gate.as_str());
        match reasons.iter_mut().find(|(known, _)| known == gate) {
            Some((_, count)) => *count += 1,
            None => reasons.push((gate.to_owned(), 1)),
        }
    }
    reasons
}
