//! One combination of factor levels: what a trial measures, and by which trials are told apart and compared.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::factor::{Factor, UNKNOWN};
use crate::limits::{DiskLimit, MemoryLimit};
use crate::machine::{Acceleration, Storage, SysctlVariant};
use crate::units::{Rate, Span};
use crate::workload::{Protocol, Transport, Workload};

/// One combination of factor levels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The server, by its name in the campaign.
    pub server: String,
    /// Server settings.
    pub settings: SettingsVariant,
    /// The kernel under which it runs, as the campaign names it: a version, a package or a path; none for the one that
    /// the machine runs.
    pub kernel: Option<String>,
    /// What executes its instructions; the machine itself where no kernel is named.
    pub acceleration: Acceleration,
    /// What its command line has beside what it needs; empty for nothing.
    pub kernel_args: String,
    /// Kernel parameters that are set.
    pub sysctl: SysctlVariant,
    /// Processors of the virtual machine; none for as many as the machine has.
    pub cpus: Option<u32>,
    /// Where the data are.
    pub storage: Storage,
    /// The host on which it runs; none for any.
    pub host: Option<String>,
    /// What clients do.
    pub workload: Workload,
    /// pgbench scale factor, at least 1.
    pub scale: u32,
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Threads of the driver; it has no more than clients.
    pub threads: u32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// What carries them.
    pub transport: Transport,
    /// Transactions begun in a second.
    pub rate: Rate,
    /// Length of the measured window.
    pub duration: Span,
    /// Load before the window.
    pub warmup: Span,
    /// Processors of driver and server.
    pub pin: Pin,
    /// What the caches hold when the load begins.
    pub cache: CacheState,
    /// How much memory the server may have.
    pub memory: MemoryLimit,
    /// How much of the disk it may use.
    pub disk: DiskLimit,
    /// Levels that no campaign has, of imported trials only: the name of a script that is not built in, or none where
    /// nothing is known. What the factor's own field holds beside it is filler and means nothing: ask
    /// [`Factor::level`] or [`Factor::known_level`].
    pub foreign: BTreeMap<Factor, Option<String>>,
}

impl Cell {
    /// A cell of which nothing is known: what an imported trial begins with. [`Factor::set_level`] says more of it.
    pub fn unknown() -> Self {
        Self {
            server: String::new(),
            settings: SettingsVariant { name: String::new(), values: BTreeMap::new() },
            kernel: None,
            acceleration: Acceleration::None,
            kernel_args: String::new(),
            sysctl: SysctlVariant::none(),
            cpus: None,
            storage: Storage::Host,
            host: None,
            workload: Workload::SelectOnly,
            scale: 1,
            clients: 1,
            threads: 1,
            protocol: Protocol::Simple,
            transport: Transport::Unix,
            rate: Rate::MAX,
            duration: Span::default(),
            warmup: Span::default(),
            pin: Pin::none(),
            cache: CacheState::AsIs,
            memory: MemoryLimit::NONE,
            disk: DiskLimit::none(),
            foreign: Factor::ALL.into_iter().map(|factor| (factor, None)).collect(),
        }
    }

    /// The load before a window of this length where nothing is said: a tenth.
    pub fn usual_warmup(duration: Span) -> Span {
        Span::from_us(duration.us() / 10)
    }

    /// The factors whose level does not go without saying, of those that are left out where it does.
    pub fn unusual(&self) -> Vec<Factor> {
        let unusual = [
            (Factor::Kernel, self.kernel.is_some()),
            (Factor::Acceleration, self.acceleration.is_virtual()),
            (Factor::KernelArgs, !self.kernel_args.is_empty()),
            (Factor::Sysctl, self.sysctl != SysctlVariant::none()),
            (Factor::Cpus, self.cpus.is_some() && self.acceleration != Acceleration::Icount),
            (Factor::Storage, matches!(self.storage, Storage::Virtio { .. })),
            (Factor::Host, self.host.is_some()),
            (Factor::Threads, self.threads != 1),
            (Factor::Rate, self.rate != Rate::MAX),
            (Factor::Pin, self.pin != Pin::none()),
            (Factor::Cache, self.cache != CacheState::Warm),
            (Factor::Memory, self.memory != MemoryLimit::NONE),
            (Factor::Disk, self.disk != DiskLimit::none()),
        ];
        unusual.into_iter().filter_map(|(factor, is_unusual)| is_unusual.then_some(factor)).collect()
    }
}

/// A named set of server settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SettingsVariant {
    /// Its name in the campaign; `default` is the server as it comes.
    pub name: String,
    /// Name and value of each setting, as for `postgresql.conf`.
    pub values: BTreeMap<String, String>,
}

/// By factor; null where a level is not known.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn put<M: SerializeMap>(
            map: &mut M,
            cell: &Cell,
            factor: Factor,
            own: &impl Serialize,
        ) -> Result<(), M::Error> {
            match cell.foreign.get(&factor) {
                Some(level) => map.serialize_entry(factor.name(), level),
                None => map.serialize_entry(factor.name(), own),
            }
        }
        let mut map = serializer.serialize_map(Some(Factor::ALL.len()))?;
        put(&mut map, self, Factor::Server, &self.server)?;
        put(&mut map, self, Factor::Settings, &self.settings)?;
        put(&mut map, self, Factor::Kernel, &self.kernel)?;
        put(&mut map, self, Factor::Acceleration, &self.acceleration)?;
        put(&mut map, self, Factor::KernelArgs, &self.kernel_args)?;
        put(&mut map, self, Factor::Sysctl, &self.sysctl)?;
        put(&mut map, self, Factor::Cpus, &self.cpus)?;
        put(&mut map, self, Factor::Storage, &self.storage)?;
        put(&mut map, self, Factor::Host, &self.host)?;
        put(&mut map, self, Factor::Workload, &self.workload.name())?;
        put(&mut map, self, Factor::Scale, &self.scale)?;
        put(&mut map, self, Factor::Clients, &self.clients)?;
        put(&mut map, self, Factor::Threads, &self.threads)?;
        put(&mut map, self, Factor::Protocol, &self.protocol)?;
        put(&mut map, self, Factor::Transport, &self.transport)?;
        put(&mut map, self, Factor::Rate, &self.rate)?;
        put(&mut map, self, Factor::Duration, &self.duration)?;
        put(&mut map, self, Factor::Warmup, &self.warmup)?;
        put(&mut map, self, Factor::Pin, &self.pin)?;
        put(&mut map, self, Factor::Cache, &self.cache)?;
        put(&mut map, self, Factor::Memory, &self.memory)?;
        put(&mut map, self, Factor::Disk, &self.disk)?;
        map.end()
    }
}

impl fmt::Display for Cell {
    /// `18 default tpcb-like scale 1 clients 8 prepared unix 10s`, then what is not as usual, but for the warm-up.
    /// Of an imported trial, all that is known: `server 9.6, clients 8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.foreign.is_empty() {
            let known = |factor: Factor| Some(format!("{} {}", factor.name(), factor.known_level(self)?));
            let known: Vec<String> = Factor::ALL.into_iter().filter_map(known).collect();
            let known = if known.is_empty() { UNKNOWN.to_owned() } else { known.join(", ") };
            return f.write_str(&known);
        }
        write!(
            f,
            "{} {} {} scale {} clients {} {} {} {}",
            self.server,
            self.settings.name,
            self.workload.name(),
            self.scale,
            self.clients,
            self.protocol.name(),
            self.transport.name(),
            self.duration,
        )?;
        for factor in self.unusual() {
            write!(f, " {} {}", factor.name(), factor.level(self))?;
        }
        Ok(())
    }
}

/// What the server's and the system's caches hold when a load begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The tables and their indexes, as far as they fit: they have been read (by `pg_prewarm` where it is there).
    #[default]
    Warm,
    /// Nothing of the data set: the server was started anew, and its files put out of the system's page cache.
    Cold,
    /// Whatever the trials before have left there.
    AsIs,
}

impl CacheState {
    /// Every state there is.
    pub const ALL: [Self; 3] = [Self::Warm, Self::Cold, Self::AsIs];

    /// Its name in campaigns and bundles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::AsIs => "as-is",
        }
    }

    /// The state of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Processors that driver and server are kept on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Pin {
    /// Its name in the campaign; `none` leaves the choice to the system.
    pub name: String,
    /// The driver's, as [`cpu_list`] reads them; none for all.
    pub driver: Option<String>,
    /// The server's.
    pub server: Option<String>,
}

impl Pin {
    /// The choice is the system's.
    pub fn none() -> Self {
        Self { name: "none".to_owned(), driver: None, server: None }
    }
}

/// Reads a list of processors as `taskset` and the kernel write it, such as `0-3,8`: their numbers, in order. None
/// where it is not one.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    /// As many as Linux can be built for.
    const MOST: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_as_for_taskset() {
        assert_eq!(cpu_list("0-2, 8,1").unwrap(), [0, 1, 2, 8]);
        for wrong in ["", "a", "3-1", "-1", "1,,2", "99999"] {
            assert_eq!(cpu_list(wrong), None, "{wrong}");
        }
    }
}
