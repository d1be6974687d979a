//! The live file of a run: the running process writes its progress, and others read it meanwhile.
//!
//! It is rewritten at the start of each trial, as a new file that replaces the old one, so that a reader always sees a
//! file that is complete up to its last line; it never exceeds [`MAX_LINES`] lines. Its writer holds a lock on it: a
//! file without a lock was left by a killed process.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files;
use crate::format::live::{self, Ended, Line, Run, TrialBegins};
use crate::id;

const PREFIX: &str = ".live-";
const SUFFIX: &str = ".jsonl";
/// Suffix of a file that is about to replace another.
const NEW: &str = ".new";

/// Largest number of lines after the start of a trial: an hour of a load. Beyond it, the older half is dropped.
const MAX_LINES: usize = 3600;

/// Most bytes read at once: several times [`MAX_LINES`]. A longer line is not pgdyno's, and is dropped.
const MAX_READ_BYTES: u64 = 64 << 20;

/// Writes the progress of a run. Dropping it removes the file.
#[derive(Debug)]
pub struct LiveWriter {
    path: PathBuf,
    file: File,
    /// Head of the file: the run, and the current trial, if any.
    head: Vec<u8>,
    lines: VecDeque<Vec<u8>>,
}

impl LiveWriter {
    /// Creates the file of a run.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn begin(root: &Path, id: &str, run: Run) -> Result<Self, StoreError> {
        let path = path(root, id);
        let head = text(&path, &Line::Run(run))?;
        let file = replace(&path, &head)?;
        Ok(Self { path, file, head, lines: VecDeque::new() })
    }

    /// Rewrites the file for a new trial.
    ///
    /// # Errors
    /// It can't be written; the previous file may remain.
    pub fn trial(&mut self, run: Run, trial: TrialBegins) -> Result<(), StoreError> {
        let mut head = text(&self.path, &Line::Run(run))?;
        head.append(&mut text(&self.path, &Line::TrialBegins(trial))?);
        self.file = replace(&self.path, &head)?;
        (self.head, self.lines) = (head, VecDeque::new());
        Ok(())
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It can't be written.
    pub fn append(&mut self, line: &Line) -> Result<(), StoreError> {
        let text = text(&self.path, line)?;
        self.file.write_all(&text).map_err(StoreError::io("write", &self.path))?;
        self.lines.push_back(text);
        if self.lines.len() >= MAX_LINES {
            self.lines.drain(..MAX_LINES / 2);
            let content: Vec<u8> = self.head.iter().chain(self.lines.iter().flatten()).copied().collect();
            self.file = replace(&self.path, &content)?;
        }
        Ok(())
    }

    /// Writes the end of the run, and removes the file; readers still have it open.
    pub fn end(mut self, ended: Ended) {
        // No caller could handle the error.
        let _ = self.append(&Line::Ended(ended));
    }
}

impl Drop for LiveWriter {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn text(path: &Path, line: &Line) -> Result<Vec<u8>, StoreError> {
    live::write(line).map_err(|error| StoreError::io("write", path)(error.into()))
}

/// Replaces a file by a new one, locked before it becomes visible.
fn replace(path: &Path, content: &[u8]) -> Result<File, StoreError> {
    let new = PathBuf::from(format!("{}{NEW}", path.display()));
    // Whatever a killed process, or somebody else in a shared directory, has put there: nothing is written through a link.
    let _ = fs::remove_file(&new);
    let mut file =
        File::options().write(true).create_new(true).open(&new).map_err(StoreError::io("create", &new))?;
    let mut put = || -> io::Result<()> {
        // Whoever can read it could have locked it just now, and is not waited for.
        file.try_lock()?;
        file.write_all(content)?;
        fs::rename(&new, path)
    };
    put().map_err(StoreError::io("write", path))?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<File> {
    files::open_own(path, File::options().read(true))
}

fn path(root: &Path, run: &str) -> PathBuf {
    root.join(format!("{PREFIX}{run}{SUFFIX}"))
}

/// Runs with a live file, oldest first, including those of killed processes.
pub(crate) fn runs(root: &Path) -> Vec<String> {
    let run = |name: &String| Some(name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned());
    let mut runs: Vec<String> = names(root).iter().filter_map(run).filter(|run| id::is_id(run)).collect();
    runs.sort_unstable();
    runs
}

/// Runs that a process is executing.
pub(crate) fn running(root: &Path) -> Vec<String> {
    let is_running = |run: &String| open(&path(root, run)).is_ok_and(|file| is_held(&file));
    runs(root).into_iter().filter(is_running).collect()
}

/// Removes the files of killed processes.
pub(crate) fn sweep(root: &Path) {
    for path in names(root).into_iter().map(|name| root.join(name)) {
        if open(&path).is_ok_and(|file| !is_held(&file)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Names of live files, and of those about to replace one.
fn names(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Whether the writer of a file is alive. Uses a shared lock, because several readers may test at the same time.
fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // Without support for locks nothing is known: better to show a dead run than none.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Reads the progress of a run.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    file: File,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
}

/// Progress of a run since the previous call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveUpdate {
    /// The new lines. A [`Line::Run`] replaces all earlier ones.
    pub lines: Vec<Line>,
    /// Whether the run's process is still alive.
    pub alive: bool,
}

impl LiveReader {
    /// Opens the live file of a run.
    ///
    /// # Errors
    /// There is none, or it can't be read.
    pub(crate) fn open(root: &Path, run: &str) -> Result<Self, StoreError> {
        let path = path(root, run);
        let file = open(&path).map_err(StoreError::io("open", &path))?;
        Ok(Self { path, file, rest: Vec::new() })
    }

    /// Returns the lines since the previous call, initially all. Never blocks.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn poll(&mut self) -> Result<LiveUpdate, StoreError> {
        let mut lines = Vec::new();
        loop {
            // In this order: a reader that finds the writer gone still sees its last line, or its last file.
            let alive = is_held(&self.file);
            let successor = self.successor();
            self.read(&mut lines).map_err(StoreError::io("read", &self.path))?;
            match successor {
                Some(file) => (self.file, self.rest) = (file, Vec::new()),
                None => return Ok(LiveUpdate { lines, alive }),
            }
        }
    }

    /// The file that has replaced this one.
    fn successor(&self) -> Option<File> {
        let file = open(&self.path).ok()?;
        let id = |file: &File| file.metadata().ok().map(|is| (is.dev(), is.ino()));
        (id(&file)? != id(&self.file)?).then_some(file)
    }

    fn read(&mut self, lines: &mut Vec<Line>) -> io::Result<()> {
        (&self.file).take(MAX_READ_BYTES).read_to_end(&mut self.rest)?;
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
            if self.rest.len() as u64 > MAX_READ_BYTES {
                self.rest.clear();
            }
            return Ok(());
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        lines.extend(whole.split(|&byte| byte == b'\n').filter_map(live::read));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::live::{How, Notice};

    const RUN: &str = "01JD7N4Q8ZK3V5X0W2M6T9RBCE";

    fn run(campaign: &str) -> Run {
        Run {
            format: live::VERSION,
            campaign: campaign.to_owned(),
            pgdyno_version: "0.1.0".to_owned(),
            begun: jiff::Timestamp::UNIX_EPOCH,
            planned: 2,
            cells: Vec::new(),
        }
    }

    fn begins(position: u32) -> TrialBegins {
        TrialBegins {
            at: jiff::Timestamp::UNIX_EPOCH,
            position,
            of: 2,
            cell: "18 select-only".to_owned(),
            cell_index: 0,
            repeat: 1,
            attempt: 1,
            reason: None,
            remaining_us: 1,
            warmup_us: 0,
            duration_us: 1,
            levels: [("server".to_owned(), "18".to_owned())].into(),
            side: None,
            other: None,
        }
    }

    fn notice(text: &str) -> Line {
        Line::Notice(Notice { at: jiff::Timestamp::UNIX_EPOCH, text: text.to_owned() })
    }

    fn ended() -> Ended {
        Ended { at: jiff::Timestamp::UNIX_EPOCH, how: How::Finished, why: None }
    }

    fn poll(reader: &mut LiveReader) -> (Vec<Line>, bool) {
        let LiveUpdate { lines, alive } = reader.poll().unwrap();
        (lines, alive)
    }

    #[test]
    fn a_reader_gets_every_line_once_even_if_the_file_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        assert_eq!(runs(root.path()), [RUN]);
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        assert_eq!(poll(&mut reader), (vec![Line::Run(run("a"))], true));
        writer.append(&notice("1")).unwrap();
        writer.append(&notice("2")).unwrap();
        writer.trial(run("b"), begins(1)).unwrap();
        writer.append(&notice("3")).unwrap();
        let begun = |position| Line::TrialBegins(begins(position));
        assert_eq!(
            poll(&mut reader),
            (vec![notice("1"), notice("2"), Line::Run(run("b")), begun(1), notice("3")], true)
        );
        assert_eq!(poll(&mut reader), (vec![], true));
        writer.end(ended());
        assert_eq!(poll(&mut reader), (vec![Line::Ended(ended())], false));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let theirs = root.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        let new = format!("{}{NEW}", path(root.path(), RUN).display());
        let link = || std::os::unix::fs::symlink(&theirs, &new).unwrap();
        link();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        link();
        writer.trial(run("b"), begins(1)).unwrap();
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(runs(root.path()), [RUN]);
    }

    #[test]
    fn an_incomplete_line_waits_for_its_end_and_an_unknown_one_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        reader.poll().unwrap();
        writer
            .file
            .write_all(b"{\"kind\":\"aria\"}\n{\"kind\":\"notice\",\"at\":\"1970-01-01T00:00:00Z\",")
            .unwrap();
        assert_eq!(poll(&mut reader), (vec![], true));
        writer.file.write_all(b"\"text\":\"whole\"}\n").unwrap();
        assert_eq!(poll(&mut reader), (vec![notice("whole")], true));
    }

    #[test]
    fn a_file_of_a_newer_format_has_no_lines() {
        let root = tempfile::tempdir().unwrap();
        let _writer = LiveWriter::begin(root.path(), RUN, Run { format: 2, ..run("a") }).unwrap();
        assert_eq!(poll(&mut LiveReader::open(root.path(), RUN).unwrap()), (vec![], true));
    }

    #[test]
    fn a_long_trial_keeps_its_beginning_and_its_latest_lines() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        writer.trial(run("a"), begins(1)).unwrap();
        for number in 0..MAX_LINES * 2 + 10 {
            writer.append(&notice(&number.to_string())).unwrap();
        }
        let (lines, _) = poll(&mut LiveReader::open(root.path(), RUN).unwrap());
        assert!((MAX_LINES / 2..MAX_LINES + 2).contains(&lines.len()), "{}", lines.len());
        assert_eq!(lines[..2], [Line::Run(run("a")), Line::TrialBegins(begins(1))]);
        let numbers = MAX_LINES * 2 + 10 - (lines.len() - 2)..MAX_LINES * 2 + 10;
        assert_eq!(lines[2..], numbers.map(|number| notice(&number.to_string())).collect::<Vec<_>>());
    }

    #[test]
    fn the_file_of_a_killed_process_is_not_alive_and_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        sweep(root.path());
        assert_eq!(runs(root.path()), [RUN], "its writer is alive");
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        // As the kernel does it: the lock is released, the file remains.
        let content = fs::read(path(root.path(), RUN)).unwrap();
        drop(writer);
        assert!(!reader.poll().unwrap().alive);
        fs::write(path(root.path(), RUN), content).unwrap();
        assert!(!LiveReader::open(root.path(), RUN).unwrap().poll().unwrap().alive);
        sweep(root.path());
        assert_eq!(runs(root.path()), [] as [&str; 0]);
    }
}
