//! Errors that end a campaign.

use std::path::PathBuf;

use model::outage::Outage;

use crate::hooks::HookError;
use crate::outage::MAX_WAIT_TEXT;

/// Error that ends a campaign. All trials measured before are in the store.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A server could not be installed, filled or started.
    #[error(transparent)]
    Server(#[from] server::Error),
    /// A kernel could not be fetched.
    #[error(transparent)]
    Kernel(#[from] machine::Error),
    /// Work on this host failed.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A virtual machine could not be prepared.
    #[error(transparent)]
    Machine(#[from] machine::vm::VmError),
    /// A cell has a kernel that the campaign does not define.
    #[error("the kernel {name} is not one of the campaign's")]
    NoKernel {
        /// The cell's level.
        name: String,
    },
    /// A virtual machine did not return the bundle of exactly one trial.
    #[error("the virtual machine returned {count} bundles: expected one")]
    NoBundle {
        /// Number of bundles.
        count: usize,
    },
    /// A bundle could not be written.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The driver process could not be started.
    #[error(transparent)]
    Driver(#[from] driver::DriverError),
    /// The host or the server ran out of something that every trial needs.
    #[error(
        "{reason}\n\
         The campaign stopped, because its other trials would fail, too; the completed ones are kept. Free what is \
         used up, then continue: `pgdyno resume --store {}`",
        store.display()
    )]
    Exhausted {
        /// What failed, and why.
        reason: String,
        /// Directory of the store.
        store: PathBuf,
    },
    /// A server that pgdyno does not own could not be reached for too long.
    #[error(
        "{reason}\n\
         The campaign stopped after {MAX_WAIT_TEXT} of waiting; the completed trials are kept. When the server accepts \
         connections again, continue: `pgdyno resume --store {}`",
        store.display()
    )]
    Unreachable {
        /// What failed, and why.
        reason: String,
        /// Directory of the store.
        store: PathBuf,
    },
    /// The server refuses a statement of a load.
    #[error(
        "{reason}\n\
         The campaign stopped, because its other trials would fail, too (this one: {cell}); they are kept in {}. Correct the \
         workload, then start the campaign again",
        store.display()
    )]
    Refused {
        /// The server's message, and its place.
        reason: String,
        /// The cell of the trial.
        cell: String,
        /// Directory of the store.
        store: PathBuf,
    },
    /// Several trials in a row failed before their load began.
    #[error(
        "{count} trials in a row failed before their load began, most recently {cell}: {reason}\n\
         The completed trials are kept. Fix the cause, then continue: `pgdyno resume --store {}`",
        store.display()
    )]
    RepeatedFailures {
        /// Number of trials.
        count: u32,
        /// The cell of the last one.
        cell: String,
        /// The last one's failure.
        reason: String,
        /// Directory of the store.
        store: PathBuf,
    },
    /// The hook before the campaign failed.
    #[error("{0}\nNo trial was run: `before_campaign` has to succeed first")]
    Hook(HookError),
    /// The campaign asks for profiles, which are not available on this host.
    #[error("{0}\nNo trial was run: the campaign has [profile]")]
    Profile(collect::ProfileError),
    /// Compared cells differ in more than the factor they are compared by.
    #[error("{text}\nNothing was measured because of --strict")]
    Confounded {
        /// The differences.
        text: String,
    },
    /// The campaign asks for load hosts, and there are none.
    #[error(
        "the campaign has `load_hosts` and needs agents on {count} hosts: run it with --fleet\n\
         No trial was run. Without `load_hosts`, the load comes from this host"
    )]
    NoLoadHosts {
        /// Number of hosts.
        count: u32,
    },
    /// The user interrupted the campaign before its first trial.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// The outage that is the reason, if it is one.
    pub(crate) fn outage(&self) -> Option<Outage> {
        match self {
            Self::Server(error) => error.outage(),
            Self::Exhausted { .. } => Some(Outage::Exhausted),
            Self::Unreachable { .. } => Some(Outage::Unreachable),
            other => host::is_exhausted(other).then_some(Outage::Exhausted),
        }
    }

    /// Whether the user interrupted the campaign.
    pub(crate) fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted | Self::Host(host::Error::Interrupted) => true,
            Self::Server(error) => error.is_interrupted(),
            Self::Kernel(error) => error.is_interrupted(),
            _ => false,
        }
    }
}
