//! Campaigns whose servers have memory and disk limits; skipped if control groups are unavailable.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::path::Path;

use host::Cache;
use model::factor::Factor;
use model::limits::{DiskLimit, Limits, MemoryLimit};
use model::record::Status;
use skip::skip;
use support::{Bench, signal, text, wait_until, wait_until_gone};

const MB: u64 = 1 << 20;

/// Whether limits are available here; if not, reports why the test is skipped.
fn can_limit() -> bool {
    let limits = Limits {
        memory: MemoryLimit::new(model::units::Size::from_bytes(64 * MB)),
        disk: DiskLimit { name: "slow".to_owned(), read_bytes_s: Some(MB), ..DiskLimit::none() },
    };
    server::check_limits(&Cache::open().unwrap(), &limits).map_err(skip).is_ok()
}

#[test]
fn a_cell_beyond_its_memory_reads_from_disk_and_its_bundle_says_what_was_in_force() {
    if !can_limit() {
        return;
    }
    let bench = Bench::new(
        "name = 'limits'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [2]\nscale = [10]\n\
         memory = ['none', '96MB']\ndisk = ['none', 'slow']\nsettings = ['small']\n\
         exclude = [{ memory = 'none', disk = 'slow' }]\n\
         [settings.small]\nshared_buffers = '16MB'\n[disks.slow]\nread = '200MB/s'\nwrite_iops = 4000\n\
         [run]\nduration = '2s'\nwarmup = '200ms'\nrepeats = 1\nseed = 1\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        let findings = &trial.validity.findings;
        assert!(findings.iter().all(|finding| finding.gate != "memory-pressure"), "{findings:?}");
        let record = bench.store().load(&trial.id).unwrap();
        let window = (200_000, 2_200_000);
        let read: f64 = record
            .metrics
            .all("disk.read_bytes")
            .filter_map(|series| {
                record.metrics.growth("disk.read_bytes", series.label.as_deref(), window.0, window.1)
            })
            .sum();
        let Some(limits) = &trial.limits else {
            assert_eq!(trial.cell.memory, MemoryLimit::NONE, "{}", trial.cell);
            continue;
        };
        assert_eq!(limits.memory_bytes, Some(96 * MB));
        assert!(limits.memory_limit_hits > Some(0) && limits.oom_kills == Some(0), "{limits:?}");
        let slow = Factor::Disk.level(&trial.cell) == "slow";
        assert_eq!(limits.read_bytes_s, slow.then_some(200 * MB));
        assert_eq!(limits.write_iops, slow.then_some(4000));
        assert_eq!(limits.device.is_some(), slow);
        assert!(read > 1e6, "what memory does not hold is read from disk: {read}");
        let group = &limits.groups[0];
        let hits = record.metrics.get("cgroup.memory_limit_hits", Some(group));
        assert!(hits.is_some(), "the collector finds the server's group {group}");
        assert!(!Path::new(group).exists(), "{group}");
    }
    assert!(text(&output).contains("memory 96MB · disk slow"), "{}", text(&output));
    let shown = bench.pgdyno(&["store", "show", &trials[0].id, "--format", "json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let in_force = trials[0].limits.as_ref().and_then(|limits| limits.memory_bytes);
    assert_eq!(shown["trial"]["limits"]["memory_bytes"].as_u64(), in_force);
}

#[test]
fn a_plan_reports_tight_limits() {
    let bench = Bench::new(
        "name = 'tight'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\nmemory = ['none', '64MB']\n",
    );
    let plan = bench.pgdyno(&["plan", "campaign.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    let stderr = String::from_utf8_lossy(&plan.stderr);
    assert!(stderr.contains("memory 64MB may be too little for shared_buffers of 128MB"), "{stderr}");
    let table = String::from_utf8_lossy(&plan.stdout);
    assert!(table.contains("memory") && table.contains("64MB"), "{table}");
}

#[test]
fn a_pgdyno_that_is_killed_leaves_no_group_for_long() {
    if !can_limit() {
        return;
    }
    let bench = Bench::new(
        "name = 'killed'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\nmemory = ['300MB']\n\
         [run]\nduration = '60s'\nwarmup = '0s'\nrepeats = 1\n",
    );
    let running = bench.start();
    let mut process_tree = Vec::new();
    wait_until("a client is connected", || {
        process_tree = running.process_tree();
        process_tree.iter().any(|process| process.command.contains("postgres pgdyno [local]"))
    });
    let postmaster = running.process("bin/postgres ").pid;
    let groups = fs::read_to_string(format!("/proc/{postmaster}/cgroup")).unwrap();
    let group = groups
        .lines()
        .find_map(|line| line.rsplit_once('/').filter(|(_, name)| name.starts_with("pgdyno-c-")));
    let name = group.unwrap_or_else(|| panic!("not in a group of pgdyno's: {groups}")).1;
    signal(running.pid(), libc::SIGKILL);
    let _ = running.end();
    wait_until_gone(&process_tree);
    assert_eq!(bench.pgdyno(&["server", "list"]).status.code(), Some(0));
    let ours = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts =
        ours.lines().filter(|line| line.contains(" - cgroup")).filter_map(|line| line.split(' ').nth(4));
    for mount in mounts {
        assert!(!holds(Path::new(mount), name), "{name} below {mount}");
    }
}

/// Whether a directory contains another of this name, at any depth.
fn holds(directory: &Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let mut directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.any(|entry| entry.file_name() == *name || holds(&entry.path(), name))
}

#[test]
fn reads_of_blocks_beyond_memory_are_the_disks() {
    if !can_limit() {
        return;
    }
    let bench = Bench::new(
        "name = 'disk'\n[factors]\nserver = ['18']\nworkload = ['beyond']\nclients = [4]\ncache = ['cold']\nsettings = ['direct']\n\
         memory = ['128MB']\ndisk = ['slow']\n[run]\nrepeats = 1\nseed = 1\n\
         [workloads.beyond]\nbuiltin = 'blocks'\niterations = 300\nparameters = { size = '256MB', work_unit = 16 }\n\
         [disks.slow]\nread = '60MB/s'\n\
         # Every block that is not in shared buffers is the disk's: none of the page cache's, and none read ahead.\n\
         [settings.direct]\nshared_buffers = '24MB'\ndebug_io_direct = 'data'\nautovacuum = false\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_ne!(trials[0].validity.status, Status::Invalid, "{:?}", trials[0].validity);
    let record = bench.store().load(&trials[0].id).unwrap();
    // From the first reading, before the load, to the last one, after it: while it runs, backends report what they read up to a
    // second late, each at a time of its own.
    let growth = |metric: &str| {
        let growths = record.metrics.all(metric).map(|series| {
            let values: Vec<f64> = series.points.iter().filter_map(|point| point.value).collect();
            values.last().unwrap() - values.first().unwrap()
        });
        growths.sum::<f64>()
    };
    let reads = ["pg.table.heap_blks_read", "pg.table.index_blks_read"];
    let blocks = reads.map(growth).iter().sum::<f64>() * 8192.0;
    let disk = growth("cgroup.read_bytes");
    assert!(blocks > 100e6, "{blocks} bytes of blocks");
    assert!((disk / blocks - 1.0).abs() < 0.02, "{blocks} bytes of blocks, {disk} of the disk");
}
