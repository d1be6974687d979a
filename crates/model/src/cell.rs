//! Cells: combinations of factor levels. A trial measures one; cells identify trials and are compared.

#[cfg(feature = "schema")]
mod schema;

use std::fmt;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::dataset::OwnDatabase;
use crate::factor::pin::cpu_list;
use crate::factor::threads::default_threads;
use crate::factor::{self, Axis, Factor, Figure, LevelError, Place};
use crate::factors;
use crate::limits::Limits;
use crate::machine::{Acceleration, Storage};
use crate::part::Part;
use crate::topology::{Companion, Topology};

/// The number of server connections that PgBouncer opens at most unless it is set.
const DEFAULT_POOL_SIZE: u32 = 20;

/// A level of a recorded cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level<T> {
    /// Not contained in an imported trial.
    #[default]
    Unknown,
    /// As measured, or as imported.
    Known(T),
}

impl<T> Level<T> {
    /// The level, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(level) => Some(level),
            Self::Unknown => None,
        }
    }

    /// The level as a function changes it.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Level<U> {
        match self {
            Self::Known(level) => Level::Known(change(level)),
            Self::Unknown => Level::Unknown,
        }
    }

    /// Like [`Level::known`], by value.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(level) => Some(level),
            Self::Unknown => None,
        }
    }
}

impl<T: PartialEq> PartialEq<T> for Level<T> {
    fn eq(&self, level: &T) -> bool {
        self.known() == Some(level)
    }
}

impl PartialEq<&str> for Level<String> {
    fn eq(&self, level: &&str) -> bool {
        self.known().is_some_and(|known| known == level)
    }
}

/// Levels by factor, of planned and of recorded cells.
pub trait Levels {
    /// The level as campaigns write it; none if unknown.
    fn known_level(&self, factor: Factor) -> Option<String>;

    /// The level with the definition behind its name; none if unknown.
    fn identity(&self, factor: Factor) -> Option<String>;

    /// Whether two cells have different levels. One name may have different definitions in two campaigns.
    fn differs(&self, other: &Self, factor: Factor) -> bool;

    /// The database of the user's own that the cell runs on, which has no scale.
    fn own_database(&self) -> Option<&OwnDatabase>;
}

impl<T: Levels> Levels for &T {
    fn known_level(&self, factor: Factor) -> Option<String> {
        (**self).known_level(factor)
    }

    fn identity(&self, factor: Factor) -> Option<String> {
        (**self).identity(factor)
    }

    fn differs(&self, other: &Self, factor: Factor) -> bool {
        (**self).differs(*other, factor)
    }

    fn own_database(&self) -> Option<&OwnDatabase> {
        (**self).own_database()
    }
}

macro_rules! cells {
    ($($name:ident $key:ident,)*) => {
        /// A planned combination of factor levels: every level is known.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct Cell {
            $(
                #[doc = concat!("The level of [`crate::factor::", stringify!($key), "`].")]
                pub $key: <factor::$key::$name as Axis>::Level,
            )*
        }

        /// The combination of factor levels of a recorded trial; levels of an imported one may be unknown.
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct RecordedCell {
            $(
                #[doc = concat!("The level of [`crate::factor::", stringify!($key), "`].")]
                pub $key: Level<<factor::$key::$name as Axis>::Level>,
            )*
        }

        impl Cell {
            /// The cell with its secrets masked, as trials record it.
            #[must_use]
            pub fn masked(self) -> Self {
                Self { $($key: <factor::$key::$name as Axis>::masked(self.$key),)* }
            }

            fn level(&self, factor: Factor) -> String {
                match factor {
                    $(Factor::$name => <factor::$key::$name as Axis>::show(&self.$key),)*
                }
            }
        }

        impl Levels for Cell {
            fn known_level(&self, factor: Factor) -> Option<String> {
                Some(self.level(factor))
            }

            fn identity(&self, factor: Factor) -> Option<String> {
                Some(match factor {
                    $(Factor::$name => <factor::$key::$name as Axis>::identity(&self.$key),)*
                })
            }

            fn differs(&self, other: &Self, factor: Factor) -> bool {
                match factor {
                    $(Factor::$name => self.$key != other.$key,)*
                }
            }

            fn own_database(&self) -> Option<&OwnDatabase> {
                self.workload.own_database()
            }
        }

        impl Levels for RecordedCell {
            fn known_level(&self, factor: Factor) -> Option<String> {
                match factor {
                    $(Factor::$name => self.$key.known().map(<factor::$key::$name as Axis>::show),)*
                }
            }

            fn identity(&self, factor: Factor) -> Option<String> {
                match factor {
                    $(Factor::$name => self.$key.known().map(<factor::$key::$name as Axis>::identity),)*
                }
            }

            fn differs(&self, other: &Self, factor: Factor) -> bool {
                match factor {
                    $(Factor::$name => self.$key != other.$key,)*
                }
            }

            fn own_database(&self) -> Option<&OwnDatabase> {
                self.workload.known()?.own_database()
            }
        }

        impl RecordedCell {
            /// The cell with its secrets masked.
            #[must_use]
            pub fn masked(self) -> Self {
                Self { $($key: self.$key.map(<factor::$key::$name as Axis>::masked),)* }
            }

            /// The planned cell of this one; none if a level is unknown.
            pub fn to_cell(&self) -> Option<Cell> {
                Some(Cell { $($key: self.$key.known()?.clone(),)* })
            }

            /// Sets a level, written as by other programs or on the command line: durations without a unit are in
            /// seconds, and a workload that is not built in is given by name.
            ///
            /// # Errors
            /// Not a level of this factor; the cell is unchanged.
            pub fn set(&mut self, factor: Factor, text: &str) -> Result<(), LevelError> {
                let text = text.trim();
                if text.is_empty() {
                    return Err(LevelError::Empty { factor: factor.name() });
                }
                match factor {
                    $(Factor::$name => self.$key = Level::Known(<factor::$key::$name as Axis>::parse(text)?),)*
                }
                Ok(())
            }

            /// The cell with the level of a factor unknown.
            #[must_use]
            pub fn without(mut self, factor: Factor) -> Self {
                match factor {
                    $(Factor::$name => self.$key = Level::Unknown,)*
                }
                self
            }

            /// The level in exports.
            pub fn figure(&self, factor: Factor) -> Figure {
                let figure = match factor {
                    $(Factor::$name => self.$key.known().map(<factor::$key::$name as Axis>::figure),)*
                };
                figure.unwrap_or(Figure::Null)
            }
        }

        /// Whether the trial is one of the planned cell. Secrets do not count: another password is no other cell.
        impl PartialEq<Cell> for RecordedCell {
            fn eq(&self, cell: &Cell) -> bool {
                $(self.$key.known().is_some_and(|level| {
                    <factor::$key::$name as Axis>::is_same(level, &cell.$key)
                }))&&*
            }
        }

        impl From<Cell> for RecordedCell {
            fn from(cell: Cell) -> Self {
                Self { $($key: Level::Known(cell.$key),)* }
            }
        }

        /// A map by factor.
        impl Serialize for Cell {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(Factor::ALL.len()))?;
                $(map.serialize_entry(
                    Factor::$name.name(),
                    &<factor::$key::$name as Axis>::json(&self.$key),
                )?;)*
                map.end()
            }
        }

        /// A map by factor; null for unknown levels.
        impl Serialize for RecordedCell {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(Factor::ALL.len()))?;
                $(map.serialize_entry(
                    Factor::$name.name(),
                    &self.$key.known().map(<factor::$key::$name as Axis>::json),
                )?;)*
                map.end()
            }
        }
    };
}

factors!(cells);

impl Cell {
    /// The limits of its server; none in a virtual machine, whose own memory is the limit.
    pub fn limits(&self) -> Limits {
        if self.acceleration.is_virtual() {
            return Limits::none();
        }
        Limits { memory: self.memory, disk: self.disk.clone() }
    }

    /// The number of server connections of its pooler: as given, else enough for each session, or PgBouncer's own default.
    /// None if it is given as another text.
    pub fn pool_size(&self) -> Option<u32> {
        match Companion::Pgbouncer.settings(&self.settings.values).get("default_pool_size") {
            Some(given) => given.trim().parse().ok(),
            None if self.topology == Topology::PgbouncerSession => Some(self.all_clients()),
            None => Some(DEFAULT_POOL_SIZE),
        }
    }

    /// The most connections that clients keep open to the server at a time.
    pub fn server_connections(&self) -> u32 {
        let pool = self.pool_size().filter(|_| self.topology.companion() == Some(Companion::Pgbouncer));
        pool.map_or(self.all_clients(), |size| size.min(self.all_clients()))
    }

    /// Number of threads of its driver, which may use so many CPUs if it is neither pinned nor in a virtual machine.
    pub fn driver_threads(&self, processors: u32) -> u32 {
        self.threads
            .map_or_else(|| self.default_driver_threads(processors), |threads| threads.min(self.clients))
    }

    /// Number of threads that its driver has if none is given.
    pub fn default_driver_threads(&self, processors: u32) -> u32 {
        let pinned = || Some(cpu_list(self.pin.driver.as_deref()?)?.len() as u32);
        default_threads(self.clients, pinned().or(self.cpus).unwrap_or(processors)).min(self.clients)
    }

    /// Number of threads of the drivers on this many load hosts together: if none is given, each has as many as one driver has
    /// for its clients.
    pub fn driver_threads_on_hosts(&self, hosts: u32, processors: u32) -> u32 {
        let of_part = |part: Part| {
            let clients = part.clients(self.clients).len() as u32;
            default_threads(clients, processors).min(clients)
        };
        self.threads.map_or_else(
            || Part::all(hosts).map(of_part).sum(),
            |threads| threads.max(hosts).min(self.clients),
        )
    }
}

impl RecordedCell {
    /// Whether the schedule decides when its load begins something, not the end of what was before.
    pub fn is_open_loop(&self) -> bool {
        self.rate.known().is_some_and(|rate| *rate != crate::units::Rate::MAX)
            || self.workload.known().is_some_and(|workload| workload.has_schedule())
    }

    /// The cell with the levels of some factors only.
    #[must_use]
    pub fn only(self, kept: impl Fn(Factor) -> bool) -> Self {
        Factor::ALL.into_iter().filter(|factor| !kept(*factor)).fold(self, Self::without)
    }

    /// Whether a level is neither a default nor implied by the acceleration: a virtual machine has its data in memory
    /// unless a disk is requested, and one that counts instructions has one CPU.
    pub fn is_noteworthy(&self, factor: Factor) -> bool {
        let Some(level) = self.known_level(factor) else { return false };
        let follows = match factor {
            Factor::Cpus => self.acceleration == Acceleration::Icount,
            Factor::Storage => self.storage == Storage::Memory,
            // The default of earlier releases.
            Factor::Threads => self.threads == Some(1),
            _ => false,
        };
        factor.default_level().is_some_and(|default| default != level) && !follows
    }
}

impl Factor {
    /// The level of a cell as campaigns write it; [`UNKNOWN`] if unknown.
    pub fn level(self, cell: &impl Levels) -> String {
        cell.known_level(self).unwrap_or_else(|| UNKNOWN.to_owned())
    }

    /// Like [`Factor::level`]; none if unknown.
    pub fn known_level(self, cell: &impl Levels) -> Option<String> {
        cell.known_level(self)
    }

    /// The level in sentences and tables: like [`Factor::level`], but a database of the user's own has its name instead of a
    /// scale.
    pub fn shown_level(self, cell: &impl Levels) -> String {
        let own = cell.own_database().filter(|_| self == Self::Scale);
        own.map_or_else(|| self.level(cell), OwnDatabase::in_words)
    }

    /// The distinct levels of some cells, in their order.
    pub fn levels<'a, C: Levels + 'a>(self, cells: impl IntoIterator<Item = &'a C>) -> Vec<String> {
        let mut levels: Vec<String> = Vec::new();
        for level in cells.into_iter().map(|cell| self.level(cell)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels
    }

    /// The factors in which these cells differ.
    pub fn varied<'a, C: Levels + 'a>(cells: impl IntoIterator<Item = &'a C>) -> Vec<Self> {
        let mut cells = cells.into_iter();
        let Some(first) = cells.next() else { return Vec::new() };
        let rest: Vec<&C> = cells.collect();
        let is_varied = |factor: &Self| rest.iter().any(|cell| C::differs(cell, first, *factor));
        Self::ALL.into_iter().filter(is_varied).collect()
    }
}

/// Text for an unknown level.
pub const UNKNOWN: &str = "unknown";

impl fmt::Display for Cell {
    /// `18 default tpcb-like scale 1 clients 8 prepared unix 10s`, followed by other levels that are not the default,
    /// except the warm-up. On a database of the user's own, `data set shop` instead of the scale.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = match self.workload.own_database() {
            Some(own) => own.in_words(),
            None => format!("scale {}", self.scale),
        };
        write!(
            f,
            "{} {} {} {data} clients {} {} {} {}",
            self.server,
            self.settings.name,
            self.workload.name(),
            self.clients,
            self.protocol.as_str(),
            self.transport.as_str(),
            self.duration,
        )?;
        let recorded = RecordedCell::from(self.clone());
        for factor in Factor::ALL {
            let is_shown = factor.place() == Place::Title || factor == Factor::Settings;
            if !is_shown && recorded.is_noteworthy(factor) {
                write!(f, " {} {}", factor.name(), self.level(factor))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RecordedCell {
    /// As [`Cell`] if all levels are known, otherwise the known ones: `server 9.6, clients 8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cell) = self.to_cell() {
            return cell.fmt(f);
        }
        let known = |factor: Factor| Some(format!("{} {}", factor.name(), self.known_level(factor)?));
        let known: Vec<String> = Factor::ALL.into_iter().filter_map(known).collect();
        if known.is_empty() { f.write_str(UNKNOWN) } else { f.write_str(&known.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use crate::workload::Workload;

    #[test]
    fn only_the_levels_set_are_known() {
        let mut cell = RecordedCell::default();
        assert!(Factor::ALL.into_iter().all(|factor| factor.known_level(&cell).is_none()));
        for (set, factor) in Factor::ALL.into_iter().enumerate() {
            let level = factor.example();
            assert_ne!(Some(level), factor.default_level().as_deref(), "{}", factor.name());
            cell.set(factor, level).unwrap();
            assert_eq!(factor.known_level(&cell).as_deref(), Some(level));
            let known = Factor::ALL.into_iter().filter(|factor| factor.known_level(&cell).is_some()).count();
            assert_eq!(known, set + 1);
        }
        assert_eq!(cell.workload, Workload::Named("insert.sql".to_owned()));
        cell.set(Factor::Workload, "select-only").unwrap();
        assert_eq!(cell.workload, Workload::SelectOnly);
        assert_eq!(cell.to_cell().map(RecordedCell::from), Some(cell.clone()));
        assert_eq!(cell.without(Factor::Server).to_cell(), None);
    }

    #[test]
    fn an_invalid_level_is_rejected_and_changes_nothing() {
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
            let mut cell = RecordedCell::default();
            let error = cell.set(factor, text).unwrap_err().to_string();
            assert!(error.contains(factor.name()) || error.contains("duration"), "{error}");
            assert_eq!(cell, RecordedCell::default());
        }
    }

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        let mut cell = RecordedCell::default();
        cell.set(Factor::Duration, "60").unwrap();
        assert_eq!(cell.duration, Span::from_us(60_000_000));
        assert_eq!(cell.to_string(), "duration 1min");
    }
}
