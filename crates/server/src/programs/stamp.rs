//! Stamp of a program that is used in place: shows whether it was replaced.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::error::Error;
use host::IoContext;

/// Size and modification time of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

impl Stamp {
    /// Present stamp of a program.
    pub(crate) fn read(program: &Path) -> Result<Self, Error> {
        let meta = fs::metadata(program).doing("inspect", program)?;
        Ok(Self { bytes: meta.len(), modified: meta.modified().doing("inspect", program)? })
    }

    /// Modification time.
    pub(crate) const fn modified(&self) -> SystemTime {
        self.modified
    }
}
