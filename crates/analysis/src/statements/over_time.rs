//! The executions of a statement over the recorded time of its trace.

use model::trace::{PlayedStatement, SLICES};
use serde::Serialize;

/// Digits after the point of times and of calls a trial.
const ROUND: f64 = 1e3;

/// Executions over the recorded time of a trace, in 100 equal slices: an execution is in the slice of its recorded start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "view.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverTime {
    /// Length of a slice of recorded time, in microseconds.
    pub slice_us: u64,
    /// Executions in each slice, a trial, failed ones included.
    pub calls: Vec<f64>,
    /// Mean time of a successful execution in each slice, in microseconds; null without any.
    pub mean_us: Vec<Option<f64>>,
}

/// A statement over time, of all these trials together; `None` if that is not known of any. Trials whose slices have another length than
/// the first one's play other sessions, and are left out.
pub fn over_time<'a>(trials: impl IntoIterator<Item = &'a PlayedStatement>) -> Option<OverTime> {
    let mut known = trials.into_iter().filter_map(|statement| statement.over_time.as_ref()).peekable();
    let slice_us = known.peek()?.slice_us;
    let zeros = || vec![0.0; SLICES as usize];
    let (mut trials, mut calls, mut succeeded, mut total_ns) = (0_usize, zeros(), zeros(), zeros());
    for of in known.filter(|of| of.slice_us == slice_us) {
        trials += 1;
        for slice in &of.slices {
            let at = slice.number as usize;
            if at >= calls.len() {
                continue;
            }
            calls[at] += slice.calls as f64;
            succeeded[at] += slice.calls.saturating_sub(slice.failures) as f64;
            total_ns[at] += slice.total_ns as f64;
        }
    }
    let rounded = |value: f64| (value * ROUND).round() / ROUND;
    let mean =
        |(succeeded, total_ns): (f64, f64)| (succeeded > 0.0).then(|| rounded(total_ns / succeeded / 1e3));
    Some(OverTime {
        slice_us,
        mean_us: succeeded.into_iter().zip(total_ns).map(mean).collect(),
        calls: calls.into_iter().map(|calls| rounded(calls / trials as f64)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use model::trace::{OverTime as Recorded, Slice};

    use super::*;

    fn played(slice_us: u64, slices: &[(u32, u64, u64, u64)]) -> PlayedStatement {
        let slices = slices.iter().map(|&(number, calls, failures, total_ns)| Slice {
            number,
            calls,
            failures,
            total_ns,
        });
        let over_time = Some(Recorded { slice_us, slices: slices.collect() });
        PlayedStatement { over_time, ..PlayedStatement::default() }
    }

    #[test]
    fn trials_are_summed_by_slice() {
        let before = PlayedStatement::default();
        assert_eq!(over_time([&before]), None);
        let trials = [
            before,
            played(70, &[(2, 3, 1, 5_000_000), (99, 1, 1, 0)]),
            played(70, &[(2, 1, 0, 1_000_000), (50, 1, 0, 7_000)]),
            played(90, &[(2, 1, 0, 900_000_000)]),
        ];
        let found = over_time(&trials).unwrap();
        assert_eq!((found.slice_us, found.calls.len(), found.mean_us.len()), (70, 100, 100));
        let at = |number: usize| (found.calls[number], found.mean_us[number]);
        assert_eq!([at(0), at(2)], [(0.0, None), (2.0, Some(2_000.0))]);
        assert_eq!([at(50), at(99)], [(0.5, Some(7.0)), (0.5, None)]);
    }
}
