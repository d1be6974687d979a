//! Errors of kernels, virtual machines and reboots, and what to do about them.

use std::io;
use std::path::PathBuf;

/// Error of getting or booting a kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Work on this host failed, or the user interrupted it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// Something is in use by a running server or another pgdyno.
    #[error("{what} is in use by {by}; stop that first")]
    InUse {
        /// The resource.
        what: String,
        /// Its user.
        by: String,
    },
    /// This machine can't boot kernels one after the other.
    #[error("{0}")]
    Reboot(String),
    /// Invalid label of a kernel.
    #[error(
        "\"{label}\" is not a kernel: expected a version such as \"6.12\", a Debian package or a glob such as \
         \"linux-image-6.12.*-cloud-amd64\", a path with a \"/\", such as \"./bzImage\", or a commit such as \"./linux@v6.6\""
    )]
    NotAKernel {
        /// Label as given.
        label: String,
    },
    /// No package has such a kernel, or the cache has none of that name.
    #[error("there is no kernel {label}: {why}")]
    NoKernel {
        /// Label as requested.
        label: String,
        /// Available kernels, and advice.
        why: String,
    },
    /// The ends of a range are not in the order of their versions.
    #[error("the kernel {from} (Linux {}) is not older than {to} (Linux {})", versions[0], versions[1])]
    NotOlder {
        /// Label of the first end.
        from: String,
        /// Label of the other.
        to: String,
        /// Their versions.
        versions: Box<[String; 2]>,
    },
    /// The package of a kernel could not be looked up, downloaded or unpacked.
    #[error("could not get the kernel {label}: {why}")]
    KernelPackage {
        /// Label as requested.
        label: String,
        /// Cause, and advice.
        why: String,
    },
    /// A kernel that can't be booted, or whose modules can't be used.
    #[error("the kernel {kernel} can't be used: {why}")]
    Kernel {
        /// Path or origin of the kernel.
        kernel: String,
        /// Cause, with what was expected.
        why: String,
    },
    /// A step of a kernel's build failed.
    #[error("could not {step} ({why}). The log is {log}; its last lines:\n{output}")]
    Build {
        /// The step, and the kernel.
        step: String,
        /// Symptom.
        why: String,
        /// The log of the whole build.
        log: PathBuf,
        /// End of the log.
        output: Box<str>,
    },
    /// A build did not find a tool or a library on this machine.
    #[error(
        "the build of the kernel {kernel} needs `{what}`, which is not installed (Debian: apt-get install {package}); the log \
         is {log}"
    )]
    BuildNeeds {
        /// Repository and commit.
        kernel: String,
        /// A command or a header.
        what: String,
        /// Debian package of it.
        package: String,
        /// The log of the whole build.
        log: PathBuf,
    },
    /// A file that is not a bootable kernel.
    #[error("the kernel {path} can't be used: {source}")]
    Image {
        /// Path of the file.
        path: PathBuf,
        /// Cause, with what was expected.
        source: ImageError,
    },
    /// A module that can't be loaded.
    #[error("the kernel {kernel} can't be used: its module {module}: {source}")]
    Module {
        /// Path or origin of the kernel.
        kernel: String,
        /// The module's file.
        module: PathBuf,
        /// Cause.
        source: ModuleError,
    },
    /// A kernel without a required driver.
    #[error(
        "the kernel {release} ({origin}) lacks the driver {driver}: it is neither built in nor a module in {modules}; use \
         another kernel, or build this one with it"
    )]
    NoDriver {
        /// Release of the kernel.
        release: String,
        /// Origin of the kernel.
        origin: String,
        /// The name of a module.
        driver: String,
        /// The directory of its modules.
        modules: PathBuf,
    },
}

impl Error {
    /// Whether the kernel itself is the reason: there is none of this name, or it can't be built or used. Others may be.
    pub fn is_of_kernel(&self) -> bool {
        if let Self::Build { output, .. } = self {
            return !host::is_exhausted_output(output);
        }
        matches!(
            self,
            Self::NotAKernel { .. }
                | Self::NoKernel { .. }
                | Self::Kernel { .. }
                | Self::Image { .. }
                | Self::Module { .. }
                | Self::NoDriver { .. }
        )
    }

    /// Whether the user interrupted the operation.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Host(host::Error::Interrupted))
    }
}

/// Reason that a file is not a bootable kernel.
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
        /// Kind of the file.
        found: &'static str,
    },
    /// The header has an early format.
    #[error("it is a kernel older than Linux 2.0; {EXPECTED}")]
    TooOld,
    /// The header has no release.
    #[error("its header has no Linux release: the file is truncated, or was modified")]
    NoRelease,
}

const EXPECTED: &str =
    "expected a bzImage of x86, as `make bzImage` leaves it in arch/x86/boot and distributions call vmlinuz";

/// Reason that a file is not a kernel module.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The file can't be read or decompressed.
    #[error("it can't be read: {0}")]
    Read(#[source] io::Error),
    /// The file is too large.
    #[error("it is larger than any module")]
    TooLarge,
    /// The file is not an object file.
    #[error("it is not a module: {0}")]
    NotAnObject(#[source] object::Error),
    /// The file has no section `.modinfo`.
    #[error("it is not a module: it has no section .modinfo")]
    NoInfo,
}
