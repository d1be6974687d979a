//! pgdyno's session for queries during a load.
//!
//! Each question is one round trip and exactly one transaction, however many statements are in it: one message of the
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

/// In each statement after its first word, for readers of the server's log and of `pg_stat_statements`. Not before it:
/// what is before the first word of a statement is not always kept with it.
pub(super) const MARK: &str = "/* pgdyno */";
/// What the `application_name` of all of pgdyno's own sessions begins with; that of the load's has no space.
pub(super) const OWN_NAMES: &str = "pgdyno ";

/// How long connecting may take where the parameters do not say.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// How much longer than a statement may take it is waited for the server's word that it did.
const SILENCE: Duration = Duration::from_secs(20);

/// How many commits a database has counted for a session, as far as the session has come. It stays valid when the
/// session has been given away.
#[derive(Clone, Debug)]
pub struct Commits(Arc<AtomicU64>);

impl Commits {
    /// The commits so far: that of the connection's start, and one for each question that was answered.
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
    /// Connects. In `pg_stat_activity` its `application_name` is `pgdyno` and `purpose`. What takes longer than `timeout`
    /// is given up by the server.
    ///
    /// # Errors
    /// The server does not let in, or does not answer.
    pub fn open(params: &ConnectParams, purpose: &str, timeout: Duration) -> Result<Self, CollectError> {
        let mut params = params.clone();
        params.application_name = Some(format!("{OWN_NAMES}{purpose}"));
        // As rows are read here.
        params.client_encoding = Some("UTF8".to_owned());
        params.connect_timeout.get_or_insert(CONNECT_WITHIN);
        // The server has been chosen. What kind of a session it is would be asked for, which is a transaction.
        params.target_session_attrs = TargetSessionAttrs::Any;
        let mut session = blocking::Session::connect(&params).map_err(CollectError::Session)?;
        session.limit_answers(timeout.saturating_add(SILENCE)).map_err(CollectError::Session)?;
        // The connection's start is a transaction of its own.
        let commits = Commits(Arc::new(AtomicU64::new(1)));
        let mut session = Self { session, major: 0, pid: 0, commits };
        let facts = session.ask(&settings(timeout))?.next();
        let number = facts.and_then(|row| row.get(1)?.parse::<u32>().ok());
        let pid = facts.and_then(|row| row.get(2)?.parse().ok());
        session.major = Major::from_number(number.ok_or(CollectError::Unreported("version"))?).first();
        session.pid = pid.ok_or(CollectError::Unreported("backend's process id"))?;
        Ok(session)
    }

    /// What the database that this session is in counts for it.
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

    /// Has the server plan questions once that are asked again and again; planning is most of what they cost it.
    pub(super) fn prepare<'a>(
        &mut self,
        questions: impl IntoIterator<Item = &'a str>,
    ) -> Result<Prepared, CollectError> {
        let prepared = self.session.prepare(questions)?;
        self.commits.add_one();
        Ok(prepared)
    }

    /// Asks one thing. Gives the rows of all statements, in order.
    pub(super) fn ask(&mut self, sql: &str) -> Result<impl Iterator<Item = Row<'_>>, CollectError> {
        let results = self.session.ask(sql)?;
        self.commits.add_one();
        Ok(results.iter().flat_map(rows))
    }

    /// Asks what was prepared. Gives each question's result.
    pub(super) fn ask_prepared(&mut self, prepared: &Prepared) -> Result<&[ResultSet], CollectError> {
        let results = self.session.ask_prepared(prepared)?;
        self.commits.add_one();
        Ok(results)
    }
}

/// A row of an answer, where it was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a>(Values<'a>);

/// The rows of one question.
pub(super) fn rows(result: &ResultSet) -> impl Iterator<Item = Row<'_>> {
    result.kept_rows().map(Row)
}

impl<'a> Row<'a> {
    /// The text of a column, counted from 0; none where it is null.
    pub(super) fn get(&self, column: usize) -> Option<Cow<'a, str>> {
        self.values().nth(column)?
    }

    /// The texts of all columns; none where they are null. What is no UTF-8 can come of a database without an encoding.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<Cow<'a, str>>> + use<'a> {
        self.0.map(|value| value.map(String::from_utf8_lossy))
    }
}

/// The statement that sets, of what a session of ours wants, all that there is and that its role may set.
fn settings(timeout: Duration) -> String {
    let wanted = [
        ("statement_timeout", timeout.as_millis().max(1).to_string()),
        // As names are written here.
        ("standard_conforming_strings", "on".to_owned()),
        ("search_path", "pg_catalog".to_owned()),
        // Costs more than it gains; and before 12, workers are counted as transactions.
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
