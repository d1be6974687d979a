//! Plays a trace: its events become the cues of a playback, and each statement that was played is reported with what was
//! recorded of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::iter;
use std::sync::atomic::AtomicBool;

use model::factor::threads::default_threads;
use trace::{
    Action, Call, Event, MAX_DEPENDENCY_US, Outcome, Selection, StatementRef, Survey, TraceError, TraceReader,
};
use wire::ConnectParams;

use crate::load::Engine;
use crate::playback::{
    Awaited, Cue, CueAction, Execution, Playback, PlaybackError, PlaybackEvent, PlaybackOutcome, PlayedEnd,
    Prepared, play,
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
    /// The sessions to play, and how often.
    pub sessions: Selection,
    /// Processors that the driver may use.
    pub cpus: u32,
}

/// What a trace says about a statement that is played.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Its shape, by number.
    pub shape: u32,
    /// When it began, in microseconds after the first event of the selected sessions.
    pub at_us: u64,
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
    let cues = Cues {
        events: trace.events().map_err(PlaybackError::Cues)?,
        survey,
        playback,
        recorded: &recorded,
        copies: HashMap::new(),
        first_copies: HashMap::new(),
        over: VecDeque::new(),
        sessions: 0,
        due: DueCues::default(),
        read_until_ns: 0,
    };
    play(&settings, cues, stop, &mut |event| {
        let known = match &event {
            PlaybackEvent::Played(played) => recorded.borrow_mut().remove(&played.tag),
            _ => None,
        };
        on_event(&event, known);
    })
}

/// The cues of a trace, in the order of time.
struct Cues<'a, E> {
    events: E,
    survey: &'a Survey,
    playback: &'a TracePlayback,
    /// Statements that are handed out, by tag.
    recorded: &'a RefCell<HashMap<u64, Recorded>>,
    /// Copies of the sessions that have begun.
    copies: HashMap<u32, Vec<SessionCopy>>,
    /// The first copies of sessions, also of ended ones as long as others may wait for them.
    first_copies: HashMap<u32, u32>,
    /// Ended sessions among them, with the times of their ends.
    over: VecDeque<(i64, u32)>,
    /// Number of the next copy.
    sessions: u32,
    due: DueCues,
    /// Time of the last event read: no cue to come is earlier.
    read_until_ns: u64,
}

/// Cues that are not handed out: with further copies of sessions, which are later than their first, those of about a second.
#[derive(Default)]
struct DueCues {
    /// By time, and by their order within it.
    cues: BTreeMap<(u64, u64), Cue>,
    /// Number of cues so far, which orders those of the same time and tags statements.
    count: u64,
}

impl DueCues {
    fn push(&mut self, at_ns: u64, copy: SessionCopy, action: CueAction) {
        let cue = Cue { at_ns: at_ns + copy.delay_ns, session: copy.session, action };
        self.cues.insert((cue.at_ns, self.count), cue);
        self.count += 1;
    }
}

/// A copy of a session.
#[derive(Clone, Copy)]
struct SessionCopy {
    session: u32,
    delay_ns: u64,
}

impl<E: Iterator<Item = Result<Event, TraceError>>> Iterator for Cues<'_, E> {
    type Item = Result<Cue, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(cue) = self.due.cues.first_entry().filter(|cue| cue.key().0 <= self.read_until_ns) {
                return Some(Ok(cue.remove()));
            }
            match self.events.next() {
                Some(Ok(event)) => self.add(event),
                Some(Err(error)) => return Some(Err(error)),
                None if self.due.cues.is_empty() => return None,
                None => self.read_until_ns = u64::MAX,
            }
        }
    }
}

impl<E> Cues<'_, E> {
    /// Adds the cues of an event, one for each copy of its session.
    fn add(&mut self, event: Event) {
        let offset_us = event.at_us.saturating_sub(self.survey.first_us).max(0).unsigned_abs();
        let at_ns = (offset_us as f64 * 1e3 / self.playback.speed) as u64;
        self.read_until_ns = at_ns;
        let session = event.session;
        match event.action {
            Action::Begin(identity) => {
                let copies = self.playback.sessions.copies(session, &identity);
                for copy in 0..copies {
                    let delay_ns = self.playback.sessions.delay_us(session, copy) * 1_000;
                    let copy = SessionCopy { session: self.sessions, delay_ns };
                    self.sessions += 1;
                    self.first_copies.entry(session).or_insert(copy.session);
                    self.copies.entry(session).or_default().push(copy);
                    self.due.push(
                        at_ns,
                        copy,
                        CueAction::Begin { application: identity.application.clone() },
                    );
                }
            }
            Action::End => {
                for copy in self.copies.remove(&session).unwrap_or_default() {
                    self.due.push(at_ns, copy, CueAction::End);
                }
                self.over.push_back((event.at_us, session));
                let is_past = |(ended_us, _): &mut (i64, u32)| event.at_us - *ended_us > MAX_DEPENDENCY_US;
                while let Some((_, past)) = self.over.pop_front_if(is_past) {
                    self.first_copies.remove(&past);
                }
            }
            Action::Execute(statement) => {
                let Some(copies) = self.copies.get(&session) else { return };
                let prepared = match statement.call {
                    Call::Simple => None,
                    Call::Extended { name, parameters } => Some(Prepared { name, values: parameters }),
                };
                // Further copies are later, each by another time: they keep no order between sessions.
                let awaited = |on: &StatementRef| {
                    let session = *self.first_copies.get(&on.session)?;
                    Some(Awaited { session, number: on.number })
                };
                let mut after = statement.after.iter().filter_map(awaited).collect();
                let calls = iter::repeat_n((statement.text, prepared), copies.len());
                for (copy, (text, prepared)) in copies.iter().zip(calls) {
                    let after = std::mem::take(&mut after);
                    let tag = self.due.count;
                    let now = Recorded {
                        shape: statement.shape,
                        at_us: offset_us,
                        outcome: statement.outcome,
                        duration_us: statement.duration_us,
                    };
                    self.recorded.borrow_mut().insert(tag, now);
                    self.due.push(at_ns, *copy, CueAction::Execute(Execution { tag, text, prepared, after }));
                }
            }
        }
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
            let recorded = Recorded { shape: 0, at_us: 0, outcome, duration_us: None };
            assert_eq!(recorded.is_met_by(&played), expected, "{outcome:?} {played:?}");
        }
    }
}
