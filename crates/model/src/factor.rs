//! The factors: what the cells of a campaign can differ in.

use serde::{Serialize, Serializer};

use crate::plan::Cell;

/// One axis of a campaign, in the order in which cells are laid out and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// Which server.
    Server,
    /// Its settings.
    Settings,
    /// Under which kernel.
    Kernel,
    /// On which host.
    Host,
    /// What clients do.
    Workload,
    /// pgbench's scale factor.
    Scale,
    /// Number of clients.
    Clients,
    /// Threads of the driver.
    Threads,
    /// How statements are sent.
    Protocol,
    /// What carries them.
    Transport,
    /// Transactions begun in a second.
    Rate,
    /// Length of the measured window.
    Duration,
    /// Load before the window.
    Warmup,
    /// Processors of driver and server.
    Pin,
    /// What the caches hold.
    Cache,
    /// How much memory the server may have.
    Memory,
    /// How much of the disk it may use.
    Disk,
}

impl Factor {
    /// Every factor there is.
    pub const ALL: [Self; 17] = [
        Self::Server,
        Self::Settings,
        Self::Kernel,
        Self::Host,
        Self::Workload,
        Self::Scale,
        Self::Clients,
        Self::Threads,
        Self::Protocol,
        Self::Transport,
        Self::Rate,
        Self::Duration,
        Self::Warmup,
        Self::Pin,
        Self::Cache,
        Self::Memory,
        Self::Disk,
    ];

    /// Those that are shown in tables though all cells have the same level.
    pub const ALWAYS_SHOWN: [Self; 5] =
        [Self::Server, Self::Settings, Self::Workload, Self::Scale, Self::Clients];

    /// Its key in campaigns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Settings => "settings",
            Self::Kernel => "kernel",
            Self::Host => "host",
            Self::Workload => "workload",
            Self::Scale => "scale",
            Self::Clients => "clients",
            Self::Threads => "threads",
            Self::Protocol => "protocol",
            Self::Transport => "transport",
            Self::Rate => "rate",
            Self::Duration => "duration",
            Self::Warmup => "warmup",
            Self::Pin => "pin",
            Self::Cache => "cache",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// The factor of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|factor| factor.name() == name)
    }

    /// Whether its levels are numbers.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Scale | Self::Clients | Self::Threads | Self::Rate)
    }

    /// The level of a cell, as campaigns write it.
    pub fn level(self, cell: &Cell) -> String {
        let any = |label: &Option<String>| label.as_deref().unwrap_or(ANY).to_owned();
        match self {
            Self::Server => cell.server.clone(),
            Self::Settings => cell.settings.name.clone(),
            Self::Kernel => any(&cell.kernel),
            Self::Host => any(&cell.host),
            Self::Workload => cell.workload.name().to_owned(),
            Self::Scale => cell.scale.to_string(),
            Self::Clients => cell.clients.to_string(),
            Self::Threads => cell.threads.to_string(),
            Self::Protocol => cell.protocol.name().to_owned(),
            Self::Transport => cell.transport.name().to_owned(),
            Self::Rate => cell.rate.to_string(),
            Self::Duration => cell.duration.to_string(),
            Self::Warmup => cell.warmup.to_string(),
            Self::Pin => cell.pin.name.clone(),
            Self::Cache => cell.cache.name().to_owned(),
            Self::Memory => cell.memory.to_string(),
            Self::Disk => cell.disk.name.clone(),
        }
    }

    /// The levels of some cells, each once, in their order.
    pub fn levels<'a>(self, cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
        let mut levels: Vec<String> = Vec::new();
        for level in cells.into_iter().map(|cell| self.level(cell)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels
    }

    /// The factors in which some of these cells differ.
    pub fn varied<'a>(cells: impl IntoIterator<Item = &'a Cell> + Clone) -> Vec<Self> {
        let mut cells = cells.into_iter();
        let Some(first) = cells.next() else { return Vec::new() };
        let rest: Vec<&Cell> = cells.collect();
        let differs = |factor: Self, cell: &Cell| match factor {
            // Of two campaigns, the same name may mean something else.
            Self::Settings => cell.settings != first.settings,
            Self::Pin => cell.pin != first.pin,
            Self::Disk => cell.disk != first.disk,
            factor => factor.level(cell) != factor.level(first),
        };
        Self::ALL.into_iter().filter(|&factor| rest.iter().any(|cell| differs(factor, cell))).collect()
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The level of `kernel` and `host` that every kernel and host is.
pub(crate) const ANY: &str = "any";
