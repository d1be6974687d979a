//! A trace that a workload plays, and what became of its statements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Multiplier;

/// What begins the name of a workload that is a trace without a table of its own: `replay:app.pgdt`.
pub const PREFIX: &str = "replay:";

/// A trace, identified by its content, and how it is played.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// Its file, relative to the campaign.
    pub file: String,
    /// SHA-256 of its content, in hexadecimal; of its statements alone if it is made of scripts.
    pub sha256: String,
    /// How much faster than recorded; without meaning if `closed`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub speed: Multiplier,
    /// How often each session is played, on average.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rate_scale: Multiplier,
    /// Whether statements wait only for the one before in their session.
    pub closed: bool,
    /// The sessions that are played: `user=NAME,database=NAME,application=NAME`; none for all.
    pub sessions: Option<String>,
    /// Its number of sessions if pgdyno makes it of the workload's scripts, each of which they run once; none of a recorded trace.
    #[serde(default)]
    pub streams: Option<u32>,
}

/// The executions of a statement of a trace in a trial: of all that differ in their values only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayedStatement {
    /// Its fingerprint, 16 hexadecimal digits.
    pub fingerprint: String,
    /// Its normal form, without literals.
    pub text: String,
    /// Executions, failed ones included.
    pub calls: u64,
    /// Failed ones by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Executions that ended otherwise than recorded.
    pub different: u64,
    /// Executions that did not take place.
    pub not_executed: u64,
    /// Rows received.
    pub rows: u64,
    /// Sum of the times of successful executions, each from sending it to its complete response, in nanoseconds.
    pub total_ns: u64,
    /// Their distribution in nanoseconds: HdrHistogram V2, deflated, base64; empty without any.
    pub latency_ns: String,
    /// Its executions over the trace's recorded time; none in bundles of before.
    pub over_time: Option<OverTime>,
    /// Samples of the sessions that executed it, by what they waited for: `CPU`, or a wait event as `IO:DataFileRead`; none if sessions
    /// were not sampled.
    pub waits: Option<BTreeMap<String, u64>>,
    /// Why there are no waits.
    pub without_waits: Option<String>,
    /// Its plan after the load; none if the server showed none.
    pub plan: Option<PlanNode>,
    /// Why there is no plan: an SQLSTATE, or words.
    pub without_plan: Option<String>,
}

impl PlayedStatement {
    /// Mean time of a successful execution in microseconds; none without any.
    pub fn mean_us(&self) -> Option<f64> {
        let succeeded = self.calls.saturating_sub(self.failures.values().sum());
        (succeeded > 0 && self.total_ns > 0).then(|| self.total_ns as f64 / succeeded as f64 / 1e3)
    }
}

/// Slices of the recorded time of a trace, from the first event of the sessions that are played to their last.
pub const SLICES: u32 = 100;

/// Executions over the recorded time of a trace, in [`SLICES`] equal slices. An execution is in the slice of its recorded start, whenever
/// it was played, so that the slices of all trials have the same statements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverTime {
    /// Length of a slice of recorded time, in microseconds.
    pub slice_us: u64,
    /// Slices with executions, in the order of time.
    pub slices: Vec<Slice>,
}

/// Executions in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Its number, from 0.
    pub number: u32,
    /// Executions, failed ones included.
    pub calls: u64,
    /// Failed ones.
    pub failures: u64,
    /// Sum of the times of successful executions, in nanoseconds.
    pub total_ns: u64,
}

/// A node of a plan, without costs and literals.
///
/// Source: PostgreSQL manual, EXPLAIN, and `src/backend/commands/explain.c`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanNode {
    /// Its type, such as `Index Scan`, with the strategy of aggregates and set operations, the operation of changes, and the direction of backward scans.
    pub node: String,
    /// The relation that it reads or changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The index that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Type of a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<String>,
    /// What it sorts or groups by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Its inputs, and the plans of its subqueries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanNode>,
}
