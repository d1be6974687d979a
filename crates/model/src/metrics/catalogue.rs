//! The catalogue of all metrics that collectors read.

mod collectors;
mod machine;
mod processes;
mod relations;
mod server;

use super::metric::{Group, Metric};

/// Every metric, by the tables of `docs/metrics.md` and `docs/metrics-postgres.md`.
pub const GROUPS: [&Group; 31] = [
    &collectors::COLLECTORS,
    &machine::PROCESSORS,
    &machine::SCHEDULER,
    &machine::SENSORS,
    &machine::MEMORY,
    &machine::PAGING,
    &machine::DISKS,
    &machine::PRESSURE,
    &machine::NETWORK,
    &machine::LIMITS,
    &processes::ROLES,
    &processes::NAMES,
    &server::DATABASE,
    &server::STATISTICS,
    &server::CHECKPOINTS,
    &server::BACKENDS,
    &server::WAL,
    &server::IO,
    &server::SLRU,
    &server::REPLICATION,
    &server::REPLICA,
    &server::REPLAY,
    &server::PGBOUNCER,
    &server::LOCKS,
    &server::SESSIONS,
    &server::BASE_BACKUP,
    &relations::TABLES,
    &relations::INDEXES,
    &relations::COMMANDS,
    &relations::PROGRESS,
    &relations::BUFFERS,
];

/// The metric with a name; none if no collector reads it.
pub const fn find(name: &str) -> Option<&'static Metric> {
    let mut group = 0;
    while group < GROUPS.len() {
        let metrics = GROUPS[group].metrics;
        let mut place = 0;
        while place < metrics.len() {
            if equal(metrics[place].name, name) {
                return Some(&metrics[place]);
            }
            place += 1;
        }
        group += 1;
    }
    None
}

const fn equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    // Compares from the end, where names differ.
    let mut left = one.len();
    while left > 0 {
        left -= 1;
        if one[left] != other[left] {
            return false;
        }
    }
    true
}

/// The catalogue's entry for a metric; a name that is not in the catalogue does not compile.
#[macro_export]
macro_rules! metric {
    ($name:literal) => {
        const {
            match $crate::metrics::find($name) {
                Some(metric) => metric,
                None => panic!(concat!($name, " is not in the catalogue of metrics")),
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::{Better, Kind};

    fn all() -> impl Iterator<Item = &'static Metric> {
        GROUPS.into_iter().flat_map(|group| group.metrics)
    }

    #[test]
    fn metric_names_are_unique() {
        let mut names = BTreeSet::new();
        for metric in all() {
            assert!(names.insert(metric.name), "twice: {}", metric.name);
            assert_eq!(find(metric.name), Some(metric));
        }
        assert_eq!(find("cpu.users_us"), None);
        assert_eq!(metric!("disk.busy_us").kind, Kind::Counter);
    }

    #[test]
    fn every_metric_has_a_group_meaning_and_source() {
        for metric in all() {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let mut parts = metric.name.split('.');
            assert!(
                metric.name.contains('.') && parts.all(|part| !part.is_empty() && part.chars().all(is_word))
            );
            assert!(!metric.meaning.is_empty() && !metric.from.is_empty(), "{}", metric.name);
            assert!(
                !metric.meaning.contains(['|', '\n']) && !metric.from.contains(['|', '\n']),
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn directions_of_improvement_are_known() {
        for (name, better) in [
            ("psi.io_full_us", Better::Lower),
            ("pg.database.deadlocks", Better::Lower),
            ("cpu.steal_us", Better::Lower),
            ("pg.database.commits", Better::Higher),
            ("memory.cached_bytes", Better::Neither),
            ("pg.wal.bytes", Better::Neither),
        ] {
            assert_eq!(find(name).map(|metric| metric.better), Some(better), "{name}");
        }
    }
}
