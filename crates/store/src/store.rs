//! The store's public interface.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::acceptance::Acceptance;
use model::record::{Environment, Log, Trial, TrialRecord};
use model::secret::MaskSecrets;

use crate::acceptances;
use crate::bundle;
use crate::check::{self, Check};
use crate::claim::{self, Claim};
use crate::error::{Defect, StoreError};
use crate::files::Files;
use crate::format::{self, live::Run};
use crate::id;
use crate::index::{self, Listing, Reindexed};
use crate::live::{self, LiveReader, LiveWriter};
use crate::parts::Part;

/// A directory of bundles (`trials/`) and the index over them (`index.sqlite`). Several processes may use a store
/// concurrently. Secrets are masked when they are written, and when they are read: bundles of earlier releases may have
/// some.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    trials: PathBuf,
    keeps_secrets: bool,
}

/// Time of the last change of the directory of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(SystemTime);

impl Stamp {
    /// Whether a change now would result in another stamp: file system clocks advance in steps.
    pub fn is_settled(&self) -> bool {
        self.0.elapsed().is_ok_and(|since| since > Duration::from_secs(2))
    }
}

impl Store {
    /// Opens the store in `root`, and creates it if necessary. Removes the remains of dead writers.
    ///
    /// # Errors
    /// The directories can't be created.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Self::at(root);
        if !store.trials.is_dir() {
            fs::create_dir_all(&store.trials)
                .map_err(StoreError::io("create the directory", &store.trials))?;
            bundle::sync_directory(root)?;
        }
        store.sweep();
        Ok(store)
    }

    /// Opens the existing store in `root`.
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
        claim::sweep(&self.root);
    }

    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), trials: root.join("trials"), keeps_secrets: false }
    }

    /// The store without masks: for a job that is handed over and deleted, not for results.
    #[must_use]
    pub fn with_secrets(self) -> Self {
        Self { keeps_secrets: true, ..self }
    }

    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Claims a run for this process, for the lifetime of the claim: two processes would run its trials twice, each
    /// during the other's load.
    ///
    /// # Errors
    /// Another process has claimed it, or the store can't be written to.
    pub fn claim(&self, run: &str) -> Result<Claim, StoreError> {
        Claim::new(&self.root, run)
    }

    /// Creates the live file of a run that this process has [claimed](Claim).
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin_live(&self, run: &str, head: Run) -> Result<LiveWriter, StoreError> {
        LiveWriter::begin(&self.root, run, head)
    }

    /// Runs with a live file, oldest first; the file shows whether a run is [alive](crate::LiveUpdate::alive).
    pub fn live_runs(&self) -> Vec<String> {
        live::runs(&self.root)
    }

    /// Runs that a process is executing, oldest first.
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

    /// Writes the bundle of a trial atomically, with its secrets masked, and returns its directory.
    ///
    /// # Errors
    /// The record can't be stored (an id that is no ULID, a figure that is not a number), the trial already has a
    /// bundle, or the directory can't be written; nothing of the bundle remains.
    pub fn write(&self, record: &TrialRecord) -> Result<PathBuf, StoreError> {
        let mut record = Cow::Borrowed(record);
        if !self.keeps_secrets {
            record.to_mut().mask_secrets();
        }
        bundle::write(&self.trials, &record)
    }

    /// Writes the files of a bundle, as [`Store::write`] does those of a record.
    pub(crate) fn write_files(&self, id: &str, files: Files) -> Result<PathBuf, StoreError> {
        bundle::write_files(&self.trials, id, files)
    }

    /// The files of a bundle, by its complete id.
    pub(crate) fn files(&self, id: &str) -> Result<Files, StoreError> {
        let files = bundle::all_files(&self.trials.join(id));
        files.map_err(|defect| StoreError::Unreadable(Box::new(defect.in_bundle(id))))
    }

    /// Reads the trial whose id is `prefix`, or the only one whose id begins with it; case is ignored.
    ///
    /// # Errors
    /// There is none or more than one, or its bundle can't be read.
    pub fn load(&self, prefix: &str) -> Result<TrialRecord, StoreError> {
        self.read(prefix, bundle::read)
    }

    /// As [`Store::load`], with only the head, the environment and these parts; everything else is empty.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_parts(&self, prefix: &str, parts: &[Part]) -> Result<TrialRecord, StoreError> {
        self.read(prefix, |bundle| bundle::read_parts(bundle, parts))
    }

    /// Reads only the environment of a trial.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn environment(&self, prefix: &str) -> Result<Environment, StoreError> {
        self.read(prefix, bundle::read_environment)
    }

    /// Reads only one log of a trial; `None` if it has no such log.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn log(&self, prefix: &str, name: &str) -> Result<Option<String>, StoreError> {
        let log = self.read(prefix, |bundle| {
            Ok(bundle::read_log(bundle, name)?.map(|text| Log { name: name.to_owned(), text }))
        })?;
        Ok(log.map(|log| log.text))
    }

    /// Reads the head of a trial.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn head(&self, prefix: &str) -> Result<Trial, StoreError> {
        self.read(prefix, bundle::read_head)
    }

    /// A value that changes when a bundle is added or removed; `None` if the directory of trials can't be inspected.
    pub fn stamp(&self) -> Option<Stamp> {
        Some(Stamp(fs::metadata(&self.trials).ok()?.modified().ok()?))
    }

    /// Ids of all trials, oldest first, whether or not their bundles are readable.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        bundle::list(&self.trials)
    }

    pub(crate) fn read<T: MaskSecrets>(
        &self,
        prefix: &str,
        what: impl FnOnce(&Path) -> Result<T, Defect>,
    ) -> Result<T, StoreError> {
        let id = self.find(prefix)?;
        self.read_bundle(&id, what).map_err(|defect| StoreError::Unreadable(Box::new(defect.in_bundle(&id))))
    }

    /// As [`Store::read`], for a complete id.
    pub(crate) fn read_bundle<T: MaskSecrets>(
        &self,
        id: &str,
        what: impl FnOnce(&Path) -> Result<T, Defect>,
    ) -> Result<T, Defect> {
        // No other directory is ever read.
        if !id::is_id(id) {
            return Err(Defect::damaged(format::TRIAL, format!("\"{id}\" is not the id of a trial")));
        }
        let mut found = what(&self.trials.join(id))?;
        self.mask(&mut found);
        Ok(found)
    }

    fn mask(&self, found: &mut impl MaskSecrets) {
        if !self.keeps_secrets {
            found.mask_secrets();
        }
    }

    /// The heads of all readable trials, oldest first, by way of the index.
    ///
    /// # Errors
    /// The directory of trials can't be listed. Unreadable bundles, or an unusable index, are not errors: see
    /// [`Store::list`].
    pub fn trials(&self) -> Result<Vec<Trial>, StoreError> {
        Ok(self.list()?.trials)
    }

    /// As [`Store::trials`], with the reasons why other bundles can't be read.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = index::listing(&self.root, &self.trials)?;
        self.mask(&mut listing.trials);
        Ok(listing)
    }

    /// Rebuilds the index from the bundles.
    ///
    /// # Errors
    /// The directory of trials can't be listed, or the index can't be written.
    pub fn reindex(&self) -> Result<Reindexed, StoreError> {
        index::rebuild(&self.root, &self.trials)
    }

    /// Reads every bundle completely and reports all problems of the store.
    ///
    /// # Errors
    /// The directory of trials can't be listed.
    pub fn check(&self) -> Result<Check, StoreError> {
        check::check(&self.root, &self.trials)
    }

    /// Stores the acceptance of a shift, atomically.
    ///
    /// # Errors
    /// The store can't be written to.
    pub fn accept(&self, acceptance: &Acceptance) -> Result<(), StoreError> {
        let mut acceptance = acceptance.clone();
        acceptance.mask_secrets();
        acceptances::write(&self.root, &acceptance)
    }

    /// All accepted shifts, oldest first.
    ///
    /// # Errors
    /// One of them can't be read: an accepted shift must not silently become a failure.
    pub fn acceptances(&self) -> Result<Vec<Acceptance>, StoreError> {
        let mut acceptances = acceptances::read(&self.root)?;
        acceptances.mask_secrets();
        Ok(acceptances)
    }

    /// Withdraws an acceptance.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn withdraw(&self, acceptance: &Acceptance) -> Result<(), StoreError> {
        acceptances::remove(&self.root, acceptance)
    }

    pub(crate) fn find(&self, prefix: &str) -> Result<String, StoreError> {
        let wanted = prefix.to_ascii_uppercase();
        // A complete id needs no listing, which would make reading all trials of a store quadratic.
        if id::is_id(&wanted) && fs::symlink_metadata(self.trials.join(&wanted)).is_ok() {
            return Ok(wanted);
        }
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
