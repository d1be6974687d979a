//! What is in a trace, as figures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use pglog::Problem;
use serde::Serialize;
use strum::VariantArray;
use trace::{Action, Call, Identity, Outcome, TraceReader};

use crate::error::ReplayError;
use crate::left_out::LeftOut;
use crate::synthesis::is_synthetic;

/// Moments that a trace's time is divided into.
const MOMENTS: i64 = 60;
/// Names that are listed.
const MAX_NAMES: usize = 20;
/// Version of the document.
const SCHEMA: u32 = 1;

/// What is in a trace: `pgdyno replay inspect --format json`, schema 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inspection {
    /// Version of the document.
    pub schema: u32,
    /// SHA-256 of its content: its identity.
    pub sum: String,
    /// Whether its values were replaced.
    pub is_anonymized: bool,
    /// Whether it was made from snapshots of `pg_stat_statements`: its values and times are drawn.
    pub is_synthetic: bool,
    /// The logs or snapshots that it was made from.
    pub logs: Vec<Log>,
    /// The time of its events.
    pub period: Period,
    /// Number of sessions.
    pub sessions: u64,
    /// Largest number of sessions at a time.
    pub peak_sessions: u64,
    /// Number of executed statements.
    pub executions: u64,
    /// Statements per second, on average.
    pub mean_rate: f64,
    /// Largest number of statements in a second.
    pub peak_rate: u64,
    /// Statements sent by the extended protocol.
    pub extended: u64,
    /// Statements whose duration is known.
    pub with_duration: u64,
    /// The shortest duration in microseconds; much above zero if the server logged long statements only.
    pub shortest_us: Option<u64>,
    /// Transaction blocks: statements that began one.
    pub blocks: u64,
    /// Statements that depend on commits of other sessions.
    pub dependent: u64,
    /// Failed statements by SQLSTATE; empty if the log does not have it.
    pub failures: BTreeMap<String, u64>,
    /// Sessions by role, database and application.
    pub names: Names,
    /// Statements that differ in their values only, those with the most time first.
    pub statements: Vec<StatementFigures>,
    /// The trace over time.
    pub moments: Vec<Moment>,
    /// What of the logs is not in the trace.
    pub left_out: Vec<Missing>,
    /// What of the logs could not be read.
    pub problems: Vec<Missing>,
}

/// A log that a trace was made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Log {
    /// Name of the file.
    pub file: String,
    /// `csvlog`, `jsonlog`, `stderr`, `cloud` or `pg_stat_statements`.
    pub format: String,
    /// Its `log_line_prefix`.
    pub prefix: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of its entries.
    pub entries: u64,
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Period {
    /// The first event.
    pub from: Timestamp,
    /// The last event.
    pub to: Timestamp,
    /// Length in seconds.
    pub length_s: f64,
}

/// Sessions by what they are called; the most frequent names, and an empty one for those that the log does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Names {
    /// By role.
    pub users: Vec<NameCount>,
    /// By database.
    pub databases: Vec<NameCount>,
    /// By `application_name`.
    pub applications: Vec<NameCount>,
}

/// The number of sessions with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameCount {
    /// The name.
    pub name: String,
    /// Number of sessions.
    pub sessions: u64,
}

/// Figures of the statements of a shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementFigures {
    /// Fingerprint by libpg_query, in hexadecimal.
    pub fingerprint: String,
    /// The statement with `$1` and so on in place of its values.
    pub text: String,
    /// Whether libpg_query can parse it.
    pub is_parsed: bool,
    /// Executions.
    pub calls: u64,
    /// Sum of the known durations in microseconds.
    pub total_us: u64,
    /// Share of the time of all statements.
    pub share: f64,
    /// Mean of the known durations in microseconds.
    pub mean_us: Option<f64>,
    /// Longest duration in microseconds.
    pub max_us: Option<u64>,
    /// Executions that failed.
    pub failures: u64,
}

/// A part of the trace's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// Its start, in seconds after the trace's.
    pub at_s: f64,
    /// Statements that began in it.
    pub statements: u64,
    /// Largest number of open sessions.
    pub sessions: u64,
}

/// Something of the logs that is missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// How often it was found.
    pub count: u64,
    /// File and line of the first.
    pub first: String,
}

/// Reads a trace and computes its figures.
///
/// # Errors
/// It can't be read, or is damaged.
pub fn inspect(trace: &TraceReader) -> Result<Inspection, ReplayError> {
    trace.verify()?;
    let (first_us, last_us) = bounds(trace)?;
    let mut tally = Counter::new(trace, first_us, last_us);
    for event in trace.events()? {
        let event = event?;
        tally.add(event.at_us, event.session, &event.action);
    }
    Ok(tally.finish(trace, first_us, last_us))
}

/// The times of the first and the last event.
fn bounds(trace: &TraceReader) -> Result<(i64, i64), ReplayError> {
    let mut bounds: Option<(i64, i64)> = None;
    for event in trace.events()? {
        let at_us = event?.at_us;
        bounds = Some(bounds.map_or((at_us, at_us), |(first, _)| (first, at_us)));
    }
    Ok(bounds.unwrap_or_default())
}

#[derive(Clone, Copy, Default)]
struct ShapeCounter {
    calls: u64,
    timed: u64,
    total_us: u64,
    max_us: Option<u64>,
    failures: u64,
}

struct Counter {
    first_us: i64,
    moment_us: i64,
    shapes: Vec<ShapeCounter>,
    /// Shapes that begin a transaction block.
    begins: Vec<bool>,
    moments: Vec<(u64, u64)>,
    open: HashSet<u32>,
    sessions: u64,
    peak_sessions: u64,
    executions: u64,
    extended: u64,
    with_duration: u64,
    shortest_us: Option<u64>,
    blocks: u64,
    failures: BTreeMap<String, u64>,
    /// The second that is counted, and its statements.
    second: (i64, u64),
    peak_rate: u64,
    users: HashMap<Option<Arc<str>>, u64>,
    databases: HashMap<Option<Arc<str>>, u64>,
    applications: HashMap<Option<Arc<str>>, u64>,
}

impl Counter {
    fn new(trace: &TraceReader, first_us: i64, last_us: i64) -> Self {
        let shapes = &trace.summary().shapes;
        let begins = |text: &str| {
            let start = text.get(..5).unwrap_or_default();
            start.eq_ignore_ascii_case("begin") || start.eq_ignore_ascii_case("start")
        };
        Self {
            first_us,
            moment_us: (last_us.saturating_sub(first_us) / MOMENTS).saturating_add(1).max(1),
            shapes: vec![ShapeCounter::default(); shapes.len()],
            begins: shapes.iter().map(|shape| begins(&shape.text)).collect(),
            moments: Vec::new(),
            open: HashSet::new(),
            sessions: 0,
            peak_sessions: 0,
            executions: 0,
            extended: 0,
            with_duration: 0,
            shortest_us: None,
            blocks: 0,
            failures: BTreeMap::new(),
            second: (0, 0),
            peak_rate: 0,
            users: HashMap::new(),
            databases: HashMap::new(),
            applications: HashMap::new(),
        }
    }

    fn add(&mut self, at_us: i64, session: u32, action: &Action) {
        // A damaged trace may be out of order.
        let after_us = at_us.saturating_sub(self.first_us);
        let moment = (after_us / self.moment_us).clamp(0, MOMENTS) as usize;
        if moment >= self.moments.len() {
            self.moments.resize(moment + 1, (0, self.open.len() as u64));
        }
        match action {
            Action::Begin(identity) => self.begin(session, identity),
            Action::End => drop(self.open.remove(&session)),
            Action::Execute(statement) => {
                self.executions += 1;
                self.moments[moment].0 += 1;
                let second = after_us / 1_000_000;
                if second != self.second.0 {
                    self.second = (second, 0);
                }
                self.second.1 += 1;
                self.peak_rate = self.peak_rate.max(self.second.1);
                self.extended += u64::from(matches!(statement.call, Call::Extended { .. }));
                self.blocks += u64::from(self.begins.get(statement.shape as usize).copied().unwrap_or(false));
                if let Outcome::Failure(state) = statement.outcome {
                    let state = state.map(|state| state.to_string()).unwrap_or_default();
                    *self.failures.entry(state).or_default() += 1;
                }
                if let Some(duration_us) = statement.duration_us {
                    self.with_duration += 1;
                    self.shortest_us =
                        Some(self.shortest_us.map_or(duration_us, |least| least.min(duration_us)));
                }
                let Some(shape) = self.shapes.get_mut(statement.shape as usize) else { return };
                shape.calls += 1;
                shape.failures += u64::from(matches!(statement.outcome, Outcome::Failure(_)));
                if let Some(duration_us) = statement.duration_us {
                    shape.timed += 1;
                    shape.total_us = shape.total_us.saturating_add(duration_us);
                    shape.max_us = shape.max_us.max(Some(duration_us));
                }
            }
        }
        let open = self.open.len() as u64;
        self.peak_sessions = self.peak_sessions.max(open);
        self.moments[moment].1 = self.moments[moment].1.max(open);
    }

    fn begin(&mut self, session: u32, identity: &Identity) {
        self.sessions += 1;
        self.open.insert(session);
        *self.users.entry(identity.user.clone()).or_default() += 1;
        *self.databases.entry(identity.database.clone()).or_default() += 1;
        *self.applications.entry(identity.application.clone()).or_default() += 1;
    }

    fn finish(self, trace: &TraceReader, first_us: i64, last_us: i64) -> Inspection {
        let summary = trace.summary();
        let length_s = last_us.saturating_sub(first_us) as f64 / 1e6;
        let total_us: f64 = self.shapes.iter().map(|shape| shape.total_us as f64).sum();
        let mut statements: Vec<StatementFigures> = self
            .shapes
            .iter()
            .zip(&summary.shapes)
            .filter(|(counter, _)| counter.calls > 0)
            .map(|(counter, shape)| StatementFigures {
                fingerprint: shape.fingerprint(),
                text: shape.text.clone(),
                is_parsed: shape.is_parsed,
                calls: counter.calls,
                total_us: counter.total_us,
                share: if total_us > 0.0 { counter.total_us as f64 / total_us } else { 0.0 },
                mean_us: (counter.timed > 0).then(|| counter.total_us as f64 / counter.timed as f64),
                max_us: counter.max_us,
                failures: counter.failures,
            })
            .collect();
        statements.sort_by(|a, b| (b.total_us, b.calls, &a.text).cmp(&(a.total_us, a.calls, &b.text)));
        let moment = |(at, (statements, sessions)): (usize, (u64, u64))| Moment {
            at_s: at as f64 * self.moment_us as f64 / 1e6,
            statements,
            sessions,
        };
        let missing = |missing: &trace::Missing, description: &str| Missing {
            name: missing.name.clone(),
            description: description.to_owned(),
            count: missing.count,
            first: format!("{}:{}", missing.file, missing.line),
        };
        // A later version may have further kinds, which this one can't describe.
        let problem = |name: &str| Problem::VARIANTS.iter().find(|problem| problem.as_str() == name);
        let log = |source: &trace::Source| Log {
            file: source.file.clone(),
            format: source.format.clone(),
            prefix: source.prefix.clone(),
            bytes: source.bytes,
            entries: source.entries,
        };
        Inspection {
            schema: SCHEMA,
            sum: trace.sum(),
            is_anonymized: summary.is_anonymized,
            is_synthetic: is_synthetic(&summary.sources),
            logs: summary.sources.iter().map(log).collect(),
            period: Period { from: timestamp(first_us), to: timestamp(last_us), length_s },
            sessions: self.sessions,
            peak_sessions: self.peak_sessions,
            executions: self.executions,
            mean_rate: if length_s > 0.0 { self.executions as f64 / length_s } else { 0.0 },
            peak_rate: self.peak_rate,
            extended: self.extended,
            with_duration: self.with_duration,
            shortest_us: self.shortest_us,
            blocks: self.blocks,
            dependent: summary.dependent,
            failures: self.failures,
            names: Names {
                users: counts(self.users),
                databases: counts(self.databases),
                applications: counts(self.applications),
            },
            statements,
            moments: self.moments.into_iter().enumerate().map(moment).collect(),
            left_out: summary
                .left_out
                .iter()
                .filter_map(|one| Some(missing(one, LeftOut::from_str(&one.name).ok()?.description())))
                .collect(),
            problems: summary
                .problems
                .iter()
                .filter_map(|one| Some(missing(one, problem(&one.name)?.description())))
                .collect(),
        }
    }
}

fn timestamp(at_us: i64) -> Timestamp {
    Timestamp::from_microsecond(at_us).unwrap_or_default()
}

fn counts(counts: HashMap<Option<Arc<str>>, u64>) -> Vec<NameCount> {
    let count = |(name, sessions): (Option<Arc<str>>, u64)| NameCount {
        name: name.as_deref().unwrap_or_default().to_owned(),
        sessions,
    };
    let mut counts: Vec<NameCount> = counts.into_iter().map(count).collect();
    counts.sort_by(|a, b| (b.sessions, &a.name).cmp(&(a.sessions, &b.name)));
    counts.truncate(MAX_NAMES);
    counts
}
