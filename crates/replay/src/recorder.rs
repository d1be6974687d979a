//! From logs to a trace.

mod dependencies;
mod keys;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pglog::{LogFile, Place, Prefix, Problems, Tally};
use trace::{Missing, Source, Summary, TraceError, TraceReader, TraceWriter, directory_of};

use crate::anonymize::{Key, anonymize};
use crate::error::ReplayError;
use crate::left_out::LeftOutTally;
use crate::shapes::Shapes;
use sessions::{Finished, Sessions};

/// Entries between two reports of progress.
const PROGRESS_ENTRIES: u64 = 10_000;

/// How far reading is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes read of all files, before decompression.
    pub bytes: u64,
    /// Bytes of all files, as far as known.
    pub total_bytes: u64,
    /// Statements found.
    pub statements: u64,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What is in the trace.
    pub summary: Summary,
    /// Bytes of the trace.
    pub trace_bytes: u64,
}

/// Reads logs, in any order, and writes their trace, with other values if there is a key. `-` is standard input.
///
/// Needs memory for the sessions that are open, the shapes of the statements, and a part of the trace, no matter how long the
/// logs are.
///
/// # Errors
/// A log can't be read, there are no statements, or the trace can't be written. Then there is no trace.
pub fn record(
    logs: &[PathBuf],
    prefixes: &[Prefix],
    key: Option<&Key>,
    trace: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recorded, ReplayError> {
    let Some(key) = key else { return record_whole(logs, prefixes, trace, progress) };
    let directory = directory_of(trace);
    // Only its owner can read it, and it goes whatever happens.
    let scratch = tempfile::Builder::new().prefix(".pgdt-").tempdir_in(directory);
    let scratch = scratch.map_err(|source| TraceError::Write { path: directory.to_owned(), source })?;
    let whole = scratch.path().join("trace");
    let recorded = record_whole(logs, prefixes, &whole, progress)?;
    let trace_bytes = anonymize(&TraceReader::open(&whole)?, key, trace)?;
    Ok(Recorded { trace_bytes, ..recorded })
}

fn record_whole(
    logs: &[PathBuf],
    prefixes: &[Prefix],
    trace: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recorded, ReplayError> {
    let (logs, sizes) = in_order(logs, prefixes)?;
    let mut recorder = Recorder {
        sessions: Sessions::new(TraceWriter::create(trace)?),
        shapes: Shapes::default(),
        problems: Problems::default(),
        progress: Progress { total_bytes: sizes.iter().sum(), ..Progress::default() },
        sources: Vec::new(),
        entries: 0,
    };
    let mut done_bytes = 0;
    for (log, size) in logs.iter().zip(sizes) {
        recorder.read(log, prefixes, done_bytes, progress)?;
        done_bytes += size;
    }
    recorder.finish(&logs)
}

struct Recorder {
    sessions: Sessions,
    shapes: Shapes,
    problems: Problems,
    progress: Progress,
    sources: Vec<Source>,
    entries: u64,
}

impl Recorder {
    fn read(
        &mut self,
        path: &Path,
        prefixes: &[Prefix],
        done_bytes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ReplayError> {
        let mut log = open(path, prefixes)?;
        let mut entries = 0_u64;
        while let Some(entry) = log.next()? {
            // The place is needed only if something is left out.
            entries += 1;
            let left_out = self.sessions.entry(&entry, &mut self.shapes)?;
            if let Some(reason) = left_out {
                self.sessions.left_out.add(reason, || log.place());
            }
            if entries.is_multiple_of(PROGRESS_ENTRIES) {
                self.progress.bytes = done_bytes + log.bytes_read();
                self.progress.statements = self.sessions.statements;
                progress(self.progress);
            }
        }
        self.problems.merge(log.problems());
        self.entries += entries;
        self.sources.push(Source {
            file: path
                .file_name()
                .map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy())
                .into(),
            format: log.format().as_str().to_owned(),
            prefix: log.prefix().map(Prefix::to_string),
            bytes: log.bytes_read(),
            entries,
        });
        Ok(())
    }

    fn finish(mut self, logs: &[PathBuf]) -> Result<Recorded, ReplayError> {
        let Finished { writer, left_out, sessions, statements, dependent } =
            self.sessions.finish(&mut self.shapes)?;
        if statements == 0 {
            let files = logs.iter().map(|log| log.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(ReplayError::NoStatements {
                files,
                hint: hint(self.entries, &left_out, &self.problems),
            });
        }
        let summary = Summary {
            sources: self.sources,
            is_anonymized: false,
            shapes: self.shapes.into_vec(),
            sessions,
            statements,
            dependent,
            left_out: left_out.iter().map(|(reason, tally)| missing(reason.as_str(), tally)).collect(),
            problems: self.problems.iter().map(|(problem, tally)| missing(problem.as_str(), tally)).collect(),
        };
        let trace_bytes = writer.finish(&summary)?;
        Ok(Recorded { summary, trace_bytes })
    }
}

pub(crate) fn missing(name: &str, tally: &Tally) -> Missing {
    let Place { file, line } = &tally.first;
    Missing { name: name.to_owned(), count: tally.count, file: file.to_string(), line: *line }
}

/// Why logs have no statements.
fn hint(entries: u64, left_out: &LeftOutTally, problems: &Problems) -> String {
    let reasons: Vec<String> = left_out
        .iter()
        .map(|(reason, tally)| (tally, reason.description()))
        .chain(problems.iter().map(|(problem, tally)| (tally, problem.description())))
        .map(|(tally, description)| format!("\n  {} {description} (first: {})", tally.count, tally.first))
        .collect();
    match (entries, reasons.as_slice()) {
        (0, []) => ": they have no entries".to_owned(),
        (_, []) => format!(
            ", in {entries} entries; the server logs them with log_min_duration_statement = 0, or log_statement = all and \
             log_duration = on"
        ),
        (_, reasons) => format!(", in {entries} entries:{}", reasons.concat()),
    }
}

fn open(path: &Path, prefixes: &[Prefix]) -> Result<LogFile, ReplayError> {
    Ok(match path == Path::new("-") {
        true => LogFile::from_reader(std::io::stdin(), Path::new("standard input"), prefixes)?,
        false => LogFile::open(path, prefixes)?,
    })
}

/// The logs in the order of their first entries, each once, and their sizes.
fn in_order(logs: &[PathBuf], prefixes: &[Prefix]) -> Result<(Vec<PathBuf>, Vec<u64>), ReplayError> {
    let mut first_us: HashMap<&PathBuf, i64> = HashMap::new();
    let mut order: Vec<&PathBuf> = Vec::new();
    for log in logs {
        if first_us.contains_key(log) {
            continue;
        }
        let at_us = match log == Path::new("-") {
            // It can be read once only.
            true => 0,
            false => open(log, prefixes)?.next()?.map_or(i64::MAX, |entry| entry.at_us),
        };
        first_us.insert(log, at_us);
        order.push(log);
    }
    order.sort_by_key(|log| first_us.get(log));
    let size = |log: &&PathBuf| std::fs::metadata(log).map_or(0, |metadata| metadata.len());
    let sizes = order.iter().map(size).collect();
    Ok((order.into_iter().cloned().collect(), sizes))
}
