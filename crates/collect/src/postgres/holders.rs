//! Holders of the locks that sessions of the load wait for.
//!
//! Source: PostgreSQL manual, "System Information Functions", `pg_blocking_pids`. It stops the lock manager for a
//! moment, hence at most once per second.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::record::{ClockReading, Event};

use super::session::{MARK, Row, Session};
use crate::error::CollectError;

/// Interval between queries.
const QUERY_INTERVAL_US: i64 = 1_000_000;
/// Maximum number of waiting sessions whose blockers are queried: more add cost but little information.
const MAX_WAITING: usize = 32;
/// State of a session that holds locks without running a statement.
const IDLE: &str = "idle in transaction";

/// A session that others waited for, and that did not wait for a lock itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Its process id; 0 for a prepared transaction.
    pub pid: i32,
    /// Its `application_name`; without one, its kind, such as `autovacuum worker`.
    pub application_name: String,
    /// Its `state` in its last sample.
    pub state: Option<String>,
    /// Whether it was ever sampled `idle in transaction`.
    pub was_idle: bool,
    /// Whether it is one of the load's clients.
    pub is_load: bool,
    /// Times of its first and last sample.
    pub first: ClockReading,
    /// See `first`.
    pub last: ClockReading,
    /// Number of samples, at most one per second.
    pub samples: u32,
    /// Sessions of the load that it blocked, directly or indirectly, summed over all samples.
    pub sessions_blocked: u64,
    /// Longest age of its transaction in a sample, in microseconds; none if not visible.
    pub xact_age_us: Option<f64>,
}

impl Holder {
    /// Its event of kind `lock-holder`; none for a load's client that was busy: waits within the load are reported as
    /// wait events.
    pub(super) fn event(&self) -> Option<Event> {
        if self.is_load && !self.was_idle {
            return None;
        }
        let held_us = (self.last.monotonic_us - self.first.monotonic_us) as f64;
        let blocked = self.sessions_blocked as f64 / f64::from(self.samples);
        let what = match &self.state {
            _ if self.was_idle => IDLE,
            Some(state) => state,
            None => "state unknown",
        };
        let who = match (self.pid, self.application_name.as_str()) {
            (0, _) => "a prepared transaction".to_owned(),
            (pid, "") => format!("session {pid} ({what})"),
            (pid, name) => format!("session {pid} ({name}, {what})"),
        };
        let message = format!(
            "{who} blocked {blocked:.0} sessions of the load for {:.1} s, in {} samples",
            held_us / 1e6,
            self.samples
        );
        let mut figures = BTreeMap::from([
            ("held_us".to_owned(), held_us),
            ("is_load".to_owned(), f64::from(u8::from(self.is_load))),
            ("looks".to_owned(), f64::from(self.samples)),
            ("pid".to_owned(), f64::from(self.pid)),
            ("sessions_blocked".to_owned(), blocked),
        ]);
        figures.extend(self.xact_age_us.map(|age| ("xact_age_us".to_owned(), age)));
        Some(Event {
            at: Timestamp::from_microsecond(self.first.unix_us).ok()?,
            kind: "lock-holder".to_owned(),
            message,
            object: Some(self.application_name.clone()).filter(|name| !name.is_empty()),
            figures,
        })
    }
}

/// All holders sampled.
#[derive(Debug)]
pub(super) struct Holders {
    sql: String,
    last_query_us: Option<i64>,
    holders: Vec<Holder>,
}

/// A session in a transaction or waiting for a lock.
#[derive(Debug, Default)]
struct LockSession {
    waits: bool,
    /// Empty if not queried.
    waits_for: Vec<i32>,
    is_load: bool,
    application_name: String,
    state: Option<String>,
    xact_age_us: Option<f64>,
}

impl Holders {
    /// `is_load` is an SQL condition.
    pub(super) fn new(major: u32, is_load: &str) -> Self {
        let name = match major {
            ..10 => "a.application_name",
            _ => "coalesce(nullif(a.application_name, ''), nullif(a.backend_type, 'client backend'))",
        };
        let sql = format!(
            "SELECT {MARK} a.pid, array_to_string(b.pids, ' '), {is_load}, {name}, a.state, \
             extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000, a.wait_event_type = 'Lock' \
             FROM pg_stat_get_activity(NULL) a LEFT JOIN (SELECT w.pid, pg_blocking_pids(w.pid) AS pids \
             FROM pg_stat_get_activity(NULL) w WHERE w.wait_event_type = 'Lock' LIMIT {MAX_WAITING}) b ON b.pid = a.pid \
             WHERE a.xact_start IS NOT NULL OR a.wait_event_type = 'Lock'"
        );
        Self { sql, last_query_us: None, holders: Vec::new() }
    }

    /// Samples, at most once per second.
    pub(super) fn sample(&mut self, session: &mut Session, at: ClockReading) -> Result<(), CollectError> {
        if self.last_query_us.is_some_and(|last_us| at.monotonic_us < last_us + QUERY_INTERVAL_US) {
            return Ok(());
        }
        self.last_query_us = Some(at.monotonic_us);
        let rows = session.query(&self.sql)?;
        let sessions = rows.filter_map(lock_session).collect();
        self.add(&sessions, at);
        Ok(())
    }

    pub(super) fn all(&self) -> Vec<Holder> {
        self.holders.clone()
    }

    fn add(&mut self, sessions: &BTreeMap<i32, LockSession>, at: ClockReading) {
        for (pid, blocked) in holders(sessions) {
            let unknown = LockSession::default();
            let lock_session = sessions.get(&pid).unwrap_or(&unknown);
            let place = self.holders.iter().position(|holder| holder.pid == pid).unwrap_or_else(|| {
                self.holders.push(Holder {
                    pid,
                    application_name: lock_session.application_name.clone(),
                    state: None,
                    was_idle: false,
                    is_load: lock_session.is_load,
                    first: at,
                    last: at,
                    samples: 0,
                    sessions_blocked: 0,
                    xact_age_us: None,
                });
                self.holders.len() - 1
            });
            let holder = &mut self.holders[place];
            holder.state.clone_from(&lock_session.state);
            holder.was_idle |= lock_session.state.as_deref().is_some_and(|state| state.starts_with(IDLE));
            holder.last = at;
            holder.samples += 1;
            holder.sessions_blocked += blocked;
            holder.xact_age_us = match (holder.xact_age_us, lock_session.xact_age_us) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
        }
    }
}

/// Sessions that block the load without waiting themselves, with numbers of blocked sessions.
fn holders(sessions: &BTreeMap<i32, LockSession>) -> BTreeMap<i32, u64> {
    let mut held = BTreeMap::new();
    for (pid, _) in sessions.iter().filter(|(_, session)| session.is_load && session.waits) {
        let mut visited = BTreeSet::new();
        let mut pending = vec![*pid];
        while let Some(pid) = pending.pop() {
            if !visited.insert(pid) {
                continue;
            }
            match sessions.get(&pid) {
                Some(session) if session.waits => pending.extend(&session.waits_for),
                _ => *held.entry(pid).or_default() += 1,
            }
        }
    }
    held
}

fn lock_session(row: Row<'_>) -> Option<(i32, LockSession)> {
    let waits_for = row.get(1).unwrap_or_default();
    let lock_session = LockSession {
        waits: row.get(6).as_deref() == Some("t"),
        waits_for: waits_for.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        is_load: row.get(2).as_deref() == Some("t"),
        application_name: row.get(3).unwrap_or_default().into_owned(),
        state: row.get(4).map(Cow::into_owned),
        xact_age_us: row.get(5).and_then(|age| age.parse().ok()),
    };
    Some((row.get(0)?.parse().ok()?, lock_session))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(all: &[(i32, bool, &[i32])]) -> BTreeMap<i32, LockSession> {
        let lock_session = |is_load, waits_for: &[i32]| LockSession {
            waits: !waits_for.is_empty(),
            waits_for: waits_for.to_vec(),
            is_load,
            ..LockSession::default()
        };
        all.iter().map(|(pid, is_load, waits_for)| (*pid, lock_session(*is_load, waits_for))).collect()
    }

    #[test]
    fn the_holder_is_at_the_head_of_the_queue() {
        // 4 waits for 3, which waits for 2, which waits for 1; 5, not of the load, also waits for 1.
        let queue = sessions(&[
            (1, false, &[]),
            (2, true, &[1]),
            (3, true, &[1, 2]),
            (4, true, &[3]),
            (5, false, &[1]),
        ]);
        assert_eq!(holders(&queue), BTreeMap::from([(1, 3)]));
    }

    #[test]
    fn prepared_transactions_and_ended_sessions_are_holders_but_deadlocked_sessions_are_not() {
        assert_eq!(holders(&sessions(&[(2, true, &[0, 7])])), BTreeMap::from([(0, 1), (7, 1)]));
        assert_eq!(holders(&sessions(&[(2, true, &[3]), (3, true, &[2])])), BTreeMap::new());
    }

    #[test]
    fn a_session_with_unknown_blockers_is_not_a_holder() {
        let mut queue = sessions(&[(1, true, &[2]), (2, true, &[])]);
        queue.entry(2).or_default().waits = true;
        assert_eq!(holders(&queue), BTreeMap::new());
    }
}
