//! Why a campaign can't go on.

/// Why a campaign can't go on. Whatever has been measured is in the store.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A server could not be got, filled or started.
    #[error(transparent)]
    Server(#[from] server::Error),
    /// A kernel could not be got.
    #[error(transparent)]
    Kernel(#[from] machine::Error),
    /// Work on this host failed.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A virtual machine could not be made ready.
    #[error(transparent)]
    Machine(#[from] machine::vm::VmError),
    /// A cell has a kernel that the campaign does not.
    #[error("the kernel {name} is not one of the campaign's")]
    NoKernel {
        /// As the cell has it.
        name: String,
    },
    /// What came out of a virtual machine is not the bundle of one trial.
    #[error("{count} bundles came out of the virtual machine: expected one")]
    NoBundle {
        /// How many did.
        count: usize,
    },
    /// A bundle could not be written.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The driver process could not be started.
    #[error(transparent)]
    Driver(#[from] driver::DriverError),
    /// One trial after the other failed before its load began.
    #[error(
        "{count} trials in a row failed before their load began, the last one ({cell}) so: {reason}\n\
         The trials that ran are kept. Mend the cause and run the campaign again"
    )]
    GivingUp {
        /// How many.
        count: u32,
        /// The cell of the last one.
        cell: String,
        /// Why the last one failed.
        reason: String,
    },
    /// The hook before the campaign failed.
    #[error("{0}\nNo trial was run: `before_campaign` has to succeed first")]
    Hook(String),
    /// The campaign asks for profiles, and they can't be had here.
    #[error("{0}\nNo trial was run: the campaign has [profile]")]
    Profile(String),
    /// Cells that are to be compared differ in more than that.
    #[error("{text}\nNothing was measured, as --strict says")]
    Confounded {
        /// What differs.
        text: String,
    },
    /// The user ended the campaign before its first trial.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Whether the user ended it.
    pub(crate) fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted | Self::Host(host::Error::Interrupted) => true,
            Self::Server(error) => error.is_interrupted(),
            Self::Kernel(error) => error.is_interrupted(),
            _ => false,
        }
    }
}
