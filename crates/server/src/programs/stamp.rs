//! Stamp of a program that is used where it is: shows whether it was replaced.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::error::Error;
use host::Doing;

/// Size and time of change of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

impl Stamp {
    /// The stamp of a program as it is now.
    pub(crate) fn read(program: &Path) -> Result<Self, Error> {
        let meta = fs::metadata(program).doing("look at", program)?;
        Ok(Self { bytes: meta.len(), modified: meta.modified().doing("look at", program)? })
    }

    /// Time of change.
    pub(crate) const fn modified(&self) -> SystemTime {
        self.modified
    }
}
