//! What became of a trace that was played.

use std::collections::{BTreeMap, HashMap};

use driver::{Hold, PlaybackEvent, PlaybackOutcome, Played, PlayedEnd, Recorded};
use hdrhistogram::Histogram;
use serde::Serialize;

use trace::{Shape, Summary, Survey, TraceReader};

use super::PlayRequest;
use super::outcome::{played_text, recorded_text};
use crate::error::ReplayError;

/// Version of the document.
const SCHEMA: u32 = 1;
/// Longest latency that is distinguished, in nanoseconds: one hour.
const MAX_NS: u64 = 3_600_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Kinds of differences that are listed.
const MAX_DIFFERENCES: usize = 100;
/// Reasons of broken sessions that are listed.
const MAX_REASONS: usize = 10;

/// What became of a trace: `pgdyno replay play --format json`, schema 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlayReport {
    /// Version of the document.
    pub schema: u32,
    /// SHA-256 of the trace.
    pub trace: String,
    /// How much faster than recorded it was to be; null in a closed loop.
    pub speed: Option<f64>,
    /// How often each recorded session was to be played, on average.
    pub rate_scale: f64,
    /// Length of the selected sessions when they were recorded, in seconds.
    pub recorded_s: f64,
    /// Length of the playback in seconds.
    pub played_s: f64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// The event loop: `io_uring` or `epoll`.
    pub engine: String,
    /// CPU time of the driver, user and system, in seconds.
    pub driver_cpu_s: f64,
    /// Its sessions.
    pub sessions: SessionCounts,
    /// Its statements.
    pub statements: StatementCounts,
    /// How the schedule was kept; null in a closed loop.
    pub schedule: Option<Schedule>,
    /// Latency of statements, from sending them to their complete response.
    pub latency: Option<LatencyFigures>,
    /// Latency from their intended starts of the statements that ended as recorded, by which `--find-max` judges; null in a closed
    /// loop.
    pub intended_latency: Option<LatencyFigures>,
    /// The durations that the server logged when the same statements were recorded.
    pub recorded_duration: Option<LatencyFigures>,
    /// Statements that did not end as recorded, the most frequent first.
    pub differences: Vec<Difference>,
    /// The search of `--find-max`, whose last step the other figures are of; null without.
    pub find_max: Option<SpeedSearch>,
}

/// A search for the highest speed that meets objectives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpeedSearch {
    /// The objectives, such as `p99 < 10ms`.
    pub objectives: Vec<String>,
    /// The highest speed that meets them, as a multiple of the recorded one; null if none does.
    pub speed: Option<f64>,
    /// Up to this speed, all steps held; null if there is none.
    pub low: Option<f64>,
    /// From this speed on, all steps failed; null if there is none.
    pub high: Option<f64>,
    /// Whether a further playback at `speed` also met them.
    pub confirmed: bool,
    /// Steps that contradict each other.
    pub contradictions: Vec<String>,
    /// The playbacks, in their order.
    pub steps: Vec<SpeedStep>,
}

/// A playback of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpeedStep {
    /// Its kind.
    pub kind: StepKind,
    /// Its speed; null in a closed loop.
    pub speed: Option<f64>,
    /// Its length in seconds.
    pub played_s: f64,
    /// Executed statements per second.
    pub statements_per_s: f64,
    /// The value of each objective's figure: microseconds, for errors a share; null without any statement.
    pub values: Vec<Option<f64>>,
    /// Whether all objectives were met; null in a closed loop, where they do not apply.
    pub holds: Option<bool>,
    /// Reason why they were not.
    pub reason: Option<String>,
    /// Whether it ended early because an objective could not be met any more.
    pub ended_early: bool,
}

/// Kind of a step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StepKind {
    /// Without a schedule: the capacity.
    Closed,
    /// One rate or speed.
    Try,
    /// A further run at the end, which confirms what was found.
    Confirm,
}

impl StepKind {
    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed loop",
            Self::Try => "try",
            Self::Confirm => "confirm",
        }
    }
}

impl SpeedStep {
    /// The outcome in a few words.
    pub fn verdict(&self) -> String {
        step_verdict(self.holds, self.reason.as_deref(), self.ended_early)
    }
}

/// The outcome of a step of a search in a few words: whether it held, and why not.
pub fn step_verdict(holds: Option<bool>, reason: Option<&str>, ended_early: bool) -> String {
    match (holds, reason) {
        (None, _) => String::new(),
        (Some(true), _) => "holds".to_owned(),
        (Some(false), None) => "fails".to_owned(),
        (Some(false), Some(reason)) if ended_early => format!("fails: {reason}, ended early"),
        (Some(false), Some(reason)) => format!("fails: {reason}"),
    }
}

/// Sessions of a playback.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCounts {
    /// Sessions to play, copies included.
    pub chosen: u64,
    /// Those that connected.
    pub connected: u64,
    /// Largest number at a time.
    pub peak: u32,
    /// Largest number at a time by the recorded times.
    pub recorded_peak: u32,
    /// Time to connect.
    pub connect: Option<LatencyFigures>,
    /// Those that could not connect or lost their connection.
    pub broken: u64,
    /// Why, with the number of sessions.
    pub reasons: BTreeMap<String, u64>,
}

/// Statements of a playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementCounts {
    /// Executed statements.
    pub executed: u64,
    /// Those that ended as recorded: without an error, or with the same SQLSTATE.
    pub as_recorded: u64,
    /// Those that did not.
    pub different: u64,
    /// Those whose recorded outcome is not known.
    pub not_comparable: u64,
    /// Those that failed, as recorded or not.
    pub failed: u64,
    /// Those that were not executed: their sessions were broken, or the playback was stopped.
    pub not_executed: u64,
    /// Rows received.
    pub rows: u64,
    /// Those that waited for the commit of another session, on which they depend.
    pub held: u64,
    /// Those of them that began without it after 10 seconds.
    pub overtaking: u64,
}

/// How statements kept the schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    /// From a statement's intended start to its start.
    pub lag: Option<LatencyFigures>,
    /// The part of it that is the driver's: from when its session could execute it.
    pub driver_lag: Option<LatencyFigures>,
    /// Statements that waited for their session: for its connection, or the response to the statement before.
    pub waited: u64,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyFigures {
    /// Arithmetic mean, in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
}

/// Statements of a shape that did not end as recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Fingerprint by libpg_query, in hexadecimal.
    pub fingerprint: String,
    /// The statement with `$1` and so on in place of its values.
    pub text: String,
    /// How they ended when they were recorded: `success`, an SQLSTATE, or `failure`.
    pub recorded: String,
    /// How they ended now.
    pub played: String,
    /// Number of executions.
    pub count: u64,
}

/// What objectives of a playback are judged by.
#[derive(Clone, Debug)]
pub struct Responses {
    /// Latency from their intended starts of statements that ended as recorded, as far as that is known, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Sum of these latencies, in nanoseconds.
    pub total_ns: u64,
    /// Statements that ended otherwise than recorded, or were not executed.
    pub wrong: u64,
}

/// Sums up a playback.
pub(super) struct Counter {
    shapes: Vec<(String, String)>,
    statements: StatementCounts,
    connected: u64,
    broken: u64,
    reasons: BTreeMap<String, u64>,
    differences: HashMap<(u32, String, String), u64>,
    waited: u64,
    lag: Histogram<u64>,
    driver_lag: Histogram<u64>,
    latency: Histogram<u64>,
    responses: Responses,
    recorded_duration: Histogram<u64>,
    connect: Histogram<u64>,
}

impl Counter {
    pub(super) fn new(summary: &Summary) -> Result<Self, ReplayError> {
        let histogram = || {
            Histogram::new_with_bounds(1, MAX_NS, DIGITS)
                .map_err(|error| ReplayError::Internal(format!("cannot make a histogram: {error}")))
        };
        let shape = |shape: &Shape| (shape.fingerprint(), shape.text.clone());
        Ok(Self {
            shapes: summary.shapes.iter().map(shape).collect(),
            statements: StatementCounts::default(),
            connected: 0,
            broken: 0,
            reasons: BTreeMap::new(),
            differences: HashMap::new(),
            waited: 0,
            lag: histogram()?,
            driver_lag: histogram()?,
            latency: histogram()?,
            responses: Responses { latency: histogram()?, total_ns: 0, wrong: 0 },
            recorded_duration: histogram()?,
            connect: histogram()?,
        })
    }

    pub(super) fn responses(&self) -> &Responses {
        &self.responses
    }

    pub(super) fn add(&mut self, event: &PlaybackEvent, recorded: Option<Recorded>) {
        match event {
            PlaybackEvent::Connected { took_ns, .. } => {
                self.connected += 1;
                self.connect.saturating_record(*took_ns);
            }
            PlaybackEvent::Broken { reason, .. } => {
                self.broken += 1;
                if self.reasons.len() < MAX_REASONS || self.reasons.contains_key(reason) {
                    *self.reasons.entry(reason.clone()).or_default() += 1;
                }
            }
            PlaybackEvent::Played(played) => self.add_statement(played, recorded),
            PlaybackEvent::Starts { .. } | PlaybackEvent::Idle => {}
        }
    }

    fn add_statement(&mut self, played: &Played, recorded: Option<Recorded>) {
        if played.end == PlayedEnd::NotExecuted {
            self.statements.not_executed += 1;
            self.responses.wrong += 1;
            return;
        }
        self.statements.executed += 1;
        self.statements.rows += played.rows;
        self.statements.failed += u64::from(matches!(played.end, PlayedEnd::Failure(_)));
        self.waited += u64::from(played.ready_ns > played.intended_ns);
        self.statements.held += u64::from(played.hold != Hold::None);
        self.statements.overtaking += u64::from(played.hold == Hold::Expired);
        self.lag.saturating_record(played.begun_ns.saturating_sub(played.intended_ns));
        let could_ns = played.intended_ns.max(played.ready_ns);
        self.driver_lag.saturating_record(played.begun_ns.saturating_sub(could_ns));
        self.latency.saturating_record(played.ended_ns.saturating_sub(played.begun_ns));
        if recorded.is_some_and(|recorded| recorded.is_met_by(&played.end) == Some(false)) {
            self.responses.wrong += 1;
        } else {
            let response_ns = played.ended_ns.saturating_sub(played.intended_ns);
            self.responses.latency.saturating_record(response_ns);
            self.responses.total_ns = self.responses.total_ns.saturating_add(response_ns);
        }
        let Some(recorded) = recorded else { return };
        if let Some(duration_us) = recorded.duration_us {
            self.recorded_duration.saturating_record(duration_us.saturating_mul(1000));
        }
        match recorded.is_met_by(&played.end) {
            None => self.statements.not_comparable += 1,
            Some(true) => self.statements.as_recorded += 1,
            Some(false) => {
                self.statements.different += 1;
                let kind = (recorded.shape, recorded_text(recorded.outcome), played_text(&played.end));
                *self.differences.entry(kind).or_default() += 1;
            }
        }
    }

    pub(super) fn finish(
        self,
        trace: &TraceReader,
        request: &PlayRequest,
        survey: &Survey,
        outcome: &PlaybackOutcome,
    ) -> (PlayReport, Responses) {
        let difference = |((shape, recorded, played), count): ((u32, String, String), u64)| {
            let (fingerprint, text) = self.shapes.get(shape as usize).cloned().unwrap_or_default();
            Difference { fingerprint, text, recorded, played, count }
        };
        let mut differences: Vec<Difference> = self.differences.into_iter().map(difference).collect();
        differences.sort_by(|a, b| (b.count, &a.text, &a.played).cmp(&(a.count, &b.text, &b.played)));
        differences.truncate(MAX_DIFFERENCES);
        let schedule =
            Schedule { lag: figures(&self.lag), driver_lag: figures(&self.driver_lag), waited: self.waited };
        let report = PlayReport {
            schema: SCHEMA,
            trace: trace.sum(),
            speed: (!request.closed).then_some(request.speed),
            rate_scale: request.sessions.rate_scale,
            recorded_s: survey.last_us.saturating_sub(survey.first_us) as f64 / 1e6,
            played_s: outcome.elapsed_ns as f64 / 1e9,
            is_stopped: outcome.stopped,
            engine: outcome.engine.name.to_owned(),
            driver_cpu_s: outcome.cpu_us as f64 / 1e6,
            sessions: SessionCounts {
                chosen: survey.sessions,
                connected: self.connected,
                peak: outcome.peak_sessions,
                recorded_peak: survey.peak_sessions,
                connect: figures(&self.connect),
                broken: self.broken,
                reasons: self.reasons,
            },
            statements: self.statements,
            schedule: (!request.closed).then_some(schedule),
            latency: figures(&self.latency),
            intended_latency: figures(&self.responses.latency).filter(|_| !request.closed),
            recorded_duration: figures(&self.recorded_duration),
            differences,
            find_max: None,
        };
        (report, self.responses)
    }
}

/// The figures of a histogram; None if it is empty.
fn figures(of_ns: &Histogram<u64>) -> Option<LatencyFigures> {
    if of_ns.is_empty() {
        return None;
    }
    let quantile = |share| of_ns.value_at_quantile(share) as f64 / 1e3;
    Some(LatencyFigures {
        mean_us: of_ns.mean() / 1e3,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        max_us: of_ns.max() as f64 / 1e3,
    })
}
