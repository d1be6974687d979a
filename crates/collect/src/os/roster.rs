//! Roles of processes by id, for sources that know only ids.

use std::collections::HashMap;
use std::path::Path;
use std::sync::PoisonError;

use super::proc_files::Proc;
use super::role::Role;
use super::watched::{ProcessRole, Watched};
use crate::root::Root;

/// All processes seen, with their roles. An update costs listing `/proc` and reading new processes.
#[derive(Debug)]
pub(crate) struct Roster {
    watched: Watched,
    own: u32,
    proc: Option<Proc>,
    known: HashMap<u32, ProcessRole>,
    /// Processes in the latest update.
    listed: Vec<u32>,
}

impl Roster {
    pub(crate) fn new(watched: Watched) -> Self {
        let proc = Proc::open(&Root::new(Path::new("/")));
        Self { watched, own: std::process::id(), proc, known: HashMap::new(), listed: Vec::new() }
    }

    /// Adds new processes. If an id is reused within a trial, it keeps the role of the first process.
    pub(crate) fn update(&mut self) {
        let Self { watched, own, proc: Some(proc), known, listed } = self else { return };
        if proc.list(format_args!("."), listed).is_none() {
            return;
        }
        for &pid in &*listed {
            let role = match known.get(&pid) {
                Some(ProcessRole::Trial(None)) => ProcessRole::Trial(None),
                Some(_) => continue,
                None => {
                    let Some(stat) = proc.stat(pid) else { continue };
                    let parent = match known.get(&stat.parent) {
                        Some(ProcessRole::Trial(role)) => Some(*role),
                        _ => None,
                    };
                    watched.role_of(*own, pid, &stat, parent)
                }
            };
            let role_by_title = match role {
                ProcessRole::Trial(None) => {
                    ProcessRole::Trial(proc.title(pid).and_then(|title| Role::by_title(&title)))
                }
                ProcessRole::Trial(Some(Role::ReplicaOther))
                    if proc.title(pid).is_some_and(|title| Role::is_replay(&title)) =>
                {
                    ProcessRole::Trial(Some(Role::ReplicaReplay))
                }
                role => role,
            };
            known.insert(pid, role_by_title);
        }
    }

    /// Adds a process by its parent: it may have ended before the next update.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32) {
        if pid == parent || self.known.contains_key(&pid) {
            return;
        }
        let of_parent = self.known.get(&parent).copied();
        let role = match of_parent {
            _ if self.watched.postmaster == Some(parent) => ProcessRole::Trial(None),
            Some(ProcessRole::Trial(Some(Role::Driver))) => ProcessRole::Trial(Some(Role::Driver)),
            Some(ProcessRole::Trial(role)) if role.is_none_or(Role::is_of_server) => {
                ProcessRole::Trial(Some(Role::ServerOther))
            }
            _ => ProcessRole::Other,
        };
        self.known.insert(pid, role);
    }

    /// The role of a process, if necessary by the functions on its stack; none without a role.
    pub(crate) fn role<'a>(
        &self,
        pid: u32,
        functions: impl Iterator<Item = &'a str>,
    ) -> Option<&'static str> {
        let role = match self.known.get(&pid) {
            Some(ProcessRole::Trial(Some(role))) => *role,
            Some(ProcessRole::Trial(None)) => Role::by_functions(functions).unwrap_or(Role::ServerOther),
            Some(ProcessRole::Other) | None => return None,
        };
        let backends = self.watched.backends.lock().unwrap_or_else(PoisonError::into_inner);
        let other = if role == Role::Load { backends.role(pid) } else { None };
        Some(other.unwrap_or(role).as_str())
    }

    /// The driver's and the server's processes in the latest update.
    pub(crate) fn watched(&self) -> impl Iterator<Item = u32> {
        self.listed.iter().copied().filter(|pid| match self.known.get(pid) {
            Some(ProcessRole::Trial(role)) => {
                role.is_none_or(|role| role == Role::Driver || role.is_of_server())
            }
            Some(ProcessRole::Other) | None => false,
        })
    }

    /// CPU time of a process, in microseconds.
    pub(crate) fn cpu_us(&mut self, pid: u32) -> Option<f64> {
        Some(self.proc.as_mut()?.schedule(pid, None, &mut None)?.run_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_between_updates_is_identified_by_parent_and_functions() {
        let mut roster = Roster::new(Watched { postmaster: Some(10), ..Watched::default() });
        let with = |roster: &Roster, pid, function| roster.role(pid, ["main", function].into_iter());
        assert_eq!(with(&roster, 11, "ParallelWorkerMain"), None);
        roster.forked(11, 10);
        roster.forked(12, 11);
        roster.forked(20, 19);
        assert_eq!(with(&roster, 11, "ParallelWorkerMain"), Some("parallel worker"));
        assert_eq!(with(&roster, 11, "PostgresMain"), Some("load"));
        assert_eq!(with(&roster, 11, "[unknown]"), Some("server other"));
        assert_eq!(with(&roster, 12, "sh"), Some("server other"));
        assert_eq!(with(&roster, 20, "PostgresMain"), None, "another server's");
    }

    #[test]
    fn this_process_has_a_role() {
        let mut roster = Roster::new(Watched::default());
        roster.update();
        assert_eq!(roster.role(std::process::id(), std::iter::empty()), Some("pgdyno"));
        assert!(roster.cpu_us(std::process::id()).is_none_or(|us| us > 0.0));
        assert_eq!(roster.watched().count(), 0);
    }
}
