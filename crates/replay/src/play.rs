//! Plays a trace against a server.

mod outcome;
mod report;

use std::sync::atomic::AtomicBool;

use driver::{PlaybackError, TracePlayback, play_trace};
use trace::{Selection, Survey, TraceReader};
use wire::ConnectParams;
use wire::blocking::Session;

pub use report::{Difference, LatencyFigures, PlayReport, Schedule, SessionCounts, StatementCounts};

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

/// Plays a trace, until its end or until `stop` is set.
///
/// # Errors
/// The trace can't be read, no session is selected, sessions of several databases are, or the server can't be connected to.
pub fn play(
    trace: &TraceReader,
    request: &PlayRequest,
    stop: &AtomicBool,
) -> Result<PlayReport, ReplayError> {
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
    let mut on_event = |event: &_, recorded| counter.add(event, recorded);
    let outcome =
        play_trace(trace, &survey, &playback, stop, &mut on_event).map_err(|error| match error {
            PlaybackError::Driver(error) => ReplayError::Driver(error),
            PlaybackError::Cues(error) => ReplayError::Trace(error),
        })?;
    Ok(counter.finish(trace, request, &survey, &outcome))
}
