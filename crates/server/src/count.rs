//! The server's own count of transactions in the tested database.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System". A backend hands its counts in at the latest when it
//! ends. From 15 on they are in shared memory before it disappears from `pg_stat_activity`. Before, they go to the
//! statistics collector as datagrams, and the collector writes them to files that may be half a second old.

use std::time::{Duration, Instant, SystemTime};

use postgres::Client;

use crate::Major;
use crate::control::Control;
use crate::error::Error;
use host::process::LOOK_AGAIN;

/// How long clients have to disappear, and then the count to settle.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// The collector's files are at most half as old as this.
const COLLECTOR_SETTLES: Duration = Duration::from_millis(600);

impl Control {
    pub(crate) fn commits(&self, expected: Option<u64>) -> Result<u64, Error> {
        let mut client = self.session()?;
        let sql = |error| self.error("count the transactions", &error);
        let nobody_since = self.wait_for_nobody(&mut client)?;
        if self.major >= Major::new(15) {
            return Ok(read(&mut client).map_err(sql)?.0);
        }
        let end = Instant::now() + SETTLED_WITHIN;
        let mut earlier: Option<(u64, SystemTime)> = None;
        loop {
            let (count, written) = read(&mut client).map_err(sql)?;
            // A file from before the last client's end tells nothing.
            if written.is_some_and(|written| written > nobody_since) || Instant::now() > end {
                let written = written.unwrap_or(nobody_since);
                let settled = |(before, then): (u64, SystemTime)| {
                    before == count && written.duration_since(then).is_ok_and(|gap| gap >= COLLECTOR_SETTLES)
                };
                if expected == Some(count) || earlier.is_some_and(settled) || Instant::now() > end {
                    return Ok(count);
                }
                if earlier.is_none_or(|(before, _)| before != count) {
                    earlier = Some((count, written));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the tested database has no connection; gives the server's time then.
    fn wait_for_nobody(&self, client: &mut Client) -> Result<SystemTime, Error> {
        let sql = |error| self.error("look at the connections", &error);
        let end = Instant::now() + SETTLED_WITHIN;
        loop {
            let row = client
                .query_one(
                    "SELECT count(*), clock_timestamp() FROM pg_stat_activity WHERE datname = $1::text",
                    &[&crate::DATABASE],
                )
                .map_err(sql)?;
            let connections: i64 = row.get(0);
            if connections == 0 {
                return Ok(row.get(1));
            }
            if Instant::now() > end {
                return Err(Error::Sql {
                    doing: "count the transactions".to_owned(),
                    server: self.called.clone(),
                    why: format!(
                        "{connections} connections to the database {} have not ended after {} s",
                        crate::DATABASE,
                        SETTLED_WITHIN.as_secs()
                    ),
                });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// The count, and when the collector wrote it (none from 15 on, where it is as of now).
fn read(client: &mut Client) -> Result<(u64, Option<SystemTime>), postgres::Error> {
    let row = client.query_one(
        "SELECT coalesce(xact_commit, 0), pg_stat_get_snapshot_timestamp() FROM pg_stat_database WHERE datname = $1::text",
        &[&crate::DATABASE],
    )?;
    Ok((u64::try_from(row.get::<_, i64>(0)).unwrap_or_default(), row.get(1)))
}
