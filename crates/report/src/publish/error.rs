//! Errors of publishing.

use store::StoreError;
use wire::blocking::SessionError;

/// Error of publishing. Trials in the schema are complete in any case.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The server can't be reached, or refuses a statement.
    #[error("{}{}", .0, advice(.0))]
    Session(#[from] SessionError),
    /// A trial's transaction could not be committed.
    #[error("trial {trial}: {source}{}", advice(.source))]
    Commit {
        /// Id of the trial.
        trial: String,
        /// Reason.
        source: SessionError,
    },
    /// A load is running on the server.
    #[error(
        "a load of pgdyno is running on this server ({sessions} sessions) and publishing would disturb the measurement; wait \
         until it has ended"
    )]
    Busy {
        /// Its sessions.
        sessions: u64,
    },
    /// The schema has relations, and they are not pgdyno's.
    #[error(
        "it has tables that are not pgdyno's: name another schema with --schema; it is created if it does not exist"
    )]
    Foreign,
    /// The tables were created by a later release.
    #[error(
        "its tables are of version {found}, and this pgdyno knows them up to {known}: use the release that created them, or \
         another schema (--schema)"
    )]
    LaterVersion {
        /// Version of the tables.
        found: u32,
        /// Newest known version.
        known: u32,
    },
    /// The table of the version is empty.
    #[error("its table {table} has no version: use another schema (--schema)")]
    NoVersion {
        /// Name of the table.
        table: &'static str,
    },
    /// None of the trials can be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Advice on an error, if there is any.
fn advice(error: &SessionError) -> &'static str {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    const DISK_FULL: &str = "53100";
    match error.server_error().and_then(|error| error.code()) {
        Some(INSUFFICIENT_PRIVILEGE) => {
            "; the role needs CREATE on the database, or a schema of its own: CREATE SCHEMA … AUTHORIZATION …, run by an \
             administrator"
        }
        Some(DISK_FULL) => "; the trials already published are complete: free space and repeat the command",
        _ if error.needs_password() => "; set PGPASSWORD or use a password file (~/.pgpass)",
        _ => "",
    }
}
