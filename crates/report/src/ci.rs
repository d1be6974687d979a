//! What comparisons and histories have in common in continuous integration: test cases, and figures for trackers of benchmarks.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde::Serialize;
use stats::{Logs, Sample};

/// What is not decided is in a test report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A skipped test case.
    Skipped,
    /// One that passed.
    Passed,
    /// One that failed.
    Failed,
}

/// The result of a cell as a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestResult {
    Passed,
    Failed,
    Undecided,
    Error,
}

impl TestResult {
    /// As a status of JUnit, with the verdict and a sentence unless it passed.
    pub(crate) fn status(self, undecided: Undecided, verdict: &str, sentence: String) -> TestCaseStatus {
        let mut status = match (self, undecided) {
            (Self::Passed, _) | (Self::Undecided, Undecided::Passed) => return TestCaseStatus::success(),
            (Self::Undecided, Undecided::Skipped) => TestCaseStatus::skipped(),
            (Self::Undecided, Undecided::Failed) | (Self::Failed, _) => {
                TestCaseStatus::non_success(NonSuccessKind::Failure)
            }
            (Self::Error, _) => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        status.set_type(verdict);
        status.set_message(sentence);
        status
    }
}

/// A test report as XML. The root does not count what was skipped: Jenkins's schema, which it validates against, lacks that.
pub(crate) fn xml(report: &Report) -> String {
    // Only a writer fails, and this one is memory.
    let text = report.to_string().unwrap_or_default();
    text.replacen(&format!(" skipped=\"{}\"", report.skipped), "", 1)
}

/// Geometric mean of runs, with its 95% interval.
pub(crate) struct Figure {
    pub(crate) value: f64,
    interval: Option<[f64; 2]>,
}

impl Figure {
    pub(crate) fn new(values: &[f64]) -> Option<Self> {
        let value = Sample::new(values.iter().copied())?.geometric_mean()?;
        let interval = Logs::new(values.iter().copied())?.confidence_interval(0.95);
        Some(Self { value, interval: interval.map(|interval| [interval.low, interval.high]) })
    }
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

impl GithubBenchmark {
    pub(crate) fn new(name: String, unit: String, figure: &Figure, extra: String) -> Self {
        let range = figure.interval.map(|[low, high]| format!("{low} to {high}"));
        Self { name, unit, value: figure.value, range, extra }
    }
}

/// Figures in Bencher's metric format: metrics by their names, by benchmark.
pub(crate) type Bencher = BTreeMap<String, BTreeMap<String, BencherMetric>>;

/// A figure of Bencher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BencherMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

impl From<Figure> for BencherMetric {
    fn from(Figure { value, interval }: Figure) -> Self {
        let [lower_value, upper_value] = interval.map_or([None; 2], |bounds| bounds.map(Some));
        Self { value, lower_value, upper_value }
    }
}
