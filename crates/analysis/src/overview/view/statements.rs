//! The statements of a trace on two sides.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::statements::{ComparedStatements, OverTime, PlanChange, StatementRow, WaitShare, plan_lines};

/// The statements of a trace in a cell and in the baseline's. Arrays have the baseline's figure and the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statements {
    /// The baseline, by what distinguishes it.
    pub baseline: String,
    /// What is compared with it.
    pub variant: String,
    /// SHA-256 of the trace.
    pub trace: String,
    /// Usable trials.
    pub trials: [usize; 2],
    /// Time of all executions, in microseconds a trial.
    pub total_us: [f64; 2],
    /// The largest ratio that is not a relevant change.
    pub margin: f64,
    /// The result in sentences.
    pub sentences: Vec<String>,
    /// Those with the largest part of the change first.
    pub statements: Vec<PlayedStatement>,
}

/// A statement of a trace, of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlayedStatement {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its normal form.
    pub text: String,
    /// Executions in all usable trials.
    pub calls: [u64; 2],
    /// Failed ones by SQLSTATE.
    pub failures: [BTreeMap<String, u64>; 2],
    /// SQLSTATEs of the variant that the baseline does not have.
    pub new_failures: Vec<String>,
    /// Geometric mean of the trials' mean execution times.
    pub mean_us: [Option<f64>; 2],
    /// Change of the mean, as a share; null if unknown.
    pub change: Option<f64>,
    /// The lower end of its 99% interval.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
    /// P, by Benjamini and Hochberg over all statements.
    pub p: Option<f64>,
    /// `REGRESSION`, `EQUIVALENT` and so on.
    pub verdict: String,
    /// Its part of the change of the time of all executions.
    pub share: Option<f64>,
    /// Its plans, a line for each node.
    pub plans: [Vec<String>; 2],
    /// How the plans differ.
    pub plan_changes: Vec<ChangedPlan>,
    /// The execution times of all usable trials; null without any, and of the statements that are too many.
    pub latency: [Option<Distribution>; 2],
    /// Executions over the recorded time; null if unknown, as in bundles of before, and of the statements that are too many.
    pub over_time: [Option<OverTime>; 2],
    /// What its sessions waited for, the most frequent first; null if unknown, and of the statements that are too many.
    pub waits: [Option<Vec<WaitShare>>; 2],
    /// Why waits are unknown.
    pub without_waits: [Option<String>; 2],
}

/// A part of a plan that another takes the place of; null for what was added or is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedPlan {
    /// The nodes of the baseline's plan.
    pub before: Option<String>,
    /// The nodes of the other plan.
    pub after: Option<String>,
}

/// A distribution of times by its quantiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Shares of all values, ascending from 0 to 1.
    pub q: Vec<f64>,
    /// For each share, the smallest value that it does not exceed.
    pub us: Vec<f64>,
    /// Number of values.
    pub count: u64,
}

impl Statements {
    /// The statements of two cells with these names, without what is shown of some only.
    pub(crate) fn new(of: &ComparedStatements, baseline: String, variant: String) -> Self {
        Self {
            baseline,
            variant,
            trace: of.trace.clone(),
            trials: of.trials,
            total_us: of.total_us,
            margin: of.margin,
            sentences: of.sentences(),
            statements: of.rows.iter().map(|row| PlayedStatement::new(of, row)).collect(),
        }
    }
}

impl PlayedStatement {
    fn new(of: &ComparedStatements, row: &StatementRow) -> Self {
        let interval = row.estimate.and_then(|estimate| estimate.confidence_interval(0.99));
        let plan = |side: usize| plan_lines(row.plans[side].as_ref());
        let change = |PlanChange { before, after }: &PlanChange| ChangedPlan {
            before: before.clone(),
            after: after.clone(),
        };
        Self {
            fingerprint: row.fingerprint.clone(),
            text: row.text.clone(),
            calls: row.calls,
            failures: row.failures.clone(),
            new_failures: row.new_failures().into_iter().map(str::to_owned).collect(),
            mean_us: row.mean_us,
            change: row.estimate.map(|estimate| estimate.ratio - 1.0),
            ci99_low: interval.map(|interval| interval.low - 1.0),
            ci99_high: interval.map(|interval| interval.high - 1.0),
            p: row.p_benjamini_hochberg,
            verdict: row.verdict.to_string(),
            share: of.share(row),
            plans: [plan(0), plan(1)],
            plan_changes: row.plan_changes.iter().map(change).collect(),
            latency: [None, None],
            over_time: [None, None],
            waits: [None, None],
            without_waits: row.without_waits.clone(),
        }
    }
}
