//! Throughput, failures and latencies over time. Histograms are read one interval at a time, so that those of a day are
//! never in memory together.

use std::ops::Range;

use model::message::{Interval, Phase};
use model::record::TrialRecord;
use store::hlog;

use super::counted::{Counted, Quantiles};
use super::curve::curve;
use super::heat::{COLUMNS, HeatBuilder};
use super::points::{Envelope, Points, Weighed, figure, groups};
use super::{Curve, Heat, Load, Span};

/// Results from intervals and their histograms.
pub(super) struct Latencies {
    pub(super) load: Load,
    pub(super) heat: Option<Heat>,
    pub(super) intended: Option<Curve>,
    pub(super) service: Option<Curve>,
}

/// The fewest columns of a thinned heat map.
const MIN_COLUMNS: usize = 60;

/// Reads the intervals of a trial.
pub(super) fn read(record: &TrialRecord, most: Points) -> Latencies {
    let intervals = &record.intervals;
    let most = most.of_each(1);
    let together = in_phases(intervals, most);
    let columns = in_phases(intervals, most.clamp(MIN_COLUMNS, COLUMNS));
    let mut load = figures(intervals, &together);
    let mut heat = HeatBuilder::new(columns.iter().filter_map(|group| extent(intervals.get(group.clone())?)));
    let (mut intended, mut service) = (Counted::default(), Counted::default());
    let mut column = 0;
    for group in together {
        let mut of_group = Counted::default();
        for (at, interval) in intervals.iter().enumerate().take(group.end).skip(group.start) {
            while columns.get(column).is_some_and(|columns| columns.end <= at) {
                column += 1;
            }
            for (phase, latencies) in hlog::latencies_by_phase(interval).unwrap_or_default() {
                heat.add(column, &latencies);
                of_group.add(&latencies);
                if phase == Phase::Measure {
                    intended.add(&latencies);
                }
            }
            service.add(&hlog::window_service_times(interval).unwrap_or_default());
        }
        percentiles(&mut load, of_group.sorted());
    }
    Latencies { load, heat: heat.build(), intended: curve(&mut intended), service: curve(&mut service) }
}

/// The measured window; `None` if there is none.
pub(super) fn window(intervals: &[Interval]) -> Option<Span> {
    let measured = || intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let start_us = measured().map(|interval| signed(interval.start_us)).min()?;
    let end_us = measured().map(end_us).max()?;
    Some(Span { start_us, end_us })
}

/// Start and length of consecutive intervals.
pub(super) fn extent(intervals: &[Interval]) -> Option<(i64, i64)> {
    let start_us = signed(intervals.first()?.start_us);
    Some((start_us, end_us(intervals.last()?) - start_us))
}

/// End of an interval.
pub(super) fn end_us(interval: &Interval) -> i64 {
    signed(interval.start_us.saturating_add(interval.width_us))
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// Groups of intervals, each in one phase.
fn in_phases(intervals: &[Interval], most: usize) -> Vec<Range<usize>> {
    let phases: Vec<usize> = intervals.chunk_by(|a, b| a.phase == b.phase).map(<[_]>::len).collect();
    let size = match intervals.len() <= most {
        true => 1,
        // The last group of each phase may not be full.
        false => intervals.len().div_ceil(most.saturating_sub(phases.len()).max(1)),
    };
    let mut start = 0;
    let mut together = Vec::new();
    for phase in phases {
        together
            .extend(groups(phase, phase.div_ceil(size)).map(|group| start + group.start..start + group.end));
        start += phase;
    }
    together
}

/// All figures except latencies.
fn figures(intervals: &[Interval], together: &[Range<usize>]) -> Load {
    let tps: Vec<Weighed> = intervals.iter().map(throughput).collect();
    let tps = Envelope::new(&tps, together.iter().cloned());
    let extents: Vec<(i64, i64)> =
        together.iter().filter_map(|group| extent(intervals.get(group.clone())?)).collect();
    let failed = |group: &Range<usize>| -> Option<u64> {
        let scripts =
            || intervals.get(group.clone()).into_iter().flatten().flat_map(|interval| &interval.scripts);
        scripts().next()?;
        scripts().map(|script| script.failed).sum()
    };
    Load {
        start_us: extents.iter().map(|(start_us, _)| *start_us).collect(),
        width_us: extents.iter().map(|(_, width_us)| *width_us).collect(),
        tps: tps.values,
        tps_low: tps.low,
        tps_high: tps.high,
        failed: together.iter().map(failed).collect(),
        ..Load::default()
    }
}

fn throughput(interval: &Interval) -> Weighed {
    let seconds = interval.width_us as f64 / 1e6;
    let transactions: u64 = interval.scripts.iter().map(|script| script.transactions).sum();
    // Transactions in flight at the window's end are no throughput.
    let is_known = seconds > 0.0 && !interval.scripts.is_empty() && interval.phase != Phase::Drain;
    Weighed { value: is_known.then(|| transactions as f64 / seconds), weight: seconds }
}

fn percentiles(load: &mut Load, values_ns: &[(u64, u64)]) {
    let mut quantiles = Quantiles::new(values_ns);
    let into = [
        (0.5, &mut load.p50_us),
        (0.95, &mut load.p95_us),
        (0.99, &mut load.p99_us),
        (1.0, &mut load.max_us),
    ];
    for (share, series) in into {
        series.push(quantiles.next(share).map(|(value_ns, _)| figure(value_ns as f64 / 1e3)));
    }
}
