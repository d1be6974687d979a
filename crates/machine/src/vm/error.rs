//! Why a guest failed.

use std::io;

use model::units::Size;

use crate::error::Error;

/// Failure of a guest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// No emulator is installed.
    #[error("{program} is not installed, and kernels run in it: install the package {package}")]
    NoEmulator {
        /// Its name.
        program: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// The emulator did not start.
    #[error("the virtual machine did not start: {why}")]
    Start {
        /// What it said.
        why: String,
    },
    /// This machine's files can't be served to it.
    #[error("the virtual machine can't have this machine's files: {why}")]
    HostFiles {
        /// What is missing or was refused.
        why: String,
    },
    /// Its memory does not hold what it is to begin with.
    #[error(
        "{memory} of memory are too little for the virtual machine: with what it has in memory it needs {needed}; give it more, \
         or, in a campaign, have the data on a disk with storage = \"virtio\""
    )]
    Memory {
        /// What it was to have.
        memory: Size,
        /// What it needs.
        needed: Size,
    },
    /// It ended before it had done its work.
    #[error("the virtual machine ended {when}: {what}; {}", end_of(console))]
    Ended {
        /// How far it had come.
        when: &'static str,
        /// What is known of why.
        what: String,
        /// The last lines of what its kernel wrote.
        console: String,
    },
    /// It said nothing any more.
    #[error("the virtual machine hangs {when}: it said nothing for {seconds} s; {}", end_of(console))]
    Hung {
        /// How far it had come.
        when: &'static str,
        /// How long was waited.
        seconds: u64,
        /// The last lines of what its kernel wrote.
        console: String,
    },
    /// A step in the guest failed.
    #[error("in the virtual machine: {0}")]
    Guest(String),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
    /// A file of it can't be read or made.
    #[error("a file for the virtual machine: {0}")]
    File(#[from] io::Error),
    /// What it is to have could not be packed.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// Work on this host failed.
    #[error(transparent)]
    Host(#[from] host::Error),
}

fn end_of(console: &str) -> String {
    match console {
        "" => "there is nothing on its console".to_owned(),
        lines => format!("the end of its console:\n{lines}"),
    }
}
