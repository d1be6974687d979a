//! Error handling: retry the transaction, count it as failed, reconnect, or abort the client.

use model::outage::Outage;
use wire::{Response, TransactionStatus, encode};

use super::EventLoop;
use crate::client::{Awaited, Client, Failure, State};
use crate::clock;
use crate::error::LoadError;
use crate::io::Io;
use crate::load::{DEADLOCK_DETECTED, OnError, SERIALIZATION_FAILURE};
use crate::observer::Level;
use crate::program::Action;
use crate::transaction_log::LoggedResult;

/// SQLSTATE of a statement that was cancelled.
const QUERY_CANCELED: &str = "57014";

/// Maximum number of times that the pause before a retry is doubled.
const MAX_DOUBLINGS: u32 = 6;

impl<I: Io> EventLoop<'_, I> {
    /// Handles a response other than that to a successful statement.
    #[cold]
    pub(super) fn handle_other_response(
        &mut self,
        at: usize,
        answer: &Response,
        now_ns: u64,
    ) -> Result<(), LoadError> {
        if self.load.verbosity.debug {
            self.debug_receiving(at);
        }
        let client = &mut self.clients[at];
        let error = if answer.failed { client.reader.take_error() } else { None };
        match client.state {
            State::Waiting(Awaited::Answer) => {
                client.reader.collect(false);
                // Its other requests may or may not have been executed.
                self.mark_unprepared(at);
                self.statement_failed(at, error.unwrap_or_default(), answer.commands, now_ns)
            }
            State::Waiting(Awaited::Preparation) => {
                if let Some(error) = error {
                    // As pgbench does, log it and run the pipeline nevertheless.
                    self.log(
                        at,
                        Level::Error,
                        error.code().map(str::to_owned),
                        error.libpq_text(None),
                        false,
                    );
                }
                self.clients[at].pipeline = Some(Box::default());
                self.command_done(at, now_ns)
            }
            State::Waiting(Awaited::Rollback) => match error {
                Some(error) => {
                    let number = self.clients[at].number;
                    let text = format!(
                        "client {number} aborted while rolling back the transaction after an error; {}",
                        error.libpq_text(None)
                    );
                    self.abort(at, error.code().map(str::to_owned), text)
                }
                None => self.recovered(at, now_ns),
            },
            // A part of a pipeline, up to a Sync.
            _ if client.pipeline.is_some() => {
                let (due, ended) = (client.due, client.state == State::Waiting(Awaited::Pipeline));
                let mut first = None;
                if let Some(pipeline) = &mut client.pipeline {
                    pipeline.error = pipeline.error.take().or(error);
                    if due == 0 && ended {
                        first = Some(pipeline.error.take());
                    }
                }
                match first {
                    None => Ok(()),
                    Some(error) => {
                        self.clients[at].pipeline = None;
                        match error {
                            None => self.command_done(at, now_ns),
                            Some(error) => self.statement_failed(at, error, 0, now_ns),
                        }
                    }
                }
            }
            _ => self.lost(at, "the server sent an unexpected response"),
        }
    }

    /// Marks a statement as not known to be prepared, after an error in the execution that should have prepared it.
    fn mark_unprepared(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let program = self.program;
        let step = &program.scripts[client.script as usize].steps[client.step as usize];
        if let Action::Send(statement) = &step.action
            && let Some(number) = statement.prepared
        {
            client.prepared.set(number, program.statements, false);
            client.prepared.doubtful = true;
        }
    }

    /// Handles an error of a statement, the one with this number within the command.
    fn statement_failed(
        &mut self,
        at: usize,
        error: wire::ServerError,
        query: u32,
        now_ns: u64,
    ) -> Result<(), LoadError> {
        let Client { number, script, step, .. } = self.clients[at];
        let sqlstate = error.code().unwrap_or_default().to_owned();
        if sqlstate == QUERY_CANCELED && self.is_over() && self.clients[at].group > 0 {
            // Cancelled by the driver: its transaction is no longer of interest.
            self.finish(at);
            return Ok(());
        }
        let action = self.load.errors.action(&sqlstate);
        let query_text = self.sent_text(at);
        if action == OnError::Abort {
            let mut why = error.libpq_text(query_text.as_deref());
            if let Some(name) = self.failed_to_prepare(at, &error) {
                // pgbench executes it nevertheless, and reports the server's error.
                why.push_str(&format!("so that prepared statement \"{name}\" does not exist\n"));
            }
            let text =
                format!("client {number} script {script} aborted in command {step} query {query}: {why}");
            return self.abort_after(at, Some(sqlstate), error.message, text);
        }
        if self.load.verbosity.errors {
            let text = format!(
                "client {number} got an error in command {step} (SQL) of script {script}; {}",
                error.libpq_text(query_text.as_deref())
            );
            self.log(at, Level::Info, Some(sqlstate.clone()), text, false);
        }
        let client = &mut self.clients[at];
        let text = error.message.clone();
        client.failure = Some(Box::new(Failure { sqlstate, text, action }));
        client.evaluates = false;
        if client.status == TransactionStatus::Idle {
            return self.recovered(at, now_ns);
        }
        self.send_with(at, |_, out| encode::query(out, |out| out.extend_from_slice(b"ROLLBACK")))?;
        let client = &mut self.clients[at];
        if client.connected {
            client.due += 1;
            client.state = State::Waiting(Awaited::Rollback);
        }
        Ok(())
    }

    /// The name of the statement that the server refused to prepare, if that was the error: it then has a position in
    /// the statement's text.
    fn failed_to_prepare(&self, at: usize, error: &wire::ServerError) -> Option<String> {
        let client = &self.clients[at];
        let step = self.program.scripts[client.script as usize].steps.get(client.step as usize)?;
        match &step.action {
            Action::Send(statement) if statement.prepared.is_some() && client.parses => {
                error.position.map(|_| statement.name().to_owned())
            }
            _ => None,
        }
    }

    /// The statement that a client has sent, if libpq would know it when it fails.
    fn sent_text(&self, at: usize) -> Option<String> {
        let client = &self.clients[at];
        let steps = &self.program.scripts[client.script as usize].steps;
        match &steps.get(client.step as usize)?.action {
            Action::Send(statement) if statement.prepared.is_none() => {
                Some(statement.debug_text(&client.variables))
            }
            _ => None,
        }
    }

    /// Handles the end of the rollback after an error.
    fn recovered(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let Some(failure) = Failure::take(&mut self.clients[at]) else {
            return Err(LoadError::Internal("a client recovered without a failure".to_owned()));
        };
        if self.is_over() {
            // As in pgbench, a transaction that would have been retried is not counted at all.
            if failure.action == OnError::Retry {
                self.record_unfinished(at, now_ns)?;
                self.finish(at);
                return Ok(());
            }
        } else if failure.action == OnError::Retry && self.may_retry(at, now_ns) {
            return self.retry(at, &failure, now_ns);
        }
        if self.load.verbosity.errors {
            let sqlstate = Some(failure.sqlstate.clone()).filter(|state| !state.is_empty());
            self.log_tries(at, "ends the failed transaction", sqlstate, now_ns);
        }
        self.count_failed(at, &failure, now_ns)?;
        if failure.action == OnError::Reconnect {
            self.disconnect(at)?;
        }
        self.after_transaction(at, now_ns)
    }

    /// Records that a client's transaction will not end.
    pub(super) fn record_unfinished(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let Client { script, intended_ns, begun_ns, connected, .. } = self.clients[at];
        self.recorder()?.unfinished(script as usize, intended_ns, connected.then_some(begun_ns), now_ns);
        Ok(())
    }

    fn may_retry(&self, at: usize, now_ns: u64) -> bool {
        let client = &self.clients[at];
        let tries_left = self.load.errors.max_tries.is_none_or(|max| client.tries < max);
        let in_time = self
            .load
            .latency_limit
            .is_none_or(|limit| u128::from(now_ns.saturating_sub(client.intended_ns)) <= limit.as_nanos());
        tries_left && in_time
    }

    /// Retries a client's transaction.
    fn retry(&mut self, at: usize, failure: &Failure, now_ns: u64) -> Result<(), LoadError> {
        if self.load.verbosity.errors {
            self.log_tries(at, "repeats the transaction after the error", None, now_ns);
        }
        let Client { script, step, tries, .. } = self.clients[at];
        let recorder = self.recorder()?;
        recorder.advance_to(now_ns)?;
        recorder.command_error(script as usize, step as usize, true);
        recorder.retried(script as usize, failure);
        self.clients[at].begin_again();
        let back_off_ns = self.load.errors.back_off.as_nanos() as i64;
        if back_off_ns == 0 {
            return self.advance(at, now_ns);
        }
        let pause_ns = back_off_ns.saturating_mul(1 << (tries - 1).min(MAX_DOUBLINGS));
        let pause_ns = self.pauses.range_i64(pause_ns / 2, pause_ns.saturating_add(pause_ns / 2));
        self.clients[at].state = State::BackingOff;
        self.timers.set(at, now_ns.saturating_add(pause_ns as u64));
        Ok(())
    }

    /// Counts a client's transaction as failed.
    fn count_failed(&mut self, at: usize, failure: &Failure, now_ns: u64) -> Result<(), LoadError> {
        let Client { script, step, tries, .. } = self.clients[at];
        let recorder = self.recorder()?;
        recorder.advance_to(now_ns)?;
        recorder.command_error(script as usize, step as usize, false);
        recorder.failed(script as usize, failure, tries);
        self.record_span(at, now_ns, true)?;
        self.clients[at].transactions += 1;
        let result = match failure.sqlstate.as_str() {
            SERIALIZATION_FAILURE => LoggedResult::Serialization,
            DEADLOCK_DETECTED => LoggedResult::Deadlock,
            _ => LoggedResult::Other,
        };
        self.write_log(at, result, 0, 0)
    }

    /// Handles a client's connection that is lost or unusable.
    #[cold]
    pub(super) fn lost(&mut self, at: usize, why: &str) -> Result<(), LoadError> {
        self.io.close(at);
        let client = &mut self.clients[at];
        client.connected = false;
        let server_error = client.reader.take_error();
        let sqlstate = server_error.as_ref().and_then(|error| error.code().map(str::to_owned));
        let Client { number, script, step, state, .. } = *client;
        if matches!(state, State::Finished | State::Leaving | State::Gone | State::New) {
            return Ok(());
        }
        let text = match &server_error {
            Some(error) => format!(
                "client {number} script {script} aborted in command {step} query 0: {}{why}",
                error.libpq_text(None)
            ),
            None => self.command_failed(at, why),
        };
        if self.is_before_load() {
            let failures = server_error.map_or_else(|| why.to_owned(), |error| error.libpq_text(None));
            let outage = Some(Outage::Unreachable);
            return Err(LoadError::Connect { client: number, failures, outage, source: None });
        }
        if self.load.errors.reconnect {
            let now_ns = clock::now_ns();
            if state != State::Throttled {
                self.timers.cancel(at);
            }
            if self.load.verbosity.errors {
                self.log(at, Level::Info, sqlstate.clone(), text, false);
            }
            let text = server_error.map(|error| error.message);
            let text = text.unwrap_or_else(|| why.to_owned());
            let failure = Failure { sqlstate: sqlstate.unwrap_or_default(), text, action: OnError::Count };
            let between = matches!(
                state,
                State::Throttled | State::Thinking | State::Paused | State::Yielding | State::Ready
            );
            self.clients[at].disconnected();
            if between {
                // The next transaction opens a new connection.
                return match state {
                    State::Throttled => Ok(()),
                    _ => self.next_transaction(at, now_ns),
                };
            }
            self.count_failed(at, &failure, now_ns)?;
            return self.next_transaction(at, now_ns);
        }
        self.abort(at, sqlstate, text)
    }

    /// Aborts a client whose command cannot be executed: logs first the reason, then the command.
    #[cold]
    pub(super) fn command_error(&mut self, at: usize, why: &str, what: &str) -> Result<(), LoadError> {
        self.log(at, Level::Error, None, why.to_owned(), false);
        let text = self.command_failed(at, what);
        self.abort(at, None, text)
    }

    /// pgbench's words for a command that aborts its client.
    pub(super) fn command_failed(&self, at: usize, what: &str) -> String {
        let client = &self.clients[at];
        let steps = &self.program.scripts[client.script as usize].steps;
        self.named_command_failed(at, steps.get(client.step as usize).map_or("SQL", |step| step.name), what)
    }

    /// As [`command_failed`](Self::command_failed), for a command with another name.
    pub(super) fn named_command_failed(&self, at: usize, name: &str, what: &str) -> String {
        let Client { number, script, step, .. } = self.clients[at];
        format!("client {number} aborted in command {step} ({name}) of script {script}; {what}")
    }

    /// Aborts a client and its transaction.
    #[cold]
    pub(super) fn abort(
        &mut self,
        at: usize,
        sqlstate: Option<String>,
        text: String,
    ) -> Result<(), LoadError> {
        self.abort_after(at, sqlstate, text.clone(), text)
    }

    /// Aborts a client because of an error: `error` is counted, `text` is reported.
    #[cold]
    fn abort_after(
        &mut self,
        at: usize,
        sqlstate: Option<String>,
        error: String,
        text: String,
    ) -> Result<(), LoadError> {
        let Client { script, tries, .. } = self.clients[at];
        if let Some(recorder) = &mut self.recorder {
            let now_ns = clock::now_ns();
            recorder.advance_to(now_ns)?;
            let sqlstate = sqlstate.clone().unwrap_or_default();
            let failure = Failure { sqlstate, text: error, action: OnError::Abort };
            recorder.failed(script as usize, &failure, tries);
            self.record_span(at, now_ns, true)?;
        }
        self.end_client(at, sqlstate, text)
    }

    /// Aborts a client whose transaction has already been counted.
    #[cold]
    pub(super) fn abort_counted(&mut self, at: usize, text: String) -> Result<(), LoadError> {
        self.end_client(at, None, text)
    }

    fn end_client(&mut self, at: usize, sqlstate: Option<String>, text: String) -> Result<(), LoadError> {
        self.log(at, Level::Error, sqlstate, text, true);
        self.timers.cancel(at);
        self.finish(at);
        self.leave(at)?;
        if self.load.errors.exit_on_abort {
            self.broken = Some(LoadError::Aborted { client: self.clients[at].number });
        }
        Ok(())
    }

    /// Logs the number of tries of a transaction.
    #[cold]
    fn log_tries(&self, at: usize, what: &str, sqlstate: Option<String>, now_ns: u64) {
        let client = &self.clients[at];
        let mut text = format!("client {} {what} (try {}", client.number, client.tries);
        if let Some(max) = self.load.errors.max_tries {
            text.push_str(&format!("/{max}"));
        }
        if let Some(limit) = self.load.latency_limit {
            let used = now_ns.saturating_sub(client.intended_ns) as f64 / limit.as_nanos() as f64 * 100.0;
            text.push_str(&format!(", {used:.3}% of the maximum time of tries was used"));
        }
        text.push(')');
        self.log(at, Level::Info, sqlstate, text, false);
    }
}
