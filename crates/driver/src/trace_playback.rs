//! Plays a trace: its events become the cues of a playback, and each statement that was played is reported with what was
//! recorded of it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use model::factor::threads::default_threads;
use trace::{Action, Call, Event, Outcome, SessionFilter, Survey, TraceError, TraceReader};
use wire::ConnectParams;

use crate::load::Engine;
use crate::playback::{
    Cue, CueAction, Execution, Playback, PlaybackError, PlaybackEvent, PlaybackOutcome, PlayedEnd, Prepared,
    play,
};

/// Most sessions at a time.
const MAX_SESSIONS: u32 = 10_000;
/// Places for sessions beyond the recorded peak: where the server is slower, sessions overlap more.
const MORE_SESSIONS: u32 = 100;

/// How a trace is played.
#[derive(Clone, Debug)]
pub struct TracePlayback {
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

/// What a trace says about a statement that is played.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Its shape, by number.
    pub shape: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Its duration, if known.
    pub duration_us: Option<u64>,
}

impl Recorded {
    /// Whether a statement ended as recorded; none if that is not known, or it was not executed.
    pub fn is_met_by(&self, played: &PlayedEnd) -> Option<bool> {
        Some(match (self.outcome, played) {
            (Outcome::Unknown, _) | (_, PlayedEnd::NotExecuted) => return None,
            (Outcome::Success, PlayedEnd::Success) => true,
            (Outcome::Failure(Some(recorded)), PlayedEnd::Failure(played)) => recorded.as_str() == played,
            (Outcome::Failure(None), PlayedEnd::Failure(_)) => true,
            (Outcome::Success, PlayedEnd::Failure(_)) | (Outcome::Failure(_), PlayedEnd::Success) => false,
        })
    }
}

/// Plays the sessions that `survey` is of, until their end or until `stop` is set. Reports everything that happens, a
/// statement with what was recorded of it.
///
/// # Errors
/// The trace can't be read, or the driver can't play it.
pub fn play_trace(
    trace: &TraceReader,
    survey: &Survey,
    playback: &TracePlayback,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(&PlaybackEvent, Option<Recorded>),
) -> Result<PlaybackOutcome, PlaybackError<TraceError>> {
    let peak = survey.peak_sessions.max(1);
    // In a closed loop, sessions begin as others end.
    let sessions =
        if playback.closed { peak } else { (peak * 2).max(peak + MORE_SESSIONS) }.min(MAX_SESSIONS);
    let settings = Playback {
        connection: playback.connection.clone(),
        threads: default_threads(peak, playback.cpus.max(1)),
        sessions,
        closed: playback.closed,
        engine: Engine::Auto,
    };
    let recorded: RefCell<HashMap<u64, Recorded>> = RefCell::default();
    let mut cues = Cues { survey, playback, recorded: &recorded, chosen: HashSet::new(), tag: 0 };
    let cues = trace.events().map_err(PlaybackError::Cues)?.filter_map(|event| match event {
        Ok(event) => cues.cue(event).map(Ok),
        Err(error) => Some(Err(error)),
    });
    play(&settings, cues, stop, &mut |event| {
        let known = match &event {
            PlaybackEvent::Played(played) => recorded.borrow_mut().remove(&played.tag),
            _ => None,
        };
        on_event(&event, known);
    })
}

/// The cues of a trace.
struct Cues<'a> {
    survey: &'a Survey,
    playback: &'a TracePlayback,
    /// Statements that are handed out, by tag.
    recorded: &'a RefCell<HashMap<u64, Recorded>>,
    /// Chosen sessions that have begun.
    chosen: HashSet<u32>,
    tag: u64,
}

impl Cues<'_> {
    /// The cue of an event; none of sessions that are not chosen.
    fn cue(&mut self, event: Event) -> Option<Cue> {
        let offset_us = event.at_us.saturating_sub(self.survey.first_us) as f64;
        let at_ns = (offset_us * 1e3 / self.playback.speed) as u64;
        let session = event.session;
        let action = match event.action {
            Action::Begin(identity) => {
                if !self.playback.sessions.chooses(&identity) {
                    return None;
                }
                self.chosen.insert(session);
                CueAction::Begin { application: identity.application }
            }
            Action::End => {
                if !self.chosen.remove(&session) {
                    return None;
                }
                CueAction::End
            }
            Action::Execute(_) if !self.chosen.contains(&session) => return None,
            Action::Execute(statement) => {
                self.tag += 1;
                let now = Recorded {
                    shape: statement.shape,
                    outcome: statement.outcome,
                    duration_us: statement.duration_us,
                };
                self.recorded.borrow_mut().insert(self.tag, now);
                let prepared = match statement.call {
                    Call::Simple => None,
                    Call::Extended { name, parameters } => Some(Prepared { name, values: parameters }),
                };
                CueAction::Execute(Execution { tag: self.tag, text: statement.text, prepared })
            }
        };
        Some(Cue { at_ns, session, action })
    }
}

#[cfg(test)]
mod tests {
    use trace::SqlState;

    use super::*;

    #[test]
    fn outcomes_are_compared_by_sqlstate() {
        let failure = |state: &str| PlayedEnd::Failure(state.to_owned());
        let recorded = Outcome::Failure(SqlState::parse("23505"));
        for (outcome, played, expected) in [
            (Outcome::Success, PlayedEnd::Success, Some(true)),
            (Outcome::Success, failure("23505"), Some(false)),
            (recorded, failure("23505"), Some(true)),
            (recorded, failure("23503"), Some(false)),
            (recorded, PlayedEnd::Success, Some(false)),
            (Outcome::Failure(None), failure("23503"), Some(true)),
            (Outcome::Unknown, PlayedEnd::Success, None),
            (Outcome::Success, PlayedEnd::NotExecuted, None),
        ] {
            let recorded = Recorded { shape: 0, outcome, duration_us: None };
            assert_eq!(recorded.is_met_by(&played), expected, "{outcome:?} {played:?}");
        }
    }
}
