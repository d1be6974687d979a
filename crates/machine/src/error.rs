//! Errors of kernels, virtual machines and reboots, and what to do about them.

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
