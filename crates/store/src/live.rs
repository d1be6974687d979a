//! The live file of a run: who runs it tells there what happens, and others read it meanwhile.
//!
//! It is begun anew with each trial, under another name that then takes its place, so that a reader sees one that is
//! whole up to its last line, and it never grows beyond [`MOST`] lines. Its writer holds a lock on it: one that nobody
//! holds was left by a process that was killed.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::format::live::{self, Ended, Line, Run, TrialBegins};
use crate::id;

const PREFIX: &str = ".live-";
const SUFFIX: &str = ".jsonl";
/// What the name of a file ends in that is to take the place of another.
const NEW: &str = ".new";

/// Lines after the beginning of a trial, at most: an hour of a load. Then the older half of them is left out.
const MOST: usize = 3600;

/// Tells what a run does. The file goes with it.
#[derive(Debug)]
pub struct LiveWriter {
    path: PathBuf,
    file: File,
    /// What the file begins with: the run, and the trial where there is one.
    head: Vec<u8>,
    lines: VecDeque<Vec<u8>>,
}

impl LiveWriter {
    /// Begins the file of a run.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn begin(root: &Path, id: &str, run: Run) -> Result<Self, StoreError> {
        let path = path(root, id);
        let head = text(&path, &Line::Run(run))?;
        let file = replace(&path, &head)?;
        Ok(Self { path, file, head, lines: VecDeque::new() })
    }

    /// Begins it anew with a trial.
    ///
    /// # Errors
    /// It can't be written; what it was before may be left.
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
        if self.lines.len() >= MOST {
            self.lines.drain(..MOST / 2);
            let content: Vec<u8> = self.head.iter().chain(self.lines.iter().flatten()).copied().collect();
            self.file = replace(&self.path, &content)?;
        }
        Ok(())
    }

    /// Says how the run has ended, and takes the file away: who reads it has it open.
    pub fn end(mut self, ended: Ended) {
        // Nobody is there who could do more about it.
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

/// Puts a new file in a place, locked before anybody can see it.
fn replace(path: &Path, content: &[u8]) -> Result<File, StoreError> {
    let new = PathBuf::from(format!("{}{NEW}", path.display()));
    let mut file = File::create(&new).map_err(StoreError::io("make", &new))?;
    let put = file.lock().and_then(|()| file.write_all(content)).and_then(|()| fs::rename(&new, path));
    put.map_err(StoreError::io("write", path))?;
    Ok(file)
}

fn path(root: &Path, run: &str) -> PathBuf {
    root.join(format!("{PREFIX}{run}{SUFFIX}"))
}

/// The runs that have a live file, oldest first, those among them whose process was killed.
pub(crate) fn runs(root: &Path) -> Vec<String> {
    let run = |name: &String| Some(name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned());
    let mut runs: Vec<String> = names(root).iter().filter_map(run).filter(|run| id::is_id(run)).collect();
    runs.sort_unstable();
    runs
}

/// Those that a process is running.
pub(crate) fn running(root: &Path) -> Vec<String> {
    let is_running = |run: &String| File::open(path(root, run)).is_ok_and(|file| is_held(&file));
    runs(root).into_iter().filter(is_running).collect()
}

/// Removes what processes left that were killed.
pub(crate) fn sweep(root: &Path) {
    for path in names(root).into_iter().map(|name| root.join(name)) {
        if File::open(&path).is_ok_and(|file| !is_held(&file)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Live files, and those that are to take the place of one.
fn names(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Whether the writer of a file is there. A shared lock, for several may look at the same time.
fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // Where nothing can be locked nothing is known: better a run that is gone than none.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Reads what a run does.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end has not been written.
    rest: Vec<u8>,
}

/// What a run has told since it was last asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    /// Line by line. A [`Line::Run`] says everything anew.
    pub lines: Vec<Line>,
    /// Whether its process is there still.
    pub alive: bool,
}

impl LiveReader {
    /// Opens the file of a run.
    ///
    /// # Errors
    /// There is none, or it can't be read.
    pub(crate) fn open(root: &Path, run: &str) -> Result<Self, StoreError> {
        let path = path(root, run);
        let file = File::open(&path).map_err(StoreError::io("open", &path))?;
        Ok(Self { path, file, rest: Vec::new() })
    }

    /// The lines since the last call, at first all. Never waits.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn news(&mut self) -> Result<News, StoreError> {
        let mut lines = Vec::new();
        loop {
            // In this order: who finds the writer gone then sees what it did last, be it a line or another file.
            let alive = is_held(&self.file);
            let successor = self.successor();
            self.read(&mut lines).map_err(StoreError::io("read", &self.path))?;
            match successor {
                Some(file) => (self.file, self.rest) = (file, Vec::new()),
                None => return Ok(News { lines, alive }),
            }
        }
    }

    /// The file that has taken the place of this one.
    fn successor(&self) -> Option<File> {
        let file = File::open(&self.path).ok()?;
        let id = |file: &File| file.metadata().ok().map(|is| (is.dev(), is.ino()));
        (id(&file)? != id(&self.file)?).then_some(file)
    }

    fn read(&mut self, lines: &mut Vec<Line>) -> io::Result<()> {
        self.file.read_to_end(&mut self.rest)?;
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else { return Ok(()) };
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
        }
    }

    fn notice(text: &str) -> Line {
        Line::Notice(Notice { at: jiff::Timestamp::UNIX_EPOCH, text: text.to_owned() })
    }

    fn ended() -> Ended {
        Ended { at: jiff::Timestamp::UNIX_EPOCH, how: How::Finished, why: None }
    }

    fn news(reader: &mut LiveReader) -> (Vec<Line>, bool) {
        let News { lines, alive } = reader.news().unwrap();
        (lines, alive)
    }

    #[test]
    fn a_reader_hears_every_line_once_whatever_takes_the_files_place() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        assert_eq!(runs(root.path()), [RUN]);
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        assert_eq!(news(&mut reader), (vec![Line::Run(run("a"))], true));
        writer.append(&notice("1")).unwrap();
        writer.append(&notice("2")).unwrap();
        writer.trial(run("b"), begins(1)).unwrap();
        writer.append(&notice("3")).unwrap();
        let begun = |position| Line::TrialBegins(begins(position));
        assert_eq!(
            news(&mut reader),
            (vec![notice("1"), notice("2"), Line::Run(run("b")), begun(1), notice("3")], true)
        );
        assert_eq!(news(&mut reader), (vec![], true));
        writer.end(ended());
        assert_eq!(news(&mut reader), (vec![Line::Ended(ended())], false));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn half_a_line_waits_for_its_end_and_a_strange_one_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        reader.news().unwrap();
        writer
            .file
            .write_all(b"{\"kind\":\"aria\"}\n{\"kind\":\"notice\",\"at\":\"1970-01-01T00:00:00Z\",")
            .unwrap();
        assert_eq!(news(&mut reader), (vec![], true));
        writer.file.write_all(b"\"text\":\"whole\"}\n").unwrap();
        assert_eq!(news(&mut reader), (vec![notice("whole")], true));
    }

    #[test]
    fn a_file_of_a_newer_release_says_nothing_of_its_run() {
        let root = tempfile::tempdir().unwrap();
        let _writer = LiveWriter::begin(root.path(), RUN, Run { format: 2, ..run("a") }).unwrap();
        assert_eq!(news(&mut LiveReader::open(root.path(), RUN).unwrap()), (vec![], true));
    }

    #[test]
    fn a_long_trial_keeps_its_beginning_and_its_latest_lines() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        writer.trial(run("a"), begins(1)).unwrap();
        for number in 0..MOST * 2 + 10 {
            writer.append(&notice(&number.to_string())).unwrap();
        }
        let (lines, _) = news(&mut LiveReader::open(root.path(), RUN).unwrap());
        assert!((MOST / 2..MOST + 2).contains(&lines.len()), "{}", lines.len());
        assert_eq!(lines[..2], [Line::Run(run("a")), Line::TrialBegins(begins(1))]);
        let numbers = MOST * 2 + 10 - (lines.len() - 2)..MOST * 2 + 10;
        assert_eq!(lines[2..], numbers.map(|number| notice(&number.to_string())).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_killed_process_left_is_known_to_be_dead_and_is_swept() {
        let root = tempfile::tempdir().unwrap();
        let writer = LiveWriter::begin(root.path(), RUN, run("a")).unwrap();
        sweep(root.path());
        assert_eq!(runs(root.path()), [RUN], "its writer is alive");
        let mut reader = LiveReader::open(root.path(), RUN).unwrap();
        // As the kernel does it: the lock goes, the file stays.
        let content = fs::read(path(root.path(), RUN)).unwrap();
        drop(writer);
        assert!(!reader.news().unwrap().alive);
        fs::write(path(root.path(), RUN), content).unwrap();
        assert!(!LiveReader::open(root.path(), RUN).unwrap().news().unwrap().alive);
        sweep(root.path());
        assert_eq!(runs(root.path()), [] as [&str; 0]);
    }
}
