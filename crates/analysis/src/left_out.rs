//! Bundles that a result lacks because they can't be read.

use serde::Serialize;
use store::Problem;

/// A bundle that a result lacks because it, or a part that the result needs, can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Its name: the trial's id.
    pub bundle: String,
    /// The file with the problem.
    pub file: Option<String>,
    /// The problem.
    pub reason: String,
    /// What to do.
    pub advice: String,
}

impl From<Problem> for LeftOut {
    fn from(problem: Problem) -> Self {
        let Problem { bundle, file, reason, advice } = problem;
        Self { bundle: bundle.unwrap_or_default(), file, reason, advice }
    }
}

/// These problems in a document.
pub fn left_out(problems: Vec<Problem>) -> Vec<LeftOut> {
    problems.into_iter().map(LeftOut::from).collect()
}
