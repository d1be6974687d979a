//! States and wait events of sessions and server processes, sampled many times per second.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System", `pg_stat_activity`. The function behind the view is
//! queried: the view adds the names of databases and roles, which costs more than the sample itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::message::SessionSample;
use model::record::{ClockReading, Event};
use model::waits::{CPU, SessionKind, Waits};

use wire::quote_literal;

use super::holders::{Holder, Holders};
use super::session::{MARK, OWN_NAME_PREFIX, Prepared, Row, Session, rows};
use crate::error::CollectError;
use crate::now;

const SECOND_US: i64 = 1_000_000;

/// Properties that distinguish sessions of the load from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSessions {
    /// The tested database.
    pub database: String,
    /// Their `application_name`. None if it can't be known, such as when scripts set it: then every client in that
    /// database counts, except pgdyno's own [`Session`]s.
    pub application_name: Option<String>,
    /// The `application_name` of sessions of background workloads, if any.
    pub background: Option<String>,
}

/// Samples the sessions, and keeps the samples.
#[derive(Debug)]
pub struct WaitSampler {
    session: Session,
    query: Prepared,
    /// All kinds sampled so far; samples refer to them by index.
    kinds: Vec<Kind>,
    samples: Vec<Sample>,
    /// Indices of kinds with numbers of sessions, of all samples.
    counts: Vec<(u32, u32)>,
    holders: Holders,
}

/// Session and activity, ordered as [`Waits`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    session: SessionKind,
    state: Option<String>,
    event_type: Option<String>,
    event: Option<String>,
}

#[derive(Debug)]
struct Sample {
    at_us: i64,
    /// Its end in `counts`; it starts at the end of the previous sample.
    end: usize,
}

impl WaitSampler {
    /// The session is with another database than the tested one. Of a load that plays a trace, samples have each session that executes a
    /// statement.
    ///
    /// # Errors
    /// The server does not respond, or has no such database.
    pub fn new(mut session: Session, load: &LoadSessions, plays_trace: bool) -> Result<Self, CollectError> {
        let sql =
            format!("SELECT {MARK} oid FROM pg_database WHERE datname = {}", quote_literal(&load.database));
        let found = session.query(&sql)?.next();
        let oid = found.and_then(|row| row.get(0)).map(Cow::into_owned);
        let oid = oid.ok_or_else(|| CollectError::NoDatabase(load.database.clone()))?;
        let is_load = match &load.application_name {
            Some(name) => format!("datid = {oid} AND application_name = {}", quote_literal(name)),
            None => format!("datid = {oid}"),
        };
        let is_background = load
            .background
            .as_ref()
            .map(|name| format!("datid = {oid} AND application_name = {}", quote_literal(name)));
        let sql = sessions_query(session.major(), &is_load, is_background.as_deref(), plays_trace);
        let query = session.prepare([sql.as_str()])?;
        let holders = Holders::new(session.major(), &is_load);
        Ok(Self { session, query, kinds: Vec::new(), samples: Vec::new(), counts: Vec::new(), holders })
    }

    /// Samples once. If sessions of the load wait for locks, also queries the holders, at most once per second. Returns the sessions of a
    /// trace that execute a statement, with its start by `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// The server does not respond; that is no sample.
    pub fn sample(&mut self) -> Result<Vec<SessionSample>, CollectError> {
        let before = now();
        let results = self.session.query_prepared(&self.query)?;
        let after = now();
        let at_us = before.monotonic_us.midpoint(after.monotonic_us);
        let mut is_blocked = false;
        let mut of_trace = Vec::new();
        let first = self.counts.len();
        for row in results.iter().flat_map(rows) {
            let Some((kind, count, execution)) = ReceivedKind::from_row(row) else { continue };
            of_trace.extend(execution.map(|execution| execution.sample(&kind, before, after)));
            is_blocked |=
                kind.session == SessionKind::Load.name() && kind.event_type.as_deref() == Some("Lock");
            let place = self.kinds.iter().position(|known| kind.matches(known)).unwrap_or_else(|| {
                self.kinds.push(kind.into_kind());
                self.kinds.len() - 1
            });
            match self.counts[first..].iter_mut().find(|(known, _)| *known == place as u32) {
                Some((_, sum)) => *sum += count,
                None => self.counts.push((place as u32, count)),
            }
        }
        self.samples.push(Sample { at_us, end: self.counts.len() });
        if is_blocked {
            self.holders.sample(&mut self.session, before)?;
        }
        Ok(of_trace)
    }

    /// Samples by second after `origin_monotonic_us`, the load's start, and before it.
    pub fn rows(&self, origin_monotonic_us: i64) -> Vec<Waits> {
        self.rows_from(0, origin_monotonic_us)
    }

    /// Those in the second of the latest sample.
    pub fn latest(&self, origin_monotonic_us: i64) -> Vec<Waits> {
        let second = |sample: &Sample| (sample.at_us - origin_monotonic_us).div_euclid(SECOND_US);
        let Some(latest) = self.samples.last().map(second) else { return Vec::new() };
        let within = self.samples.iter().rev().take_while(|sample| second(sample) == latest).count();
        self.rows_from(self.samples.len() - within, origin_monotonic_us)
    }

    /// Rows of the samples from one on.
    fn rows_from(&self, first: usize, origin_monotonic_us: i64) -> Vec<Waits> {
        let mut seconds: BTreeMap<i64, (u32, BTreeMap<&Kind, u32>)> = BTreeMap::new();
        let mut start = first.checked_sub(1).map_or(0, |before| self.samples[before].end);
        for sample in &self.samples[first..] {
            let second = (sample.at_us - origin_monotonic_us).div_euclid(SECOND_US);
            let (samples, sums) = seconds.entry(second).or_default();
            *samples += 1;
            for (place, count) in &self.counts[start..sample.end] {
                *sums.entry(&self.kinds[*place as usize]).or_default() += count;
            }
            start = sample.end;
        }
        let mut rows = Vec::new();
        for (second, (samples, sums)) in seconds {
            rows.extend(sums.into_iter().map(|(kind, seen)| Waits {
                at_us: second * SECOND_US,
                width_us: SECOND_US.unsigned_abs(),
                samples,
                session: kind.session.clone(),
                state: kind.state.clone(),
                event_type: kind.event_type.clone(),
                event: kind.event.clone(),
                seen,
            }));
        }
        rows
    }

    /// Sessions whose locks blocked the load, in the order in which they were first sampled.
    pub fn holders(&self) -> Vec<Holder> {
        self.holders.all()
    }

    /// Events for those that are not part of the load or were idle in a transaction.
    pub fn events(&self) -> Vec<Event> {
        self.holders().iter().filter_map(Holder::event).collect()
    }
}

/// Grouped by the server: few rows, however many clients; of a trace, each session that executes a statement is a row.
fn sessions_query(major: u32, is_load: &str, is_background: Option<&str>, plays_trace: bool) -> String {
    let background =
        is_background.map(|is_background| format!(" WHEN {is_background} THEN 'beside'")).unwrap_or_default();
    let client = format!("CASE WHEN {is_load} THEN 'load'{background} ELSE 'other' END");
    let (session, state) = match major {
        // Clients have a port (-1 on a Unix socket); the others visible are autovacuum workers.
        ..10 => (
            format!("CASE WHEN client_port IS NULL THEN 'autovacuum worker' ELSE {client} END"),
            "CASE WHEN client_port IS NOT NULL THEN state END",
        ),
        _ => (
            format!("CASE WHEN backend_type = 'client backend' THEN {client} ELSE backend_type END"),
            "CASE WHEN backend_type = 'client backend' THEN state END",
        ),
    };
    let (executions, groups) = match plays_trace {
        false => (String::new(), ""),
        true => {
            let runs = format!("{is_load} AND state = 'active' AND client_port IS NOT NULL");
            let micros = |time: &str| format!("(extract(epoch FROM {time}) * 1000000)::bigint");
            let (started, now) = (micros("query_start"), micros("clock_timestamp()"));
            let of_it =
                format!(", CASE WHEN {runs} THEN pid END, CASE WHEN {runs} THEN {started} END, {now}");
            (of_it, ", 6, 7")
        }
    };
    format!(
        "SELECT {MARK} {session}, {state}, wait_event_type, wait_event, count(*){executions} \
         FROM pg_stat_get_activity(NULL) WHERE coalesce(application_name, '') NOT LIKE '{OWN_NAME_PREFIX}%' \
         GROUP BY 1, 2, 3, 4{groups}"
    )
}

/// A statement of a trace that is being executed, as received from the server; times are in microseconds since 1970 by its clock.
struct ReceivedExecution {
    pid: i32,
    started_us: i64,
    server_us: i64,
}

impl ReceivedExecution {
    /// The sample, which was taken between two readings of this machine's clocks.
    fn sample(&self, kind: &ReceivedKind<'_>, before: ClockReading, after: ClockReading) -> SessionSample {
        // If the server's clock is not this machine's, it is known only to half a round trip.
        let is_same_clock = (before.unix_us..=after.unix_us).contains(&self.server_us);
        let offset_us = match is_same_clock {
            true => before.monotonic_us - before.unix_us,
            false => before.monotonic_us.midpoint(after.monotonic_us) - self.server_us,
        };
        let wait = match (kind.event_type.as_deref(), kind.event.as_deref()) {
            (Some(event_type), Some(event)) => format!("{event_type}:{event}"),
            (Some(event_type), None) => event_type.to_owned(),
            (None, _) => CPU.to_owned(),
        };
        SessionSample { pid: self.pid, started_us: self.started_us.saturating_add(offset_us), wait }
    }
}

/// A kind as received from the server.
struct ReceivedKind<'a> {
    session: Cow<'a, str>,
    state: Option<Cow<'a, str>>,
    event_type: Option<Cow<'a, str>>,
    event: Option<Cow<'a, str>>,
}

impl<'a> ReceivedKind<'a> {
    /// The kind, the number of its sessions, and the execution if it is one.
    fn from_row(row: Row<'a>) -> Option<(Self, u32, Option<ReceivedExecution>)> {
        let mut values = row.values();
        let mut next = || values.next().flatten();
        let (session, state, event_type, event) = (next()?, next(), next(), next());
        let count = next()?.parse().ok()?;
        let mut number = || next()?.parse::<i64>().ok();
        let execution = match (number(), number(), number()) {
            (Some(pid), Some(started_us), Some(server_us)) => {
                i32::try_from(pid).ok().map(|pid| ReceivedExecution { pid, started_us, server_us })
            }
            _ => None,
        };
        Some((Self { session, state, event_type, event }, count, execution))
    }

    fn matches(&self, kind: &Kind) -> bool {
        self.session == kind.session.name()
            && self.state.as_deref() == kind.state.as_deref()
            && self.event_type.as_deref() == kind.event_type.as_deref()
            && self.event.as_deref() == kind.event.as_deref()
    }

    fn into_kind(self) -> Kind {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Kind {
            session: SessionKind::from_name(&self.session),
            state: owned(self.state),
            event_type: owned(self.event_type),
            event: owned(self.event),
        }
    }
}
