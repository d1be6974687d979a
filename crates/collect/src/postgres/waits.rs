//! What sessions and server processes were doing, by looking at all of them many times a second.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System", `pg_stat_activity`. The function behind the view is
//! asked: the view adds the names of databases and roles, which costs more than the look itself.

use std::collections::BTreeMap;

use model::record::Event;
use model::waits::{Session as Who, Waits};
use postgres::SimpleQueryRow;

use super::holders::{Holder, Holders};
use super::session::{MARK, OWN_NAMES, Session, literal};
use crate::now;

const SECOND_US: i64 = 1_000_000;

/// By what sessions of the load are told from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSessions {
    /// The tested database.
    pub database: String,
    /// Their `application_name`. None where that can't be known, such as where scripts set it: then every client in
    /// that database counts that is not one of pgdyno's own [`Session`]s.
    pub application_name: Option<String>,
}

/// Looks at the sessions, and keeps what it saw.
#[derive(Debug)]
pub struct WaitSampler {
    session: Session,
    sql: String,
    /// What was ever seen; looks name it by its place.
    kinds: BTreeMap<Kind, usize>,
    looks: Vec<Look>,
    holders: Holders,
}

/// Who did what. In the order of [`Waits`].
type Kind = (Who, Option<String>, Option<String>, Option<String>);

#[derive(Debug)]
struct Look {
    at_us: i64,
    /// Kinds, and how many sessions each.
    seen: Vec<(usize, u32)>,
}

impl WaitSampler {
    /// By a session with another database than the tested one.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn new(mut session: Session, load: &LoadSessions) -> Result<Self, String> {
        let sql = format!("SELECT {MARK} oid FROM pg_database WHERE datname = {}", literal(&load.database));
        let rows = session.ask(&sql).map_err(|refusal| refusal.why)?;
        let oid = rows.first().and_then(|row| row.get(0));
        let oid = oid.ok_or_else(|| format!("the server has no database {}", load.database))?;
        let is_load = match &load.application_name {
            Some(name) => format!("datid = {oid} AND application_name = {}", literal(name)),
            None => format!("datid = {oid}"),
        };
        let question = question(session.major(), &is_load);
        let sql = session.prepare([question.as_str()]).map_err(|refusal| refusal.why)?;
        let holders = Holders::new(session.major(), &is_load);
        Ok(Self { session, sql, kinds: BTreeMap::new(), looks: Vec::new(), holders })
    }

    /// Looks once. Where sessions of the load wait for locks it is asked who holds them, too, at most once a second.
    ///
    /// # Errors
    /// The server does not answer; that is no look.
    pub fn look(&mut self) -> Result<(), String> {
        let before = now();
        let rows = self.session.ask(&self.sql).map_err(|refusal| refusal.why)?;
        let at_us = before.monotonic_us.midpoint(now().monotonic_us);
        let mut seen = Vec::with_capacity(rows.len());
        let mut is_held = false;
        for (kind, count) in rows.iter().filter_map(kind) {
            is_held |= kind.0 == Who::Load && kind.2.as_deref() == Some("Lock");
            let next = self.kinds.len();
            seen.push((*self.kinds.entry(kind).or_insert(next), count));
        }
        self.looks.push(Look { at_us, seen });
        if is_held {
            self.holders.look(&mut self.session, before)?;
        }
        Ok(())
    }

    /// What was seen in each second after `origin_monotonic_us`, the load's start, and before it.
    pub fn rows(&self, origin_monotonic_us: i64) -> Vec<Waits> {
        let mut seconds: BTreeMap<i64, (u32, BTreeMap<usize, u32>)> = BTreeMap::new();
        for look in &self.looks {
            let second = (look.at_us - origin_monotonic_us).div_euclid(SECOND_US);
            let (looks, seen) = seconds.entry(second).or_default();
            *looks += 1;
            for (kind, count) in &look.seen {
                *seen.entry(*kind).or_default() += count;
            }
        }
        let mut rows = Vec::new();
        for (second, (looks, seen)) in seconds {
            // In the order of kinds, which is not the order in which they were first seen.
            for ((session, state, event_type, event), place) in &self.kinds {
                let Some(&seen) = seen.get(place) else { continue };
                rows.push(Waits {
                    at_us: second * SECOND_US,
                    width_us: SECOND_US.unsigned_abs(),
                    looks,
                    session: session.clone(),
                    state: state.clone(),
                    event_type: event_type.clone(),
                    event: event.clone(),
                    seen,
                });
            }
        }
        rows
    }

    /// Who held back sessions of the load by locks, in the order in which they were first seen.
    pub fn holders(&self) -> Vec<Holder> {
        self.holders.all()
    }

    /// Of these, those that are no part of the load or were seen idle in a transaction.
    pub fn events(&self) -> Vec<Event> {
        self.holders().iter().filter_map(Holder::event).collect()
    }
}

/// Grouped by the server: few rows, however many clients.
fn question(major: u32, is_load: &str) -> String {
    let client = format!("CASE WHEN {is_load} THEN 'load' ELSE 'other' END");
    let (who, state) = match major {
        // Clients have a port (-1 on a Unix socket); what else can be seen are autovacuum's workers.
        ..10 => (
            format!("CASE WHEN client_port IS NULL THEN 'autovacuum worker' ELSE {client} END"),
            "CASE WHEN client_port IS NOT NULL THEN state END",
        ),
        _ => (
            format!("CASE WHEN backend_type = 'client backend' THEN {client} ELSE backend_type END"),
            "CASE WHEN backend_type = 'client backend' THEN state END",
        ),
    };
    format!(
        "SELECT {MARK} {who}, {state}, wait_event_type, wait_event, count(*) FROM pg_stat_get_activity(NULL) \
         WHERE coalesce(application_name, '') NOT LIKE '{OWN_NAMES}%' GROUP BY 1, 2, 3, 4"
    )
}

fn kind(row: &SimpleQueryRow) -> Option<(Kind, u32)> {
    let text = |column| row.get(column).map(str::to_owned);
    Some(((Who::by_name(row.get(0)?), text(1), text(2), text(3)), row.get(4)?.parse().ok()?))
}
