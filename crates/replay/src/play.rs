//! Plays a trace against a server.

mod filter;
mod outcome;
mod report;
mod survey;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use driver::{Cue, CueAction, Execution, Playback, PlaybackError, PlaybackEvent, Prepared};
use model::factor::threads::default_threads;
use wire::ConnectParams;
use wire::blocking::Session;

pub use filter::{FilterError, SessionFilter};
pub use report::{Difference, LatencyFigures, PlayReport, Schedule, SessionCounts, StatementCounts};

use crate::error::ReplayError;
use crate::statement::{Action, Call, Outcome};
use crate::trace::TraceReader;
use report::Counter;
use survey::Survey;

/// Most sessions at a time.
const MAX_SESSIONS: u32 = 10_000;
/// Places for sessions beyond the recorded peak: where the server is slower, sessions overlap more.
const MORE_SESSIONS: u32 = 100;

/// How to play a trace.
#[derive(Clone, Debug)]
pub struct PlayRequest {
    /// The server, role and database of all sessions.
    pub connection: ConnectParams,
    /// How much faster than recorded; 1: as recorded.
    pub speed: f64,
    /// Whether statements wait only for the one before in their session.
    pub closed: bool,
    /// The sessions to play.
    pub sessions: SessionFilter,
    /// Processors that the driver may use.
    pub cpus: u32,
}

/// Plays a trace, until its end or until `stop` is set.
///
/// # Errors
/// The trace can't be read, no session is chosen, sessions of several databases are, or the server can't be connected to.
pub fn play(
    trace: &TraceReader,
    request: &PlayRequest,
    stop: &AtomicBool,
) -> Result<PlayReport, ReplayError> {
    let survey = Survey::read(trace, &request.sessions)?;
    survey.check(&request.sessions)?;
    // A wrong name or password is known before thousands of sessions fail by it.
    Session::connect(&request.connection).map_err(|error| ReplayError::Connect(Box::new(error)))?;
    let peak = survey.peak_sessions.max(1);
    // In a closed loop, sessions begin as others end.
    let sessions = if request.closed { peak } else { (peak * 2).max(peak + MORE_SESSIONS) }.min(MAX_SESSIONS);
    let playback = Playback {
        connection: request.connection.clone(),
        threads: default_threads(peak, request.cpus.max(1)),
        sessions,
        closed: request.closed,
        engine: driver::Engine::Auto,
    };
    let counter = RefCell::new(Counter::new(trace.summary())?);
    let recorded: RefCell<HashMap<u64, Recorded>> = RefCell::default();
    let mut chosen: HashSet<u32> = HashSet::new();
    let mut tag = 0;
    let mut cue = |event: crate::Event| -> Option<Cue> {
        let offset_us = event.at_us.saturating_sub(survey.first_us) as f64;
        let at_ns = (offset_us * 1e3 / request.speed) as u64;
        let session = event.session;
        let action = match event.action {
            Action::Begin(identity) => {
                if !request.sessions.chooses(&identity) {
                    return None;
                }
                chosen.insert(session);
                CueAction::Begin { application: identity.application }
            }
            Action::End => {
                if !chosen.remove(&session) {
                    return None;
                }
                CueAction::End
            }
            Action::Execute(_) if !chosen.contains(&session) => return None,
            Action::Execute(statement) => {
                tag += 1;
                let now = Recorded {
                    shape: statement.shape,
                    outcome: statement.outcome,
                    duration_us: statement.duration_us,
                };
                recorded.borrow_mut().insert(tag, now);
                let prepared = match statement.call {
                    Call::Simple => None,
                    Call::Extended { name, parameters } => Some(Prepared { name, values: parameters }),
                };
                CueAction::Execute(Execution { tag, text: statement.text, prepared })
            }
        };
        Some(Cue { at_ns, session, action })
    };
    let cues = trace.events()?.filter_map(|event| match event {
        Ok(event) => cue(event).map(Ok),
        Err(error) => Some(Err(error)),
    });
    let mut on_event = |event: PlaybackEvent| {
        let known = match &event {
            PlaybackEvent::Played(played) => recorded.borrow_mut().remove(&played.tag),
            _ => None,
        };
        counter.borrow_mut().add(&event, known);
    };
    let outcome = driver::play(&playback, cues, stop, &mut on_event).map_err(|error| match error {
        PlaybackError::Driver(error) => ReplayError::Driver(error),
        PlaybackError::Cues(error) => error,
    })?;
    Ok(counter.into_inner().finish(trace, request, &survey, &outcome))
}

/// What the trace says about a statement that is played.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    shape: u32,
    outcome: Outcome,
    duration_us: Option<u64>,
}
