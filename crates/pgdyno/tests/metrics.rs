//! A trial's metrics are those that the catalogue promises for its server, and no others.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::metrics::{Condition, GROUPS, Metric, find};
use model::record::TrialRecord;
use support::{Bench, text};

/// Everything is timed, TCP uses a network interface, and there is a table of each kind.
const CAMPAIGN: &str = r#"name = 'metrics'
[factors]
server = ['9.6', '13', '18']
settings = ['timed', 'wal-timed']
workload = ['simple-update']
transport = ['tcp']
clients = [2]
exclude = [
    { server = '9.6', settings = 'wal-timed' },
    { server = '13', settings = 'wal-timed' },
    { server = '18', settings = 'timed' },
]
[run]
duration = '2s'
warmup = '0s'
repeats = 1
seed = 1
[settings.timed]
track_io_timing = true
[settings.wal-timed]
track_io_timing = true
track_wal_io_timing = true
[collect]
buffers = true
[hooks]
before_trial = "psql -Xqc 'CREATE TABLE long (text text); CREATE EXTENSION pg_buffercache'"
"#;

/// Whether a metric's condition holds in a trial; false for conditions that the test can neither create nor check.
fn holds(metric: &Metric, record: &TrialRecord) -> bool {
    let exists = |file: &str| Path::new(file).exists();
    match metric.condition {
        None => true,
        Some(Condition::Setting(name)) => {
            record.settings.iter().any(|setting| setting.name == name && setting.value == "on")
        }
        Some(Condition::Linux(major, minor)) => kernel() >= (major, minor),
        Some(Condition::If(_)) => match metric.name.split('.').next().unwrap() {
            "psi" => exists("/proc/pressure/cpu"),
            "role" => exists("/proc/self/schedstat") && exists("/proc/self/io"),
            "pg" => metric.name == "pg.buffercache.buffers",
            _ => false,
        },
    }
}

fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn each_major_has_exactly_the_metrics_of_the_catalogue() {
    let bench = Bench::new(CAMPAIGN);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    for trial in trials {
        let record = bench.store().load(&trial.id).unwrap();
        let version = trial.server_version.as_deref().unwrap();
        let major = version.split('.').next().unwrap().parse().unwrap();
        let mut given = BTreeSet::new();
        for series in &record.metrics.0 {
            let metric = find(&series.metric);
            let metric =
                metric.unwrap_or_else(|| panic!("{version}: {} is not in the catalogue", series.metric));
            assert!(metric.majors.contains(major), "{version}: {} is not of this major", metric.name);
            assert_eq!(series.kind, metric.kind, "{version}: {}", metric.name);
            let group = GROUPS.into_iter().find(|group| group.metrics.contains(metric)).unwrap();
            assert_eq!(series.label.is_some(), group.label.is_some(), "{version}: {}", metric.name);
            if series.points.iter().any(|point| point.value.is_some()) {
                given.insert(metric.name);
            }
        }
        let promised = GROUPS.into_iter().flat_map(|group| group.metrics);
        let missing: Vec<&str> = promised
            .filter(|metric| metric.majors.contains(major) && holds(metric, &record))
            .map(|metric| metric.name)
            .filter(|name| !given.contains(name))
            .collect();
        assert!(missing.is_empty(), "{version}: not given: {missing:?}");
        assert!(given.len() > 100, "{version}: {given:?}");
    }
}
