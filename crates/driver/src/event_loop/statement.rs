//! Statements: sent one by one or in pipelines, their responses handled, their results stored.

use model::workload::Protocol;
use script::Fetch;
use wire::{Response, encode};

use super::EventLoop;
use crate::client::{Awaited, Client, State};
use crate::clock;
use crate::error::LoadError;
use crate::io::Io;
use crate::program::{Action, Statement};

/// Bytes of a pipeline that are buffered before they are sent.
const PIPELINE_FLUSH: usize = 64 * 1024;

impl<I: Io> EventLoop<'_, I> {
    /// Sends a statement, whose response the client waits for.
    #[inline]
    pub(super) fn send(&mut self, at: usize, statement: &Statement) -> Result<(), LoadError> {
        if self.load.verbosity.debug {
            self.debug_sending(at, statement);
        }
        let extended = self.program.protocol != Protocol::Simple;
        let client = &mut self.clients[at];
        if statement.fetch != Fetch::Discard {
            client.reader.clear();
            client.reader.collect(true);
        }
        let parse = self.prepares(at, statement);
        self.send_with(at, |client, out| {
            if parse && client.prepared.doubtful {
                encode::close_statement(statement.name(), out);
            }
            statement.write(&client.variables, parse, out);
            if extended {
                encode::sync(out);
            }
        })?;
        let client = &mut self.clients[at];
        client.parses = parse;
        if client.connected {
            client.due += 1;
            client.waited = true;
            client.state = State::Waiting(Awaited::Answer);
        }
        Ok(())
    }

    /// Whether a statement must be parsed with this execution.
    #[inline]
    pub(super) fn prepares(&mut self, at: usize, statement: &Statement) -> bool {
        match statement.prepared {
            None => self.program.protocol == Protocol::Extended,
            Some(number) => {
                let client = &mut self.clients[at];
                let prepares = !client.prepared.has(number);
                if prepares {
                    client.prepared.set(number, self.program.statements, true);
                }
                prepares
            }
        }
    }

    /// Handles a response of the server.
    #[inline]
    pub(super) fn answered(&mut self, at: usize, answer: &Response, woken_ns: u64) -> Result<(), LoadError> {
        let now_ns = clock::now_ns();
        let is_elsewhere = self.clients[at].is_elsewhere;
        let recorder = self.recorder()?;
        recorder.handled(woken_ns, now_ns, answer.bytes)?;
        if !is_elsewhere {
            recorder.committed(answer.commits, answer.has_unreported_commits);
        }
        let client = &mut self.clients[at];
        client.status = answer.status;
        client.rows += answer.rows;
        let Some(due) = client.due.checked_sub(1) else {
            return self.lost(at, "the server sent an unexpected response");
        };
        client.due = due;
        if client.state == State::Waiting(Awaited::Answer) && !answer.failed {
            if self.load.verbosity.debug {
                self.debug_receiving(at);
            }
            let client = &self.clients[at];
            let program = self.program;
            let step = &program.scripts[client.script as usize].steps[client.step as usize];
            if let Action::Send(statement) = &step.action
                && statement.fetch != Fetch::Discard
                && !self.fetch(at, statement)?
            {
                return Ok(());
            }
            return self.command_done(at, now_ns);
        }
        self.handle_other_response(at, answer, now_ns)
    }

    /// Stores the columns of a statement's results in variables. Returns false if that failed, which aborts the client.
    pub(super) fn fetch(&mut self, at: usize, statement: &Statement) -> Result<bool, LoadError> {
        let client = &mut self.clients[at];
        client.reader.collect(false);
        let failure = store_results(client, &statement.fetch);
        client.reader.clear();
        if let Err((query, failure)) = failure {
            let Client { number, script, step, .. } = self.clients[at];
            let text = format!("client {number} script {script} command {step} query {query}: {failure}");
            self.abort(at, None, text)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Appends a statement to the pipeline. Returns false if that failed, which aborts the client.
    pub(super) fn send_in_pipeline(&mut self, at: usize, statement: &Statement) -> Result<bool, LoadError> {
        if let Some(name) = statement.fetch.name() {
            let refusal = format!("\\{name} is not allowed in pipeline mode");
            let text = self.named_command_failed(at, name, &refusal);
            self.abort(at, None, text)?;
            return Ok(false);
        }
        if self.load.verbosity.debug {
            self.debug_sending(at, statement);
        }
        // In the prepared protocol that was done at the pipeline's beginning.
        let parse = self.prepares(at, statement);
        let Client { pipeline, variables, .. } = &mut self.clients[at];
        if let Some(pipeline) = pipeline {
            statement.write(variables, parse, &mut pipeline.outgoing);
            if pipeline.outgoing.len() > PIPELINE_FLUSH {
                self.flush_pipeline(at)?;
            }
        }
        Ok(true)
    }

    /// Sends the buffered bytes of a pipeline.
    pub(super) fn flush_pipeline(&mut self, at: usize) -> Result<(), LoadError> {
        let Some(pipeline) = &mut self.clients[at].pipeline else { return Ok(()) };
        if pipeline.outgoing.is_empty() {
            return Ok(());
        }
        let mut outgoing = std::mem::take(&mut pipeline.outgoing);
        self.send_with(at, |_, out| out.extend_from_slice(&outgoing))?;
        outgoing.clear();
        if let Some(pipeline) = &mut self.clients[at].pipeline {
            pipeline.outgoing = outgoing;
        }
        Ok(())
    }

    /// Begins a pipeline, whose statements must be prepared before. Returns false if that must be waited for, or
    /// failed.
    pub(super) fn start_pipeline(&mut self, at: usize, statements: &[usize]) -> Result<bool, LoadError> {
        let client = &mut self.clients[at];
        let refusal = if self.program.protocol == Protocol::Simple {
            Some("cannot use pipeline mode with the simple query protocol")
        } else if client.pipeline.is_some() {
            Some("already in pipeline mode")
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let text = self.command_failed(at, refusal);
            self.abort(at, None, text)?;
            return Ok(false);
        }
        let program = self.program;
        let steps = &program.scripts[client.script as usize].steps;
        let mut preparing = false;
        for step in statements {
            let Action::Send(statement) = &steps[*step].action else { continue };
            if self.prepares(at, statement) {
                preparing = true;
                self.enqueue(at, |out| statement.write_parse(out));
            }
        }
        if preparing {
            self.send_with(at, |_, out| encode::sync(out))?;
            let client = &mut self.clients[at];
            if client.connected {
                client.due += 1;
                client.waited = true;
                client.state = State::Waiting(Awaited::Preparation);
            }
            return Ok(false);
        }
        self.clients[at].pipeline = Some(Box::default());
        Ok(true)
    }

    /// Appends bytes that will be sent by the next `send_with`.
    pub(super) fn enqueue(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let client = &mut self.clients[at];
        let out = self.io.outgoing(at);
        match client.tls.take() {
            None => write(out),
            Some(mut tls) => {
                self.plain_out.clear();
                write(&mut self.plain_out);
                // The `send_with` that follows reports an error.
                let _ = tls.encrypt(&self.plain_out, out);
                client.tls = Some(tls);
            }
        }
    }
}

/// Stores the columns of results in variables; an error names the result and the reason.
fn store_results(client: &mut Client, fetch: &Fetch) -> Result<(), (usize, String)> {
    let (prefix, all) = match fetch {
        Fetch::Discard => return Ok(()),
        Fetch::Gset { prefix } => (prefix, false),
        Fetch::Aset { prefix } => (prefix, true),
    };
    let results = client.reader.results();
    let last = results.len().saturating_sub(1);
    for (query, result) in results.iter().enumerate() {
        if !all && query < last {
            continue;
        }
        if !all && result.rows() != 1 {
            return Err((query, format!("expected one row, got {}", result.rows())));
        }
        let Some(values) = result.last_row() else { continue };
        for (column, value) in result.columns().zip(values) {
            let stored = match client.variables.names().find_column(prefix, column) {
                Ok(None) => Ok(()),
                // As in libpq, the text of a null is empty.
                Ok(Some(slot)) => client.variables.set_text(slot, value.unwrap_or_default()),
                Err(error) => Err(error),
            };
            if stored.is_err() {
                let column = String::from_utf8_lossy(column);
                return Err((query, format!("error storing into variable {prefix}{column}")));
            }
        }
    }
    Ok(())
}
