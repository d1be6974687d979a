//! Brings a server into the initial state of a trial.

use wire::blocking::SessionError;

use crate::control::Control;
use crate::error::Error;

/// Outcome of reading a data set into the server's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Whether `pg_prewarm` did it; otherwise tables were scanned, without their indexes.
    pub prewarmed: bool,
    /// Commits in the tested database for it, including the connection's own.
    pub commits: u64,
}

/// Tables and indexes of the data set, in the order in which they are read: the last ones remain if not all fit.
const RELATIONS: &str = "SELECT c.oid, c.oid::regclass::text, c.relkind::text FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'm', 'i') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') \
     ORDER BY c.relkind DESC, pg_relation_size(c.oid)";

impl Control {
    /// Runs a statement in the tested database. Returns the commits that it counts there, including the connection's
    /// own.
    pub(crate) fn run(&self, statement: &str) -> Result<u64, Error> {
        self.execute(&mut self.connect(crate::DATABASE)?, statement)?;
        Ok(2)
    }

    /// Reads the tested database's tables and indexes into the server's buffers, as far as they fit.
    pub(crate) fn warm(&self) -> Result<Warmed, Error> {
        let failed = |error: SessionError| self.error("read the tables into the buffers", &error);
        let mut session = self.connect(crate::DATABASE)?;
        let extension = "SELECT true FROM pg_extension WHERE extname = 'pg_prewarm'";
        let has_prewarm = session.query_opt(extension).map_err(failed)?.unwrap_or(false);
        // Counted: the connection's own transaction, and the two queries.
        let mut warmed = Warmed { prewarmed: has_prewarm, commits: 3 };
        let relations: Vec<(u32, String, String)> = session.query(RELATIONS).map_err(failed)?;
        for (oid, name, kind) in relations {
            let Some(statement) = prewarm_statement(has_prewarm, oid, &name, &kind) else { continue };
            session.execute(&statement).map_err(failed)?;
            warmed.commits += 1;
        }
        Ok(warmed)
    }
}

/// Statement that reads a relation.
fn prewarm_statement(has_prewarm: bool, oid: u32, name: &str, kind: &str) -> Option<String> {
    match (has_prewarm, kind) {
        (true, _) => Some(format!("SELECT pg_prewarm({oid}::regclass)")),
        (false, "i") => None,
        (false, _) => Some(format!("SELECT count(*) FROM {name}")),
    }
}
