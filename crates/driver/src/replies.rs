//! The driver's replies to the runner.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::message::Reply;

use crate::clock;

/// Writes the replies of all threads, each as one line in a single write.
pub(crate) struct Replies<W>(Arc<Mutex<Output<W>>>);

struct Output<W> {
    output: W,
    line: Vec<u8>,
}

impl<W> Clone for Replies<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write> Replies<W> {
    pub(crate) fn new(output: W) -> Self {
        Self(Arc::new(Mutex::new(Output { output, line: Vec::new() })))
    }

    pub(crate) fn write(&self, reply: &Reply) -> io::Result<()> {
        self.lock().write(reply)
    }

    /// Reports the clock. A wait for the reply of another thread is between the two times, and so no part of the round trip.
    pub(crate) fn write_clock(&self, number: u32, received_us: i64) -> io::Result<()> {
        let mut output = self.lock();
        output.write(&Reply::Clock { number, received_us, sent_us: clock::now_us() })
    }

    fn lock(&self) -> MutexGuard<'_, Output<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Output<W> {
    fn write(&mut self, reply: &Reply) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, reply)?;
        self.line.push(b'\n');
        self.output.write_all(&self.line)?;
        self.output.flush()
    }
}
