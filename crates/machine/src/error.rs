//! Errors of kernels, virtual machines and reboots, and what to do about them.

use std::io;
use std::path::PathBuf;

/// Error of getting or booting a kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Work on this host failed, or the user ended it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// Something is used by a running server or another pgdyno.
    #[error("{what} is in use by {by}; stop that first")]
    InUse {
        /// What.
        what: String,
        /// Who uses it.
        by: String,
    },
    /// Kernels can't be booted on this machine, one after the other.
    #[error("{0}")]
    Reboot(String),
    /// Not the form of a kernel's label.
    #[error(
        "\"{label}\" is no kernel: expected a version such as \"6.12\", a Debian package or a glob such as \
         \"linux-image-6.12.*-cloud-amd64\", or a path with a \"/\", such as \"./bzImage\""
    )]
    NotAKernel {
        /// As it was given.
        label: String,
    },
    /// No package has such a kernel, or none in the cache is so called.
    #[error("there is no kernel {label}: {why}")]
    NoKernel {
        /// As it was asked for.
        label: String,
        /// What there is, and what to do.
        why: String,
    },
    /// The package of a kernel could not be asked for, downloaded or unpacked.
    #[error("could not get the kernel {label}: {why}")]
    KernelPackage {
        /// As it was asked for.
        label: String,
        /// Why, and what to do.
        why: String,
    },
    /// Something that can't be booted, or whose modules can't be used.
    #[error("the kernel {kernel} can't be used: {why}")]
    Kernel {
        /// Its path, or where it is from.
        kernel: String,
        /// What was found, and what was expected.
        why: String,
    },
    /// A file that is no bootable kernel.
    #[error("the kernel {path} can't be used: {source}")]
    Image {
        /// Its path.
        path: PathBuf,
        /// What was found, and what was expected.
        source: ImageError,
    },
    /// A module that can't be loaded.
    #[error("the kernel {kernel} can't be used: its module {module}: {source}")]
    Module {
        /// Its path, or where it is from.
        kernel: String,
        /// The module's file.
        module: PathBuf,
        /// Why.
        source: ModuleError,
    },
    /// A kernel without what is needed.
    #[error(
        "the kernel {release} ({origin}) lacks the driver {driver}: it is neither built in nor a module in {modules}; take \
         another kernel, or build this one with it"
    )]
    NoDriver {
        /// Its release.
        release: String,
        /// Where it is from.
        origin: String,
        /// The name of a module.
        driver: String,
        /// The directory of its modules.
        modules: PathBuf,
    },
}

impl Error {
    /// Whether the user ended it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Host(host::Error::Interrupted))
    }
}

/// Why a file is no kernel that can be booted.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file can't be opened.
    #[error("it can't be opened: {0}")]
    Open(#[source] io::Error),
    /// The file can't be read.
    #[error("it can't be read: {0}")]
    Read(#[source] io::Error),
    /// The file is something else.
    #[error("it is {found}; {EXPECTED}")]
    NotAnImage {
        /// Its kind.
        found: &'static str,
    },
    /// The header has an early form.
    #[error("it is an image of before Linux 2.0; {EXPECTED}")]
    TooOld,
    /// The header has no release.
    #[error("its header does not say which release of Linux it is: it is cut off, or was changed")]
    NoRelease,
}

const EXPECTED: &str =
    "expected a bzImage of x86, as `make bzImage` leaves it in arch/x86/boot and distributions call vmlinuz";

/// Why a file is no kernel module.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The file can't be read or decompressed.
    #[error("it can't be read: {0}")]
    Read(#[source] io::Error),
    /// The file is too large.
    #[error("it is larger than any module")]
    TooLarge,
    /// The file is no object file.
    #[error("it is no module: {0}")]
    NotAnObject(#[source] object::Error),
    /// The file has no section `.modinfo`.
    #[error("it is no module: there is no .modinfo in it")]
    NoInfo,
}
