//! A comparison for continuous integration: a test report, and figures for trackers of benchmarks.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use stats::{Logs, Sample};

use analysis::compare::{Compared, MetricRows, change_in_words};
use analysis::judgement::{Outcome, Row};
use analysis::levels::in_words;
use plaintext::figures::counted;
use plaintext::table::GAP;

/// What a comparison that is not decided is in a test report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A skipped test case.
    Skipped,
    /// One that passed.
    Passed,
    /// One that failed.
    Failed,
}

/// A JUnit report in XML: a suite for each metric and variant, with a test case for each cell.
///
/// With gates, a cell fails that hits one; a metric without gates only passes on its figures. Without gates, a regression
/// fails. A cell without a usable trial is an error.
pub fn junit(compared: &Compared, undecided: Undecided) -> String {
    let mut report = Report::new("pgdyno");
    for of in &compared.metrics {
        for (at, pair) in compared.pairs.iter().enumerate() {
            let (a, b) = (&compared.sides[0], &compared.sides[pair.variant]);
            let (a, b) = (lasting(&a.selector), lasting(&b.selector));
            let mut suite = TestSuite::new(format!("{b} against {a}: {}", of.metric.in_words(of.kind)));
            let rows = of.rows.iter().enumerate().filter(|(_, row)| row.pair == at);
            for (index, row) in rows {
                let result = Result::new(compared, of, index);
                let mut case =
                    TestCase::new(in_words(&pair.cells[row.cell]), status(result, of, row, undecided));
                case.set_classname(format!("pgdyno.{}", of.metric));
                case.set_system_out(figures(of, row));
                suite.add_test_case(case);
            }
            report.add_test_suite(suite);
        }
    }
    // Only a writer fails, and this one is memory.
    report.to_string().unwrap_or_default()
}

/// What a cell is as a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Result {
    Passed,
    Failed,
    Undecided,
    Error,
}

impl Result {
    /// The result of the row of a metric at `index`.
    fn new(compared: &Compared, of: &MetricRows, index: usize) -> Self {
        let outcome = of.rows[index].judged.outcome;
        let gates = || compared.gates.iter().filter(|outcome| outcome.gate.metric == of.metric);
        match outcome {
            _ if gates().any(|gate| gate.hit.contains(&index)) => Self::Failed,
            Outcome::Invalid => Self::Error,
            _ if gates().any(|gate| gate.undecided.contains(&index)) => Self::Undecided,
            _ if !compared.gates.is_empty() => Self::Passed,
            _ if outcome.is_worse(of.metric.better()) == Some(true) => Self::Failed,
            _ if outcome.is_decided() => Self::Passed,
            _ => Self::Undecided,
        }
    }
}

fn status(result: Result, of: &MetricRows, row: &Row, undecided: Undecided) -> TestCaseStatus {
    let mut status = match (result, undecided) {
        (Result::Passed, _) | (Result::Undecided, Undecided::Passed) => return TestCaseStatus::success(),
        (Result::Undecided, Undecided::Skipped) => TestCaseStatus::skipped(),
        (Result::Undecided, Undecided::Failed) | (Result::Failed, _) => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
        (Result::Error, _) => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let verdict = row.judged.outcome.name(of.metric.better());
    status.set_type(verdict);
    status.set_message(sentence(of, row));
    status
}

/// `REGRESSION: -5.2% (-8.0% to -2.3%)`, and why there is no verdict.
fn sentence(of: &MetricRows, row: &Row) -> String {
    let verdict = row.judged.outcome.name(of.metric.better());
    let reason = match row.judged.outcome {
        Outcome::Refused(reason) => Some(reason.in_words().to_owned()),
        _ => None,
    };
    let more = change_in_words(row).or(reason);
    more.map_or_else(|| verdict.to_owned(), |more| format!("{verdict}: {more}"))
}

/// The figures of both sides and the verdict, in a line each.
fn figures(of: &MetricRows, row: &Row) -> String {
    let side = |name: &str, values: &[f64]| {
        let mean = Figure::new(values).map_or_else(|| GAP.to_owned(), |figure| figure.value.to_string());
        format!("{name}: {mean}, geometric mean of {}\n", counted(values.len(), "trial"))
    };
    let unit = if of.metric.is_time() { ", µs" } else { "" };
    format!(
        "{}{unit}\n{}{}{}\n",
        of.metric.in_words(of.kind),
        side("baseline", &row.a.values),
        side("variant", &row.b.values),
        sentence(of, row)
    )
}

/// Figures of the variants as JSON of github-action-benchmark (`customBiggerIsBetter`, `customSmallerIsBetter`). It takes one
/// direction for all figures: that of the first metric, which decides. Metrics with another one are left out.
pub fn github_benchmark(compared: &Compared) -> Vec<GithubBenchmark> {
    let better = |of: &MetricRows| of.metric.better();
    let direction = compared.metrics.first().map(better);
    let is_shown = |of: &&MetricRows| Some(better(of)) == direction;
    let metrics = compared.metrics.iter().filter(is_shown).count();
    let all = variants(compared).filter(|(of, ..)| is_shown(of)).map(|(of, row, name)| {
        let figure = Figure::new(&row.b.values)?;
        Some(GithubBenchmark {
            name: if metrics == 1 { name } else { format!("{name}: {}", of.metric) },
            unit: if of.metric.is_time() { "µs".to_owned() } else { of.metric.in_words(of.kind) },
            value: figure.value,
            range: figure.interval.map(|[low, high]| format!("{low} to {high}")),
            extra: sentence(of, row),
        })
    });
    all.flatten().collect()
}

/// A figure of github-action-benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GithubBenchmark {
    name: String,
    unit: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// Figures of the variants in Bencher's metric format: metrics by their names, by benchmark.
pub fn bencher(compared: &Compared) -> BTreeMap<String, BTreeMap<String, BencherMetric>> {
    let mut benchmarks: BTreeMap<String, BTreeMap<String, BencherMetric>> = BTreeMap::new();
    for (of, row, name) in variants(compared) {
        let Some(Figure { value, interval }) = Figure::new(&row.b.values) else { continue };
        let [lower_value, upper_value] = interval.map_or([None; 2], |bounds| bounds.map(Some));
        let metric = BencherMetric { value, lower_value, upper_value };
        benchmarks.entry(name).or_default().insert(of.metric.to_string(), metric);
    }
    benchmarks
}

/// A figure of Bencher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BencherMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// The rows of all metrics, each with a name that is the same for all runs of its cell: a variant is named if there are several.
fn variants(compared: &Compared) -> impl Iterator<Item = (&MetricRows, &Row, String)> {
    compared.metrics.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row))).map(|(of, row)| {
        let pair = &compared.pairs[row.pair];
        let mut name = in_words(&pair.cells[row.cell]);
        if compared.pairs.len() > 1 {
            name += &format!(" ({})", lasting(&compared.sides[pair.variant].selector));
        }
        (of, row, name)
    })
}

/// What a selector names other than its run, which is another one each time; the run if it names nothing else.
fn lasting(selector: &str) -> String {
    let terms: Vec<&str> = selector.split(',').filter(|term| !term.starts_with("run:")).collect();
    if terms.is_empty() { selector.to_owned() } else { terms.join(", ") }
}

/// Geometric mean of runs, with its 95% interval.
struct Figure {
    value: f64,
    interval: Option<[f64; 2]>,
}

impl Figure {
    fn new(values: &[f64]) -> Option<Self> {
        let value = Sample::new(values.iter().copied())?.geometric_mean()?;
        let interval = Logs::new(values.iter().copied())?.confidence_interval(0.95);
        Some(Self { value, interval: interval.map(|interval| [interval.low, interval.high]) })
    }
}
