//! The store as the rest of the program sees it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::acceptance::Acceptance;
use model::record::{Environment, Trial, TrialRecord};

use crate::acceptances;
use crate::bundle;
use crate::check::{self, Check};
use crate::error::{Defect, StoreError};
use crate::format::live::Run;
use crate::index::{self, Listing, Reindexed};
use crate::live::{self, LiveReader, LiveWriter};

/// A directory of bundles (`trials/`) and the index over them (`index.sqlite`). Several processes may use one store at
/// the same time.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    trials: PathBuf,
}

/// A run that is this process's to execute. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _file: File,
}

/// When the directory of trials last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(SystemTime);

impl Stamp {
    /// Whether what happens now gets another stamp: clocks of file systems go in steps.
    pub fn is_settled(&self) -> bool {
        self.0.elapsed().is_ok_and(|since| since > Duration::from_secs(2))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Store {
    /// Opens the store in `root`, and makes it where there is none. What dead writers left is swept.
    ///
    /// # Errors
    /// The directories can't be made.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Self::at(root);
        if !store.trials.is_dir() {
            fs::create_dir_all(&store.trials).map_err(StoreError::io("make the directory", &store.trials))?;
            bundle::sync_directory(root)?;
        }
        store.sweep();
        Ok(store)
    }

    /// Opens the store in `root`, which must be there.
    ///
    /// # Errors
    /// There is none.
    pub fn existing(root: &Path) -> Result<Self, StoreError> {
        let store = Self::at(root);
        if !store.trials.is_dir() {
            return Err(StoreError::NoStore { path: root.to_owned() });
        }
        store.sweep();
        Ok(store)
    }

    fn sweep(&self) {
        bundle::sweep(&self.trials);
        live::sweep(&self.root);
    }

    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), trials: root.join("trials") }
    }

    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Claims a run for this process, as long as the claim lives: two processes would run its trials twice, each
    /// during the other's load.
    ///
    /// # Errors
    /// Another process has it; the store can't be written.
    pub fn claim(&self, run: &str) -> Result<Claim, StoreError> {
        let path = self.root.join(format!(".run-{run}.lock"));
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Claim { path, _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Claimed { run: run.to_owned() }),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &path)(error)),
        }
    }

    /// Begins the live file of a run, whose [`Claim`] this process has.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin_live(&self, run: &str, head: Run) -> Result<LiveWriter, StoreError> {
        LiveWriter::begin(&self.root, run, head)
    }

    /// The runs that have a live file, oldest first; whether one is [alive](crate::News::alive) its file says.
    pub fn live_runs(&self) -> Vec<String> {
        live::runs(&self.root)
    }

    /// The runs that a process is running now, oldest first.
    pub fn running(&self) -> Vec<String> {
        live::running(&self.root)
    }

    /// Opens the live file of a run.
    ///
    /// # Errors
    /// There is none, or it can't be read.
    pub fn open_live(&self, run: &str) -> Result<LiveReader, StoreError> {
        LiveReader::open(&self.root, run)
    }

    /// Writes the bundle of a trial and returns its directory. It exists whole, or not at all.
    ///
    /// # Errors
    /// The record can't be stored (an id that is no ULID, a figure that is not a number), there is a bundle of this
    /// trial already, or the directory can't be written; nothing of the bundle is left then.
    pub fn write(&self, record: &TrialRecord) -> Result<PathBuf, StoreError> {
        bundle::write(&self.trials, record)
    }

    /// Reads the trial whose id is, or alone begins with, `prefix`; upper and lower case are the same.
    ///
    /// # Errors
    /// There is none or more than one, or its bundle can't be read.
    pub fn load(&self, prefix: &str) -> Result<TrialRecord, StoreError> {
        self.read(prefix, bundle::read)
    }

    /// Reads of such a trial in which environment it ran, and no more of its bundle.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn environment(&self, prefix: &str) -> Result<Environment, StoreError> {
        self.read(prefix, bundle::read_environment)
    }

    /// Reads the log of this name, and no more of the trial's bundle; none where it has no such log.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn log(&self, prefix: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.read(prefix, |bundle| bundle::read_log(bundle, name))
    }

    /// The head of one trial.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn head(&self, prefix: &str) -> Result<Trial, StoreError> {
        self.read(prefix, bundle::read_head)
    }

    /// Something that changes when a bundle comes or goes; none where the directory of trials can't be looked at.
    pub fn stamp(&self) -> Option<Stamp> {
        Some(Stamp(fs::metadata(&self.trials).ok()?.modified().ok()?))
    }

    /// The ids of all trials, oldest first, be their bundles readable or not.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        bundle::list(&self.trials)
    }

    pub(crate) fn read<T>(
        &self,
        prefix: &str,
        what: impl FnOnce(&Path) -> Result<T, Defect>,
    ) -> Result<T, StoreError> {
        self.read_whole_id(&self.find(prefix)?, what)
    }

    /// As [`Store::read`], without looking for a trial whose id begins so.
    pub(crate) fn read_whole_id<T>(
        &self,
        id: &str,
        what: impl FnOnce(&Path) -> Result<T, Defect>,
    ) -> Result<T, StoreError> {
        what(&self.trials.join(id)).map_err(|defect| StoreError::Unreadable(Box::new(defect.in_bundle(id))))
    }

    /// The head of every trial that can be read, oldest first, by way of the index.
    ///
    /// # Errors
    /// The directory of trials can't be listed. A bundle that can't be read, or an index, is not an error: see
    /// [`Store::list`].
    pub fn trials(&self) -> Result<Vec<Trial>, StoreError> {
        Ok(self.list()?.trials)
    }

    /// As [`Store::trials`], and why the other bundles can't be read.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn list(&self) -> Result<Listing, StoreError> {
        index::listing(&self.root, &self.trials)
    }

    /// Makes the index anew from the bundles alone.
    ///
    /// # Errors
    /// The directory of trials can't be listed, or the index can't be written.
    pub fn reindex(&self) -> Result<Reindexed, StoreError> {
        index::rebuild(&self.root, &self.trials)
    }

    /// Reads every bundle whole and names all that is wrong with the store.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn check(&self) -> Result<Check, StoreError> {
        check::check(&self.root, &self.trials)
    }

    /// Keeps that somebody accepted a shift. It is there whole, or not at all.
    ///
    /// # Errors
    /// The store can't be written to.
    pub fn accept(&self, acceptance: &Acceptance) -> Result<(), StoreError> {
        acceptances::write(&self.root, acceptance)
    }

    /// All shifts that were accepted, oldest first.
    ///
    /// # Errors
    /// One of them can't be read: what was accepted must not become a failure unnoticed.
    pub fn acceptances(&self) -> Result<Vec<Acceptance>, StoreError> {
        acceptances::read(&self.root)
    }

    /// Takes back an acceptance.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn withdraw(&self, acceptance: &Acceptance) -> Result<(), StoreError> {
        acceptances::remove(&self.root, acceptance)
    }

    pub(crate) fn find(&self, prefix: &str) -> Result<String, StoreError> {
        let wanted = prefix.to_ascii_uppercase();
        let mut ids = bundle::list(&self.trials)?;
        let trials = ids.len();
        ids.retain(|id| id.starts_with(&wanted));
        match (ids.pop(), ids.len()) {
            (Some(id), 0) => Ok(id),
            (None, _) => {
                Err(StoreError::NotFound { prefix: prefix.to_owned(), path: self.trials.clone(), trials })
            }
            (Some(last), _) => {
                ids.push(last);
                Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates: ids })
            }
        }
    }
}
