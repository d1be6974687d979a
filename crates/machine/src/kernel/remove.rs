//! Removal of kernels of the cache.

use std::path::Path;

use crate::error::Error;
use crate::kernel::source::{self, Commit};
use crate::kernel::stored::{self, KernelBuild, StoredKernel, kernels};
use host::Cache;

/// Removes the kernel that a label stands for, those of a package, that of a commit or all of a repository, with the labels that stand
/// for them. A build directory goes with the last kernel that was built in it. Relative paths are relative to `base`.
///
/// # Errors
/// There is none; it is in use.
pub fn remove_kernel(cache: &Cache, wanted: &str, base: &Path) -> Result<Vec<StoredKernel>, Error> {
    let all = kernels(cache)?;
    let by_label = |kernel: &&StoredKernel| kernel.labels.iter().any(|label| label == wanted);
    let by_name = |kernel: &&StoredKernel| {
        kernel.kernel.label == wanted || kernel.directory.file_name().is_some_and(|id| id == wanted)
    };
    let mut found: Vec<StoredKernel> = all.iter().filter(by_label).cloned().collect();
    if found.is_empty() {
        found = all.iter().filter(by_name).cloned().collect();
    }
    if found.is_empty() && wanted.contains('/') {
        let commit = Commit::of_label(wanted, base)?;
        let repository = base.join(wanted).canonicalize().ok();
        let is_wanted = |build: &KernelBuild| match &commit {
            // In whatever configuration.
            Some(commit) => build.tree == commit.tree,
            None => Some(&build.repository) == repository.as_ref(),
        };
        found = all.into_iter().filter(|kernel| kernel.origin.build().is_some_and(is_wanted)).collect();
    }
    if found.is_empty() {
        let why = "no kernel of the cache has this name; `pgdyno kernel list` lists the kernels of the cache";
        return Err(Error::NoKernel { label: wanted.to_owned(), why: why.to_owned() });
    }
    for kernel in &found {
        stored::remove(cache, kernel)?;
    }
    for kernel in &found {
        if let Some(build) = kernel.origin.build() {
            source::remove_directory(cache, &build.directory)?;
        }
    }
    Ok(found)
}
