//! `pgdyno kernel list` as a versioned document and as a table.

use std::path::Path;

use host::Cache;
use jiff::Timestamp;
use machine::{KernelBuild, KernelOrigin, StoredKernel};
use plaintext::table::Table;
use serde::Serialize;

use crate::cache_paths;

/// Every kernel that was fetched or built.
#[derive(Debug, Serialize)]
pub struct List {
    format: u32,
    cache: String,
    kernels: Vec<KernelEntry>,
}

#[derive(Debug, Serialize)]
struct KernelEntry {
    /// Labels that stand for it; empty if all of them stand for newer kernels, and of one that was built.
    labels: Vec<String>,
    release: String,
    /// Package and version, or repository and commit.
    origin: String,
    /// Null of one that was built, as is its version.
    package: Option<String>,
    version: Option<String>,
    /// Null of a package.
    build: Option<BuildEntry>,
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

/// What a kernel was built from.
#[derive(Debug, Serialize)]
struct BuildEntry {
    repository: String,
    /// The commit of the first build; others may have the same tree.
    commit: String,
    tree: String,
    /// SHA-256 of the configuration of the repository's work tree; null for the default one.
    config: Option<String>,
    compiler: String,
    /// Name of the build directory in the cache's `builds/`.
    directory: String,
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

    /// The table for a terminal of this width.
    pub fn fitted(&self, width: usize) -> String {
        cache_paths::fitted(self.table(), &self.cache, width)
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
        let StoredKernel { kernel, labels, origin, directory, bytes, fetched } = stored;
        let text = |path: &Path| path.display().to_string();
        let (package, version, build) = match origin {
            KernelOrigin::Package { package, version, .. } => (Some(package), Some(version), None),
            KernelOrigin::Build { build } => (None, None, Some(BuildEntry::from(build))),
        };
        Self {
            labels,
            release: kernel.release,
            origin: kernel.origin,
            package,
            version,
            build,
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

impl From<KernelBuild> for BuildEntry {
    fn from(build: KernelBuild) -> Self {
        let KernelBuild { repository, commit, tree, config, compiler, directory } = build;
        Self { repository: repository.display().to_string(), commit, tree, config, compiler, directory }
    }
}

/// A human-readable size, in units of 1000.
pub fn size(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
