//! Kernels: their sources and their files.
//!
//! A label names a kernel. With a `/` it is a path to a bzImage or a built kernel tree, which is used in place
//! (`in_place.rs`), or a commit of a git repository, which is built (`source.rs`). Others are Debian packages: by version,
//! name or glob (`choice.rs`), looked up and fetched by the machine's own apt (`apt.rs`) and unpacked into the cache
//! (`stored.rs`) without being installed. Their resolved label keeps its kernel, so that a campaign resumed tomorrow has the
//! same one. `range.rs` lists the kernels between two.

mod apt;
mod choice;
pub(crate) mod debian_version;
mod image;
mod in_place;
mod modules;
mod package;
mod range;
mod remove;
mod source;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use host::Cache;
use host::Lock;
use host::Progress;

use choice::Wanted;
pub use in_place::release;
pub use modules::{ModuleFile, modules};
pub use range::{KernelRange, kernel_range, kernels_in};
pub use remove::remove_kernel;
use source::Commit;
pub use source::{commits_between, commits_of_merge};
pub use stored::{KernelBuild, KernelOrigin, StoredKernel, kernels, sweep};

/// A bootable kernel. One of the cache is not removed while this or a clone of it lives.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Label as requested.
    pub label: String,
    /// Release, as `uname -r` prints it.
    pub release: String,
    /// Image, which a boot loader or QEMU loads.
    pub image: PathBuf,
    /// Directory of the modules: `.../lib/modules/RELEASE`, or the tree; none if there are no modules.
    pub modules: Option<PathBuf>,
    /// Configuration file; none if it is not next to the image.
    pub config: Option<PathBuf>,
    /// Origin: a package with its version, a path, or a repository with a commit.
    pub origin: String,
    /// SHA-256 of the image in hexadecimal. It identifies a build: an image contains its build time and, if packaged,
    /// the version of its package; one that pgdyno built contains only what its commit is.
    pub identity: String,
    _in_use: Option<Arc<Lock>>,
}

/// A kernel that was fetched again.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The kernel.
    pub kernel: Kernel,
    /// Origin of the kernel that the label stood for before, if another.
    pub before: Option<String>,
}

/// Makes a kernel available: a label resolved before is used without apt; else its kernel is fetched, or built. Relative paths
/// are relative to `base`. Several processes may do this at once.
///
/// # Errors
/// An invalid label; no such package, file or commit; a file that is not a kernel; no apt; a package that can't be fetched or
/// unpacked; a commit that can't be built; interrupted.
pub fn kernel(cache: &Cache, label: &str, base: &Path, progress: &dyn Progress) -> Result<Kernel, Error> {
    if is_path(label) {
        return kernel_at(cache, label, base, progress);
    }
    let wanted: Wanted = label.parse()?;
    match stored::find(cache, &wanted)? {
        Some(kernel) => Ok(kernel),
        None => fetch_package(cache, &wanted, progress).map(|fetched| fetched.kernel),
    }
}

/// Makes the newest kernel that matches a label available, even if the label already stands for an older one; from then
/// on it stands for the new one. If apt fails or has none, uses the newest in the cache, with a notice.
///
/// # Errors
/// As [`kernel`].
pub fn fetch_kernel(
    cache: &Cache,
    label: &str,
    base: &Path,
    progress: &dyn Progress,
) -> Result<Fetched, Error> {
    if is_path(label) {
        Ok(Fetched { kernel: kernel_at(cache, label, base, progress)?, before: None })
    } else {
        fetch_package(cache, &label.parse()?, progress)
    }
}

/// Whether the kernel of a label still has to be built from a commit. Nothing is changed.
///
/// # Errors
/// Its repository has no such commit; a tool is missing.
pub fn is_to_be_built(cache: &Cache, label: &str, base: &Path) -> Result<bool, Error> {
    match Commit::of_label(label, base)? {
        Some(commit) => Ok(!source::is_built(cache, commit)?),
        None => Ok(false),
    }
}

/// The kernel at a path, or of a commit.
fn kernel_at(cache: &Cache, label: &str, base: &Path, progress: &dyn Progress) -> Result<Kernel, Error> {
    match Commit::of_label(label, base)? {
        Some(commit) => source::kernel(cache, label, commit, progress),
        None => in_place::kernel(label, base),
    }
}

fn fetch_package(cache: &Cache, wanted: &Wanted, progress: &dyn Progress) -> Result<Fetched, Error> {
    let before = stored::find(cache, wanted)?;
    progress.step(&format!("looking for the kernel {wanted}"), 0, None);
    let fetched = apt::packages(wanted, progress).and_then(|packages| {
        let package = choice::choose(wanted, &packages)?;
        stored::get(cache, wanted, &package, progress)
    });
    let kernel = match fetched {
        Ok(kernel) => kernel,
        Err(error) if error.is_interrupted() => return Err(error),
        Err(error) => match stored::newest(cache, wanted)? {
            Some(kernel) => {
                progress.notice(&format!("{error}; using {}, which is in the cache", kernel.origin));
                kernel
            }
            None => return Err(error),
        },
    };
    let before = before.map(|before| before.origin).filter(|origin| *origin != kernel.origin);
    Ok(Fetched { kernel, before })
}

/// Whether a label is a path rather than a package.
fn is_path(label: &str) -> bool {
    label.contains('/')
}
