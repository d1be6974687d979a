//! Cost of each statement of the tested database between two times, from the extension `pg_stat_statements`.
//!
//! Source: PostgreSQL manual, "pg_stat_statements". pgdyno's own statements are excluded: its sessions turn it off if
//! their role may, and their statements are marked.

use std::collections::HashMap;

use model::waits::StatementUse;

use wire::quote_literal;

use super::session::{MARK, Row, Session};
use crate::error::CollectError;

/// Number of the costliest statements that are kept.
const MAX_STATEMENTS: usize = 100;

/// Costs of statements at the start of a load.
#[derive(Debug)]
pub struct Statements {
    sql: String,
    before: HashMap<i64, Counts>,
}

/// Counters since an arbitrary start.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u64,
    total_us: f64,
    rows: u64,
    hit: u64,
    read: u64,
    dirtied: u64,
    wal_bytes: Option<f64>,
}

impl Statements {
    /// Reads the costs so far. The session may be with any database that has the extension; none if it has not, or if
    /// the server did not load it.
    ///
    /// # Errors
    /// The server does not respond.
    pub fn before(session: &mut Session, tested_database: &str) -> Result<Option<Self>, CollectError> {
        let found = session.query(&extension_query())?.next();
        let Some(sql) = found.and_then(|row| counts_query(row, tested_database)) else {
            return Ok(None);
        };
        let before = read_counts(session, &sql)?;
        let before = before.into_iter().map(|(id, _, counts)| (id, counts)).collect();
        Ok(Some(Self { sql, before }))
    }

    /// Costs since then: the hundred costliest statements by time, in that order. If the counts of one decreased (it
    /// was evicted, or all were reset), they count from zero.
    ///
    /// # Errors
    /// The server does not respond.
    pub fn since(&self, session: &mut Session) -> Result<Vec<StatementUse>, CollectError> {
        let mut uses: Vec<StatementUse> = read_counts(session, &self.sql)?
            .into_iter()
            .filter_map(|(id, query, now)| {
                let before = self.before.get(&id).filter(|before| before.calls <= now.calls);
                let cost = now.since(before.copied().unwrap_or_default());
                (cost.calls > 0).then(|| cost.into_use(id, query))
            })
            .collect();
        uses.sort_by(|one, other| other.total_us.total_cmp(&one.total_us));
        uses.truncate(MAX_STATEMENTS);
        Ok(uses)
    }
}

/// Query for the extension's schema and the columns of its version: `total_time` became `total_exec_time` when planning
/// was counted separately. The setting exists only if the server has loaded the extension.
fn extension_query() -> String {
    format!(
        "SELECT {MARK} quote_ident(n.nspname), 'total_exec_time' = ANY (p.proargnames), \
         'wal_bytes' = ANY (p.proargnames) \
         FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'pg_stat_statements' \
         WHERE e.extname = 'pg_stat_statements' \
         AND EXISTS (SELECT FROM pg_settings WHERE name = 'pg_stat_statements.track')"
    )
}

/// One row per statement, summed over roles.
fn counts_query(found: Row<'_>, database: &str) -> Option<String> {
    let schema = found.get(0)?;
    let time = if found.get(1).as_deref() == Some("t") { "total_exec_time" } else { "total_time" };
    let wal = if found.get(2).as_deref() == Some("t") { "sum(s.wal_bytes)" } else { "NULL" };
    Some(format!(
        "SELECT {MARK} s.queryid, min(s.query), sum(s.calls), sum(s.{time}) * 1000, sum(s.rows), \
         sum(s.shared_blks_hit), sum(s.shared_blks_read), sum(s.shared_blks_dirtied), {wal} \
         FROM {schema}.pg_stat_statements(true) s JOIN pg_database d ON d.oid = s.dbid \
         WHERE d.datname = {} AND s.queryid IS NOT NULL AND s.query NOT LIKE '%{MARK}%' GROUP BY s.queryid",
        quote_literal(database)
    ))
}

fn read_counts(session: &mut Session, sql: &str) -> Result<Vec<(i64, String, Counts)>, CollectError> {
    let rows = session.query(sql)?;
    Ok(rows.filter_map(statement).collect())
}

fn statement(row: Row<'_>) -> Option<(i64, String, Counts)> {
    let count = |column| row.get(column)?.parse::<u64>().ok();
    let number = |column| row.get(column)?.parse::<f64>().ok();
    let counts = Counts {
        calls: count(2)?,
        total_us: number(3)?,
        rows: count(4)?,
        hit: count(5)?,
        read: count(6)?,
        dirtied: count(7)?,
        wal_bytes: number(8),
    };
    Some((row.get(0)?.parse().ok()?, row.get(1)?.into_owned(), counts))
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            total_us: (self.total_us - before.total_us).max(0.0),
            rows: self.rows.saturating_sub(before.rows),
            hit: self.hit.saturating_sub(before.hit),
            read: self.read.saturating_sub(before.read),
            dirtied: self.dirtied.saturating_sub(before.dirtied),
            wal_bytes: self.wal_bytes.map(|bytes| (bytes - before.wal_bytes.unwrap_or_default()).max(0.0)),
        }
    }

    fn into_use(self, query_id: i64, query: String) -> StatementUse {
        StatementUse {
            query_id,
            query,
            calls: self.calls,
            total_us: self.total_us,
            rows: self.rows,
            shared_hit_blocks: self.hit,
            shared_read_blocks: self.read,
            shared_dirtied_blocks: self.dirtied,
            wal_bytes: self.wal_bytes,
        }
    }
}
