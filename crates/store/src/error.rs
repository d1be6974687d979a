//! Errors of a store: the failed action, its object, the reason, and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Error of an operation on the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory could not be read or written.
    #[error("could not {action} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// The failed action, such as `write`.
        action: &'static str,
        /// The path it failed on.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The trial could not be written; nothing of it remains.
    #[error("trial {id} was not stored: {source}")]
    NotWritten {
        /// The trial.
        id: String,
        /// The reason.
        source: Box<StoreError>,
    },
    /// The record contains something that a bundle can't store.
    #[error("the record can't be stored: {what}; this is a defect of pgdyno, please report it")]
    NotStorable {
        /// Description of that.
        what: String,
    },
    /// The trial already has a bundle, and bundles are never changed.
    #[error("trial {id} already has a bundle in {}; give the new trial another id", path.display())]
    Exists {
        /// The trial.
        id: String,
        /// The store's directory of trials.
        path: PathBuf,
    },
    /// An archive of bundles can't be written, or read into the store.
    #[error("the archive can't be used: {what}")]
    Archive {
        /// The reason, and the remedy.
        what: String,
    },
    /// There is no store in this directory.
    #[error(
        "there is no store in {}: `pgdyno run` creates one next to its campaign; specify it with --store or PGDYNO_STORE",
        path.display()
    )]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// None of the store's bundles can be read.
    #[error("none of the {} bundles of the store {} can be read:{}", problems.len(), path.display(), some_problems(problems))]
    NoneReadable {
        /// The store's directory.
        path: PathBuf,
        /// One problem for each bundle.
        problems: Vec<Problem>,
    },
    /// Another process is executing the run.
    #[error("another pgdyno is executing run {run}\nWait until it ends, or end it, then resume")]
    Claimed {
        /// Id of the run.
        run: String,
    },
    /// No trial's id has this prefix.
    #[error(
        "no trial in {} has an id that begins with \"{prefix}\" (it has {trials} trials); `pgdyno store list` lists their ids",
        path.display()
    )]
    NotFound {
        /// The requested prefix.
        prefix: String,
        /// The store's directory of trials.
        path: PathBuf,
        /// Number of trials in the store.
        trials: usize,
    },
    /// Several trials' ids have this prefix.
    #[error("{} trials have ids that begin with \"{prefix}\": {}; specify more of the id", candidates.len(), some_ids(candidates))]
    Ambiguous {
        /// The requested prefix.
        prefix: String,
        /// The matching ids.
        candidates: Vec<String>,
    },
    /// A bundle is damaged, or its format is newer than this release can read.
    #[error("{0}")]
    Unreadable(Box<Problem>),
}

impl StoreError {
    /// Converts an I/O error into one with the action and the path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// The user's remedy for an I/O error.
fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::*;
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            "free space there or raise the limit, or choose another store with --store or PGDYNO_STORE"
        }
        PermissionDenied | ReadOnlyFilesystem => {
            "check who owns it and how it is mounted, or choose another store with --store or PGDYNO_STORE"
        }
        NotADirectory | AlreadyExists => {
            "move the existing file away, or choose another store with --store or PGDYNO_STORE"
        }
        _ => "check the path and its filesystem, then `pgdyno store check`",
    }
}

fn some_ids(ids: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = ids.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if ids.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

fn some_problems(problems: &[Problem]) -> String {
    const SHOWN: usize = 10;
    let mut text: String = problems.iter().take(SHOWN).map(|problem| format!("\n  {problem}")).collect();
    if problems.len() > SHOWN {
        text += &format!("\n  and {} more; `pgdyno store check` lists them", problems.len() - SHOWN);
    }
    text
}

/// A problem in a store: its place, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the bundle's directory; `None` if the problem is outside bundles.
    pub bundle: Option<String>,
    /// The file, relative to the bundle, or to the store if there is no bundle; `None` if it is the whole bundle.
    pub file: Option<String>,
    /// Reason.
    pub reason: String,
    /// Remedy.
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.bundle, &self.file) {
            (Some(bundle), Some(file)) => write!(f, "bundle {bundle}, {file}: ")?,
            (Some(bundle), None) => write!(f, "bundle {bundle}: ")?,
            (None, Some(file)) => write!(f, "{file}: ")?,
            (None, None) => {}
        }
        write!(f, "{}; {}", self.reason, self.advice)
    }
}

/// A problem in one file of a bundle, before the bundle is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) file: String,
    pub(crate) reason: String,
    advice: &'static str,
}

impl Defect {
    /// A file that does not match what was written.
    pub(crate) fn damaged(file: &str, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
            advice: "restore the bundle from a copy, or remove its directory and repeat the trial",
        }
    }

    /// A file written by a newer pgdyno.
    pub(crate) fn newer(file: &str, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
            advice: "read this store with a newer release of pgdyno",
        }
    }

    /// A file written before the first release, or by another program.
    pub(crate) fn older(file: &str, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
            advice: "no release reads it: remove the bundle's directory and repeat the trial",
        }
    }

    /// A file that pgdyno did not write.
    pub(crate) fn unlisted(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            reason: "it does not belong to the bundle".to_owned(),
            advice: "move it out of the bundle",
        }
    }

    /// The defect of a file in a directory of the bundle, with the slash at its end.
    pub(crate) fn in_directory(self, directory: &str) -> Self {
        Self { file: format!("{directory}{}", self.file), ..self }
    }

    pub(crate) fn in_bundle(self, bundle: &str) -> Problem {
        Problem {
            bundle: Some(bundle.to_owned()),
            file: Some(self.file),
            reason: self.reason,
            advice: self.advice.to_owned(),
        }
    }
}
