//! PostgreSQL processes of a data directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use host::files::read_regular;
use host::process::{STOP_TIMEOUT, signal, wait_until};
use rustix::process::Signal;

use crate::error::Error;

/// PostgreSQL processes with this data directory as working directory: every server process stays in it.
pub(crate) fn postgres_processes(data: &Path) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
            let is_postgres = |exe: &Path| {
                let name = exe.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                name == "postgres" || name == "postgres (deleted)"
            };
            // Zombies have no working directory and are not found.
            link("cwd").is_ok_and(|cwd| cwd == data) && link("exe").is_ok_and(|exe| is_postgres(&exe))
        })
        .collect()
}

/// The server's main process according to `postmaster.pid`, if it is alive and really is this directory's.
pub(crate) fn postmaster(data: &Path) -> Option<u32> {
    let text = read_regular(&data.join("postmaster.pid")).ok()?;
    let pid = text.lines().next()?.trim().parse().ok()?;
    postgres_processes(data).contains(&pid).then_some(pid)
}

/// Ends every PostgreSQL process of a data directory: signals the postmaster to quit, then kills. Returns their number.
pub(crate) fn end_all(data: &Path) -> Result<usize, Error> {
    let found = postgres_processes(data).len();
    if found == 0 {
        return Ok(0);
    }
    if let Some(pid) = postmaster(data) {
        signal(pid, Signal::QUIT);
        if wait_for_exit(data, STOP_TIMEOUT) {
            return Ok(found);
        }
    }
    for pid in postgres_processes(data) {
        signal(pid, Signal::KILL);
    }
    if wait_for_exit(data, STOP_TIMEOUT) {
        Ok(found)
    } else {
        Err(Error::WontStop { pids: postgres_processes(data), directory: data.to_owned() })
    }
}

/// Waits until a data directory has no PostgreSQL process.
pub(crate) fn wait_for_exit(data: &Path, within: Duration) -> bool {
    wait_until(within, || postgres_processes(data).is_empty())
}
