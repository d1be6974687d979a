//! Facts for `pgdyno doctor`: those of the machine, and measurements of some seconds.

mod activity;
mod clock;
mod permissions;
mod pressure;
mod sync_writes;

use std::path::Path;
use std::time::Duration;

use model::fitness::{Activity, Facts, OpenFiles, Space};
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use crate::Host;
use crate::root::Root;

/// Observes the machine for `duration`, then times small writes to `directory` for at most about as long. Facts that
/// only the driver knows (io_uring) are omitted.
pub fn fitness(directory: &Path, duration: Duration) -> Facts {
    let root = Root::new(Path::new("/"));
    let environment = Host::read().environment(Some(directory));
    // First, so that it does not observe the measurements below.
    let activity = activity::watch(&root, duration);
    let limit = getrlimit(Resource::Nofile);
    Facts {
        environment,
        activity,
        pressure: pressure::read(&root),
        clock: clock::measure(&root),
        directory: directory.to_owned(),
        space: space(directory),
        sync_writes: sync_writes::time(directory, duration),
        perf_is_installed: Some(crate::profile::on_path().is_some()),
        perf_privileged: permissions::perf_privileged(&root),
        can_create_cgroup: permissions::can_create_cgroup(&root),
        open_files: Some(OpenFiles { soft: limit.current, hard: limit.maximum }),
        io_uring: None,
    }
}

/// Observes the use of the machine for `duration`; none if the kernel does not report it.
pub fn activity(duration: Duration) -> Option<Activity> {
    activity::watch(&Root::new(Path::new("/")), duration)
}

fn space(directory: &Path) -> Option<Space> {
    let found = statvfs(directory).ok()?;
    let bytes = |blocks: u64| blocks.checked_mul(found.f_frsize);
    Some(Space { free_bytes: bytes(found.f_bavail)?, total_bytes: bytes(found.f_blocks)? })
}
