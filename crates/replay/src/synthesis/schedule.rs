//! When the statements of a mix are executed, and by which session.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    /// Its time after the start of the trace, in microseconds.
    pub(super) at_us: u64,
    /// Index of its statement.
    pub(super) statement: u32,
}

/// How often each statement is executed in a time, so that their numbers are the expected ones within one, and their sum is,
/// too: the method of the largest remainder.
pub(super) fn counts(expected: &[f64]) -> Vec<u64> {
    let mut counts: Vec<u64> = expected.iter().map(|expected| expected.floor() as u64).collect();
    let total = expected.iter().sum::<f64>().round() as u64;
    let missing = total.saturating_sub(counts.iter().sum());
    let mut order: Vec<usize> = (0..expected.len()).collect();
    order.sort_by(|a, b| expected[*b].fract().total_cmp(&expected[*a].fract()).then(a.cmp(b)));
    for statement in order.into_iter().take(missing as usize) {
        counts[statement] += 1;
    }
    counts
}

/// Executions at random times, in their order: of independent clients, whose number in a time is known, as of a Poisson process.
pub(super) fn executions(counts: &[u64], duration_us: u64, random: &mut fastrand::Rng) -> Vec<Execution> {
    let mut executions = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
    for (statement, count) in (0..).zip(counts) {
        for _ in 0..*count {
            executions.push(Execution { at_us: random.u64(..duration_us.max(1)), statement });
        }
    }
    executions.sort_unstable_by_key(|execution| (execution.at_us, execution.statement));
    executions
}

/// The largest number of executions at a time, if each takes as long as those of its statement on average.
pub(super) fn peak(executions: &[Execution], durations_us: &[u64]) -> u32 {
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut peak = 0;
    for Execution { at_us, statement } in executions {
        while ends.peek().is_some_and(|Reverse(end_us)| end_us <= at_us) {
            ends.pop();
        }
        let duration_us = durations_us.get(*statement as usize).copied().unwrap_or(0);
        ends.push(Reverse(at_us.saturating_add(duration_us)));
        peak = peak.max(ends.len());
    }
    peak as u32
}

/// Chooses the session of each execution: the one that has been free for longest, or will be first.
pub(super) struct Sessions(BinaryHeap<Reverse<(u64, u32)>>);

impl Sessions {
    pub(super) fn new(sessions: u32) -> Self {
        Self((0..sessions).map(|session| Reverse((0, session))).collect())
    }

    /// The session of an execution that takes so long.
    pub(super) fn next(&mut self, at_us: u64, duration_us: u64) -> u32 {
        let Some(Reverse((free_us, session))) = self.0.pop() else { return 0 };
        self.0.push(Reverse((free_us.max(at_us).saturating_add(duration_us), session)));
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_expected_ones_within_one() {
        assert_eq!(counts(&[1.5, 2.25, 0.25]), [2, 2, 0]);
        assert_eq!(counts(&[0.4, 0.4, 0.4]), [1, 0, 0]);
        assert_eq!(counts(&[3.0, 7.0]), [3, 7]);
        assert_eq!(counts(&[]), [0; 0]);
    }

    #[test]
    fn executions_are_spread_and_numbered() {
        let mut random = fastrand::Rng::with_seed(3);
        let executions = executions(&[1000, 3000], 1_000_000, &mut random);
        assert_eq!(executions.len(), 4000);
        assert!(executions.is_sorted_by_key(|execution| execution.at_us));
        let of_second = executions.iter().filter(|execution| execution.statement == 1).count();
        assert_eq!(of_second, 3000);
        // Of a Poisson process, each tenth has 400 ± 5 standard deviations.
        for tenth in 0..10 {
            let here = |execution: &&Execution| execution.at_us / 100_000 == tenth;
            let count = executions.iter().filter(here).count();
            assert!((300..500).contains(&count), "{count} in {tenth}");
        }
    }

    #[test]
    fn a_session_executes_one_statement_at_a_time() {
        let at = |at_us| Execution { at_us, statement: 0 };
        let times = [at(0), at(5), at(9), at(10), at(30)];
        assert_eq!(peak(&times, &[10]), 3);
        let mut sessions = Sessions::new(3);
        let chosen: Vec<u32> = times.iter().map(|execution| sessions.next(execution.at_us, 10)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1]);
        let mut few = Sessions::new(1);
        assert_eq!([0, 5].map(|at_us| few.next(at_us, 10)), [0, 0]);
        assert_eq!(few.0.peek(), Some(&Reverse((20, 0))));
    }
}
