//! `pgdyno kernel list` as a versioned document and as a table.

use std::path::Path;

use host::Cache;
use jiff::Timestamp;
use machine::StoredKernel;
use plaintext::table::Table;
use serde::Serialize;

/// Every kernel that was fetched.
#[derive(Debug, Serialize)]
pub struct List {
    format: u32,
    cache: String,
    kernels: Vec<KernelEntry>,
}

#[derive(Debug, Serialize)]
struct KernelEntry {
    /// Labels that stand for it; empty if all of them stand for newer kernels.
    labels: Vec<String>,
    release: String,
    /// Package and version.
    origin: String,
    package: String,
    version: String,
    /// SHA-256 of the image.
    identity: String,
    bytes: u64,
    fetched: Timestamp,
    directory: String,
    image: String,
    /// Null if it has none.
    modules: Option<String>,
    /// Null if it is not in the package.
    config: Option<String>,
}

impl List {
    /// Reads the kernels from the cache.
    ///
    /// # Errors
    /// The cache can't be read.
    pub fn read(cache: &Cache) -> Result<Self, machine::Error> {
        Ok(Self {
            format: 1,
            cache: cache.directory().display().to_string(),
            kernels: machine::kernels(cache)?.into_iter().map(KernelEntry::new).collect(),
        })
    }

    /// One row per kernel.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["labels", "release", "origin", "#size", "directory"]);
        for entry in &self.kernels {
            table.push(vec![
                entry.labels.join(" "),
                entry.release.clone(),
                entry.origin.clone(),
                size(entry.bytes),
                entry.directory.clone(),
            ]);
        }
        table
    }
}

impl KernelEntry {
    fn new(stored: StoredKernel) -> Self {
        let StoredKernel { kernel, labels, version, directory, bytes, fetched } = stored;
        let text = |path: &Path| path.display().to_string();
        Self {
            labels,
            release: kernel.release,
            origin: kernel.origin,
            package: kernel.label,
            version,
            identity: kernel.identity,
            bytes,
            fetched,
            directory: text(&directory),
            image: text(&kernel.image),
            modules: kernel.modules.as_deref().map(text),
            config: kernel.config.as_deref().map(text),
        }
    }
}

/// A human-readable size, in units of 1000.
pub fn size(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
