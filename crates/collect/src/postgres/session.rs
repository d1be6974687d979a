//! One session of pgdyno's own with the server, for what is asked of it beside a load.
//!
//! Each question is one message of the simple protocol: one round trip and exactly one transaction, however many
//! statements are in it. Source: PostgreSQL manual, "Message Flow", "Simple Query".

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

/// In each statement after its first word, for readers of the server's log and of `pg_stat_statements`. Not before it:
/// what is before the first word of a statement is not always kept with it.
pub(super) const MARK: &str = "/* pgdyno */";
/// What the `application_name` of all of pgdyno's own sessions begins with; that of the load's has no space.
pub(super) const OWN_NAMES: &str = "pgdyno ";

/// How many commits a database has counted for a session, as far as the session has come. It stays valid when the
/// session has been given away.
#[derive(Clone, Debug)]
pub struct Commits(Arc<AtomicU64>);

impl Commits {
    /// The commits so far: that of the connection's start, and one for each question that was answered.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A session for questions beside a load.
pub struct Session {
    client: Client,
    major: u32,
    pid: i32,
    commits: Commits,
    prepared: u32,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("major", &self.major)
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

/// An answer that did not come.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Whether the server refused the statement itself, and will again.
    pub(super) lasting: bool,
    pub(super) why: String,
}

impl Session {
    /// Takes over a connection that nothing has been asked of. In `pg_stat_activity` its `application_name` is `pgdyno`
    /// and `purpose`. What takes longer than `timeout` is given up by the server.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn open(client: Client, purpose: &str, timeout: Duration) -> Result<Self, String> {
        // The connection's start is a transaction of its own.
        let commits = Commits(Arc::new(AtomicU64::new(1)));
        let mut session = Self { client, major: 0, pid: 0, commits, prepared: 0 };
        let rows = session.ask(&settings(purpose, timeout)).map_err(|refusal| refusal.why)?;
        let number = rows.first().and_then(|row| row.get(1)?.parse::<u32>().ok());
        session.major = number.ok_or("the server does not tell its version")? / 10_000;
        let pid = rows.first().and_then(|row| row.get(2)?.parse().ok());
        session.pid = pid.ok_or("the server does not tell which of its processes answers")?;
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

    /// Has the server plan questions once that are asked again and again; planning is most of what they cost it. Gives
    /// what asks them from then on.
    pub(super) fn prepare<'a>(
        &mut self,
        questions: impl IntoIterator<Item = &'a str>,
    ) -> Result<String, Refusal> {
        let (mut prepare, mut execute) = (Vec::new(), Vec::new());
        for question in questions {
            // Another name each time: what failed together with others may be there all the same.
            self.prepared += 1;
            prepare.push(format!("PREPARE q{} AS {question}", self.prepared));
            execute.push(format!("EXECUTE {MARK} q{}", self.prepared));
        }
        self.ask(&prepare.join("; "))?;
        Ok(execute.join("; "))
    }

    /// Asks one thing. Gives the rows of all statements, in order.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Vec<SimpleQueryRow>, Refusal> {
        Ok(self.ask_several(sql)?.into_iter().flatten().collect())
    }

    /// Asks several things at once, separated by `;`. Gives each one's rows.
    pub(super) fn ask_several(&mut self, sql: &str) -> Result<Vec<Vec<SimpleQueryRow>>, Refusal> {
        let messages = self.client.simple_query(sql).map_err(refusal)?;
        self.commits.0.fetch_add(1, Ordering::Relaxed);
        let mut answers = vec![Vec::new()];
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    if let Some(rows) = answers.last_mut() {
                        rows.push(row);
                    }
                }
                SimpleQueryMessage::CommandComplete(_) => answers.push(Vec::new()),
                _ => {}
            }
        }
        answers.pop();
        Ok(answers)
    }
}

/// A text as a literal of SQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The statement that sets, of what a session of ours wants, all that there is and that its role may set.
fn settings(purpose: &str, timeout: Duration) -> String {
    let wanted = [
        ("application_name", format!("{OWN_NAMES}{purpose}")),
        ("statement_timeout", timeout.as_millis().max(1).to_string()),
        // As `literal` writes, and as names are written here.
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
        wanted.iter().map(|(name, value)| format!("('{name}', {})", literal(value))).collect();
    format!(
        "SELECT {MARK} pg_catalog.set_config(s.name, w.value, false), pg_catalog.current_setting('server_version_num'), \
         pg_catalog.pg_backend_pid() \
         FROM (VALUES {}) w(name, value) JOIN pg_catalog.pg_settings s ON s.name = w.name \
         WHERE s.context = 'user' \
         OR s.context = 'superuser' AND pg_catalog.current_setting('is_superuser') = 'on'",
        wanted.join(", ")
    )
}

fn refusal(error: postgres::Error) -> Refusal {
    match error.as_db_error() {
        Some(refused) => {
            let passing =
                [&SqlState::QUERY_CANCELED, &SqlState::LOCK_NOT_AVAILABLE, &SqlState::OUT_OF_MEMORY];
            let class = refused.code().code().get(..2);
            Refusal {
                lasting: !passing.contains(&refused.code()) && !matches!(class, Some("53" | "57")),
                why: format!("the server answers: {} ({})", refused.message(), refused.code().code()),
            }
        }
        None => {
            let mut why = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(source) = cause {
                why = format!("{why}: {source}");
                cause = source.source();
            }
            Refusal { lasting: false, why }
        }
    }
}
