//! The server's own count of transactions in the tested database.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System". A backend reports its counts at the latest when it
//! ends. From 15 on they are in shared memory before it disappears from `pg_stat_activity`. Before, they are sent to
//! the statistics collector as datagrams, and the collector writes them to files that may be half a second old.

use std::time::{Duration, Instant};

use model::version::Major;
use wire::blocking::{Session, SessionError};

use crate::control::Control;
use crate::error::Error;
use host::process::POLL_INTERVAL;

/// Time limit for clients to disappear, and then for the count to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time to settle: the collector's files are at most half as old.
const COLLECTOR_DELAY_US: Micros = 600_000;

/// A time of the server, in microseconds since 1970.
type Micros = i64;

impl Control {
    pub(crate) fn commits(&self, expected: Option<u64>) -> Result<u64, Error> {
        let mut session = self.session()?;
        let sql = |error| self.error("count the transactions", &error);
        let idle_since = self.wait_for_no_connections(&mut session)?;
        if self.major >= Major::new(15) {
            return Ok(read(&mut session).map_err(sql)?.0);
        }
        let end = Instant::now() + SETTLE_TIMEOUT;
        let mut previous: Option<(u64, Micros)> = None;
        loop {
            let (count, written) = read(&mut session).map_err(sql)?;
            // A file from before the last client's end is stale.
            if written.is_some_and(|written| written > idle_since) || Instant::now() > end {
                let written = written.unwrap_or(idle_since);
                let is_settled =
                    |(before, then): (u64, Micros)| before == count && written - then >= COLLECTOR_DELAY_US;
                if expected == Some(count) || previous.is_some_and(is_settled) || Instant::now() > end {
                    return Ok(count);
                }
                if previous.is_none_or(|(before, _)| before != count) {
                    previous = Some((count, written));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the tested database has no connections; returns the server's time then.
    fn wait_for_no_connections(&self, session: &mut Session) -> Result<Micros, Error> {
        let sql = |error| self.error("query the connections", &error);
        let end = Instant::now() + SETTLE_TIMEOUT;
        // A subscriber's stays, and commits nothing.
        let others = if self.major >= Major::new(10) { " AND backend_type <> 'walsender'" } else { "" };
        loop {
            let sessions = format!(
                "SELECT count(*), {} FROM pg_stat_activity WHERE datname = '{}'{others}",
                micros("clock_timestamp()"),
                crate::DATABASE
            );
            let (connections, now): (u64, Micros) = session.query_one(&sessions).map_err(sql)?;
            if connections == 0 {
                return Ok(now);
            }
            if Instant::now() > end {
                return Err(Error::Sql {
                    doing: "count the transactions".to_owned(),
                    server: self.display_name.clone(),
                    why: format!(
                        "{connections} connections to the database {} did not end within {} s",
                        crate::DATABASE,
                        SETTLE_TIMEOUT.as_secs()
                    ),
                    outage: None,
                });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// The count, and the time at which the collector wrote it (none from 15 on, where it is current).
fn read(session: &mut Session) -> Result<(u64, Option<Micros>), SessionError> {
    session.query_one(&format!(
        "SELECT coalesce(xact_commit, 0), {} FROM pg_stat_database WHERE datname = '{}'",
        micros("pg_stat_get_snapshot_timestamp()"),
        crate::DATABASE
    ))
}

/// A time of the server, as SQL.
fn micros(time: &str) -> String {
    format!("(extract(epoch FROM {time}) * 1000000)::bigint")
}
