//! `compare --format json`.

use std::collections::BTreeMap;

use super::design::{DesignDocument, PairedDocument};
use super::statements::StatementsDocument;
use diagnose::Undeclared;
use model::cell::UNKNOWN;
use model::factor::Factor;
use serde::Serialize;
use stats::{Cell, Logs, Sample, first_run_apart, runs_needed};

use analysis::compare::{Compared, MetricRows, Pair};
use analysis::compare::{OtherTests, other_tests};
use analysis::compare::{gate_sentences, sentence};
use analysis::judgement::{Row, Runs};
use analysis::levels::Levels;

/// Version of the document, raised when readers of the older version would misread it.
const SCHEMA: u32 = 1;
/// Relative half-width of the interval of a cell with enough runs.
const PRECISION: f64 = 0.02;

/// A comparison as data, schema 1.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    schema: u32,
    sides: Vec<SideDocument>,
    pairs: Vec<PairDocument>,
    metrics: Vec<MetricDocument>,
    gates: Vec<GateDocument>,
    /// Statements of cells that play a trace; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statements: Vec<StatementsDocument>,
}

/// Levels by factor; null if an imported trial does not contain it.
type LevelsByName = BTreeMap<&'static str, Option<String>>;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideDocument {
    name: char,
    selector: String,
    runs: Vec<RunDocument>,
    trials: usize,
    /// Number of invalid trials by gate.
    invalid: BTreeMap<String, usize>,
    suspect: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDocument {
    id: String,
    campaign: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PairDocument {
    baseline: char,
    variant: char,
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    fixed: Vec<Factor>,
    shared: usize,
    only_baseline: Vec<LevelsByName>,
    only_variant: Vec<LevelsByName>,
    /// Differences other than the factors compared by.
    differences: Vec<DifferenceDocument>,
    /// Differences caused by the other kernel, if kernels are compared.
    of_kernel: Vec<DifferenceDocument>,
    /// Options in which the kernels' configurations differ, those that matter to a server first.
    kernel_options: Vec<DifferenceDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DifferenceDocument {
    what: String,
    baseline: String,
    variant: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MetricDocument {
    metric: String,
    /// `higher`, `lower` or `neither`.
    better: &'static str,
    /// Number of comparisons that p is adjusted for.
    tested: usize,
    /// One sentence for each pair, in their order.
    sentences: Vec<String>,
    cells: Vec<CellDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CellDocument {
    variant: char,
    /// The levels of the factors that the selectors do not fix.
    cell: LevelsByName,
    a: RunsDocument,
    b: RunsDocument,
    /// Ratio of geometric means, or that within blocks or sessions, variant over baseline.
    ratio: Option<f64>,
    ci95_low: Option<f64>,
    ci95_high: Option<f64>,
    ci99_low: Option<f64>,
    ci99_high: Option<f64>,
    ratio_of_medians: Option<f64>,
    ranges_are_disjoint: Option<bool>,
    degrees_of_freedom: Option<f64>,
    p: Option<f64>,
    p_holm: Option<f64>,
    p_benjamini_hochberg: Option<f64>,
    /// P of the exact permutation test: for up to 20 runs in total, or up to 40 if a side is unstable.
    p_permutation: Option<f64>,
    p_permutation_holm: Option<f64>,
    p_permutation_benjamini_hochberg: Option<f64>,
    p_mann_whitney: Option<f64>,
    /// The share of pairs of runs in which the variant's figure is smaller.
    share_smaller: Option<f64>,
    /// The largest ratio that is not a relevant change; its inverse is the smallest.
    margin: Option<f64>,
    #[serde(flatten)]
    design: DesignDocument,
    /// The common sessions of both sides, which decide: ratio and 99% interval are theirs; null without any.
    paired: Option<PairedDocument>,
    verdict: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunsDocument {
    n: usize,
    class: Option<String>,
    median: Option<f64>,
    geometric_mean: Option<f64>,
    ci95_low: Option<f64>,
    ci95_high: Option<f64>,
    log_sd: Option<f64>,
    /// 1.4826 times the median absolute deviation, relative to the median.
    relative_mad: Option<f64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    modes: Option<ModesDocument>,
    /// Ratio of the first run to the median of the others, if it stands apart from them.
    first_run_apart: Option<f64>,
    /// Number of runs for an interval of 2% to either side of the geometric mean.
    runs_needed: Option<usize>,
    values: Vec<f64>,
    trials: Vec<String>,
    suspect: usize,
    invalid: usize,
    without_figure: usize,
}

/// The best split of the runs in two.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ModesDocument {
    lower: usize,
    t: f64,
    critical: Option<f64>,
    ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GateDocument {
    gate: String,
    is_hit: bool,
    /// Cells that hit the gate, and undecided cells, by their index in the metric's `cells`.
    hit: Vec<usize>,
    undecided: Vec<usize>,
    #[serde(rename = "said")]
    sentences: Vec<String>,
}

impl Document {
    /// Document of a comparison.
    pub fn new(compared: &Compared) -> Self {
        Self {
            schema: SCHEMA,
            sides: compared.sides.iter().map(side).collect(),
            pairs: compared.pairs.iter().map(|of| pair(compared, of)).collect(),
            metrics: compared.metrics.iter().map(|of| metric(compared, of)).collect(),
            gates: compared
                .gates
                .iter()
                .map(|outcome| GateDocument {
                    gate: outcome.gate.to_string(),
                    is_hit: !outcome.hit.is_empty(),
                    hit: outcome.hit.clone(),
                    undecided: outcome.undecided.clone(),
                    sentences: gate_sentences(compared, outcome),
                })
                .collect(),
            statements: compared.statements.iter().map(|of| StatementsDocument::new(compared, of)).collect(),
        }
    }
}

fn side(side: &analysis::compare::Side) -> SideDocument {
    SideDocument {
        name: side.name,
        selector: side.selector.clone(),
        runs: side
            .runs
            .iter()
            .map(|(id, campaign)| RunDocument { id: id.clone(), campaign: campaign.clone() })
            .collect(),
        trials: side.trials,
        invalid: side.invalid.iter().cloned().collect(),
        suspect: side.suspect.iter().cloned().collect(),
    }
}

fn pair(compared: &Compared, pair: &Pair) -> PairDocument {
    PairDocument {
        baseline: compared.sides[0].name,
        variant: compared.sides[pair.variant].name,
        fixed: pair.fixed.clone(),
        shared: pair.cells.len(),
        only_baseline: pair.only_baseline.iter().map(by_name).collect(),
        only_variant: pair.only_variant.iter().map(by_name).collect(),
        differences: documents(&pair.differences.undeclared),
        of_kernel: documents(&pair.differences.of_kernel),
        kernel_options: documents(&pair.differences.kernel_options),
    }
}

fn documents(differences: &[Undeclared]) -> Vec<DifferenceDocument> {
    differences
        .iter()
        .map(|difference| DifferenceDocument {
            what: difference.what.clone(),
            baseline: difference.before.clone(),
            variant: difference.after.clone(),
        })
        .collect()
}

fn metric(compared: &Compared, of: &MetricRows) -> MetricDocument {
    MetricDocument {
        metric: of.metric.to_string(),
        better: of.metric.better().as_str(),
        tested: of.rows.iter().filter(|row| row.judged.p_holm.is_some()).count(),
        sentences: (0..compared.pairs.len()).map(|pair| sentence(of, pair, &compared.pairs)).collect(),
        cells: of
            .rows
            .iter()
            .zip(other_tests(&of.rows))
            .map(|(row, further)| {
                let pair = &compared.pairs[row.pair];
                cell(row, further, compared.sides[pair.variant].name, &pair.cells[row.cell], of)
            })
            .collect(),
    }
}

fn cell(row: &Row, further: OtherTests, variant: char, levels: &Levels, of: &MetricRows) -> CellDocument {
    let comparison = row.judged.comparison.as_ref();
    let estimate = comparison.and_then(|comparison| comparison.estimate);
    let interval = |level| estimate.and_then(|estimate| estimate.confidence_interval(level));
    let paired = row.judged.paired.as_ref();
    let (ci95, ci99) = match paired {
        None => (interval(0.95), interval(0.99)),
        Some(_) => (None, row.interval()),
    };
    // Runs of common sessions are not compared with each other.
    let [a, b] = [&row.a, &row.b].map(|runs| paired.and_then(|_| Cell::new(&runs.values)));
    let a = a.as_ref().or(comparison.map(|comparison| &comparison.a));
    let b = b.as_ref().or(comparison.map(|comparison| &comparison.b));
    CellDocument {
        variant,
        cell: by_name(levels),
        a: runs(&row.a, a),
        b: runs(&row.b, b),
        ratio: row.ratio(),
        ci95_low: ci95.map(|interval| interval.low),
        ci95_high: ci95.map(|interval| interval.high),
        ci99_low: ci99.map(|interval| interval.low),
        ci99_high: ci99.map(|interval| interval.high),
        ratio_of_medians: comparison.map(|comparison| comparison.median_ratio()),
        ranges_are_disjoint: comparison.map(|comparison| comparison.ranges_are_disjoint()),
        degrees_of_freedom: estimate.map(|estimate| estimate.degrees_of_freedom),
        p: estimate.map(|estimate| estimate.p),
        p_holm: row.judged.p_holm,
        p_benjamini_hochberg: further.p_benjamini_hochberg,
        p_permutation: further.p_permutation,
        p_permutation_holm: further.p_permutation_holm,
        p_permutation_benjamini_hochberg: further.p_permutation_benjamini_hochberg,
        p_mann_whitney: further.p_mann_whitney,
        share_smaller: further.share_smaller,
        margin: row.margin(),
        design: DesignDocument::new(row),
        paired: paired.map(PairedDocument::new),
        verdict: row.judged.outcome.name(of.metric.better()),
    }
}

fn runs(runs: &Runs, cell: Option<&Cell>) -> RunsDocument {
    let logs = cell.and_then(|_| Logs::new(runs.values.iter().copied()));
    let interval = logs.as_ref().and_then(|logs| logs.confidence_interval(0.95));
    let modes = |cell: &Cell| {
        let (split, critical, ratio) = (cell.split?, cell.critical, cell.mode_ratio());
        Some(ModesDocument { lower: split.lower, t: split.t, critical, ratio })
    };
    RunsDocument {
        n: runs.values.len(),
        class: cell.and_then(Cell::class).map(|class| class.to_string()),
        median: cell.map(|cell| cell.median),
        geometric_mean: cell.map(|cell| cell.geometric_mean),
        ci95_low: interval.map(|interval| interval.low),
        ci95_high: interval.map(|interval| interval.high),
        log_sd: cell.and_then(|cell| cell.log_sd),
        relative_mad: cell
            .and_then(|cell| Some(Sample::new(runs.values.iter().copied())?.mad() / cell.median)),
        minimum: cell.map(|cell| cell.minimum),
        maximum: cell.map(|cell| cell.maximum),
        modes: cell.and_then(modes),
        first_run_apart: cell.and_then(|_| first_run_apart(&runs.values)),
        runs_needed: logs.and_then(|logs| runs_needed(&logs, PRECISION)),
        values: runs.values.clone(),
        trials: runs.trials.clone(),
        suspect: runs.suspect,
        invalid: runs.invalid,
        without_figure: runs.without,
    }
}

fn by_name(levels: &Levels) -> LevelsByName {
    let known = |level: &String| (level != UNKNOWN).then(|| level.clone());
    levels.iter().map(|(factor, level)| (factor.name(), known(level))).collect()
}
