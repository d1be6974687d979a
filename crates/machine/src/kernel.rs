//! Kernels: where one comes from, and what belongs to it.
//!
//! A label says which. One with a `/` is a path to a bzImage or a built kernel tree, which is used where it is
//! (`in_place.rs`). Others are Debian packages: by version, name or glob (`choice.rs`), looked up and fetched by the
//! machine's own apt (`apt.rs`) and unpacked into the cache without being installed (`stored.rs`). What a label was
//! resolved to stays, so that a campaign which goes on tomorrow has the same kernel.

mod apt;
mod choice;
pub(crate) mod debian_version;
mod image;
mod in_place;
mod modules;
mod package;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use host::Cache;
use host::Lock;
use host::Progress;

use choice::Wanted;
pub use modules::{ModuleFile, modules};
pub use stored::{StoredKernel, kernels, remove_kernel, sweep};

/// A kernel that can be booted. One of the cache is not removed by anyone as long as this or a clone of it lives.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// As it was asked for.
    pub label: String,
    /// What `uname -r` says in it.
    pub release: String,
    /// Its image, which a boot loader or QEMU loads.
    pub image: PathBuf,
    /// The directory of its modules: `.../lib/modules/RELEASE`, or its tree. None where there are none.
    pub modules: Option<PathBuf>,
    /// What it was configured with; none where that is not next to it.
    pub config: Option<PathBuf>,
    /// Where it comes from: a package with its version, or a path.
    pub origin: String,
    /// SHA-256 of the image in hexadecimal. It tells kernels apart: each build has another, as an image says when it was
    /// built and, of a package, which version of it that is.
    pub identity: String,
    _in_use: Option<Arc<Lock>>,
}

/// What came of asking anew for a kernel.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// It.
    pub kernel: Kernel,
    /// The origin of what the label stood for before, where that was another kernel.
    pub before: Option<String>,
}

/// Makes a kernel available: what its label was resolved to before is used as it is, without apt; else it is fetched.
/// Relative paths are relative to `base`. Several processes may do so at once.
///
/// # Errors
/// Not a label; no such package or file; a file that is no kernel; no apt; a package that can't be fetched or unpacked;
/// interrupted.
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

/// Makes the newest kernel that a label means available, even where it stands for an older one already; from then on it
/// stands for this. Where apt can't be asked or has none, what is in the cache is taken, with a notice.
///
/// # Errors
/// As of [`kernel`].
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

/// Whether a label is a path and not of a package.
fn is_path(label: &str) -> bool {
    label.contains('/')
}
