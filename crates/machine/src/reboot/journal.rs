//! The journal: which campaign goes on after each boot, what was asked for, and what is to be put back; on the disk
//! before anything is changed. There is one for a machine, as there is one boot loader.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::boot::{Boot, Loader};
use super::step::Step;
use crate::error::Error;
use host::Doing;

/// Raised when what is in a journal changes.
const FORMAT: u32 = 1;

/// Everything that has to outlive a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    format: u32,
    /// What goes on.
    pub campaign: Campaign,
    /// The kernel that ran before.
    pub home: Home,
    /// How kernels are booted.
    pub loader: Loader,
    /// What `next_entry` was; none where it was not there.
    pub(super) next_entry: Option<String>,
    /// Whether there was a `custom.cfg`.
    pub(super) had_custom: bool,
    /// How often each kernel has been asked for, in the order in which they first were.
    asked: Vec<(Boot, u32)>,
    /// The last boot that was asked for; none before the first, and when what came of it is known.
    pub last: Option<Asked>,
}

/// A campaign, so that it can go on before it has a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The store's directory, absolute.
    pub store: PathBuf,
    /// The run's id.
    pub run: String,
    /// The campaign's name.
    pub name: String,
    /// Its file, absolute: where its relative paths begin.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// Words to find the run by.
    pub tags: Vec<String>,
    /// Anything to be remembered.
    pub notes: Option<String>,
    /// The release of pgdyno that began it.
    pub pgdyno_version: String,
    /// Whether nothing is to be measured where there are confounds.
    pub strict: bool,
}

/// The kernel that the machine is to run in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Its release.
    pub release: String,
    /// What it was booted with.
    pub command_line: String,
}

/// A boot that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Of which kernel.
    pub boot: Boot,
    /// When.
    pub at: Timestamp,
    /// Whether it came up.
    pub came_up: bool,
}

impl Campaign {
    /// Where pgdyno writes what it says after a boot.
    pub fn log(&self) -> PathBuf {
        self.store.join("kernels-by-reboot.log")
    }
}

impl Journal {
    pub(super) fn new(
        campaign: Campaign,
        home: Home,
        loader: Loader,
        next_entry: Option<String>,
        had_custom: bool,
    ) -> Self {
        let asked = Vec::new();
        Self { format: FORMAT, campaign, home, loader, next_entry, had_custom, asked, last: None }
    }

    /// A boot is about to be asked for.
    pub fn ask(&mut self, boot: &Boot) {
        match self.asked.iter_mut().find(|(asked, _)| asked == boot) {
            Some((_, count)) => *count += 1,
            None => self.asked.push((boot.clone(), 1)),
        }
        self.last = Some(Asked { boot: boot.clone(), at: Timestamp::now(), came_up: false });
    }

    /// The user ended what ran under the last boot: it counts as not asked for.
    pub fn take_back(&mut self) {
        let Some(last) = self.last.take() else { return };
        if let Some((_, count)) = self.asked.iter_mut().find(|(asked, _)| *asked == last.boot) {
            *count = count.saturating_sub(1);
        }
    }

    /// How often a boot has been asked for.
    pub fn times_asked(&self, boot: &Boot) -> u32 {
        self.asked.iter().find(|(asked, _)| asked == boot).map_or(0, |(_, count)| *count)
    }

    pub(super) fn read(file: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.doing("read", file)?,
        };
        let journal: Self = serde_json::from_slice(&text).doing("read", file)?;
        if journal.format != FORMAT {
            let why = format!("it has format {}, and this pgdyno knows {FORMAT}", journal.format);
            return Ok(Err(io::Error::other(why)).doing("read", file)?);
        }
        Ok(Some(journal))
    }

    /// Brings it to the disk.
    pub(super) fn write(&self, file: &Path) -> Result<Step, Error> {
        let text = serde_json::to_string_pretty(self).doing("write", file)?;
        let what = "the journal of what is to be put back".to_owned();
        Ok(Step::Write { path: file.to_owned(), what, text })
    }
}
