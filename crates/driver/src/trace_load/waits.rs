//! What the sessions of a trace waited for, by statement: samples of the server's sessions, joined with the executions.
//!
//! A sample has the session and the start of its statement by the server, which is between the statement's sending and the end of its
//! response here: of a session, the first execution that ended at or after it. Unlike the identifiers that servers compute for statements
//! (`query_id`, from PostgreSQL 14 on), this needs no setting of the server, and holds for each execution of every statement.

use std::collections::{HashMap, VecDeque};

use model::message::{SessionSample, SessionSamples};

use crate::playback::{Played, PlayedEnd};

/// Executions that are kept for samples to come; those of less than two seconds need be.
const MAX_EXECUTIONS: usize = 1 << 20;
/// How much before its sending a statement may seem to have begun: clocks of two machines differ.
const MAX_SKEW_NS: i64 = 10_000_000;

/// Joins samples with executions.
#[derive(Default)]
pub(super) struct Waits {
    /// Sessions by the process id of their backend.
    sessions: HashMap<i32, u32>,
    /// Executions that samples to come may be of.
    executions: VecDeque<Execution>,
    /// Samples by session, in the order of time, of statements that have not ended.
    pending: HashMap<u32, VecDeque<SessionSample>>,
    /// Samples of sessions of the trace.
    sampled: u64,
    is_sampled: bool,
}

struct Execution {
    session: u32,
    shape: u32,
    begun_ns: u64,
    ended_ns: u64,
}

impl Waits {
    /// Takes note of a session.
    pub(super) fn add_session(&mut self, session: u32, pid: i32) {
        self.sessions.insert(pid, session);
    }

    /// Takes note of an execution that has ended.
    pub(super) fn add(&mut self, played: &Played, shape: u32) {
        if played.end == PlayedEnd::NotExecuted {
            return;
        }
        if self.executions.len() >= MAX_EXECUTIONS {
            self.executions.pop_front();
        }
        let &Played { session, begun_ns, ended_ns, .. } = played;
        self.executions.push_back(Execution { session, shape, begun_ns, ended_ns });
    }

    /// Adds samples; reports what the sessions of which shape waited for.
    pub(super) fn add_samples(
        &mut self,
        samples: Option<SessionSamples>,
        mut on_wait: impl FnMut(u32, String),
    ) {
        let Some(samples) = samples else { return self.executions.clear() };
        self.is_sampled = true;
        for sample in samples.sessions {
            // Other clients of the database are sampled, too.
            let Some(session) = self.sessions.get(&sample.pid) else { continue };
            self.sampled += 1;
            self.pending.entry(*session).or_default().push_back(sample);
        }
        self.join(&mut on_wait);
        // What ended before the last sample is in no later one.
        let until_ns = samples.until_us.max(0).unsigned_abs().saturating_mul(1_000);
        while self.executions.front().is_some_and(|execution| execution.ended_ns < until_ns) {
            self.executions.pop_front();
        }
    }

    /// Why statements have no waits; `None` if they have.
    pub(super) fn missing(&self) -> Option<&'static str> {
        match (self.is_sampled, self.sampled) {
            (false, _) => Some("sessions were not sampled"),
            // Those of a pooler have other process ids.
            (true, 0) => Some("no sample is of a session of the trace"),
            (true, _) => None,
        }
    }

    fn join(&mut self, on_wait: &mut impl FnMut(u32, String)) {
        for execution in &self.executions {
            let Some(samples) = self.pending.get_mut(&execution.session) else { continue };
            while let Some(first) = samples.front() {
                let started_ns = first.started_us.saturating_mul(1_000);
                if started_ns > execution.ended_ns.cast_signed() {
                    break;
                }
                let is_of_it = started_ns >= execution.begun_ns.cast_signed() - MAX_SKEW_NS;
                if let Some(sample) = samples.pop_front().filter(|_| is_of_it) {
                    on_wait(execution.shape, sample.wait);
                }
            }
            if samples.is_empty() {
                self.pending.remove(&execution.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(session: u32, begun_us: u64, ended_us: u64) -> Played {
        Played {
            tag: 0,
            session,
            intended_ns: 0,
            ready_ns: 0,
            hold: crate::playback::Hold::None,
            begun_ns: begun_us * 1_000,
            ended_ns: ended_us * 1_000,
            rows: 0,
            commits: 0,
            end: PlayedEnd::Success,
        }
    }

    fn samples(until_us: i64, sessions: &[(i32, i64, &str)]) -> Option<SessionSamples> {
        let sample = |&(pid, started_us, wait): &(i32, i64, &str)| SessionSample {
            pid,
            started_us,
            wait: wait.to_owned(),
        };
        Some(SessionSamples { until_us, sessions: sessions.iter().map(sample).collect() })
    }

    #[test]
    fn a_sample_is_of_the_statement_that_ran_whenever_its_end_is_known() {
        let mut waits = Waits::default();
        assert_eq!(waits.missing(), Some("sessions were not sampled"));
        let mut found = Vec::new();
        waits.add_session(7, 4711);
        waits.add_session(8, 4712);
        // Back to back, and one that runs on.
        waits.add(&played(7, 100, 150), 1);
        waits.add(&played(7, 152, 200), 2);
        waits.add(&played(8, 0, 300), 3);
        let first = samples(
            250,
            &[
                (4711, 110, "CPU"),
                (4711, 153, "IO:DataFileRead"),
                (99, 153, "CPU"),
                (4711, 240, "Lock:tuple"),
            ],
        );
        waits.add_samples(first, |shape, wait| found.push((shape, wait)));
        assert_eq!(found, [(1, "CPU".to_owned()), (2, "IO:DataFileRead".to_owned())]);
        found.clear();
        waits.add(&played(7, 230, 900_000), 4);
        waits.add_samples(samples(900_001, &[(4711, 240, "Lock:tuple"), (4712, 5, "CPU")]), |shape, wait| {
            found.push((shape, wait));
        });
        found.sort();
        let lock = (4, "Lock:tuple".to_owned());
        assert_eq!(found, [(3, "CPU".to_owned()), lock.clone(), lock]);
        assert_eq!(waits.missing(), None);
        assert!(waits.executions.is_empty() && waits.pending.is_empty());
    }

    #[test]
    fn a_sample_of_no_known_statement_is_of_none() {
        let mut waits = Waits::default();
        waits.add_session(7, 4711);
        waits.add(&played(7, 900_000, 900_100), 1);
        // Its statement was not executed to its end.
        waits.add_samples(samples(900_200, &[(4711, 110, "CPU")]), |shape, _| panic!("{shape}"));
        assert_eq!(waits.missing(), None);
        let mut others = Waits::default();
        others.add_samples(samples(9, &[(4711, 110, "CPU")]), |shape, _| panic!("{shape}"));
        assert_eq!(others.missing(), Some("no sample is of a session of the trace"));
    }
}
