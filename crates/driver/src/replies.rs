//! The driver's replies to the runner.

use std::io::{self, Write};

use model::message::Reply;

/// Writes replies, each as one line in a single write.
pub(crate) struct Replies<W> {
    output: W,
    line: Vec<u8>,
}

impl<W: Write> Replies<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { output, line: Vec::new() }
    }

    pub(crate) fn write(&mut self, reply: &Reply) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, reply)?;
        self.line.push(b'\n');
        self.output.write_all(&self.line)?;
        self.output.flush()
    }
}
