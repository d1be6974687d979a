//! Servers with limits of memory and disk, by this machine's control groups; skipped without these.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use model::limits::{DiskLimit, Limits, MemoryLimit};
use model::units::Size;
use model::workload::Transport;
use server::{Error, Server, StopMode};
use skip::skip;
use support::{as_child, cache, processes_in, role, settings, template, wait_until};

const MB: u64 = 1 << 20;

fn memory(megabytes: u64) -> Limits {
    Limits { memory: MemoryLimit::new(Size::from_bytes(megabytes * MB)), disk: DiskLimit::none() }
}

fn disk() -> Limits {
    let disk = DiskLimit {
        name: "slow".to_owned(),
        read_bytes_s: Some(100 * MB),
        read_iops: Some(5000),
        write_bytes_s: None,
        write_iops: Some(4000),
    };
    Limits { memory: MemoryLimit::NONE, disk }
}

/// Whether limits can be tested here; prints the reason if not.
fn can_limit(limits: &Limits) -> bool {
    server::check_limits(&cache(), limits).map_err(skip).is_ok()
}

fn start(scale: u32, limits: &Limits, pairs: &[(&str, &str)]) -> Result<Server, Error> {
    template("18", scale).clone_cluster(&cache(), &host::NoProgress).unwrap().start_within(
        &settings(pairs),
        limits,
        Transport::Unix,
    )
}

fn processes_of(group: &str) -> Vec<u32> {
    let text = fs::read_to_string(Path::new(group).join("cgroup.procs")).unwrap();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

/// Bytes that a session reads from the disk when it reads the accounts for the second time. Source: proc(5).
fn second_reading(server: &Server) -> u64 {
    let mut session = server.session("pgdyno").unwrap();
    let pid: i32 = session.query_one("select pg_backend_pid()").unwrap();
    let bytes_read = || {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        io.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap().parse::<u64>().unwrap()
    };
    let mut read = || session.execute("select sum(abalance) from pgbench_accounts").unwrap();
    read();
    let before = bytes_read();
    read();
    bytes_read() - before
}

#[test]
fn a_table_larger_than_the_memory_limit_is_read_from_disk_each_time() {
    let limits = memory(64);
    if !can_limit(&limits) {
        return;
    }
    let pairs = [
        ("shared_buffers", "8MB"),
        // The session itself reads.
        ("max_parallel_workers_per_gather", "0"),
        ("io_method", "sync"),
    ];
    // About 130 MB of accounts.
    let server = start(10, &limits, &pairs).unwrap();
    let in_force = server.limits().unwrap();
    assert_eq!((in_force.memory_bytes, in_force.device.as_deref()), (Some(64 * MB), None));
    let [group] = in_force.groups.as_slice() else { panic!("{in_force:?}") };
    // Processes come and go while both lists are read.
    wait_until("all of the server's processes, and no others, are in the group", || {
        let mut of_server = processes_in(server.data_directory());
        let mut of_group = processes_of(group);
        of_server.sort_unstable();
        of_group.sort_unstable();
        of_server.len() > 4 && of_server == of_group
    });
    let read = second_reading(&server);
    assert!(read > 60 * MB, "{read}");
    let after = server.limits().unwrap();
    assert!(after.memory_limit_hits > Some(0) && after.oom_kills == Some(0), "{after:?}");

    let cluster = server.stop(StopMode::Fast).unwrap();
    assert!(!Path::new(group).exists(), "{group}");
    let server = cluster.start(&settings(&pairs)).unwrap();
    assert_eq!(server.limits(), None);
    let read = second_reading(&server);
    assert!(read < 10 * MB, "without a limit the page cache has it: {read}");
}

#[test]
fn disk_limits_in_force_are_those_requested() {
    let both = Limits { memory: memory(512).memory, ..disk() };
    for limits in [disk(), both] {
        if !can_limit(&limits) {
            continue;
        }
        let server = start(1, &limits, &[]).unwrap();
        let found = server.limits().unwrap();
        assert_eq!(found.read_bytes_s, limits.disk.read_bytes_s);
        assert_eq!(found.read_iops, limits.disk.read_iops);
        assert_eq!(found.write_bytes_s, None);
        assert_eq!(found.write_iops, limits.disk.write_iops);
        assert_eq!(found.memory_bytes, limits.memory.bytes());
        let device = found.device.as_ref().unwrap();
        assert!(Path::new("/sys/block").join(device).exists(), "{device}");
        assert!(found.groups.iter().all(|group| processes_of(group).contains(&server.pid())), "{found:?}");
        drop(server);
        assert!(found.groups.iter().all(|group| !Path::new(group).exists()), "{found:?}");
    }
}

#[test]
fn a_server_that_exceeds_its_memory_limit_at_its_start_is_reported_with_the_cause() {
    let limits = memory(8);
    if !can_limit(&limits) {
        return;
    }
    // Written at the start: memory for many sessions and locks.
    let pairs = [("max_connections", "3000"), ("max_locks_per_transaction", "1024")];
    let why = start(1, &limits, &pairs).unwrap_err().to_string();
    assert!(why.contains("out of memory: its limit of 8MB is too small"), "{why}");
}

/// Runs in a process of its own: starts a server with limits, prints its and its groups' paths, and waits to be killed.
#[test]
fn victim() {
    if role().is_none() {
        return;
    }
    let server = start(1, &memory(256), &[("shared_buffers", "16MB")]).unwrap();
    println!("\nDATA {}", server.data_directory().display());
    println!("GROUP {}", server.limits().unwrap().groups[0]);
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn the_group_of_a_killed_owner_is_removed() {
    if !can_limit(&memory(256)) {
        return;
    }
    let mut child = as_child("victim", "limited", &[]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut path =
        |what: &str| lines.find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix(what)?))).unwrap();
    let (data, group) = (path("DATA "), path("GROUP "));
    assert!(group.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process of the server is left", || processes_in(&data).is_empty());
    server::sweep(&cache()).unwrap();
    // Another test may be sweeping at the same time.
    wait_until("its group and its data are removed", || !group.exists() && !data.parent().unwrap().exists());
}
