//! The statements of each session, from the entries of a log.
//!
//! What a server logs of a statement depends on its settings. With `log_min_duration_statement`, an entry at its end has
//! text and duration. With `log_statement`, an entry at its beginning has the text, and one at its end the duration if
//! `log_duration` is on. In the extended protocol, each step may have its own duration; the first step's start is the
//! statement's.

use std::collections::HashMap;
use std::sync::Arc;

use pglog::{Entry, Message, SessionKey, Severity, Step, parse_parameters};
use trace::{Action, Call, Event, Identity, Outcome, SqlState, Statement, StatementRef, TraceWriter};

use super::dependencies::{Dependencies, Execution, Transaction};
use crate::error::ReplayError;
use crate::left_out::{LeftOut, LeftOutTally};
use crate::shapes::Shapes;
use crate::sql;

/// Sessions that can be open at a time. Of more, the logs lack the ends: those that were silent for longest have ended.
const MAX_OPEN: usize = 100_000;
/// Longest time between two steps of one execution. A statement that was prepared longer before was prepared for several.
const MAX_PAUSE_US: i64 = 10_000;

/// Kinds of processes that are sessions; a new one's is not known yet. Others, such as parallel workers, repeat what their
/// session logs.
const BACKENDS: [&str; 2] = ["client backend", "not initialized"];

/// The open sessions, and the writer of their events.
pub(super) struct Sessions {
    writer: TraceWriter,
    open: HashMap<SessionKey, Session>,
    /// Sessions that have begun.
    begun: u32,
    /// The first entry's time.
    start_us: Option<i64>,
    /// Names of roles, databases and applications, each once.
    names: HashMap<String, Arc<str>>,
    dependencies: Dependencies,
    pub(super) statements: u64,
    /// Statements that depend on commits of other sessions.
    dependent: u64,
    pub(super) left_out: LeftOutTally,
}

/// What remains once all logs are read.
pub(super) struct Finished {
    pub(super) writer: TraceWriter,
    pub(super) left_out: LeftOutTally,
    /// Number of sessions that did something.
    pub(super) sessions: u32,
    pub(super) statements: u64,
    pub(super) dependent: u64,
}

/// An open session.
#[derive(Default)]
struct Session {
    /// Its number, once it has begun.
    number: Option<u32>,
    identity: Identity,
    /// When it was connected, if that is known.
    connected_us: Option<i64>,
    /// The last statement's start: the next is not before.
    last_us: i64,
    /// The last entry's time.
    seen_us: i64,
    steps: Option<Steps>,
    pending: Option<Pending>,
    /// Statements that are in the trace.
    executed: u64,
    transaction: Transaction,
}

/// The steps before an Execute message.
#[derive(Clone, Copy)]
struct Steps {
    start_us: i64,
    end_us: i64,
    duration_us: u64,
}

/// A statement whose end is not logged yet.
enum Pending {
    Statement {
        start_us: i64,
        before_us: u64,
        text: Arc<str>,
        call: Call,
    },
    /// One that is left out.
    LeftOut,
}

impl Sessions {
    pub(super) fn new(writer: TraceWriter) -> Self {
        Self {
            writer,
            open: HashMap::new(),
            begun: 0,
            start_us: None,
            names: HashMap::new(),
            dependencies: Dependencies::default(),
            statements: 0,
            dependent: 0,
            left_out: LeftOutTally::default(),
        }
    }

    /// Takes an entry. Returns what is left out because of it.
    pub(super) fn entry(
        &mut self,
        entry: &Entry<'_>,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        self.start_us.get_or_insert(entry.at_us);
        if entry.backend.as_deref().is_some_and(|backend| !BACKENDS.contains(&backend)) {
            return Ok(None);
        }
        let message = Message::of(entry);
        match message {
            Message::Other => Ok(None),
            Message::ConnectionReceived => {
                self.end(entry.session, None, shapes)?;
                let session = self.session(entry)?;
                session.connected_us = Some(entry.at_us);
                Ok(None)
            }
            Message::Authorized { user, database, application } => {
                if self.open.get(&entry.session).is_some_and(|session| session.number.is_some()) {
                    self.end(entry.session, None, shapes)?;
                }
                let [user, database, application] =
                    [Some(user), database, application].map(|name| name.map(|name| self.name(name)));
                let session = self.session(entry)?;
                session.identity = Identity { user, database, application };
                self.begin(entry.session, entry.at_us)?;
                Ok(None)
            }
            Message::Disconnection => {
                self.end(entry.session, Some(entry.at_us), shapes)?;
                Ok(None)
            }
            Message::FunctionCall => {
                self.session(entry)?.pending = Some(Pending::LeftOut);
                Ok(Some(LeftOut::FunctionCall))
            }
            Message::Duration(duration_us) => self.duration(entry, duration_us, shapes),
            Message::Statement { step, text, duration_us, parameters } => {
                self.step(entry, step, text, duration_us, parameters, shapes)
            }
            Message::Failure { parameters } => self.failure(entry, parameters, shapes),
        }
    }

    /// Ends all sessions, without an end: they were open at the end of the log.
    pub(super) fn finish(mut self, shapes: &mut Shapes) -> Result<Finished, ReplayError> {
        let keys: Vec<SessionKey> = self.open.keys().copied().collect();
        for key in keys {
            self.settle(key, Outcome::Unknown, None, shapes)?;
        }
        let Self { writer, left_out, begun: sessions, statements, dependent, .. } = self;
        Ok(Finished { writer, left_out, sessions, statements, dependent })
    }

    fn step(
        &mut self,
        entry: &Entry<'_>,
        step: Step<'_>,
        text: &str,
        duration_us: Option<u64>,
        parameters: Option<&str>,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        // Another statement begins: the one before has succeeded.
        self.settle(entry.session, Outcome::Success, None, shapes)?;
        let at_us = entry.at_us;
        let start_us = at_us - duration_us.unwrap_or(0) as i64;
        let session = self.session(entry)?;
        let steps = session.steps.take().filter(|steps| start_us - steps.end_us <= MAX_PAUSE_US);
        let name = match step {
            Step::Parse(_) | Step::Bind(_) => {
                session.steps = Some(Steps {
                    start_us: steps.map_or(start_us, |steps| steps.start_us.min(start_us)),
                    end_us: at_us,
                    duration_us: steps.map_or(0, |steps| steps.duration_us) + duration_us.unwrap_or(0),
                });
                return Ok(None);
            }
            Step::Fetch(_) => {
                session.pending = duration_us.is_none().then_some(Pending::LeftOut);
                return Ok(Some(LeftOut::PortalFetch));
            }
            Step::Simple => None,
            Step::Execute(name) => Some(name),
        };
        let call = match name {
            None => Ok(Call::Simple),
            Some(name) => extended(text, name, parameters),
        };
        let call = match call {
            Ok(call) => call,
            Err(reason) => {
                session.pending = duration_us.is_none().then_some(Pending::LeftOut);
                return Ok(Some(reason));
            }
        };
        let before_us = steps.map_or(0, |steps| steps.duration_us);
        let start_us = steps.map_or(start_us, |steps| steps.start_us.min(start_us));
        let text: Arc<str> = text.into();
        match duration_us {
            None => {
                session.pending = Some(Pending::Statement { start_us, before_us, text, call });
                Ok(None)
            }
            Some(duration_us) => {
                let ended =
                    Ended { start_us, duration_us: Some(before_us + duration_us), outcome: Outcome::Success };
                self.execute(entry.session, text, call, ended, shapes)
            }
        }
    }

    /// A duration without a text: of the pending statement, or of a step before it.
    fn duration(
        &mut self,
        entry: &Entry<'_>,
        duration_us: u64,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        let at_us = entry.at_us;
        if self.open.get(&entry.session).is_some_and(|session| session.pending.is_some()) {
            return self.settle(entry.session, Outcome::Success, Some(duration_us), shapes);
        }
        let session = self.session(entry)?;
        let start_us = at_us - duration_us as i64;
        let (before, is_alone) = match session.steps {
            Some(steps) if start_us - steps.end_us <= MAX_PAUSE_US => (Some(steps), false),
            // Nothing was executed since.
            Some(_) => (None, true),
            None => (None, false),
        };
        session.steps = Some(Steps {
            start_us: before.map_or(start_us, |steps| steps.start_us.min(start_us)),
            end_us: at_us,
            duration_us: before.map_or(0, |steps| steps.duration_us) + duration_us,
        });
        Ok(is_alone.then_some(LeftOut::DurationWithoutText))
    }

    fn failure(
        &mut self,
        entry: &Entry<'_>,
        parameters: Option<&str>,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        let key = entry.session;
        let outcome = Outcome::Failure(entry.sqlstate.as_deref().and_then(SqlState::parse));
        let mut left_out = None;
        let is_known = self.open.contains_key(&key);
        if self.open.get(&key).is_some_and(|session| session.pending.is_some()) {
            let elapsed = match self.open.get(&key).and_then(|session| session.pending.as_ref()) {
                Some(Pending::Statement { start_us, .. }) => u64::try_from(entry.at_us - start_us).ok(),
                _ => None,
            };
            left_out = self.settle(key, outcome, elapsed, shapes)?;
        } else if let Some(text) = entry.statement.as_deref() {
            let steps = self.session(entry)?.steps.take();
            let steps = steps.filter(|steps| entry.at_us - steps.end_us <= MAX_PAUSE_US);
            let call = match parameters {
                Some(_) => extended(text, "", parameters),
                None if sql::parameters(text) == 0 || is_prepare(text) => Ok(Call::Simple),
                None => Err(LeftOut::NoParameters),
            };
            left_out = match call {
                Ok(call) => {
                    let start_us = steps.map_or(entry.at_us, |steps| steps.start_us);
                    self.execute(
                        key,
                        text.into(),
                        call,
                        Ended { start_us, duration_us: None, outcome },
                        shapes,
                    )?
                }
                Err(reason) => Some(reason),
            };
        } else if is_known && entry.severity == Severity::Error {
            left_out = Some(LeftOut::FailureWithoutText);
        }
        if entry.severity == Severity::Fatal && is_known {
            self.end(key, Some(entry.at_us), shapes)?;
        }
        Ok(left_out)
    }

    /// Ends the pending statement of a session, if there is one. `duration_us` is that of its last step.
    fn settle(
        &mut self,
        key: SessionKey,
        outcome: Outcome,
        duration_us: Option<u64>,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        match self.open.get_mut(&key).and_then(|session| session.pending.take()) {
            None | Some(Pending::LeftOut) => Ok(None),
            Some(Pending::Statement { start_us, before_us, text, call }) => {
                let duration_us = duration_us.map(|duration_us| before_us + duration_us);
                self.execute(key, text, call, Ended { start_us, duration_us, outcome }, shapes)
            }
        }
    }

    fn execute(
        &mut self,
        key: SessionKey,
        text: Arc<str>,
        call: Call,
        ended: Ended,
        shapes: &mut Shapes,
    ) -> Result<Option<LeftOut>, ReplayError> {
        let shape = shapes.of(&text);
        if shape.is_copy_in {
            return Ok(Some(LeftOut::CopyIn));
        }
        let session = self.begin(key, ended.start_us)?;
        // Times have milliseconds, which must not change the order.
        let at_us = ended.start_us.max(session.last_us);
        session.last_us = at_us;
        let Some(number) = session.number else { return Ok(None) };
        let Ended { start_us, duration_us, outcome } = ended;
        let at = StatementRef { session: number, number: session.executed };
        session.executed += 1;
        let mut transaction = std::mem::take(&mut session.transaction);
        let execution =
            Execution { text: &text, words: shape.words, call: &call, outcome, start_us, duration_us, at };
        let after = self.dependencies.add(&execution, &mut transaction);
        if let Some(session) = self.open.get_mut(&key) {
            session.transaction = transaction;
        }
        self.statements += 1;
        self.dependent += u64::from(!after.is_empty());
        let statement = Statement { shape: shape.number, text, call, duration_us, outcome, after };
        self.writer.push(Event { at_us, session: number, action: Action::Execute(statement) })?;
        Ok(None)
    }

    /// The open session of an entry, with what the entry says about who it is.
    fn session(&mut self, entry: &Entry<'_>) -> Result<&mut Session, ReplayError> {
        let key = entry.session;
        if !self.open.contains_key(&key) && self.open.len() >= MAX_OPEN {
            self.expire()?;
        }
        let names = [&entry.user, &entry.database, &entry.application];
        let is_new = !self.open.contains_key(&key);
        let is_unnamed = self.open.get(&key).is_none_or(|session| session.identity.user.is_none());
        let named =
            (is_new || is_unnamed).then(|| names.map(|name| name.as_deref().map(|name| self.name(name))));
        let session = self.open.entry(key).or_default();
        if let Some([user, database, application]) = named {
            let identity = &mut session.identity;
            identity.user = identity.user.take().or(user);
            identity.database = identity.database.take().or(database);
            identity.application = identity.application.take().or(application);
        }
        session.seen_us = entry.at_us;
        Ok(session)
    }

    /// Begins a session that has not, at its connection if that is known, else at `at_us`.
    fn begin(&mut self, key: SessionKey, at_us: i64) -> Result<&mut Session, ReplayError> {
        let log_start_us = self.start_us.unwrap_or(at_us);
        let session = self.open.entry(key).or_default();
        if session.number.is_none() {
            let number = self.begun;
            self.begun += 1;
            session.number = Some(number);
            // A start that is known in seconds only is not after the first statement.
            let started_us = key.started_s.map(|started_s| started_s.saturating_mul(1_000_000));
            let connected_us = session.connected_us.or(started_us).unwrap_or(at_us);
            let at_us = connected_us.max(log_start_us).min(at_us);
            session.last_us = at_us;
            let action = Action::Begin(session.identity.clone());
            self.writer.push(Event { at_us, session: number, action })?;
        }
        Ok(session)
    }

    /// Ends a session at this time, or after its last entry.
    fn end(&mut self, key: SessionKey, at_us: Option<i64>, shapes: &mut Shapes) -> Result<(), ReplayError> {
        let outcome = if at_us.is_some() { Outcome::Success } else { Outcome::Unknown };
        self.settle(key, outcome, None, shapes)?;
        let Some(session) = self.open.remove(&key) else { return Ok(()) };
        self.push_end(&session, at_us.unwrap_or(session.seen_us))
    }

    fn push_end(&mut self, session: &Session, at_us: i64) -> Result<(), ReplayError> {
        let Some(number) = session.number else { return Ok(()) };
        let at_us = at_us.max(session.last_us);
        Ok(self.writer.push(Event { at_us, session: number, action: Action::End })?)
    }

    /// Ends the half of the sessions that were silent for longest.
    fn expire(&mut self) -> Result<(), ReplayError> {
        let mut seen: Vec<i64> = self.open.values().map(|session| session.seen_us).collect();
        let middle = seen.len() / 2;
        let (_, limit_us, _) = seen.select_nth_unstable(middle);
        let limit_us = *limit_us;
        let silent: Vec<SessionKey> = self
            .open
            .iter()
            .filter(|(_, session)| session.seen_us <= limit_us)
            .map(|(key, _)| *key)
            .collect();
        for key in silent {
            if let Some(session) = self.open.remove(&key) {
                self.push_end(&session, session.seen_us)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        // Applications put numbers into their names.
        if self.names.len() >= MAX_OPEN {
            self.names.clear();
        }
        let shared: Arc<str> = name.into();
        self.names.insert(name.to_owned(), Arc::clone(&shared));
        shared
    }
}

/// How a statement went.
struct Ended {
    start_us: i64,
    duration_us: Option<u64>,
    outcome: Outcome,
}

/// An execution by the extended protocol, of the prepared statement of this name.
fn extended(text: &str, name: &str, parameters: Option<&str>) -> Result<Call, LeftOut> {
    let parameters = match parameters {
        Some(parameters) => parse_parameters(parameters).ok_or(LeftOut::NoParameters)?,
        None => Vec::new(),
    };
    if sql::parameters(text) > parameters.len() {
        return Err(LeftOut::NoParameters);
    }
    let parameters = parameters.into_iter().map(|value| value.map(Arc::from)).collect();
    Ok(Call::Extended { name: name.into(), parameters })
}

/// Whether a statement has parameters that nobody binds: those of SQL's PREPARE.
fn is_prepare(text: &str) -> bool {
    sql::shape(text).get(..8).is_some_and(|start| start.eq_ignore_ascii_case("prepare "))
}
