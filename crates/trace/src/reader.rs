//! Reads a trace.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;

use crate::Summary;
use crate::error::TraceError;
use crate::format::{Footer, Header, Line, Texts, VERSION};
use crate::frames::{self, END_BYTES, End};
use crate::statement::Event;

/// Longest line: a statement has at most 1 GiB, which JSON makes longer.
const MAX_LINE_BYTES: u64 = 2 << 30;
/// Longest first line.
const MAX_HEADER_BYTES: u64 = 4 << 10;
/// Longest last line: those of a hundred thousand shapes of statements.
const MAX_FOOTER_BYTES: u64 = 256 << 20;
/// Most runs, each of which is read through a file and a decoder of its own. A writer begins another one only when 64 MiB of events
/// came too late for the last.
const MAX_RUNS: usize = 512;
/// Binary logarithm of the decoder's memory, in bytes: twice what the writer's compression level needs.
const MAX_WINDOW_LOG: u32 = 22;

/// A trace.
#[derive(Debug)]
pub struct TraceReader {
    path: PathBuf,
    summary: Summary,
    runs: Vec<u64>,
    end: End,
}

impl TraceReader {
    /// Opens a trace and reads what it says about itself.
    ///
    /// # Errors
    /// The file can't be read, or is no whole trace of a known version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let read = |source| TraceError::Read { path: path.to_owned(), source };
        let not_a_trace =
            |reason: &str| TraceError::NotATrace { path: path.to_owned(), reason: reason.to_owned() };
        let mut file = File::open(path).map_err(read)?;
        let length = file.metadata().map_err(read)?.len();
        if length < END_BYTES as u64 {
            return Err(not_a_trace("it is too short"));
        }
        let mut end = [0; END_BYTES];
        file.seek(SeekFrom::End(-(END_BYTES as i64))).map_err(read)?;
        file.read_exact(&mut end).map_err(read)?;
        let end = End::parse(&end).ok_or_else(|| not_a_trace("it does not end as one"))?;
        if end.version > VERSION {
            return Err(TraceError::Version { path: path.to_owned(), version: end.version, known: VERSION });
        }
        let damaged = |reason: &str| TraceError::Damaged { path: path.to_owned(), reason: reason.to_owned() };
        let mut header = lines(path, 0, end.last).map_err(read)?;
        let first = header.next_line(MAX_HEADER_BYTES).map_err(|error| damaged(&error.to_string()))?;
        if serde_json::from_str::<Header>(first.unwrap_or_default()).is_err() {
            return Err(damaged("its first line is not that of a trace"));
        }
        let frame_end = length - END_BYTES as u64;
        let mut last = lines(path, end.last.min(frame_end), frame_end).map_err(read)?;
        let last = last
            .next_line(MAX_FOOTER_BYTES)
            .map_err(|error| damaged(&error.to_string()))?
            .unwrap_or_default();
        let footer: Footer =
            serde_json::from_str(last).map_err(|error| damaged(&format!("its last line: {error}")))?;
        let (summary, runs) = footer.into_summary().ok_or_else(|| damaged("its last line"))?;
        if runs.len() > MAX_RUNS || !runs.is_sorted() || runs.last().is_some_and(|place| *place > end.last) {
            return Err(damaged("the places in its last line"));
        }
        Ok(Self { path: path.to_owned(), summary, runs, end })
    }

    /// What it says about itself.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Its identity: the SHA-256 of its content, in hexadecimal.
    pub fn sum(&self) -> String {
        self.end.sum.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the whole file and compares its sum.
    ///
    /// # Errors
    /// It can't be read, or is damaged.
    pub fn verify(&self) -> Result<(), TraceError> {
        let read = |source| TraceError::Read { path: self.path.clone(), source };
        let file = File::open(&self.path).map_err(read)?;
        let length = file.metadata().map_err(read)?.len().saturating_sub(END_BYTES as u64);
        if frames::sum(file.take(length)).map_err(read)? != self.end.sum {
            return Err(self.damaged("its sum is not that of its content"));
        }
        Ok(())
    }

    /// The events, in the order of time.
    ///
    /// # Errors
    /// The file can't be opened.
    pub fn events(&self) -> Result<Events<'_>, TraceError> {
        let ends = self.runs.iter().skip(1).copied().chain([self.end.last]);
        let runs: io::Result<Vec<Run>> =
            self.runs.iter().zip(ends).map(|(from, to)| Run::open(&self.path, *from, to)).collect();
        let runs = runs.map_err(|source| TraceError::Read { path: self.path.clone(), source })?;
        Ok(Events { trace: self, runs })
    }

    fn damaged(&self, reason: &str) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), reason: reason.to_owned() }
    }
}

/// The events of a trace, in the order of time. After an error there are no more.
pub struct Events<'a> {
    trace: &'a TraceReader,
    runs: Vec<Run>,
}

impl Iterator for Events<'_> {
    type Item = Result<Event, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        for run in &mut self.runs {
            if let Err(reason) = run.fill() {
                self.runs.clear();
                return Some(Err(self.trace.damaged(&reason)));
            }
        }
        self.runs.retain(|run| run.next.is_some());
        // Of the same time, those of an earlier run come first: they were taken first.
        let first = self.runs.iter_mut().min_by_key(|run| run.next.as_ref().map(|event| event.at_us))?;
        first.next.take().map(Ok)
    }
}

/// Events in the order of time, in a part of the file.
struct Run {
    lines: Lines,
    texts: Texts,
    next: Option<Event>,
}

impl Run {
    fn open(path: &Path, from: u64, to: u64) -> io::Result<Self> {
        Ok(Self { lines: lines(path, from, to)?, texts: Texts::default(), next: None })
    }

    /// Reads the next event, unless there is one.
    fn fill(&mut self) -> Result<(), String> {
        while self.next.is_none() {
            let Some(line) = self.lines.next_line(MAX_LINE_BYTES).map_err(|error| error.to_string())? else {
                return Ok(());
            };
            let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
            self.next = self.texts.event(line)?;
        }
        Ok(())
    }
}

/// Decompressed lines of a part of a file.
struct Lines {
    reader: BufReader<Decoder<'static, BufReader<Take<File>>>>,
    line: String,
}

fn lines(path: &Path, from: u64, to: u64) -> io::Result<Lines> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut decoder = Decoder::new(file.take(to.saturating_sub(from)))?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(Lines { reader: BufReader::with_capacity(128 * 1024, decoder), line: String::new() })
}

impl Lines {
    /// The next line, or its first `max` bytes.
    fn next_line(&mut self, max: u64) -> io::Result<Option<&str>> {
        self.line.clear();
        let count = (&mut self.reader).take(max).read_line(&mut self.line)?;
        Ok((count > 0).then_some(self.line.as_str()))
    }
}
