//! Writes a trace in the order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::Summary;
use crate::error::TraceError;
use crate::format::{Footer, Header, VERSION, event_line, text_line};
use crate::frames::FrameWriter;
use crate::statement::{Action, Event};

/// Memory for events that wait for earlier ones.
const WAITING_BYTES: usize = 64 << 20;

/// The directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a trace. Events may come in any order, best nearly in that of time; those of one session with the same time stay
/// in the order in which they come. The file appears under its name when it is complete.
pub struct TraceWriter {
    path: PathBuf,
    frames: FrameWriter<BufWriter<NamedTempFile>>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    capacity_bytes: usize,
    /// Events taken so far.
    taken: u64,
    /// The current run, and the time of its last event.
    run: u32,
    last_us: i64,
    /// Places of the runs.
    runs: Vec<u64>,
    /// Texts of the current frame.
    texts: HashMap<Arc<str>, u32>,
}

/// An event that waits for earlier ones: of the current run, or of the next because it came too late.
struct Waiting {
    run: u32,
    at_us: i64,
    number: u64,
    event: Event,
}

impl TraceWriter {
    /// A trace at this path.
    ///
    /// # Errors
    /// Its directory can't be written.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        Self::with_capacity(path, WAITING_BYTES)
    }

    pub(crate) fn with_capacity(path: &Path, capacity_bytes: usize) -> Result<Self, TraceError> {
        let directory = directory_of(path);
        let open = || -> io::Result<FrameWriter<BufWriter<NamedTempFile>>> {
            let file = tempfile::Builder::new().prefix(".pgdt-").tempfile_in(directory)?;
            let mut frames = FrameWriter::new(BufWriter::new(file));
            frames.line(&Header { pgdyno_trace: VERSION })?;
            frames.end_frame()?;
            Ok(frames)
        };
        let frames = open().map_err(|source| TraceError::Write { path: path.to_owned(), source })?;
        Ok(Self {
            path: path.to_owned(),
            frames,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            capacity_bytes,
            taken: 0,
            run: 0,
            last_us: i64::MIN,
            runs: Vec::new(),
            texts: HashMap::new(),
        })
    }

    /// Takes an event.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn push(&mut self, event: Event) -> Result<(), TraceError> {
        let run = if event.at_us < self.last_us { self.run + 1 } else { self.run };
        self.waiting_bytes += event.size();
        let (at_us, number) = (event.at_us, self.taken);
        self.taken += 1;
        self.waiting.push(Reverse(Waiting { run, at_us, number, event }));
        while self.waiting_bytes > self.capacity_bytes && self.waiting.len() > 1 {
            self.write_next().map_err(|source| self.write_error(source))?;
        }
        Ok(())
    }

    /// Writes what is left, and what the trace says about itself. Returns the number of bytes of the file.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn finish(mut self, summary: &Summary) -> Result<u64, TraceError> {
        while !self.waiting.is_empty() {
            self.write_next().map_err(|source| self.write_error(source))?;
        }
        let path = self.path.clone();
        let write = || -> io::Result<u64> {
            self.frames.end_frame()?;
            let last = self.frames.at;
            self.frames.line(&Footer::new(summary, self.runs))?;
            let (mut out, bytes) = self.frames.finish(last)?;
            out.flush()?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            Ok(bytes)
        };
        write().map_err(|source| TraceError::Write { path, source })
    }

    fn write_error(&self, source: io::Error) -> TraceError {
        TraceError::Write { path: self.path.clone(), source }
    }

    fn write_next(&mut self) -> io::Result<()> {
        let Some(Reverse(Waiting { run, event, .. })) = self.waiting.pop() else { return Ok(()) };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(event.size());
        let is_new_run = self.runs.is_empty() || run != self.run;
        if is_new_run || self.frames.is_full() {
            self.frames.end_frame()?;
            self.texts.clear();
        }
        if is_new_run {
            self.run = run;
            self.runs.push(self.frames.at);
        }
        self.last_us = event.at_us;
        let text = match &event.action {
            Action::Execute(statement) => Some(match self.texts.get(&statement.text) {
                Some(number) => *number,
                None => {
                    let number = self.texts.len() as u32;
                    self.frames.line(&text_line(number, &statement.text))?;
                    self.texts.insert(Arc::clone(&statement.text), number);
                    number
                }
            }),
            _ => None,
        };
        self.frames.line(&event_line(&event, text))
    }
}

impl Waiting {
    fn key(&self) -> (u32, i64, u64) {
        (self.run, self.at_us, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
