//! The processes of a trial, and their roles by parent and by known ids.

use std::sync::{Arc, Mutex, PoisonError};

use model::topology::Companion;

use super::proc_files::Stat;
use super::role::Role;

/// Processes of a trial that determine the roles of all others.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Process id of the driver.
    pub driver: Option<u32>,
    /// Process id of the server's first process; none if it runs elsewhere.
    pub postmaster: Option<u32>,
    /// Whether the server may run here without its processes being known: then they can't be told from foreign ones.
    pub has_hidden_processes: bool,
    /// Whether the server and the driver of the other side of a session run too, as pgdyno's children.
    pub has_other_side: bool,
    /// Process id of the first process of what is next to the server, which is pgdyno's child, too.
    pub companion: Option<(u32, Companion)>,
    /// Process ids of the profilers; they count as pgdyno.
    pub profilers: Arc<Mutex<Vec<u32>>>,
    /// The server's backends that are not the load's. They may change.
    pub backends: Arc<Mutex<Backends>>,
}

/// Process ids of pgdyno's backends that are not the load's.
#[derive(Clone, Debug, Default)]
pub struct Backends {
    /// Backends of pgdyno's collectors.
    pub collectors: Vec<i32>,
    /// Backends of background workloads.
    pub background: Vec<i32>,
}

impl Backends {
    /// The role of a backend; none if it is the load's.
    pub(super) fn role(&self, pid: u32) -> Option<Role> {
        let pid = i32::try_from(pid).ok()?;
        let roles = [(&self.collectors, Role::Collector), (&self.background, Role::Background)];
        roles.into_iter().find(|(pids, _)| pids.contains(&pid)).map(|(_, role)| role)
    }
}

/// Role of a process in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessRole {
    /// A process of the trial; none while a process of the server has no title yet.
    Trial(Option<Role>),
    /// A process of neither the trial nor the kernel.
    Other,
}

impl Watched {
    fn is_profiler(&self, pid: u32) -> bool {
        self.profilers.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
    }

    /// Role of a process; `parent` is its parent's role, if that is a process of the trial, and `own` is this process.
    pub(super) fn role_of(
        &self,
        own: u32,
        pid: u32,
        stat: &Stat,
        parent: Option<Option<Role>>,
    ) -> ProcessRole {
        let role = if self.driver == Some(pid) {
            Some(Role::Driver)
        } else if pid == own || self.is_profiler(pid) {
            Some(Role::Pgdyno)
        } else if self.postmaster == Some(pid) {
            Some(Role::Postmaster)
        } else if let Some((_, kind)) = self.companion.filter(|(companion, _)| *companion == pid) {
            Some(if kind.is_replica() { Role::ReplicaOther } else { Role::Pgbouncer })
        } else if parent.is_some_and(|role| role.is_some_and(Role::is_of_companion)) {
            parent.flatten()
        } else if stat.is_kernel_thread {
            Some(Role::Kernel)
        } else if self.postmaster == Some(stat.parent) {
            None
        } else if parent.is_some_and(|role| role.is_none_or(Role::is_of_server)) {
            Some(Role::ServerOther)
        } else if self.driver == Some(stat.parent) && stat.parent != own {
            Some(Role::Driver)
        } else {
            return ProcessRole::Other;
        };
        ProcessRole::Trial(role)
    }
}
