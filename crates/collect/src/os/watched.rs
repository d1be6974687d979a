//! Processes that a trial knows.

use std::sync::{Arc, Mutex};

use super::role::Role;

/// Processes of a trial, from which the roles of all others follow.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Process id of the driver.
    pub driver: Option<u32>,
    /// Process id of the server's first process; none where it runs elsewhere.
    pub postmaster: Option<u32>,
    /// Process ids of the programs that profile beside the load; they count as pgdyno.
    pub profilers: Arc<Mutex<Vec<u32>>>,
    /// Which of the server's backends are none of the load's. They may come and go.
    pub backends: Arc<Mutex<Backends>>,
}

/// Process ids of backends of pgdyno's that are none of the load's.
#[derive(Clone, Debug, Default)]
pub struct Backends {
    /// Those that answer pgdyno's own collectors.
    pub collectors: Vec<i32>,
    /// Those of background workloads.
    pub background: Vec<i32>,
}

impl Backends {
    /// The role of a backend; none of one of the load's.
    pub(super) fn role(&self, pid: u32) -> Option<Role> {
        let pid = i32::try_from(pid).ok()?;
        let roles = [(&self.collectors, Role::Collector), (&self.background, Role::Background)];
        roles.into_iter().find(|(pids, _)| pids.contains(&pid)).map(|(_, role)| role)
    }
}
