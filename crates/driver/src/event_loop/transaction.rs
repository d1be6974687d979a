//! Running scripts: the choice and the start of a transaction, its commands, its end.

use std::time::Duration;

use script::Value;
use wire::{TransactionStatus, encode};

use super::EventLoop;
use crate::arrivals::Arrivals;
use crate::client::{Awaited, State};
use crate::clock;
use crate::error::LoadError;
use crate::io::Io;
use crate::observer::Level;
use crate::program::{Action, Clients, Target};
use crate::recorder::Success;
use crate::shell::{self, ShellResult};
use crate::transaction_log::{Entry, LoggedResult};

impl<I: Io> EventLoop<'_, I> {
    /// Begins a client's first transaction at the client's start.
    pub(super) fn begin_load(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let begin_ns = self.program.groups[client.group as usize].begin_ns(client.number);
        if begin_ns == 0 {
            return self.next_transaction(at, now_ns);
        }
        client.state = State::Thinking;
        self.set_alarm(at, self.slots_from_ns.saturating_add(begin_ns));
        Ok(())
    }

    /// Chooses a client's next transaction, and begins it when it is due.
    #[inline]
    pub(super) fn next_transaction(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let client = &self.clients[at];
        let program = self.program;
        let group = &program.groups[client.group as usize];
        if client.transactions >= group.transactions || !self.admits() {
            self.finish_or_pause(at);
            return Ok(());
        }
        let script = self.choose_script(group);
        let client = &mut self.clients[at];
        client.script = script;
        client.tries = 1;
        client.waited = false;
        if self.load.verbosity.debug {
            let number = client.number;
            let name = &self.program.scripts[script as usize].name;
            self.log(at, Level::Debug, None, format!("client {number} executing script \"{name}\""), false);
        }
        if !group.arrivals.is_open() {
            self.clients[at].intended_ns = now_ns;
            return self.start(at, now_ns);
        }
        self.wait_for_slot(at, group, now_ns)
    }

    #[inline]
    pub(super) fn choose_script(&mut self, group: &Clients) -> u32 {
        let first = group.scripts.start as u32;
        if group.scripts.len() == 1 {
            return first;
        }
        // As in pgbench, to draw the same numbers.
        let mut left = self.choose.range_i64(0, group.total_weight as i64 - 1);
        for number in group.scripts.clone() {
            left -= self.program.scripts[number].weight as i64;
            if left < 0 {
                return number as u32;
            }
        }
        first
    }

    /// Assigns the next intended start to a client, which waits for it.
    fn wait_for_slot(&mut self, at: usize, group: &Clients, now_ns: u64) -> Result<(), LoadError> {
        let end_ns = self.recorder()?.end_ns();
        let from_ns = self.slots_from_ns.saturating_add(group.first_begin_ns());
        let slots = self.clients[at].group as usize;
        loop {
            let Some(slot_ns) = self.slots.next_ns(slots) else {
                if matches!(group.arrivals, Arrivals::Rate(_)) {
                    self.wait_for_end(at);
                } else {
                    // No further arrivals: the window ends with the last transaction.
                    self.finish(at);
                }
                return Ok(());
            };
            let intended_ns = from_ns.saturating_add(slot_ns);
            let client = &mut self.clients[at];
            client.intended_ns = intended_ns;
            if let Some(limit) = self.load.latency_limit
                && intended_ns.saturating_add(limit.as_nanos() as u64) < now_ns
            {
                client.transactions += 1;
                let script = client.script as usize;
                let done = client.transactions >= group.transactions;
                let recorder = self.recorder()?;
                recorder.advance_to(now_ns)?;
                recorder.skipped(script);
                self.write_log(at, LoggedResult::Skipped, 0, 0)?;
                if done || self.is_over() {
                    self.finish(at);
                    return Ok(());
                }
                continue;
            }
            if intended_ns >= end_ns {
                self.wait_for_end(at);
                return Ok(());
            }
            if intended_ns > now_ns {
                client.state = State::Throttled;
                self.set_alarm(at, intended_ns);
                return Ok(());
            }
            return self.start(at, now_ns);
        }
    }

    /// Makes a client without further transactions wait for the end of the load: the remaining time, in which the
    /// schedule has no arrivals, belongs to the window.
    fn wait_for_end(&mut self, at: usize) {
        match self.load.length {
            Some(_) => {
                self.clients[at].state = State::Throttled;
                self.clients[at].intended_ns = u64::MAX;
            }
            None => self.finish(at),
        }
    }

    /// Begins a client's transaction, over a new connection if it has none.
    #[inline]
    pub(super) fn start(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        if self.clients[at].connected { self.begin(at, now_ns) } else { self.connect(at, true) }
    }

    /// Begins a client's transaction.
    #[inline]
    pub(super) fn begin(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        self.clients[at].begin(now_ns);
        self.advance(at, now_ns)
    }

    /// Executes a client's commands up to one that must be waited for.
    #[inline]
    pub(super) fn advance(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let program = self.program;
        let mut now_ns = now_ns;
        loop {
            let client = &mut self.clients[at];
            let Some(step) = program.scripts[client.script as usize].steps.get(client.step as usize) else {
                return self.end_of_script(at, now_ns);
            };
            client.command_ns = now_ns;
            match &step.action {
                Action::Send(statement) => {
                    if client.pipeline.is_none() {
                        return self.send(at, statement);
                    }
                    if !self.send_in_pipeline(at, statement)? {
                        return Ok(());
                    }
                }
                Action::Set { slot, expr } => {
                    if self.load.verbosity.debug {
                        self.debug_command(at);
                    }
                    let Some(value) = self.evaluate(at, expr)? else { return Ok(()) };
                    if let Err(error) = self.clients[at].variables.set(*slot, value) {
                        return self.command_error(
                            at,
                            &error.to_string(),
                            "assignment of meta-command failed",
                        );
                    }
                }
                Action::If { expr, otherwise } | Action::Elif { expr, otherwise, .. }
                    if matches!(step.action, Action::If { .. }) || client.evaluates =>
                {
                    client.evaluates = false;
                    let Some(value) = self.evaluate(at, expr)? else { return Ok(()) };
                    if !value.is_truthy() {
                        now_ns = self.measure_command(at, now_ns)?;
                        let client = &mut self.clients[at];
                        match *otherwise {
                            Target::Command(step) => client.step = step as u32,
                            Target::Condition(step) => {
                                client.step = step as u32;
                                client.evaluates = true;
                            }
                        }
                        continue;
                    }
                }
                Action::Elif { after, .. } | Action::Else { after } => {
                    now_ns = self.measure_command(at, now_ns)?;
                    self.clients[at].step = *after as u32;
                    continue;
                }
                Action::If { .. } | Action::Endif => {}
                Action::Sleep(sleep) => match sleep.duration(&client.variables) {
                    Ok(duration) => return self.sleep(at, duration),
                    Err(error) => {
                        return self.command_error(
                            at,
                            &error.to_string(),
                            "execution of meta-command failed",
                        );
                    }
                },
                Action::Shell { words } | Action::SetShell { words, .. } => {
                    let mut command = Vec::new();
                    if let Err(error) = words.write(&client.variables, &mut command) {
                        return self.command_error(
                            at,
                            &error.to_string(),
                            "execution of meta-command failed",
                        );
                    }
                    return self.run_shell(at, command, matches!(step.action, Action::SetShell { .. }));
                }
                Action::StartPipeline { statements } => {
                    if !self.start_pipeline(at, statements)? {
                        return Ok(());
                    }
                }
                Action::SyncPipeline => {
                    let Some(pipeline) = &mut client.pipeline else {
                        let text = self.command_failed(at, "not in pipeline mode");
                        return self.abort(at, None, text);
                    };
                    encode::sync(&mut pipeline.outgoing);
                    client.due += 1;
                }
                Action::EndPipeline => {
                    let Some(pipeline) = &mut client.pipeline else {
                        let text = self.command_failed(at, "not in pipeline mode");
                        return self.abort(at, None, text);
                    };
                    encode::sync(&mut pipeline.outgoing);
                    client.due += 1;
                    client.state = State::Waiting(Awaited::Pipeline);
                    client.waited = true;
                    return self.flush_pipeline(at);
                }
            }
            now_ns = self.measure_command(at, now_ns)?;
            self.clients[at].step += 1;
        }
    }

    /// Ends a command that was waited for, and continues with the next one.
    #[inline]
    pub(super) fn command_done(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        if self.load.per_command {
            self.recorder()?.advance_to(now_ns)?;
            self.record_command(at, now_ns)?;
        }
        self.clients[at].step += 1;
        self.advance(at, now_ns)
    }

    /// Measures a command that was not waited for, and returns the current time.
    #[inline]
    fn measure_command(&mut self, at: usize, now_ns: u64) -> Result<u64, LoadError> {
        if !self.load.per_command {
            return Ok(now_ns);
        }
        let now_ns = clock::now_ns();
        self.recorder()?.advance_to(now_ns)?;
        self.record_command(at, now_ns)?;
        Ok(now_ns)
    }

    fn record_command(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let client = &self.clients[at];
        let (script, step) = (client.script as usize, client.step as usize);
        let ns = now_ns.saturating_sub(client.command_ns);
        self.recorder()?.command(script, step, ns);
        Ok(())
    }

    /// Evaluates an expression; None if that failed, which aborts the client.
    #[inline]
    fn evaluate(&mut self, at: usize, expr: &script::Expr) -> Result<Option<Value>, LoadError> {
        let client = &mut self.clients[at];
        let mut shown = Vec::new();
        let evaluated =
            expr.eval_with_debug(&client.variables, &mut client.random, &mut |value| shown.push(value));
        if !shown.is_empty() {
            self.log_values(at, &shown);
        }
        match evaluated {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                self.command_error(at, &error.to_string(), "evaluation of meta-command failed")?;
                Ok(None)
            }
        }
    }

    /// Executes `\sleep`.
    fn sleep(&mut self, at: usize, duration: Duration) -> Result<(), LoadError> {
        self.flush_pipeline(at)?;
        let client = &mut self.clients[at];
        client.state = State::Sleeping;
        client.waited = true;
        let until_ns = clock::now_ns().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        self.timers.set(at, until_ns);
        Ok(())
    }

    fn run_shell(&mut self, at: usize, command: Vec<u8>, read_output: bool) -> Result<(), LoadError> {
        self.flush_pipeline(at)?;
        let client = &mut self.clients[at];
        client.state = State::InShell;
        client.waited = true;
        let (sender, waker) = (self.shell_sender.clone(), self.waker.clone());
        shell::start(at, command, read_output, sender, waker).map_err(LoadError::Thread)
    }

    /// Handles the end of a client's shell command.
    pub(super) fn shell_ended(&mut self, result: ShellResult) -> Result<(), LoadError> {
        let at = result.client;
        let client = &mut self.clients[at];
        if client.state != State::InShell {
            return Ok(());
        }
        let now_ns = clock::now_ns();
        let program = self.program;
        let step = &program.scripts[client.script as usize].steps[client.step as usize];
        let failure = match &step.action {
            Action::SetShell { slot, words } if result.launched => {
                let value = words.result(&result.output);
                value
                    .and_then(|value| client.variables.set(*slot, Value::Int(value)))
                    .err()
                    .map(|error| error.to_string())
            }
            Action::SetShell { words, .. } | Action::Shell { words } if !result.launched => {
                Some(format!("{}: could not launch shell command", words.command()))
            }
            _ => None,
        };
        match failure {
            Some(failure) => self.command_error(at, &failure, "execution of meta-command failed"),
            None => self.command_done(at, now_ns),
        }
    }

    /// Handles the end of a client's script.
    #[inline]
    fn end_of_script(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        if client.pipeline.is_some() {
            let text = format!("client {} aborted: end of script reached with pipeline open", client.number);
            return self.abort(at, None, text);
        }
        client.transactions += 1;
        let latency_ns = now_ns.saturating_sub(client.intended_ns);
        let start_lag_ns = client.begun_ns.saturating_sub(client.intended_ns).min(latency_ns);
        let done = Success {
            script: client.script as usize,
            intended_ns: client.intended_ns,
            latency_ns,
            start_lag_ns,
            rows: client.rows,
            tries: client.tries,
        };
        let (open, waited) = (client.status != TransactionStatus::Idle, client.waited);
        let recorder = self.recorder()?;
        if !waited {
            recorder.advance_to(now_ns)?;
        }
        recorder.succeeded(&done);
        if self.log.is_some() {
            self.write_log(at, LoggedResult::Done, latency_ns, start_lag_ns)?;
        }
        self.record_span(at, now_ns, false)?;
        if open {
            let number = self.clients[at].number;
            let text = format!(
                "client {number} aborted: end of script reached without completing the last transaction"
            );
            return self.abort_counted(at, text);
        }
        self.after_transaction(at, now_ns)
    }

    /// Records the span of a transaction that has ended, if its group records spans, and counts it in its slice.
    #[inline]
    pub(super) fn record_span(&mut self, at: usize, now_ns: u64, failed: bool) -> Result<(), LoadError> {
        let client = &self.clients[at];
        if self.program.groups[client.group as usize].spans {
            let (script, number, from_ns) = (client.script as usize, client.number, client.begun_ns);
            self.recorder()?.add_span(script, number, from_ns, now_ns, failed);
        }
        if self.turns.is_some() {
            self.count_in_slice(at, now_ns, failed);
        }
        Ok(())
    }

    /// Continues after a transaction, successful or not.
    #[inline]
    pub(super) fn after_transaction(&mut self, at: usize, now_ns: u64) -> Result<(), LoadError> {
        if self.program.groups[self.clients[at].group as usize].reconnect {
            self.disconnect(at)?;
        }
        if let Some(think) = self.load.think {
            let (min_ns, max_ns) = (think.min.as_nanos() as i64, think.max.as_nanos() as i64);
            let pause_ns = self.pauses.range_i64(min_ns, max_ns.max(min_ns)) as u64;
            self.clients[at].state = State::Thinking;
            self.set_alarm(at, now_ns.saturating_add(pause_ns));
            return Ok(());
        }
        if !self.clients[at].waited {
            self.clients[at].state = State::Yielding;
            self.yielding.push(at);
            return Ok(());
        }
        self.next_transaction(at, now_ns)
    }

    /// Ends a client's session without waiting for the server.
    pub(super) fn disconnect(&mut self, at: usize) -> Result<(), LoadError> {
        if self.clients[at].connected {
            if self.clients[at].due == 0 {
                self.send_with(at, |_, out| encode::terminate(out))?;
            }
            self.io.close(at);
        }
        self.clients[at].disconnected();
        Ok(())
    }

    /// Writes a line of the transaction log.
    #[cold]
    pub(super) fn write_log(
        &mut self,
        at: usize,
        result: LoggedResult,
        latency_ns: u64,
        lag_ns: u64,
    ) -> Result<(), LoadError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let client = &self.clients[at];
        let entry = Entry {
            client: client.number,
            number: client.transactions,
            script: client.script as usize,
            result,
            latency_us: latency_ns as f64 / 1e3,
            lag_us: lag_ns as f64 / 1e3,
            tries: client.tries,
            unix_us: clock::unix_us(),
        };
        log.transaction(&entry).map_err(LoadError::Log)
    }
}
