//! What a trace needs of a server, before it is played.

use std::collections::{BTreeMap, HashMap};

use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::selection::Selection;
use crate::statement::{Action, Statement};

/// The selected sessions of a trace.
#[derive(Debug, Default)]
pub struct Survey {
    /// Time of the first event of a selected session, in microseconds since 1970.
    pub first_us: i64,
    /// Time of the last one.
    pub last_us: i64,
    /// Number of sessions to play, copies included.
    pub sessions: u64,
    /// Number of their statements.
    pub statements: u64,
    /// Largest number of them at a time, by the recorded times.
    pub peak_sessions: u32,
    /// Selected sessions by database; empty if unknown.
    databases: BTreeMap<String, u64>,
}

impl Survey {
    /// Reads a trace once, and passes on the statements of selected sessions.
    ///
    /// # Errors
    /// The trace can't be read.
    pub fn read(
        trace: &TraceReader,
        selection: &Selection,
        on_statement: &mut dyn FnMut(&Statement),
    ) -> Result<Self, TraceError> {
        let mut survey = Self::default();
        // Copies of open sessions.
        let mut open: HashMap<u32, u32> = HashMap::new();
        let mut now_open = 0;
        for event in trace.events()? {
            let event = event?;
            match &event.action {
                Action::Begin(identity) => {
                    let copies = selection.copies(event.session, identity);
                    if copies == 0 {
                        continue;
                    }
                    if survey.sessions == 0 {
                        survey.first_us = event.at_us;
                    }
                    survey.sessions += u64::from(copies);
                    open.insert(event.session, copies);
                    now_open += copies;
                    survey.peak_sessions = survey.peak_sessions.max(now_open);
                    let database = identity.database.as_deref().unwrap_or_default();
                    *survey.databases.entry(database.to_owned()).or_default() += 1;
                }
                Action::End => match open.remove(&event.session) {
                    Some(copies) => now_open -= copies,
                    None => continue,
                },
                Action::Execute(statement) => match open.get(&event.session) {
                    Some(copies) => {
                        survey.statements += u64::from(*copies);
                        on_statement(statement);
                    }
                    None => continue,
                },
            }
            survey.last_us = event.at_us;
        }
        Ok(survey)
    }

    /// Checks that all selected sessions can go to one database.
    ///
    /// # Errors
    /// No session is selected, or those of several databases are.
    pub fn check(&self, selection: &Selection) -> Result<(), TraceError> {
        if self.sessions == 0 {
            return Err(TraceError::NoSessions);
        }
        if self.databases.len() > 1 && selection.filter.database.is_none() {
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
