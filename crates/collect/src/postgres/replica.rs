//! A replica and the server that sends it changes: the marker row, positions in the WAL, and what replay is doing.
//!
//! Source: PostgreSQL manual, "Log-Shipping Standby Servers", "Hot Standby", "Logical Replication" and `pg_stat_activity`.

use model::topology::Companion;
use wire::ResultSet;

use super::session::{MARK, Prepared, Session, rows};
use crate::error::CollectError;

/// What the process that replays or applies changes is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum ReplayState {
    /// It works: it is on a CPU, or reads or writes.
    Busy,
    /// Everything that it has received is replayed.
    Idle,
    /// It waits for sessions of the replica, with which it conflicts.
    Conflict,
    /// It waits until a commit is as old as `recovery_min_apply_delay` demands.
    Delay,
}

impl ReplayState {
    /// Its name in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    /// By wait event, whose names have changed: see `model::wait_events`.
    fn from_wait(event_type: Option<&str>, event: Option<&str>) -> Self {
        let (Some(event_type), Some(event)) = (event_type, event) else { return Self::Busy };
        match (event_type, event) {
            (_, "RecoveryApplyDelay" | "LogicalApplyDelay") => Self::Delay,
            ("Lock" | "BufferPin" | "Buffer", _)
            | (_, "RecoveryConflictSnapshot" | "RecoveryConflictTablespace") => Self::Conflict,
            ("Activity", _) | (_, "RecoveryRetrieveRetryInterval") => Self::Idle,
            // Sending its position.
            ("Client", _) => Self::Idle,
            _ => Self::Busy,
        }
    }
}

/// Sessions with a server and its replica.
pub(crate) struct ReplicaProbe {
    server: Session,
    replica: Session,
    write_marker: Prepared,
    read_marker: Prepared,
    read_state: Prepared,
    read_server_position: Prepared,
    read_replica_position: Prepared,
    /// Of a standby: it has no other conflicts.
    read_conflicts: Option<Prepared>,
}

impl ReplicaProbe {
    /// With sessions in the database that has the marker row.
    ///
    /// # Errors
    /// One of them does not answer, or there is no marker.
    pub(crate) fn new(
        mut server: Session,
        mut replica: Session,
        kind: Companion,
        marker: &str,
    ) -> Result<Self, CollectError> {
        // A marker must not wait for the standby whose lag it measures.
        server.query("SET synchronous_commit = local")?.for_each(drop);
        let write = format!("UPDATE {MARK} {marker} SET number = number + 1 WHERE id = 1 RETURNING number");
        let read = format!("SELECT {MARK} number FROM {marker} WHERE id = 1");
        let is_standby = kind == Companion::Standby;
        let activity = "pg_stat_get_activity(NULL) a";
        let state = if is_standby {
            format!("{activity} WHERE a.backend_type = 'startup'")
        } else {
            format!("pg_stat_subscription s JOIN {activity} ON a.pid = s.pid WHERE s.relid IS NULL LIMIT 1")
        };
        let state = format!("SELECT {MARK} a.wait_event_type, a.wait_event FROM {state}");
        let position =
            |function: &str, from: &str| format!("SELECT {MARK} {function} - '0/0'::pg_lsn {from}");
        let server_position = position("pg_current_wal_flush_lsn()", "");
        let replica_position = if is_standby {
            position("pg_last_wal_replay_lsn()", "")
        } else {
            position("max(latest_end_lsn)", "FROM pg_stat_subscription WHERE relid IS NULL")
        };
        let conflicts = format!(
            "SELECT {MARK} sum(confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock) \
             FROM pg_stat_database_conflicts"
        );
        let read_conflicts = is_standby.then(|| replica.prepare([conflicts.as_str()])).transpose()?;
        Ok(Self {
            write_marker: server.prepare([write.as_str()])?,
            read_marker: replica.prepare([read.as_str()])?,
            read_state: replica.prepare([state.as_str()])?,
            read_server_position: server.prepare([server_position.as_str()])?,
            read_replica_position: replica.prepare([replica_position.as_str()])?,
            read_conflicts,
            server,
            replica,
        })
    }

    /// Writes the marker row on the server; returns its number once it is committed.
    pub(crate) fn write_marker(&mut self) -> Result<i64, CollectError> {
        let number = number(self.server.query_prepared(&self.write_marker)?);
        number.map(|number| number as i64).ok_or(CollectError::Unreported("marker row"))
    }

    /// The number of the marker row that sessions of the replica see.
    pub(crate) fn read_marker(&mut self) -> Result<Option<i64>, CollectError> {
        Ok(number(self.replica.query_prepared(&self.read_marker)?).map(|number| number as i64))
    }

    /// What replay is doing; none if it does not run.
    pub(crate) fn state(&mut self) -> Result<Option<ReplayState>, CollectError> {
        let results = self.replica.query_prepared(&self.read_state)?;
        let row = results.iter().flat_map(rows).next();
        Ok(row.map(|row| ReplayState::from_wait(row.get(0).as_deref(), row.get(1).as_deref())))
    }

    /// WAL of the server that the replica has not replayed, in bytes.
    pub(crate) fn lag_bytes(&mut self) -> Result<Option<f64>, CollectError> {
        // What is replayed between both queries is no lag below zero.
        let replayed = number(self.replica.query_prepared(&self.read_replica_position)?);
        let written = number(self.server.query_prepared(&self.read_server_position)?);
        Ok(written.zip(replayed).map(|(written, replayed)| (written - replayed).max(0.0)))
    }

    /// Queries that a standby has cancelled because of conflicts; none of a subscriber.
    pub(crate) fn conflicts(&mut self) -> Result<Option<f64>, CollectError> {
        let Some(conflicts) = &self.read_conflicts else { return Ok(None) };
        Ok(number(self.replica.query_prepared(conflicts)?))
    }
}

/// The number in the first column of the only row.
fn number(results: &[ResultSet]) -> Option<f64> {
    results.iter().flat_map(rows).next()?.get(0)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replay_does_follows_from_its_wait_event() {
        for (wait, state) in [
            (None, ReplayState::Busy),
            (Some(("IO", "DataFileRead")), ReplayState::Busy),
            (Some(("Timeout", "PgSleep")), ReplayState::Busy),
            (Some(("Activity", "RecoveryWalStream")), ReplayState::Idle),
            (Some(("Activity", "RecoveryWalAll")), ReplayState::Idle),
            (Some(("Activity", "LogicalApplyMain")), ReplayState::Idle),
            (Some(("Timeout", "RecoveryRetrieveRetryInterval")), ReplayState::Idle),
            (Some(("Timeout", "RecoveryApplyDelay")), ReplayState::Delay),
            (Some(("IPC", "RecoveryConflictSnapshot")), ReplayState::Conflict),
            (Some(("BufferPin", "BufferPin")), ReplayState::Conflict),
            (Some(("Lock", "relation")), ReplayState::Conflict),
        ] {
            let found =
                ReplayState::from_wait(wait.map(|(event_type, _)| event_type), wait.map(|(_, event)| event));
            assert_eq!(found, state, "{wait:?}");
        }
    }
}
