//! Standard output and standard error of pgbench.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::message::{self, Fatal};

/// The two streams that pgbench writes to; clones write to the same.
#[derive(Clone)]
pub struct Console {
    streams: Arc<Mutex<Streams>>,
    stderr_is_terminal: bool,
}

struct Streams {
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
}

impl Console {
    /// A console on these streams. On a terminal, progress of an initialization stays on one line.
    pub fn new(
        stdout: impl Write + Send + 'static,
        stderr: impl Write + Send + 'static,
        stderr_is_terminal: bool,
    ) -> Self {
        let streams = Streams { stdout: Box::new(stdout), stderr: Box::new(stderr) };
        Self { streams: Arc::new(Mutex::new(streams)), stderr_is_terminal }
    }

    pub(crate) fn stderr_is_terminal(&self) -> bool {
        self.stderr_is_terminal
    }

    /// Prints to standard output. A reader that goes away is not an error.
    pub(crate) fn print(&self, text: &str) -> Result<(), Fatal> {
        let stdout = &mut self.streams().stdout;
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Fatal::new(format_args!("could not write to standard output: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Writes text as it is to standard error, after all output so far. A failure is ignored, as it cannot be reported.
    pub(crate) fn plain(&self, text: &str) {
        let Streams { stdout, stderr } = &mut *self.streams();
        let _ = stdout.flush();
        let _ = stderr.write_all(text.as_bytes());
    }

    pub(crate) fn error(&self, text: impl fmt::Display) {
        self.plain(&message::line("error: ", text));
    }

    pub(crate) fn warning(&self, text: impl fmt::Display) {
        self.plain(&message::line("warning: ", text));
    }

    pub(crate) fn detail(&self, text: impl fmt::Display) {
        self.plain(&message::line("detail: ", text));
    }

    /// Writes a message without a level: pgbench's informational and debugging messages.
    pub(crate) fn info(&self, text: impl fmt::Display) {
        self.plain(&message::line("", text));
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        // A panic leaves the streams in a valid state.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
