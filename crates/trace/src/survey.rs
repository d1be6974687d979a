//! What a trace needs of a server, before it is played.

use std::collections::{BTreeMap, HashSet};

use crate::error::TraceError;
use crate::filter::SessionFilter;
use crate::reader::TraceReader;
use crate::statement::{Action, Statement};

/// The chosen sessions of a trace.
#[derive(Debug, Default)]
pub struct Survey {
    /// Time of the first event of a chosen session, in microseconds since 1970.
    pub first_us: i64,
    /// Time of the last one.
    pub last_us: i64,
    /// Number of chosen sessions.
    pub sessions: u64,
    /// Largest number of them at a time.
    pub peak_sessions: u32,
    /// Chosen sessions by database; empty if unknown.
    databases: BTreeMap<String, u64>,
}

impl Survey {
    /// Reads a trace once, and passes on the statements of chosen sessions.
    ///
    /// # Errors
    /// The trace can't be read.
    pub fn read(
        trace: &TraceReader,
        filter: &SessionFilter,
        on_statement: &mut dyn FnMut(&Statement),
    ) -> Result<Self, TraceError> {
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
                Action::Execute(statement) => on_statement(statement),
            }
            survey.last_us = event.at_us;
        }
        Ok(survey)
    }

    /// Checks that all chosen sessions can go to one database.
    ///
    /// # Errors
    /// No session is chosen, or those of several databases are.
    pub fn check(&self, filter: &SessionFilter) -> Result<(), TraceError> {
        if self.sessions == 0 {
            return Err(TraceError::NoSessions);
        }
        if self.databases.len() > 1 && filter.database.is_none() {
            let mut found: Vec<(&String, &u64)> = self.databases.iter().collect();
            found.sort_by_key(|(_, sessions)| std::cmp::Reverse(**sessions));
            let name = |(name, sessions): &(&String, &u64)| {
                format!("{} ({sessions} sessions)", if name.is_empty() { "unknown" } else { name })
            };
            let databases = found.iter().map(name).collect::<Vec<_>>().join(", ");
            let first = found.first().map(|(name, _)| (*name).clone()).unwrap_or_default();
            return Err(TraceError::SeveralDatabases { databases, first });
        }
        Ok(())
    }
}
