//! A log file as a stream of entries.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strum::IntoStaticStr;

use crate::csv;
use crate::entry::{Entry, known};
use crate::error::LogError;
use crate::input::{Input, MAX_ENTRY_BYTES};
use crate::json::{self, Unwrapped};
use crate::prefix::Prefix;
use crate::problems::{Place, Problem, Problems};
use crate::record::{Parsed, Record};
use crate::severity::{Label, Severity};
use crate::stderr::{Content, Prefixes};

/// Lines that are read to recognise the format.
const SAMPLE_LINES: usize = 1000;
/// Bytes that are read to recognise the format.
const SAMPLE_BYTES: usize = 4 << 20;
/// Length of a line in an error message.
const EXCERPT_CHARS: usize = 120;

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum LogFormat {
    /// `log_destination = csvlog`.
    Csvlog,
    /// `log_destination = jsonlog`, from 15 on.
    Jsonlog,
    /// `log_destination = stderr`, with a `log_line_prefix`.
    Stderr,
    /// Lines of a stderr log in the JSON of a cloud provider.
    Cloud,
}

impl LogFormat {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A log file.
pub struct LogFile {
    path: PathBuf,
    name: Arc<str>,
    input: Input,
    format: LogFormat,
    prefixes: Prefixes,
    problems: Problems,
    /// The line at which the held entry begins, from 1, and what comes after it.
    line: u64,
    held: (usize, u64),
    record: Record,
    severity: Severity,
}

impl LogFile {
    /// Opens a log, which may be compressed by gzip or zstd, and recognises its format. The prefix of a stderr log is one
    /// of these, or of [`KNOWN_PREFIXES`](crate::KNOWN_PREFIXES) if there are none.
    ///
    /// # Errors
    /// It can't be read, its format is not known, or its prefix lacks something.
    pub fn open(path: &Path, prefixes: &[Prefix]) -> Result<Self, LogError> {
        let read = |source| LogError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(read)?;
        Self::from_reader(file, path, prefixes)
    }

    /// Reads a log from a stream, as [`LogFile::open`] does; `path` is its name in messages.
    ///
    /// # Errors
    /// As of [`LogFile::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        path: &Path,
        prefixes: &[Prefix],
    ) -> Result<Self, LogError> {
        let read = |source| LogError::Read { path: path.to_owned(), source };
        let mut input = Input::new(reader).map_err(read)?;
        let mut sample = sample(&mut input).map_err(read)?;
        let mut format = recognise(&sample);
        if format == Some(LogFormat::Cloud) {
            input = input.through(Unwrapped::new);
            sample = self::sample(&mut input).map_err(read)?;
        }
        let all = if prefixes.is_empty() { Prefix::known() } else { prefixes.to_vec() };
        let mut current = 0;
        if matches!(format, None | Some(LogFormat::Cloud)) && !sample.is_empty() {
            let Sample { best, other_line } = Sample::new(&all, &sample, prefixes.is_empty());
            let Some(best) = best else {
                let (path, line) = (path.to_owned(), other_line);
                return Err(match prefixes {
                    [] => LogError::UnknownFormat { path, line },
                    all => {
                        let prefix = all.iter().map(Prefix::to_string).collect::<Vec<_>>().join("', '");
                        LogError::OtherPrefix { path, prefix, line }
                    }
                });
            };
            current = best;
            let prefix = &all[best];
            let lacking =
                |source| LogError::Prefix { path: path.to_owned(), prefix: prefix.to_string(), source };
            prefix.check().map_err(lacking)?;
            format = Some(format.unwrap_or(LogFormat::Stderr));
        }
        Ok(Self {
            path: path.to_owned(),
            name: path.to_string_lossy().into(),
            input,
            format: format.unwrap_or(LogFormat::Stderr),
            prefixes: Prefixes::new(all, current),
            problems: Problems::default(),
            line: 1,
            held: (0, 0),
            record: Record::default(),
            severity: Severity::Log,
        })
    }

    /// Its format.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// The prefix of its lines, as last recognised; None if the format has none.
    pub fn prefix(&self) -> Option<&Prefix> {
        matches!(self.format, LogFormat::Stderr | LogFormat::Cloud).then(|| self.prefixes.current()).flatten()
    }

    /// The problems so far.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Bytes read of the file so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.input.bytes_read()
    }

    /// The place of the last entry.
    pub fn place(&self) -> Place {
        Place { file: Arc::clone(&self.name), line: self.line }
    }

    /// The next entry.
    ///
    /// # Errors
    /// The file can't be read.
    // Not an iterator: an entry borrows from the reader.
    #[expect(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, LogError> {
        loop {
            self.input.consume(self.held.0);
            self.line += self.held.1;
            self.held = (0, 0);
            let found = match self.format {
                LogFormat::Csvlog => self.next_csv(),
                LogFormat::Jsonlog => self.next_json(),
                LogFormat::Stderr | LogFormat::Cloud => self.next_stderr(),
            };
            match found.map_err(|source| LogError::Read { path: self.path.clone(), source })? {
                Found::Entry => break,
                Found::Nothing => {}
                Found::End => {
                    if self.input.is_cut() && self.problems.count(Problem::Truncated) == 0 {
                        self.problem(Problem::Truncated);
                    }
                    return Ok(None);
                }
            }
        }
        // Checked when the record was found.
        let text = std::str::from_utf8(self.input.bytes(0, self.held.0)).unwrap_or_default();
        let record = &self.record;
        Ok(Some(Entry {
            at_us: record.at_us,
            session: record.session,
            user: record.user.get(text).and_then(known),
            database: record.database.get(text).and_then(known),
            application: record.application.get(text).and_then(known),
            backend: record.backend.get(text),
            severity: self.severity,
            sqlstate: record.sqlstate.get(text),
            message: record.message.get(text).unwrap_or_default(),
            detail: record.detail.get(text),
            context: record.context.get(text),
            statement: record.statement.get(text),
        }))
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.add(problem, &self.name, self.line);
    }

    fn next_csv(&mut self) -> io::Result<Found> {
        let Some(mut length) = self.input.line(0)? else { return Ok(Found::End) };
        let mut lines = 1;
        let mut is_open = !csv::is_closed(self.input.bytes(0, length));
        if !csv::is_start(self.input.bytes(0, length)) {
            self.held = (length, 1);
            let is_last = self.is_unfinished(length);
            self.problem(if is_last { Problem::Truncated } else { Problem::NotAnEntry });
            return Ok(Found::Nothing);
        }
        while is_open && length < MAX_ENTRY_BYTES {
            let Some(end) = self.input.line(length)? else { break };
            let line = self.input.bytes(length, end);
            if csv::is_start(line) {
                break;
            }
            is_open ^= !csv::is_closed(line);
            length = end;
            lines += 1;
        }
        self.held = (length, lines);
        if length >= MAX_ENTRY_BYTES {
            self.problem(Problem::TooLong);
            return Ok(Found::Nothing);
        }
        if is_open || self.is_unfinished(length) {
            self.problem(Problem::Truncated);
            return Ok(Found::Nothing);
        }
        Ok(self.parse_with(csv::parse))
    }

    fn next_json(&mut self) -> io::Result<Found> {
        let Some(length) = self.input.line(0)? else { return Ok(Found::End) };
        self.held = (length, 1);
        if length >= MAX_ENTRY_BYTES {
            self.problem(Problem::TooLong);
            return Ok(Found::Nothing);
        }
        if self.is_unfinished(length) {
            self.problem(Problem::Truncated);
            return Ok(Found::Nothing);
        }
        Ok(self.parse_with(json::parse))
    }

    fn next_stderr(&mut self) -> io::Result<Found> {
        let Some(lines) = self.prefixes.next(&mut self.input)? else { return Ok(Found::End) };
        self.held = (lines.length, lines.lines);
        if lines.changes_prefix {
            self.problem(Problem::OtherPrefix);
        }
        let is_unfinished = self.is_unfinished(lines.length);
        match lines.content {
            _ if lines.length >= MAX_ENTRY_BYTES => self.problem(Problem::TooLong),
            _ if is_unfinished => self.problem(Problem::Truncated),
            Content::Entry(record, label) => return Ok(self.accept(*record, Some(label))),
            Content::NotUtf8 => self.problem(Problem::NotUtf8),
            Content::Noise => self.problem(Problem::NotAnEntry),
        }
        Ok(Found::Nothing)
    }

    /// Whether the held lines end without a line break: the file ends within them.
    fn is_unfinished(&self, length: usize) -> bool {
        self.input.bytes(0, length).last() != Some(&b'\n')
    }

    fn parse_with(&mut self, parse: fn(&str) -> Option<Parsed>) -> Found {
        let parsed = std::str::from_utf8(self.input.bytes(0, self.held.0)).map(parse);
        match parsed {
            Ok(Some((record, label))) => self.accept(record, label),
            Ok(None) => {
                self.problem(Problem::NotAnEntry);
                Found::Nothing
            }
            Err(_) => {
                self.problem(Problem::NotUtf8);
                Found::Nothing
            }
        }
    }

    fn accept(&mut self, record: Record, label: Option<Label>) -> Found {
        let Some(Label::Entry(severity)) = label else {
            self.problem(Problem::NotEnglish);
            return Found::Nothing;
        };
        if record.has_unknown_zone {
            self.problem(Problem::UnknownZone);
        }
        self.severity = severity;
        self.record = record;
        Found::Entry
    }
}

/// What the next lines are.
enum Found {
    Entry,
    Nothing,
    End,
}

/// The first lines of a log.
fn sample(input: &mut Input) -> io::Result<Vec<u8>> {
    let mut length = 0;
    for _ in 0..SAMPLE_LINES {
        match input.line(length)? {
            Some(end) if end <= SAMPLE_BYTES || length == 0 => length = end,
            _ => break,
        }
    }
    Ok(input.bytes(0, length).to_vec())
}

/// The format of a log that is not stderr's.
fn recognise(sample: &[u8]) -> Option<LogFormat> {
    sample.split_inclusive(|byte| *byte == b'\n').find_map(|line| {
        if csv::is_start(line) {
            return Some(LogFormat::Csvlog);
        }
        let text = std::str::from_utf8(line).ok().filter(|text| text.starts_with('{'))?;
        if json::parse(text).is_some() {
            return Some(LogFormat::Jsonlog);
        }
        json::unwrap(text).map(|_| LogFormat::Cloud)
    })
}

/// The prefix of a sample of lines.
struct Sample {
    /// The number of the prefix that most lines have; None if too few have any.
    best: Option<usize>,
    /// The first line without it, shortened.
    other_line: String,
}

impl Sample {
    /// Of known prefixes, one is a guess, which a fourth of the lines must confirm: lines of processes without a session have
    /// a shorter prefix, which may look like another one.
    fn new(prefixes: &[Prefix], sample: &[u8], is_guess: bool) -> Self {
        let lines: Vec<Cow<'_, str>> = sample
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty() && !line.starts_with(b"\t"))
            .map(String::from_utf8_lossy)
            .collect();
        let has = |prefix: &Prefix, line: &str| match is_guess {
            true => prefix.recognise(line).is_some(),
            false => prefix.head(line).is_some(),
        };
        let mut best = (0, 0);
        for (at, prefix) in prefixes.iter().enumerate() {
            let count = lines.iter().filter(|line| has(prefix, line)).count();
            if count > best.1 {
                best = (at, count);
            }
        }
        let needed = if is_guess { lines.len().div_ceil(4) } else { 1 };
        let other = lines.iter().find(|line| prefixes.get(best.0).is_none_or(|prefix| !has(prefix, line)));
        let other_line = other.map_or(String::new(), |line| {
            line.chars().take(EXCERPT_CHARS).filter(|c| !c.is_control()).collect()
        });
        Self { best: (best.1 >= needed.max(1)).then_some(best.0), other_line }
    }
}

#[cfg(test)]
mod tests;
