//! What a trace needs of a server, before it is played.

use std::collections::{BTreeMap, HashSet};

use super::SessionFilter;
use crate::error::ReplayError;
use crate::statement::Action;
use crate::trace::TraceReader;

/// The chosen sessions of a trace.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The first event of a chosen session, and the last.
    pub(super) first_us: i64,
    pub(super) last_us: i64,
    pub(super) sessions: u64,
    pub(super) peak_sessions: u32,
    /// Chosen sessions by database; empty if unknown.
    databases: BTreeMap<String, u64>,
}

impl Survey {
    pub(super) fn read(trace: &TraceReader, filter: &SessionFilter) -> Result<Self, ReplayError> {
        let mut survey = Self::default();
        let mut open: HashSet<u32> = HashSet::new();
        for event in trace.events()? {
            let event = event?;
            match &event.action {
                Action::Begin(identity) if filter.chooses(identity) => {
                    if survey.sessions == 0 {
                        survey.first_us = event.at_us;
                    }
                    survey.sessions += 1;
                    open.insert(event.session);
                    survey.peak_sessions = survey.peak_sessions.max(open.len() as u32);
                    let database = identity.database.as_deref().unwrap_or_default();
                    *survey.databases.entry(database.to_owned()).or_default() += 1;
                }
                Action::Begin(_) => continue,
                _ if !open.contains(&event.session) => continue,
                Action::End => drop(open.remove(&event.session)),
                Action::Execute(_) => {}
            }
            survey.last_us = event.at_us;
        }
        Ok(survey)
    }

    /// Checks that all chosen sessions can go to one database.
    pub(super) fn check(&self, filter: &SessionFilter) -> Result<(), ReplayError> {
        if self.sessions == 0 {
            return Err(ReplayError::NoSessions);
        }
        if self.databases.len() > 1 && filter.database.is_none() {
            let mut found: Vec<(&String, &u64)> = self.databases.iter().collect();
            found.sort_by_key(|(_, sessions)| std::cmp::Reverse(**sessions));
            let name = |(name, sessions): &(&String, &u64)| {
                format!("{} ({sessions} sessions)", if name.is_empty() { "unknown" } else { name })
            };
            let databases = found.iter().map(name).collect::<Vec<_>>().join(", ");
            let first = found.first().map(|(name, _)| (*name).clone()).unwrap_or_default();
            return Err(ReplayError::SeveralDatabases { databases, first });
        }
        Ok(())
    }
}
