//! Runs the tools of a build: their output goes to its log, and they end with this process.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::process::Signal;

use crate::error::{Error, IoContext};
use crate::process::{LOG_TAIL_LINES, last_lines, spawn, wait_while};
use crate::progress::Progress;

/// What tools print that run out of disk space or memory.
const EXHAUSTION: [&str; 5] = [
    "No space left on device",
    "Disk quota exceeded",
    "Cannot allocate memory",
    "virtual memory exhausted",
    "Killed signal terminated program",
];

/// Runs commands one after the other.
pub struct BuildLog<'a> {
    path: PathBuf,
    progress: &'a dyn Progress,
}

impl<'a> BuildLog<'a> {
    /// A new log.
    ///
    /// # Errors
    /// It can't be written.
    pub fn new(path: &Path, progress: &'a dyn Progress) -> Result<Self, Error> {
        File::create(path).doing("write", path)?;
        Ok(Self { path: path.to_owned(), progress })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// It can't be run; the user interrupts it.
    pub fn run(&self, mut command: Command) -> Result<ExitStatus, Error> {
        let mut log = OpenOptions::new().append(true).open(&self.path).doing("write", &self.path)?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        writeln!(log, "$ {}", words.join(" ")).doing("write", &self.path)?;
        command.stdout(log.try_clone().doing("write", &self.path)?).stderr(log);
        let program = PathBuf::from(command.get_program());
        // make and ninja pass SIGTERM on to their children.
        let mut child = spawn(command, Signal::TERM).doing("run", &program)?;
        let status = wait_while(&mut child, || !self.progress.interrupted()).doing("wait for", &program)?;
        status.ok_or(Error::Interrupted)
    }

    /// Its last lines.
    pub fn tail(&self) -> String {
        last_lines(&self.text(), LOG_TAIL_LINES)
    }

    /// All of it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.path).unwrap_or_default()).into_owned()
    }
}

/// Whether the output of tools says that this host is out of disk space or memory.
pub fn is_exhausted_output(output: &str) -> bool {
    EXHAUSTION.iter().any(|text| output.contains(text))
}
