//! The processes of an external server that runs on this machine: its CPU time is then its own, not that of unknown
//! processes.

use std::fs;
use std::net::{ToSocketAddrs, UdpSocket};
use std::path::Path;

use rustix::param::clock_ticks_per_second;
use wire::blocking::Session;

/// The server's start takes up to this long before it notes the time, for example with much shared memory.
const MAX_START_S: f64 = 60.0;
/// Tolerance of two clocks that are read one after the other.
const TOLERANCE_S: f64 = 2.0;

/// Process id of the server's first process, if it runs on this machine, in this namespace of process ids, and can be
/// told from others.
pub(super) fn postmaster(session: &mut Session) -> Option<u32> {
    let (backend, age_s) = session
        .query_one(
            "SELECT pid, extract(epoch FROM backend_start - pg_postmaster_start_time())::float8 \
             FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        )
        .ok()?;
    postmaster_of(Path::new("/proc"), backend, age_s)
}

/// Whether an address is this machine's.
pub(super) fn is_local(host: &str) -> bool {
    let addresses = (host, 0).to_socket_addrs();
    // Only own addresses can be bound.
    addresses.is_ok_and(|mut addresses| addresses.any(|address| UdpSocket::bind(address).is_ok()))
}

/// The parent of a backend. Another machine's process ids may be in use here, too: both must be PostgreSQL's processes,
/// and the backend must have started as long after its parent as the server reports.
fn postmaster_of(proc: &Path, backend: u32, age_s: f64) -> Option<u32> {
    let child = Process::read(proc, backend)?;
    let parent = Process::read(proc, child.parent)?;
    let ticks = child.started.checked_sub(parent.started)?;
    let late_s = ticks as f64 / clock_ticks_per_second() as f64 - age_s;
    let is_same = (-TOLERANCE_S..MAX_START_S).contains(&late_s);
    (child.is_postgres && parent.is_postgres && is_same).then_some(child.parent)
}

struct Process {
    is_postgres: bool,
    parent: u32,
    /// Clock ticks after boot.
    started: u64,
}

impl Process {
    /// Source: proc(5), `/proc/PID/stat`.
    fn read(proc: &Path, pid: u32) -> Option<Self> {
        let text = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        // The third and the fourth field are state and parent, the 22nd is the start.
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { is_postgres: name == "postgres", parent, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(proc: &Path, pid: u32, name: &str, parent: u32, started_s: u64) {
        let started = started_s * clock_ticks_per_second();
        fs::create_dir_all(proc.join(pid.to_string())).unwrap();
        let stat = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 4194560 7 8 9 10 11 12 13 14 20 0 1 0 {started} 99 98"
        );
        fs::write(proc.join(pid.to_string()).join("stat"), stat).unwrap();
    }

    #[test]
    fn a_process_of_the_same_id_is_not_the_servers() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        write(proc, 10, "postgres", 1, 1000);
        write(proc, 20, "postgres", 10, 1500);
        write(proc, 30, "bash) 1 (postgres", 10, 1500);
        assert_eq!(postmaster_of(proc, 20, 499.5), Some(10));
        assert_eq!(postmaster_of(proc, 20, 480.0), Some(10), "it took 20 s to start");
        assert_eq!(postmaster_of(proc, 20, 510.0), None, "another server's");
        assert_eq!(postmaster_of(proc, 20, 10.0), None, "another server's");
        assert_eq!(postmaster_of(proc, 30, 500.0), None, "no backend");
        assert_eq!(postmaster_of(proc, 10, 500.0), None, "its parent is no postmaster");
        assert_eq!(postmaster_of(proc, 99, 500.0), None);
    }

    #[test]
    fn addresses_of_this_machine_are_local() {
        assert!(is_local("127.0.0.1"));
        // TEST-NET-1 (RFC 5737).
        assert!(!is_local("192.0.2.1"));
    }
}
