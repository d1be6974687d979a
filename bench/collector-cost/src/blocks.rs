//! Blocks of a load with and without collectors, and their throughput.

use anyhow::{Context, Result};
use model::message::Phase;
use model::record::TrialRecord;
use model::shuffle::Shuffler;

const SECOND_US: i64 = 1_000_000;

/// A switch of the collectors on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// Planned: microseconds after the start of the window; done: `CLOCK_MONOTONIC`, in microseconds.
    pub(crate) at_us: i64,
    /// Whether they run.
    pub(crate) on: bool,
}

/// Two consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) on_is_first: bool,
    /// Transactions per second.
    pub(crate) off: f64,
    pub(crate) on: f64,
}

impl Switch {
    /// One switch per block: in pairs, in random order within each.
    pub(crate) fn plan(pairs: u32, block: u32, seed: u64) -> Vec<Self> {
        let mut shuffler = Shuffler::new(seed);
        let mut order = Vec::new();
        for _ in 0..pairs {
            let mut pair = [false, true];
            shuffler.shuffle(&mut pair);
            order.extend(pair);
        }
        let at_us = |number: usize| number as i64 * i64::from(block) * SECOND_US;
        order.into_iter().enumerate().map(|(number, on)| Self { at_us: at_us(number), on }).collect()
    }
}

/// The pairs of blocks of a trial, by the actual switches, without those that the load did not last for.
pub(crate) fn pairs(record: &TrialRecord, switched: &[Switch]) -> Result<Vec<Pair>> {
    let clocks = record.trial.clocks.context("the trial has no clocks: its load did not run to its end")?;
    let origin_us = clocks.started.monotonic_us;
    let blocks: Vec<(bool, Option<f64>)> = switched
        .windows(2)
        .map(|next| {
            let (from_us, to_us) = (next[0].at_us - origin_us + SECOND_US, next[1].at_us - origin_us);
            (next[0].on, tps(record, from_us, to_us))
        })
        .collect();
    let pair = |blocks: &[(bool, Option<f64>)]| {
        let [(first_is_on, first), (_, second)] = blocks else { return None };
        let (on, off) = if *first_is_on { (*first, *second) } else { (*second, *first) };
        Some(Pair { on_is_first: *first_is_on, off: off?, on: on? })
    };
    Ok(blocks.chunks(2).filter_map(pair).collect())
}

/// Transactions per second of the intervals that lie entirely within a span; None if there are none.
fn tps(record: &TrialRecord, from_us: i64, to_us: i64) -> Option<f64> {
    let (mut transactions, mut us) = (0, 0);
    for interval in record.intervals.iter().filter(|interval| interval.phase == Phase::Measure) {
        let start_us = interval.start_us as i64;
        if start_us >= from_us && start_us + interval.width_us as i64 <= to_us {
            transactions += interval.scripts.iter().map(|script| script.transactions).sum::<u64>();
            us += interval.width_us;
        }
    }
    (us > 0 && transactions > 0).then(|| transactions as f64 / (us as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_both_in_random_order() {
        let switches = Switch::plan(40, 4, 1);
        assert_eq!(switches.len(), 80);
        assert!(switches.chunks(2).all(|pair| pair[0].on != pair[1].on));
        let on_first = switches.chunks(2).filter(|pair| pair[0].on).count();
        assert!((5..=35).contains(&on_first), "{on_first}");
        assert_eq!(switches[3].at_us, 12_000_000);
        assert_eq!(switches, Switch::plan(40, 4, 1));
    }
}
