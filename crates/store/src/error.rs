//! What can go wrong with a store, said so that nobody needs the source: what was tried, on what, why, what next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory could not be read or written.
    #[error("could not {doing} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// What was tried, such as `write`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The trial could not be written; nothing of it was kept.
    #[error("trial {id} was not stored and nothing of it was kept: {source}")]
    NotWritten {
        /// The trial.
        id: String,
        /// Why.
        source: Box<StoreError>,
    },
    /// The record holds something that a bundle can't hold.
    #[error("the record can't be stored: {what}; this is a defect of pgdyno, please report it")]
    NotStorable {
        /// What.
        what: String,
    },
    /// A bundle of this trial is there already, and bundles are never changed.
    #[error("there is already a bundle of trial {id} in {}; give the new trial an id of its own", path.display())]
    Exists {
        /// The trial.
        id: String,
        /// The store's directory of trials.
        path: PathBuf,
    },
    /// There is no store in this directory.
    #[error(
        "there is no store in {}: `pgdyno run` makes one next to its campaign; name that with --store or PGDYNO_STORE",
        path.display()
    )]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// Another process executes the run.
    #[error("run {run} is being run by another pgdyno\nWait for its end, or end it; then resume")]
    Claimed {
        /// Which.
        run: String,
    },
    /// No trial's id begins like this.
    #[error(
        "no trial in {} has an id that begins with \"{prefix}\" ({trials} trials are there); `pgdyno store list` shows their ids",
        path.display()
    )]
    NotFound {
        /// What was looked for.
        prefix: String,
        /// The store's directory of trials.
        path: PathBuf,
        /// How many trials there are.
        trials: usize,
    },
    /// The ids of several trials begin like this.
    #[error("{} trials have ids that begin with \"{prefix}\": {}; give more of the id", candidates.len(), some(candidates))]
    Ambiguous {
        /// What was looked for.
        prefix: String,
        /// The ids.
        candidates: Vec<String>,
    },
    /// A bundle is damaged, or of a newer format than this release reads.
    #[error("{0}")]
    Unreadable(Box<Problem>),
}

impl StoreError {
    /// Turns an I/O error into one that says what was being done to which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// What the user can do about an I/O error.
fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::*;
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            "free space there or raise the limit, or choose another store with --store or PGDYNO_STORE"
        }
        PermissionDenied | ReadOnlyFilesystem => {
            "check who owns it and how it is mounted, or choose another store with --store or PGDYNO_STORE"
        }
        NotADirectory | AlreadyExists => "something else is in the way: move it, or choose another store",
        _ => "check the path and its filesystem, then `pgdyno store check`",
    }
}

fn some(ids: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = ids.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if ids.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// Something wrong in a store: where, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the bundle's directory; none where the problem is not a bundle's.
    pub bundle: Option<String>,
    /// The file, relative to the bundle, or to the store where there is no bundle; none where it is the whole bundle.
    pub file: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
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

/// What is wrong with one file of a bundle, before it is known whose bundle it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) file: String,
    pub(crate) reason: String,
    advice: &'static str,
}

impl Defect {
    /// A file that is not what was written.
    pub(crate) fn damaged(file: &str, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
            advice: "restore the bundle from a copy, or remove its directory and repeat the trial",
        }
    }

    /// A file that a newer pgdyno wrote.
    pub(crate) fn newer(file: &str, reason: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            reason: reason.to_string(),
            advice: "read this store with a newer release of pgdyno",
        }
    }

    /// A file that pgdyno did not write.
    pub(crate) fn stranger(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            reason: "it was not there when the bundle was written".to_owned(),
            advice: "move it out of the bundle",
        }
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
