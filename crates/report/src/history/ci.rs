//! A history for continuous integration: a test report, and the figures of its newest step for trackers of benchmarks.

use analysis::history::{History, Series, Tested};
use analysis::levels::in_words;
use plaintext::figures::change;
use quick_junit::{Report, TestCase, TestSuite};

use super::text::{interval, reason};
use crate::ci::{Bencher, Figure, GithubBenchmark, TestResult, Undecided, xml};

/// A JUnit report in XML: a suite with a test case for each cell.
///
/// With gates, a cell fails that hits one. Without gates, one fails with a regression that nobody accepted. A cell that could
/// not be searched is not decided, and one without a usable trial is an error.
pub fn junit(history: &History, undecided: Undecided) -> String {
    let mut report = Report::new("pgdyno");
    let title = format!("{} over {}", history.metric.in_words(history.kind), history.over);
    let mut suite = TestSuite::new(title);
    for (at, series) in history.series.iter().enumerate() {
        let failing = failing(history, at);
        let result = match series.tested {
            _ if !failing.is_empty() => TestResult::Failed,
            Tested::Yes => TestResult::Passed,
            Tested::Invalid => TestResult::Error,
            _ => TestResult::Undecided,
        };
        let shown = |changes: &[usize]| {
            changes.iter().map(|at| in_words_of(history, series, *at)).collect::<Vec<_>>().join("\n")
        };
        let (verdict, sentence) = match reason(series.tested) {
            None => ("REGRESSION", shown(&failing)),
            Some(reason) => ("NO VERDICT", format!("it has {reason}")),
        };
        let mut case = TestCase::new(in_words(&series.cell), result.status(undecided, verdict, sentence));
        case.set_classname(format!("pgdyno.{}", history.metric));
        let all: Vec<usize> = (0..series.changes.len()).collect();
        case.set_system_out(if all.is_empty() { "no shift".to_owned() } else { shown(&all) });
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    xml(&report)
}

/// The change points by which a series fails.
fn failing(history: &History, at: usize) -> Vec<usize> {
    let series = &history.series[at];
    let is_failing = |change: &usize| match history.gates.is_empty() {
        true => {
            let found = &series.changes[*change];
            let is_worse = history.verdict_on(found).is_worse(history.metric.better()) == Some(true);
            series.accepted[*change].is_none() && is_worse
        }
        false => history.gates.iter().any(|gate| gate.hit.contains(&(at, *change))),
    };
    (0..series.changes.len()).filter(is_failing).collect()
}

/// `REGRESSION -10.7% (-12.3% to -9.1%) between 3.7.10 and 3.8.13, accepted`.
fn in_words_of(history: &History, series: &Series, at: usize) -> String {
    let found = &series.changes[at];
    let interval = interval(found).map(|interval| format!(" ({interval})")).unwrap_or_default();
    let label = |at: usize| &history.steps[at].label;
    format!(
        "{} {}{interval} between {} and {}{}",
        history.name_of(found),
        change(found.effect.ratio - 1.0),
        label(found.before),
        label(found.after),
        if series.accepted[at].is_some() { ", accepted" } else { "" }
    )
}

/// The cells that have a figure in the newest step, each with it.
fn newest(history: &History) -> impl Iterator<Item = (String, Figure)> {
    let figure =
        |series: &Series| Some((in_words(&series.cell), Figure::new(&series.points.last()?.values)?));
    history.series.iter().filter_map(figure)
}

/// Figures of the newest step as JSON of github-action-benchmark (`customBiggerIsBetter`, `customSmallerIsBetter`).
pub fn github_benchmark(history: &History) -> Vec<GithubBenchmark> {
    // Relative to a control, a time has no unit.
    let is_time = history.metric.is_time() && history.control.is_none();
    let unit = if is_time { "µs".to_owned() } else { history.metric.in_words(history.kind) };
    let step = history.steps.last().map(|step| format!("{} {}", history.over, step.label));
    let of_cell = |(name, figure): (String, Figure)| {
        GithubBenchmark::new(name, unit.clone(), &figure, step.clone().unwrap_or_default())
    };
    newest(history).map(of_cell).collect()
}

/// Figures of the newest step in Bencher's metric format.
pub fn bencher(history: &History) -> Bencher {
    let of_cell = |(name, figure): (String, Figure)| {
        (name, [(history.metric.to_string(), figure.into())].into_iter().collect())
    };
    newest(history).map(of_cell).collect()
}
