//! The store that a command reads.

use std::ops::Deref;
use std::path::Path;

use analysis::{LeftOut, left_out};
use report::bundles::left_out_lines;
use serde::Serialize;
use store::{Store, StoreError, StoreReader};

use crate::output::{json, note, print};

/// The trials of a store for one command. At its end, also if it fails, the bundles that were left out are reported on
/// standard error.
pub(crate) struct Reading(StoreReader);

impl Reading {
    /// Opens an existing store.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        Self::of(&Store::existing(root)?)
    }

    /// Reads the trials that are in a store now.
    pub(crate) fn of(store: &Store) -> Result<Self, StoreError> {
        store.reader().map(Self)
    }

    /// A JSON document, as it is printed, with the bundles that it lacks in the field `left_out`.
    pub(crate) fn json(&self, document: &impl Serialize) -> anyhow::Result<String> {
        #[derive(Serialize)]
        struct WithLeftOut<'a, T> {
            #[serde(flatten)]
            document: &'a T,
            left_out: Vec<LeftOut>,
        }
        json(&WithLeftOut { document, left_out: left_out(self.left_out()) })
    }

    /// Prints it.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> anyhow::Result<()> {
        print(&self.json(document)?)
    }
}

impl Deref for Reading {
    type Target = StoreReader;

    fn deref(&self) -> &StoreReader {
        &self.0
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        note(&left_out_lines(&self.left_out()));
    }
}
