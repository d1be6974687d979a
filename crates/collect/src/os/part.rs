//! What part a process has, by its parent and by what it is known to be.

use std::sync::PoisonError;

use super::proc_files::Stat;
use super::role::Role;
use super::watched::Watched;

/// What a process is to a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One of those that have a role; none while a process of the server has no title yet.
    Ours(Option<Role>),
    /// Neither ours nor the kernel's.
    Foreign,
}

impl Watched {
    fn is_profiler(&self, pid: u32) -> bool {
        self.profilers.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
    }

    /// What a process is; `parent` is what its parent is, where that is ours, and `own` is this process.
    pub(super) fn part(&self, own: u32, pid: u32, stat: &Stat, parent: Option<Option<Role>>) -> Part {
        let role = if self.driver == Some(pid) {
            Some(Role::Driver)
        } else if pid == own || self.is_profiler(pid) {
            Some(Role::Pgdyno)
        } else if self.postmaster == Some(pid) {
            Some(Role::Postmaster)
        } else if stat.is_kernel_thread {
            Some(Role::Kernel)
        } else if self.postmaster == Some(stat.parent) {
            None
        } else if parent.is_some_and(|role| role.is_none_or(Role::is_of_server)) {
            Some(Role::ServerOther)
        } else if self.driver == Some(stat.parent) && stat.parent != own {
            Some(Role::Driver)
        } else {
            return Part::Foreign;
        };
        Part::Ours(role)
    }
}
