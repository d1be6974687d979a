//! The factors: what the cells of a campaign can differ in.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::cell::{CacheState, Cell, Pin, SettingsVariant};
use crate::limits::DiskLimit;
use crate::machine::{Acceleration, HOST, NotStorage, SysctlVariant};
use crate::units::{NotASize, Rate, Span};
use crate::workload::{Protocol, Transport, Workload};

/// One axis of a campaign, in the order in which cells are laid out and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// Which server.
    Server,
    /// Its settings.
    Settings,
    /// Under which kernel.
    Kernel,
    /// What executes its instructions.
    Acceleration,
    /// Its command line.
    KernelArgs,
    /// Its parameters.
    Sysctl,
    /// Processors of the virtual machine.
    Cpus,
    /// Where the data are.
    Storage,
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
    pub const ALL: [Self; 22] = [
        Self::Server,
        Self::Settings,
        Self::Kernel,
        Self::Acceleration,
        Self::KernelArgs,
        Self::Sysctl,
        Self::Cpus,
        Self::Storage,
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
            Self::Acceleration => "acceleration",
            Self::KernelArgs => "kernel_args",
            Self::Sysctl => "sysctl",
            Self::Cpus => "cpus",
            Self::Storage => "storage",
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

    /// Whether its levels are numbers, but for a word that stands for none.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Cpus | Self::Scale | Self::Clients | Self::Threads | Self::Rate)
    }

    /// The level of a cell, as campaigns write it; [`UNKNOWN`] where an imported trial does not say it.
    pub fn level(self, cell: &Cell) -> String {
        self.known_level(cell).unwrap_or_else(|| UNKNOWN.to_owned())
    }

    /// As [`Factor::level`], none where it is not known.
    pub fn known_level(self, cell: &Cell) -> Option<String> {
        match cell.foreign.get(&self) {
            Some(foreign) => foreign.clone(),
            None => Some(self.own_level(cell)),
        }
    }

    fn own_level(self, cell: &Cell) -> String {
        match self {
            Self::Server => cell.server.clone(),
            Self::Settings => cell.settings.name.clone(),
            Self::Kernel => cell.kernel.as_deref().unwrap_or(HOST).to_owned(),
            Self::Acceleration => cell.acceleration.name().to_owned(),
            Self::KernelArgs if cell.kernel_args.is_empty() => NO_ARGS.to_owned(),
            Self::KernelArgs => cell.kernel_args.clone(),
            Self::Sysctl => cell.sysctl.name.clone(),
            Self::Cpus => cell.cpus.map_or_else(|| HOST.to_owned(), |cpus| cpus.to_string()),
            Self::Storage => cell.storage.to_string(),
            Self::Host => cell.host.as_deref().unwrap_or(ANY).to_owned(),
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

    /// Gives a cell this level, as somebody else wrote it: lengths without a unit are seconds, and a workload that is
    /// not built in goes by its name.
    ///
    /// # Errors
    /// It is no level of this factor: what was expected.
    pub fn set_level(self, cell: &mut Cell, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(format!("{} is empty", self.name()));
        }
        let count = || match text.parse::<u32>() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(format!("`{text}` is not a number for {}: expected 1, 2, 3, …", self.name())),
        };
        let names = |known: &[&str]| {
            Err(format!("`{text}` is no level of {}: expected {}", self.name(), known.join(", ")))
        };
        let label = || Some(text.to_owned());
        let mut foreign = None;
        match self {
            Self::Server => cell.server = text.to_owned(),
            Self::Settings => {
                cell.settings = SettingsVariant { name: text.to_owned(), values: BTreeMap::new() };
            }
            Self::Kernel => cell.kernel = label().filter(|label| label != HOST),
            Self::Acceleration => match Acceleration::by_name(text) {
                Some(acceleration) => cell.acceleration = acceleration,
                None => return names(&Acceleration::ALL.map(Acceleration::name)),
            },
            Self::KernelArgs if text == NO_ARGS => cell.kernel_args.clear(),
            Self::KernelArgs => cell.kernel_args = text.to_owned(),
            Self::Sysctl => {
                cell.sysctl = SysctlVariant { name: text.to_owned(), values: BTreeMap::new() };
            }
            Self::Cpus if text == HOST => cell.cpus = None,
            Self::Cpus => cell.cpus = Some(count()?),
            Self::Storage => {
                cell.storage = text.parse().map_err(|error: NotStorage| error.to_string())?;
            }
            Self::Host => cell.host = label(),
            Self::Workload => match Workload::by_name(text) {
                Some(workload) => cell.workload = workload,
                None => foreign = label(),
            },
            Self::Scale => cell.scale = count()?,
            Self::Clients => cell.clients = count()?,
            Self::Threads => cell.threads = count()?,
            Self::Protocol => match Protocol::by_name(text) {
                Some(protocol) => cell.protocol = protocol,
                None => return names(&Protocol::ALL.map(Protocol::name)),
            },
            Self::Transport => match Transport::by_name(text) {
                Some(transport) => cell.transport = transport,
                None => return names(&Transport::ALL.map(Transport::name)),
            },
            Self::Rate if text == Rate::MAX.to_string() => cell.rate = Rate::MAX,
            Self::Rate => match text.parse().ok().and_then(Rate::per_second) {
                Some(rate) => cell.rate = rate,
                None => return names(&["transactions a second", "max"]),
            },
            Self::Duration => cell.duration = length(text)?,
            Self::Warmup => cell.warmup = length(text)?,
            Self::Pin => cell.pin = Pin { name: text.to_owned(), driver: None, server: None },
            Self::Cache => match CacheState::by_name(text) {
                Some(cache) => cell.cache = cache,
                None => return names(&CacheState::ALL.map(CacheState::name)),
            },
            Self::Memory => cell.memory = text.parse().map_err(|error: NotASize| error.to_string())?,
            Self::Disk => cell.disk = DiskLimit { name: text.to_owned(), ..DiskLimit::none() },
        }
        match foreign {
            Some(level) => cell.foreign.insert(self, Some(level)),
            None => cell.foreign.remove(&self),
        };
        Ok(())
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
            Self::Sysctl => cell.sysctl != first.sysctl,
            Self::Workload => cell.workload != first.workload || factor.level(cell) != factor.level(first),
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

/// A length with its unit, or in seconds.
fn length(text: &str) -> Result<Span, String> {
    let with_unit = match text.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{text}s").parse::<Span>(),
        false => text.parse::<Span>(),
    };
    with_unit.map_err(|error| error.to_string())
}

/// Stands for the level of a factor that is not known.
pub const UNKNOWN: &str = "unknown";

/// The level of `host` that every host is.
pub(crate) const ANY: &str = "any";

/// The level of `kernel_args` without any.
pub(crate) const NO_ARGS: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_the_level_and_the_rest_stays_unknown() {
        let mut cell = Cell::unknown();
        assert!(Factor::ALL.into_iter().all(|factor| factor.known_level(&cell).is_none()));
        let levels = [
            (Factor::Server, "9.6"),
            (Factor::Settings, "big"),
            (Factor::Kernel, "2.6.39"),
            (Factor::Acceleration, "icount"),
            (Factor::KernelArgs, "mitigations=off quiet"),
            (Factor::Sysctl, "thp"),
            (Factor::Cpus, "4"),
            (Factor::Storage, "virtio-none-native"),
            (Factor::Host, "h"),
            (Factor::Workload, "insert.sql"),
            (Factor::Scale, "10"),
            (Factor::Clients, "8"),
            (Factor::Threads, "2"),
            (Factor::Protocol, "prepared"),
            (Factor::Transport, "tcp"),
            (Factor::Rate, "500"),
            (Factor::Duration, "90s"),
            (Factor::Warmup, "500ms"),
            (Factor::Pin, "one"),
            (Factor::Cache, "cold"),
            (Factor::Memory, "512MB"),
            (Factor::Disk, "slow"),
        ];
        for (set, (factor, level)) in levels.into_iter().enumerate() {
            factor.set_level(&mut cell, level).unwrap();
            assert_eq!(factor.known_level(&cell).as_deref(), Some(level));
            let known = Factor::ALL.into_iter().filter(|factor| factor.known_level(&cell).is_some()).count();
            assert_eq!(known, set + 1);
        }
        Factor::Workload.set_level(&mut cell, "select-only").unwrap();
        assert_eq!(cell.workload, Workload::SelectOnly);
        assert!(cell.foreign.is_empty());
    }

    #[test]
    fn what_is_no_level_is_refused_and_changes_nothing() {
        for (factor, text) in [
            (Factor::Clients, "0"),
            (Factor::Clients, "many"),
            (Factor::Scale, "-1"),
            (Factor::Scale, " "),
            (Factor::Protocol, "fast"),
            (Factor::Acceleration, "hvf"),
            (Factor::Cpus, "0"),
            (Factor::Storage, "floppy"),
            (Factor::Rate, "-5"),
            (Factor::Rate, "NaN"),
            (Factor::Duration, "long"),
        ] {
            let mut cell = Cell::unknown();
            let error = factor.set_level(&mut cell, text).unwrap_err();
            assert!(error.contains(factor.name()) || error.contains("duration"), "{error}");
            assert_eq!(cell, Cell::unknown());
        }
    }

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        let mut cell = Cell::unknown();
        Factor::Duration.set_level(&mut cell, "60").unwrap();
        assert_eq!(cell.duration, Span::from_us(60_000_000));
        assert_eq!(cell.to_string(), "duration 1min");
    }
}
