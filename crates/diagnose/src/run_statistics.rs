//! Stability of one run, and precision of its figures, from its seconds. The methods are those of `stats`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use model::message::{Interval, Phase};
use model::statistics::{Percentile, Stall, Statistics};
use stats::WindowMean;

/// The percentiles of latency that are reported.
const SHARES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Length of intervals that count as a full second. The last one of a phase is usually shorter.
const SECOND_US: RangeInclusive<u64> = 990_000..=1_010_000;

/// The statistics of a load with these intervals, in order of time. `latencies` returns those of an interval that count in
/// the window: each value in nanoseconds with its count; `None` if they can't be read.
///
/// Methods: [`stats::WindowMean`], [`stats::warmup_cut`] of warm-up and window, [`stats::stalls`] and
/// [`stats::percentiles`]. [`Statistics::missing`] has the reason for each figure that is `None`.
pub fn run_statistics(
    intervals: &[Interval],
    latencies: impl Fn(&Interval) -> Option<Vec<(u64, u64)>>,
) -> Statistics {
    let is_full = |interval: &&Interval| SECOND_US.contains(&interval.width_us);
    let in_window = |interval: &&Interval| interval.phase == Phase::Measure;
    let load = Seconds::new(intervals.iter().filter(is_full).filter(|i| i.phase != Phase::Drain));
    let window = Seconds::new(intervals.iter().filter(is_full).filter(in_window));
    let mean = WindowMean::new(&window.tps);
    let mut missing = Missing::default();

    let n = window.tps.len();
    let short = |takes: usize| {
        (n < takes).then(|| format!("the window has {n} full seconds, and {takes} are needed"))
    };
    let tps_interval = mean.and_then(|mean| mean.interval).map(|interval| (interval.low, interval.high));
    missing.add_unless(tps_interval.is_some(), "tps_interval", || why_no_interval(mean.as_ref(), short(30)));
    let stationary = mean.and_then(|mean| mean.is_stationary());
    missing.add_unless(stationary.is_some(), "stationary", || {
        short(300).unwrap_or_else(|| "no transaction ended in the window".to_owned())
    });
    let cut = stats::warmup_cut(&load.tps);
    missing.add_unless(cut.is_some(), "warmup_cut_us", || match load.tps.len() {
        n if n < 50 => format!("the load has {n} full seconds, and 50 are needed"),
        _ => "the load did not settle in its first half".to_owned(),
    });
    let unfinished: u64 =
        intervals.iter().flat_map(|i| &i.scripts).filter_map(|script| script.unfinished).sum();
    let stalls = stats::stalls(&window.tps);
    missing.add_unless(stalls.is_some(), "stalls", || short(10).unwrap_or_default());

    Statistics {
        seconds: n as u64,
        tps_mean: mean.map(|mean| mean.mean),
        tps_interval,
        effective_seconds: mean.and_then(|mean| mean.effective_n),
        stationary,
        drift_share: mean.and_then(|mean| mean.drift()),
        trend_p: mean.and_then(|mean| mean.trend).map(|trend| trend.p),
        warmup_cut_us: cut.and_then(|cut| load.start_us.get(cut).copied()),
        stalls: stalls.map(|stalls| stalls.iter().filter_map(|stall| window.stall(stall)).collect()),
        percentiles: match unfinished {
            0 => percentiles(seconds(intervals, latencies), &mut missing),
            count => {
                missing.add_unless(false, "percentiles", || {
                    format!("{count} transactions that were due in the window did not end: only minimums are known")
                });
                Vec::new()
            }
        },
        missing: missing.0,
    }
}

/// Seconds with their throughput.
#[derive(Default)]
struct Seconds {
    start_us: Vec<u64>,
    tps: Vec<f64>,
}

impl Seconds {
    fn new<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Self {
        let mut seconds = Self::default();
        for interval in intervals {
            let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
            seconds.start_us.push(interval.start_us);
            seconds.tps.push(transactions as f64 / interval.width_us as f64 * 1e6);
        }
        seconds
    }

    fn stall(&self, stall: &stats::Stall) -> Option<Stall> {
        let start_us = *self.start_us.get(stall.from)?;
        Some(Stall { start_us, length_us: stall.seconds as u64 * 1_000_000, baseline_tps: stall.baseline })
    }
}

/// Reasons for missing figures, by name.
#[derive(Default)]
struct Missing(BTreeMap<String, String>);

impl Missing {
    fn add_unless(&mut self, is_there: bool, name: &str, why: impl FnOnce() -> String) {
        if !is_there {
            self.0.insert(name.to_owned(), why());
        }
    }
}

fn why_no_interval(mean: Option<&WindowMean>, too_short: Option<String>) -> String {
    match (too_short, mean) {
        (Some(short), _) => short,
        (None, Some(mean)) if mean.is_stationary() == Some(false) => {
            let drift = mean.drift().unwrap_or_default() * 100.0;
            format!("NON-STATIONARY: throughput drifted by {drift:+.1}% over the window")
        }
        _ => "seconds are correlated for too long compared with the window".to_owned(),
    }
}

/// The latencies of each second of the window; in an open loop, those that ended after it belong to its last second,
/// because they were due in the window. None if some can't be read.
fn seconds(
    intervals: &[Interval],
    latencies: impl Fn(&Interval) -> Option<Vec<(u64, u64)>>,
) -> Option<Vec<Vec<(u64, u64)>>> {
    let mut seconds: Vec<Vec<(u64, u64)>> = Vec::new();
    for interval in intervals {
        match (interval.phase, seconds.last_mut()) {
            (Phase::Measure, _) => seconds.push(latencies(interval)?),
            (Phase::Drain, Some(last)) => {
                last.extend(latencies(interval)?);
                last.sort_unstable();
            }
            _ => {}
        }
    }
    Some(seconds)
}

fn percentiles(seconds: Option<Vec<Vec<(u64, u64)>>>, missing: &mut Missing) -> Vec<Percentile> {
    let Some(seconds) = seconds else {
        missing
            .add_unless(false, "percentiles", || "the histograms of some seconds can't be read".to_owned());
        return Vec::new();
    };
    let of_shares = stats::percentiles(&seconds, &SHARES);
    let found: Vec<Percentile> = SHARES
        .into_iter()
        .zip(of_shares)
        .filter_map(|(share, found)| {
            let found = found?;
            let us = |ns: u64| ns as f64 / 1e3;
            let interval_us = found.interval.map(|(low, high)| (us(low), us(high)));
            Some(Percentile { share, value_us: us(found.value), interval_us })
        })
        .collect();
    missing.add_unless(!found.is_empty(), "percentiles", || "no latencies were recorded".to_owned());
    // If the window is too short, none has an interval, and one reason suffices.
    let too_short = seconds.len() <= MAX_SECONDS_WITHOUT_INTERVAL;
    missing.add_unless(found.is_empty() || !too_short, "percentiles.interval_us", || {
        format!("the window has {} seconds, and 60 are needed", seconds.len())
    });
    for percentile in found.iter().filter(|percentile| percentile.interval_us.is_none() && !too_short) {
        missing.add_unless(false, &Percentile::name(percentile.share), || {
            "fewer than 10 transactions were slower".to_owned()
        });
    }
    found
}

/// With at most this many seconds, there are fewer than six blocks of ten.
const MAX_SECONDS_WITHOUT_INTERVAL: usize = 50;

#[cfg(test)]
mod tests {
    use model::message::ScriptInterval;

    use super::*;

    fn interval(start_us: u64, phase: Phase, transactions: u64) -> Interval {
        let script = ScriptInterval {
            script: "simple-update".to_owned(),
            transactions,
            failed: Some(0),
            unfinished: None,
            latencies: Vec::new(),
        };
        Interval {
            start_us,
            width_us: 1_000_000,
            phase,
            scripts: vec![script],
            background: Vec::new(),
            spans: Vec::new(),
            busy: Some(0.5),
            lag_max_us: Some(10.0),
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: None,
        }
    }

    /// A load with this many seconds of warm-up and window, with these transactions per second, then a drain.
    fn load(warmup: u64, window: u64, transactions: impl Fn(u64) -> u64) -> Vec<Interval> {
        let phase = |second| if second < warmup { Phase::Warmup } else { Phase::Measure };
        let mut load: Vec<Interval> = (0..warmup + window)
            .map(|second| interval(second * 1_000_000, phase(second), transactions(second)))
            .collect();
        load.push(interval((warmup + window) * 1_000_000, Phase::Drain, 3));
        load
    }

    fn wobbling(second: u64) -> u64 {
        1000 + second * 37 % 101
    }

    /// A hundred transactions between 1 and 2 ms.
    fn latencies(interval: &Interval) -> Option<Vec<(u64, u64)>> {
        let count = if interval.phase == Phase::Measure { 100 } else { 0 };
        Some((0..count).map(|i| (1_000_000 + i * 10_000, 1)).collect())
    }

    #[test]
    fn a_steady_window_has_a_precise_mean_and_no_stalls() {
        let statistics = run_statistics(&load(30, 300, wobbling), latencies);
        assert_eq!(
            (statistics.seconds, statistics.stationary, statistics.stalls.as_deref()),
            (300, Some(true), Some(&[][..]))
        );
        let (mean, (low, high)) = (statistics.tps_mean.unwrap(), statistics.tps_interval.unwrap());
        assert!(
            low < mean && mean < high && (1045.0..1055.0).contains(&mean) && high - low < 20.0,
            "{statistics:?}"
        );
        assert!(statistics.warmup_cut_us.unwrap() < 30_000_000);
        assert_eq!(statistics.percentiles.len(), 5);
        assert_eq!(statistics.percentiles[0].value_us, 1490.0);
        assert_eq!(statistics.percentiles[0].interval_us, Some((1490.0, 1490.0)), "all seconds are alike");
        assert!(statistics.missing.is_empty(), "{statistics:?}");
    }

    #[test]
    fn percentiles_of_an_open_loop_include_its_end() {
        // One transaction a second, of 1 ms in the window and of 9 s after it.
        let latencies = |interval: &Interval| {
            let ns = if interval.phase == Phase::Drain { 9_000_000_000 } else { 1_000_000 };
            Some(vec![(ns, 1)])
        };
        let p99_us = |unfinished| {
            let mut load = load(5, 60, wobbling);
            load[65].scripts[0].unfinished = Some(unfinished);
            let statistics = run_statistics(&load, latencies);
            let p99 = statistics.percentiles.into_iter().find(|percentile| percentile.share == 0.99);
            (p99.map(|percentile| percentile.value_us), statistics.missing.get("percentiles").cloned())
        };
        assert_eq!(p99_us(0), (Some(9_000_000.0), None));
        let (p99, missing) = p99_us(7);
        assert!(p99.is_none() && missing.is_some_and(|why| why.starts_with("7 transactions")));
    }

    #[test]
    fn an_alternating_window_counts_all_of_its_seconds() {
        let statistics =
            run_statistics(&load(0, 60, |second| 1000 + second % 2 * 200 + second * 37 % 11), latencies);
        assert_eq!(statistics.effective_seconds, Some(60.0));
        assert!(
            statistics.tps_interval.is_some() && !statistics.missing.contains_key("tps_interval"),
            "{statistics:?}"
        );
    }

    #[test]
    fn a_drifting_window_is_reported_and_its_mean_has_no_interval() {
        let statistics = run_statistics(&load(0, 300, |second| 1000 + second), latencies);
        assert_eq!((statistics.stationary, statistics.tps_interval), (Some(false), None));
        assert!(statistics.drift_share.unwrap() > 0.2 && statistics.trend_p.unwrap() < 0.01);
        assert!(
            statistics.missing["tps_interval"].starts_with("NON-STATIONARY: throughput drifted by +2"),
            "{statistics:?}"
        );
    }

    #[test]
    fn a_slow_beginning_after_the_warm_up_is_detected() {
        let slow = |second| if second < 20 { 50 * second } else { wobbling(second) };
        assert_eq!(run_statistics(&load(10, 100, slow), latencies).warmup_cut_us, Some(20_000_000));
        let never = run_statistics(&load(10, 100, |second| 50 * second), latencies);
        assert_eq!(never.warmup_cut_us, None);
        assert!(never.missing["warmup_cut_us"].contains("did not settle"), "{never:?}");
    }

    #[test]
    fn stalls_have_their_position_in_the_load() {
        let stalled = |second| if (40..43).contains(&second) { 1 } else { 1000 };
        let statistics = run_statistics(&load(10, 60, stalled), latencies);
        let stall = Stall { start_us: 40_000_000, length_us: 3_000_000, baseline_tps: 1000.0 };
        assert_eq!(statistics.stalls, Some(vec![stall]));
    }

    #[test]
    fn figures_of_a_short_window_are_none_with_reasons() {
        let missing = |seconds: u64| {
            let statistics = run_statistics(&load(0, seconds, wobbling), latencies);
            let names: Vec<String> = statistics.missing.keys().cloned().collect();
            names.join(" ")
        };
        assert_eq!(missing(9), "percentiles.interval_us stalls stationary tps_interval warmup_cut_us");
        assert_eq!(missing(10), "percentiles.interval_us stationary tps_interval warmup_cut_us");
        assert_eq!(missing(30), "percentiles.interval_us stationary warmup_cut_us");
        assert_eq!(missing(50), "percentiles.interval_us stationary");
        assert_eq!(missing(60), "p99.9 stationary", "of 6000 transactions 6 took longer");
        assert_eq!(missing(300), "");
        let short = run_statistics(&load(1, 4, wobbling), latencies);
        assert_eq!(short.missing["tps_interval"], "the window has 4 full seconds, and 30 are needed");
        assert_eq!(short.percentiles[0].value_us, 1490.0);
    }

    #[test]
    fn without_seconds_or_latencies_there_are_no_figures() {
        let nothing = run_statistics(&[], latencies);
        assert_eq!((nothing.seconds, nothing.tps_mean, nothing.percentiles.len()), (0, None, 0));
        let unreadable = run_statistics(&load(0, 60, wobbling), |_| None);
        assert!(unreadable.percentiles.is_empty());
        assert!(unreadable.missing["percentiles"].contains("can't be read"));
    }
}
