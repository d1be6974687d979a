//! A comparison for continuous integration: a test report, and figures for trackers of benchmarks.

use quick_junit::{Report, TestCase, TestSuite};

use analysis::compare::{Compared, MetricRows, change_in_words};
use analysis::judgement::{Outcome, Row};
use analysis::levels::in_words;
use plaintext::figures::counted;
use plaintext::table::GAP;

use crate::ci::{Bencher, Figure, GithubBenchmark, TestResult, Undecided, xml};

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
                let verdict = row.judged.outcome.name(of.metric.better());
                let status = result(compared, of, index).status(undecided, verdict, sentence(of, row));
                let mut case = TestCase::new(in_words(&pair.cells[row.cell]), status);
                case.set_classname(format!("pgdyno.{}", of.metric));
                case.set_system_out(figures(of, row));
                suite.add_test_case(case);
            }
            report.add_test_suite(suite);
        }
    }
    xml(&report)
}

/// The result of the row of a metric at `index`.
fn result(compared: &Compared, of: &MetricRows, index: usize) -> TestResult {
    let outcome = of.rows[index].judged.outcome;
    let gates = || compared.gates.iter().filter(|outcome| outcome.gate.metric == of.metric);
    match outcome {
        _ if gates().any(|gate| gate.hit.contains(&index)) => TestResult::Failed,
        Outcome::Invalid => TestResult::Error,
        _ if gates().any(|gate| gate.undecided.contains(&index)) => TestResult::Undecided,
        _ if !compared.gates.is_empty() => TestResult::Passed,
        _ if outcome.is_worse(of.metric.better()) == Some(true) => TestResult::Failed,
        _ if outcome.is_decided() => TestResult::Passed,
        _ => TestResult::Undecided,
    }
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
        let name = if metrics == 1 { name } else { format!("{name}: {}", of.metric) };
        let unit = if of.metric.is_time() { "µs".to_owned() } else { of.metric.in_words(of.kind) };
        Some(GithubBenchmark::new(name, unit, &figure, sentence(of, row)))
    });
    all.flatten().collect()
}

/// Figures of the variants in Bencher's metric format: metrics by their names, by benchmark.
pub fn bencher(compared: &Compared) -> Bencher {
    let mut benchmarks = Bencher::new();
    for (of, row, name) in variants(compared) {
        let Some(figure) = Figure::new(&row.b.values) else { continue };
        benchmarks.entry(name).or_default().insert(of.metric.to_string(), figure.into());
    }
    benchmarks
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
