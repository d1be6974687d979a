//! Kernels: their sources and their files.
//!
//! A label names a kernel. With a `/` it is a path to a bzImage or a built kernel tree, which is used in place
//! (`in_place.rs`). Others are Debian packages: by version, name or glob (`choice.rs`), looked up and fetched by the
//! machine's own apt (`apt.rs`) and unpacked into the cache without being installed (`stored.rs`). A resolved label
//! keeps its kernel, so that a campaign resumed tomorrow has the same one. `range.rs` lists the kernels between two.

mod apt;
mod choice;
pub(crate) mod debian_version;
mod image;
mod in_place;
mod modules;
mod package;
mod range;
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
pub use stored::{StoredKernel, kernels, remove_kernel, sweep};

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
    /// Origin: a package with its version, or a path.
    pub origin: String,
    /// SHA-256 of the image in hexadecimal. It identifies a build: an image contains its build time and, if packaged,
    /// the version of its package.
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

/// Makes a kernel available: a label resolved before is used without apt; else its kernel is fetched. Relative paths
/// are relative to `base`. Several processes may do this at once.
///
/// # Errors
/// An invalid label; no such package or file; a file that is not a kernel; no apt; a package that can't be fetched or
/// unpacked; interrupted.
pub fn kernel(cache: &Cache, label: &str, base: &Path, progress: &dyn Progress) -> Result<Kernel, Error> {
    if is_path(label) {
        return in_place::kernel(label, base);
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
        Ok(Fetched { kernel: in_place::kernel(label, base)?, before: None })
    } else {
        fetch_package(cache, &label.parse()?, progress)
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
