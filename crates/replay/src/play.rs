//! Plays a trace against a server.

mod database_copy;
mod outcome;
mod report;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{PlaybackError, TracePlayback, play_trace};
use trace::{Selection, Survey, TraceReader};
use wire::ConnectParams;
use wire::blocking::Session;

pub use database_copy::DatabaseCopy;
pub use report::{
    Difference, LatencyFigures, PlayReport, Responses, Schedule, SessionCounts, SpeedSearch, SpeedStep,
    StatementCounts, StepKind, step_verdict,
};

use crate::error::ReplayError;
use report::Counter;

/// How to play a trace.
#[derive(Clone, Debug)]
pub struct PlayRequest {
    /// The server, role and database of all sessions.
    pub connection: ConnectParams,
    /// How much faster than recorded; 1: as recorded.
    pub speed: f64,
    /// Whether statements wait only for the one before in their session.
    pub closed: bool,
    /// The sessions to play, and how often.
    pub sessions: Selection,
    /// Processors that the driver may use.
    pub cpus: u32,
}

/// Interval at which the judge of a playback is called.
const JUDGE_INTERVAL: Duration = Duration::from_millis(100);

/// Plays a trace, until its end or until `stop` is set.
///
/// # Errors
/// The trace can't be read, no session is selected, sessions of several databases are, or the server can't be connected to.
pub fn play(
    trace: &TraceReader,
    request: &PlayRequest,
    stop: &AtomicBool,
) -> Result<PlayReport, ReplayError> {
    Ok(play_judged(trace, request, stop, &mut |_, _| true)?.0)
}

/// Plays a trace as [`play`] does, as long as a judge says so of what has ended until then and of the number of statements in
/// all. Also returns what objectives are judged by.
///
/// # Errors
/// As [`play`].
pub fn play_judged(
    trace: &TraceReader,
    request: &PlayRequest,
    stop: &AtomicBool,
    goes_on: &mut dyn FnMut(&Responses, u64) -> bool,
) -> Result<(PlayReport, Responses), ReplayError> {
    let survey = Survey::read(trace, &request.sessions, &mut |_| {})?;
    survey.check(&request.sessions)?;
    // A wrong name or password is known before thousands of sessions fail by it.
    Session::connect(&request.connection).map_err(|error| ReplayError::Connect(Box::new(error)))?;
    let playback = TracePlayback {
        connection: request.connection.clone(),
        speed: request.speed,
        closed: request.closed,
        sessions: request.sessions.clone(),
        cpus: request.cpus,
    };
    let mut counter = Counter::new(trace.summary())?;
    let ends = AtomicBool::new(false);
    let mut judged = Instant::now();
    let mut on_event = |event: &_, recorded| {
        counter.add(event, recorded);
        if judged.elapsed() >= JUDGE_INTERVAL {
            judged = Instant::now();
            if !goes_on(counter.responses(), survey.statements) {
                ends.store(true, Ordering::Relaxed);
            }
        }
        if stop.load(Ordering::Relaxed) {
            ends.store(true, Ordering::Relaxed);
        }
    };
    let outcome =
        play_trace(trace, &survey, &playback, &ends, &mut on_event).map_err(|error| match error {
            PlaybackError::Driver(error) => ReplayError::Driver(error),
            PlaybackError::Cues(error) => ReplayError::Trace(error),
        })?;
    Ok(counter.finish(trace, request, &survey, &outcome))
}
