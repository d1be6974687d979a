//! pgdyno's session for queries during a load.
//!
//! Each query is one round trip and exactly one transaction, regardless of its number of statements: one message of the
//! simple protocol, or prepared statements up to one Sync. Source: PostgreSQL manual, "Message Flow".

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::version::Major;
use wire::blocking;
use wire::{ConnectParams, ResultSet, TargetSessionAttrs, Values, quote_literal};

use crate::error::CollectError;

pub(super) use wire::blocking::Prepared;

/// Marks each statement, after its first word, in the server's log and in `pg_stat_statements`. Not before it: comments
/// before the first word of a statement are not always kept.
pub(super) const MARK: &str = "/* pgdyno */";
/// Prefix of the `application_name` of pgdyno's own sessions; that of the load's has no space.
pub(super) const OWN_NAME_PREFIX: &str = "pgdyno ";

/// Default time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time to wait, beyond a statement's own limit, for the server to report that it was exceeded.
const RESPONSE_GRACE_PERIOD: Duration = Duration::from_secs(20);

/// Commits that a database has counted for a session so far. It stays valid when the session has been moved.
#[derive(Clone, Debug)]
pub struct Commits(Arc<AtomicU64>);

impl Commits {
    /// The commits so far: one for the connection's start-up, and one for each answered query.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A session for queries during a load.
pub struct Session {
    session: blocking::Session,
    major: u32,
    pid: i32,
    commits: Commits,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("major", &self.major)
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects. In `pg_stat_activity` its `application_name` is `pgdyno` and `purpose`. The server cancels statements
    /// that exceed `timeout`.
    ///
    /// # Errors
    /// The server rejects the connection, or does not respond.
    pub fn open(params: &ConnectParams, purpose: &str, timeout: Duration) -> Result<Self, CollectError> {
        let mut params = params.clone();
        params.application_name = Some(format!("{OWN_NAME_PREFIX}{purpose}"));
        // As rows are decoded here.
        params.client_encoding = Some("UTF8".to_owned());
        params.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        // The server has been chosen. Checking attributes of its session would take a query, which is a transaction.
        params.target_session_attrs = TargetSessionAttrs::Any;
        let mut session = blocking::Session::connect(&params).map_err(CollectError::Session)?;
        session.set_timeout(timeout.saturating_add(RESPONSE_GRACE_PERIOD)).map_err(CollectError::Session)?;
        // The connection's start-up is a transaction of its own.
        let commits = Commits(Arc::new(AtomicU64::new(1)));
        let mut session = Self { session, major: 0, pid: 0, commits };
        let facts = session.query(&settings(timeout))?.next();
        let number = facts.and_then(|row| row.get(1)?.parse::<u32>().ok());
        let pid = facts.and_then(|row| row.get(2)?.parse().ok());
        session.major = Major::from_number(number.ok_or(CollectError::Unreported("version"))?).first();
        session.pid = pid.ok_or(CollectError::Unreported("backend's process id"))?;
        Ok(session)
    }

    /// Commits that the session's database counts for it.
    pub fn commits(&self) -> Commits {
        self.commits.clone()
    }

    /// The server's major version; 9 stands for 9.6.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Process id of the server's backend.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Prepares queries that are repeated, so that the server plans them once; planning is most of their cost.
    pub(super) fn prepare<'a>(
        &mut self,
        queries: impl IntoIterator<Item = &'a str>,
    ) -> Result<Prepared, CollectError> {
        let prepared = self.session.prepare(queries)?;
        self.commits.add_one();
        Ok(prepared)
    }

    /// Runs one query and returns the rows of all its statements, in order.
    pub(super) fn query(&mut self, sql: &str) -> Result<impl Iterator<Item = Row<'_>>, CollectError> {
        let results = self.session.query_results(sql)?;
        self.commits.add_one();
        Ok(results.iter().flat_map(rows))
    }

    /// Runs prepared queries and returns the result of each.
    pub(super) fn query_prepared(&mut self, prepared: &Prepared) -> Result<&[ResultSet], CollectError> {
        let results = self.session.query_prepared(prepared)?;
        self.commits.add_one();
        Ok(results)
    }
}

/// A row of a result, in the receive buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a>(Values<'a>);

/// The rows of one result.
pub(super) fn rows(result: &ResultSet) -> impl Iterator<Item = Row<'_>> {
    result.kept_rows().map(Row)
}

impl<'a> Row<'a> {
    /// The text of a column, counted from 0; none if null.
    pub(super) fn get(&self, column: usize) -> Option<Cow<'a, str>> {
        self.values().nth(column)?
    }

    /// The texts of all columns; none for nulls. A database without an encoding may return text that is not UTF-8.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<Cow<'a, str>>> + use<'a> {
        self.0.map(|value| value.map(String::from_utf8_lossy))
    }
}

/// The statement that configures a session of ours, limited to settings that exist and that its role may set.
fn settings(timeout: Duration) -> String {
    let wanted = [
        ("statement_timeout", timeout.as_millis().max(1).to_string()),
        // As string literals here require.
        ("standard_conforming_strings", "on".to_owned()),
        ("search_path", "pg_catalog".to_owned()),
        // They cost more than they gain; and before 12, workers are counted as transactions.
        ("max_parallel_workers_per_gather", "0".to_owned()),
        ("jit", "off".to_owned()),
        // It is idle most of the time.
        ("idle_session_timeout", "0".to_owned()),
        ("pg_stat_statements.track", "none".to_owned()),
    ];
    let wanted: Vec<String> =
        wanted.iter().map(|(name, value)| format!("('{name}', {})", quote_literal(value))).collect();
    format!(
        "SELECT {MARK} pg_catalog.set_config(s.name, w.value, false), pg_catalog.current_setting('server_version_num'), \
         pg_catalog.pg_backend_pid() \
         FROM (VALUES {}) w(name, value) JOIN pg_catalog.pg_settings s ON s.name = w.name \
         WHERE s.context = 'user' \
         OR s.context = 'superuser' AND pg_catalog.current_setting('is_superuser') = 'on'",
        wanted.join(", ")
    )
}
