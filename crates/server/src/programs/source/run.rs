//! Runs the tools of a build: their output goes to its log, and they end with it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::version::Version;
use rustix::process::Signal;

use crate::error::Error;
use host::IoContext;
use host::Progress;
use host::process::{LOG_TAIL_LINES, last_lines};
use host::process::{spawn, wait_while};

/// Runs commands one after the other.
pub(super) struct Runner<'a> {
    location: PathBuf,
    log: PathBuf,
    version: Option<Version>,
    progress: &'a dyn Progress,
}

impl<'a> Runner<'a> {
    /// A runner with a new log.
    pub(super) fn new(location: &Path, log: &Path, progress: &'a dyn Progress) -> Result<Self, Error> {
        File::create(log).doing("write", log)?;
        Ok(Self { location: location.to_owned(), log: log.to_owned(), version: None, progress })
    }

    /// Sets the version that is built.
    pub(super) fn of_version(self, version: Version) -> Self {
        Self { version: Some(version), ..self }
    }

    /// Name of what is built, for messages.
    pub(super) fn what(&self) -> String {
        self.version.map_or_else(|| "PostgreSQL".to_owned(), |version| format!("PostgreSQL {version}"))
    }

    /// Source that is built.
    pub(super) fn location(&self) -> &Path {
        &self.location
    }

    /// Log of the commands' output.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Runs a command to its end. `doing` is its purpose, as in "could not compile".
    pub(super) fn run(&self, doing: &'static str, mut command: Command) -> Result<(), Error> {
        let mut log = OpenOptions::new().append(true).open(&self.log).doing("write", &self.log)?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        writeln!(log, "$ {}", words.join(" ")).doing("write", &self.log)?;
        command.stdout(log.try_clone().doing("write", &self.log)?).stderr(log);
        let program = PathBuf::from(command.get_program());
        // make and ninja pass SIGTERM on to their children.
        let mut child = spawn(command, Signal::TERM).doing("run", &program)?;
        let status = wait_while(&mut child, || !self.progress.interrupted()).doing("wait for", &program)?;
        match status {
            None => Err(host::Error::Interrupted.into()),
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.failed(doing, &status.to_string())),
        }
    }

    /// Error of a step, with the end of the log.
    pub(super) fn failed(&self, doing: &'static str, why: &str) -> Error {
        let text = fs::read(&self.log).unwrap_or_default();
        Error::Build {
            step: format!("{doing} {}", self.what()),
            location: self.location.clone(),
            why: why.to_owned(),
            log: self.log.clone(),
            output: last_lines(&String::from_utf8_lossy(&text), LOG_TAIL_LINES).into(),
        }
    }
}
