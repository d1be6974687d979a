//! Failures of guests.

use std::io;

use model::units::Size;

use crate::error::Error;

/// Failure of a guest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// No emulator is installed.
    #[error("{program}, which runs the kernels, is not installed: install the package {package}")]
    NoEmulator {
        /// Name of the emulator.
        program: &'static str,
        /// Package of the emulator.
        package: &'static str,
    },
    /// The emulator did not start.
    #[error("the virtual machine did not start: {why}")]
    Start {
        /// Cause.
        why: String,
    },
    /// This machine's files can't be served to the guest.
    #[error("this machine's files can't be shared with the virtual machine: {why}")]
    HostFiles {
        /// The missing or refused part.
        why: String,
    },
    /// The guest's memory is too small for its initial file system.
    #[error(
        "{memory} of memory is too little for the virtual machine, whose files in memory need {needed}; give it more, or, in a \
         campaign, put the data on a disk with storage = \"virtio\""
    )]
    Memory {
        /// Requested memory.
        memory: Size,
        /// Required memory.
        needed: Size,
    },
    /// The guest ended before its job was done.
    #[error("the virtual machine ended {when}: {what}; {}", end_of(console))]
    Ended {
        /// Stage that it had reached.
        when: &'static str,
        /// Cause, as far as known.
        what: String,
        /// Last lines of its console.
        console: String,
    },
    /// The guest stopped responding.
    #[error("the virtual machine hangs {when}: no message for {seconds} s; {}", end_of(console))]
    Hung {
        /// Stage that it had reached.
        when: &'static str,
        /// Seconds of silence.
        seconds: u64,
        /// Last lines of its console.
        console: String,
    },
    /// A step in the guest failed.
    #[error("in the virtual machine: {0}")]
    Guest(String),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// A file of the guest can't be read or created.
    #[error("a file of the virtual machine can't be used: {0}")]
    File(#[from] io::Error),
    /// The guest's files could not be packed.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// Work on this host failed.
    #[error(transparent)]
    Host(#[from] host::Error),
}

fn end_of(console: &str) -> String {
    match console {
        "" => "its console is empty".to_owned(),
        lines => format!("the end of its console:\n{lines}"),
    }
}
