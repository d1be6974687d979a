//! Messages to the observer about single clients.

use script::Value;

use super::EventLoop;
use crate::client::Client;
use crate::clock;
use crate::event::Event;
use crate::io::Io;
use crate::observer::{DriverMessage, Level};
use crate::program::Statement;
use crate::recorder::Recorder;

impl<I: Io> EventLoop<'_, I> {
    /// Sends the observer a message about a client.
    #[cold]
    pub(super) fn log(&self, at: usize, level: Level, sqlstate: Option<String>, text: String, aborted: bool) {
        let client = &self.clients[at];
        let line = self.program.scripts.get(client.script as usize).and_then(|script| {
            let step = script.steps.get(client.step as usize).or_else(|| script.steps.last());
            step.map(|step| step.line)
        });
        let origin_ns = self.recorder.as_ref().map_or(u64::MAX, Recorder::origin_ns);
        let message = DriverMessage {
            at_ns: clock::now_ns().saturating_sub(origin_ns),
            client: client.number,
            script: client.script as usize,
            line: line.unwrap_or(0),
            level,
            sqlstate,
            text,
            aborted,
        };
        // Fails only if the process is about to end.
        let _ = self.events.send(Event::Message(message));
    }

    #[cold]
    pub(super) fn log_notices(&mut self, at: usize) {
        while let Some(notice) = self.clients[at].reader.take_notice() {
            self.log(at, Level::Plain, None, notice.libpq_text(None), false);
        }
    }

    #[cold]
    pub(super) fn debug_sending(&self, at: usize, statement: &Statement) {
        let client = &self.clients[at];
        let text = format!("client {} sending {}", client.number, statement.debug_text(&client.variables));
        self.log(at, Level::Debug, None, text, false);
    }

    #[cold]
    pub(super) fn debug_receiving(&self, at: usize) {
        let text = format!("client {} receiving", self.clients[at].number);
        self.log(at, Level::Debug, None, text, false);
    }

    #[cold]
    pub(super) fn log_values(&self, at: usize, values: &[Value]) {
        let Client { script, step, .. } = self.clients[at];
        for value in values {
            let mut shown = Vec::new();
            value.write_debug(&mut shown);
            let shown = String::from_utf8_lossy(&shown);
            // Commands are counted from 1 here, and from 0 everywhere else.
            let text = format!("debug(script={script},command={}): {shown}\n", step + 1);
            self.log(at, Level::Plain, None, text, false);
        }
    }

    #[cold]
    pub(super) fn debug_command(&self, at: usize) {
        let client = &self.clients[at];
        let step = &self.program.scripts[client.script as usize].steps[client.step as usize];
        let text = format!("client {} executing \\{}", client.number, step.name);
        self.log(at, Level::Debug, None, text, false);
    }
}
