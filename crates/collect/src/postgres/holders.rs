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
const EVERY_US: i64 = 1_000_000;
/// Maximum number of waiting sessions whose blockers are queried: more add cost but little information.
const WAITING: usize = 32;
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
            None => "state not known",
        };
        let who = match (self.pid, self.application_name.as_str()) {
            (0, _) => "a prepared transaction".to_owned(),
            (pid, "") => format!("session {pid} ({what})"),
            (pid, name) => format!("session {pid} ({name}, {what})"),
        };
        let message = format!(
            "{who} held back {blocked:.0} sessions of the load for {:.1} s, as seen in {} samples",
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
            of: Some(self.application_name.clone()).filter(|name| !name.is_empty()),
            figures,
        })
    }
}

/// All holders sampled.
#[derive(Debug)]
pub(super) struct Holders {
    sql: String,
    asked_us: Option<i64>,
    seen: Vec<Holder>,
}

/// A session in a transaction or waiting for a lock.
#[derive(Debug, Default)]
struct Party {
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
             FROM pg_stat_get_activity(NULL) w WHERE w.wait_event_type = 'Lock' LIMIT {WAITING}) b ON b.pid = a.pid \
             WHERE a.xact_start IS NOT NULL OR a.wait_event_type = 'Lock'"
        );
        Self { sql, asked_us: None, seen: Vec::new() }
    }

    /// Samples, at most once per second.
    pub(super) fn sample(&mut self, session: &mut Session, at: ClockReading) -> Result<(), CollectError> {
        if self.asked_us.is_some_and(|asked| at.monotonic_us < asked + EVERY_US) {
            return Ok(());
        }
        self.asked_us = Some(at.monotonic_us);
        let rows = session.ask(&self.sql)?;
        let parties = rows.filter_map(party).collect();
        self.add(&parties, at);
        Ok(())
    }

    pub(super) fn all(&self) -> Vec<Holder> {
        self.seen.clone()
    }

    fn add(&mut self, parties: &BTreeMap<i32, Party>, at: ClockReading) {
        for (pid, blocked) in holding(parties) {
            let unknown = Party::default();
            let party = parties.get(&pid).unwrap_or(&unknown);
            let place = self.seen.iter().position(|holder| holder.pid == pid).unwrap_or_else(|| {
                self.seen.push(Holder {
                    pid,
                    application_name: party.application_name.clone(),
                    state: None,
                    was_idle: false,
                    is_load: party.is_load,
                    first: at,
                    last: at,
                    samples: 0,
                    sessions_blocked: 0,
                    xact_age_us: None,
                });
                self.seen.len() - 1
            });
            let holder = &mut self.seen[place];
            holder.state.clone_from(&party.state);
            holder.was_idle |= party.state.as_deref().is_some_and(|state| state.starts_with(IDLE));
            holder.last = at;
            holder.samples += 1;
            holder.sessions_blocked += blocked;
            holder.xact_age_us = match (holder.xact_age_us, party.xact_age_us) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
        }
    }
}

/// Sessions that block the load without waiting themselves, with numbers of blocked sessions.
fn holding(parties: &BTreeMap<i32, Party>) -> BTreeMap<i32, u64> {
    let mut held = BTreeMap::new();
    for (pid, _) in parties.iter().filter(|(_, party)| party.is_load && party.waits) {
        let mut passed = BTreeSet::new();
        let mut ahead = vec![*pid];
        while let Some(pid) = ahead.pop() {
            if !passed.insert(pid) {
                continue;
            }
            match parties.get(&pid) {
                Some(party) if party.waits => ahead.extend(&party.waits_for),
                _ => *held.entry(pid).or_default() += 1,
            }
        }
    }
    held
}

fn party(row: Row<'_>) -> Option<(i32, Party)> {
    let waits_for = row.get(1).unwrap_or_default();
    let party = Party {
        waits: row.get(6).as_deref() == Some("t"),
        waits_for: waits_for.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        is_load: row.get(2).as_deref() == Some("t"),
        application_name: row.get(3).unwrap_or_default().into_owned(),
        state: row.get(4).map(Cow::into_owned),
        xact_age_us: row.get(5).and_then(|age| age.parse().ok()),
    };
    Some((row.get(0)?.parse().ok()?, party))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parties(all: &[(i32, bool, &[i32])]) -> BTreeMap<i32, Party> {
        let party = |is_load, waits_for: &[i32]| Party {
            waits: !waits_for.is_empty(),
            waits_for: waits_for.to_vec(),
            is_load,
            ..Party::default()
        };
        all.iter().map(|(pid, is_load, waits_for)| (*pid, party(*is_load, waits_for))).collect()
    }

    #[test]
    fn who_holds_is_at_the_head_of_the_queue() {
        // 4 waits for 3, which waits for 2, which waits for 1; 5, not of the load, also waits for 1.
        let queue = parties(&[
            (1, false, &[]),
            (2, true, &[1]),
            (3, true, &[1, 2]),
            (4, true, &[3]),
            (5, false, &[1]),
        ]);
        assert_eq!(holding(&queue), BTreeMap::from([(1, 3)]));
    }

    #[test]
    fn a_prepared_transaction_and_a_session_that_is_gone_hold_too_but_nobody_in_a_deadlock() {
        assert_eq!(holding(&parties(&[(2, true, &[0, 7])])), BTreeMap::from([(0, 1), (7, 1)]));
        assert_eq!(holding(&parties(&[(2, true, &[3]), (3, true, &[2])])), BTreeMap::new());
    }

    #[test]
    fn one_that_waits_for_it_is_not_known_whom_holds_nothing() {
        let mut queue = parties(&[(1, true, &[2]), (2, true, &[])]);
        queue.entry(2).or_default().waits = true;
        assert_eq!(holding(&queue), BTreeMap::new());
    }
}
