//! The journal: the campaign to continue after each boot, the requested boots, and what must be restored; on disk
//! before anything is changed. A machine has one, as it has one boot loader.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::boot::{Boot, Loader};
use super::step::Step;
use crate::error::Error;
use host::IoContext;

/// Version of the journal's format, raised with each change.
const FORMAT: u32 = 1;

/// State that must survive a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    format: u32,
    /// Campaign to continue.
    pub campaign: Campaign,
    /// Kernel that ran before.
    #[serde(rename = "home")]
    pub original: RunningKernel,
    /// Way to boot kernels.
    pub loader: Loader,
    /// Former value of `next_entry`; none if it was missing.
    pub(super) next_entry: Option<String>,
    /// Whether there was a `custom.cfg`.
    pub(super) had_custom: bool,
    /// Number of requests of each boot, in the order of the first requests.
    #[serde(rename = "asked")]
    requests: Vec<(Boot, u32)>,
    /// Last requested boot; none before the first, and once its outcome is known.
    pub last: Option<BootRequest>,
}

/// A campaign, with what it needs to continue before it has a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The store's directory, absolute.
    pub store: PathBuf,
    /// The run's id.
    pub run: String,
    /// The campaign's name.
    pub name: String,
    /// Path of its file, absolute: the base of its relative paths.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// CPUs of the run.
    #[serde(default)]
    pub processors: Option<u32>,
    /// Tags of the run.
    pub tags: Vec<String>,
    /// Notes.
    pub notes: Option<String>,
    /// Release of pgdyno that started it.
    pub pgdyno_version: String,
    /// Whether to refuse to measure with confounds.
    pub strict: bool,
    /// Whether to measure at the same time as other pgdynos.
    #[serde(default)]
    pub allow_concurrent: bool,
    /// Whether to download from a mirror without TLS.
    #[serde(default)]
    pub insecure_mirror: bool,
    /// Ids of invalid trials that earlier commands of the user ran: they do not count as attempts.
    #[serde(default)]
    pub earlier: BTreeSet<String>,
}

/// A running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningKernel {
    /// Release.
    pub release: String,
    /// Kernel command line.
    pub command_line: String,
}

/// A requested boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootRequest {
    /// The boot.
    pub boot: Boot,
    /// Time of the request.
    pub at: Timestamp,
    /// Whether the kernel came up.
    pub came_up: bool,
}

impl Campaign {
    /// Log of pgdyno's output after a boot.
    pub fn log(&self) -> PathBuf {
        self.store.join("kernels-by-reboot.log")
    }
}

impl Journal {
    pub(super) fn new(
        campaign: Campaign,
        original: RunningKernel,
        loader: Loader,
        next_entry: Option<String>,
        had_custom: bool,
    ) -> Self {
        let requests = Vec::new();
        Self { format: FORMAT, campaign, original, loader, next_entry, had_custom, requests, last: None }
    }

    /// Records the request of a boot.
    pub fn request(&mut self, boot: &Boot) {
        match self.requests.iter_mut().find(|(requested, _)| requested == boot) {
            Some((_, count)) => *count += 1,
            None => self.requests.push((boot.clone(), 1)),
        }
        self.last = Some(BootRequest { boot: boot.clone(), at: Timestamp::now(), came_up: false });
    }

    /// Withdraws the last request: the user interrupted the run under that boot.
    pub fn withdraw(&mut self) {
        let Some(last) = self.last.take() else { return };
        if let Some((_, count)) = self.requests.iter_mut().find(|(requested, _)| *requested == last.boot) {
            *count = count.saturating_sub(1);
        }
    }

    /// Number of requests of a boot.
    pub fn times_requested(&self, boot: &Boot) -> u32 {
        self.requests.iter().find(|(requested, _)| requested == boot).map_or(0, |(_, count)| *count)
    }

    pub(super) fn read(file: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.doing("read", file)?,
        };
        let journal: Self = serde_json::from_slice(&text).doing("read", file)?;
        if journal.format != FORMAT {
            let why = format!("it has format {}, but this pgdyno reads format {FORMAT}", journal.format);
            return Ok(Err(io::Error::other(why)).doing("read", file)?);
        }
        Ok(Some(journal))
    }

    /// Step that writes the journal to disk.
    pub(super) fn write(&self, file: &Path) -> Result<Step, Error> {
        let text = serde_json::to_string_pretty(self).doing("write", file)?;
        let what = "the journal of what must be restored".to_owned();
        // The campaign may have secrets.
        Ok(Step::Write { path: file.to_owned(), is_private: true, what, text })
    }
}
