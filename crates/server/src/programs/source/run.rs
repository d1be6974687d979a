//! Runs the tools of a build of PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;

use model::version::Version;

use crate::error::Error;
use host::{BuildLog, Progress};

/// Runs commands one after the other.
pub(super) struct Runner<'a> {
    location: PathBuf,
    log: BuildLog<'a>,
    /// What is built, for messages.
    what: String,
}

impl<'a> Runner<'a> {
    /// A runner with a new log.
    pub(super) fn new(location: &Path, log: &Path, progress: &'a dyn Progress) -> Result<Self, Error> {
        let what = "PostgreSQL".to_owned();
        Ok(Self { location: location.to_owned(), log: BuildLog::new(log, progress)?, what })
    }

    /// Sets the version that is built.
    pub(super) fn of_version(self, version: Version) -> Self {
        Self { what: format!("PostgreSQL {version}"), ..self }
    }

    /// Sets the extension that is built.
    pub(super) fn of_extension(self, name: &str) -> Self {
        Self { what: format!("the extension {name}"), ..self }
    }

    /// Name of what is built, for messages.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Source that is built.
    pub(super) fn location(&self) -> &Path {
        &self.location
    }

    /// Log of the commands' output.
    pub(super) fn log(&self) -> &Path {
        self.log.path()
    }

    /// Runs a command to its end. `doing` is its purpose, as in "could not compile".
    pub(super) fn run(&self, doing: &'static str, command: Command) -> Result<(), Error> {
        let status = self.log.run(command)?;
        if status.success() { Ok(()) } else { Err(self.failed(doing, &status.to_string())) }
    }

    /// Error of a step, with the end of the log.
    pub(super) fn failed(&self, doing: &'static str, why: &str) -> Error {
        Error::Build {
            step: format!("{doing} {}", self.what()),
            location: self.location.clone(),
            why: why.to_owned(),
            log: self.log().to_owned(),
            output: self.log.tail().into(),
        }
    }
}
