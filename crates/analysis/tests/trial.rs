//! The input of the page of one trial.

#![allow(clippy::unwrap_used)]

mod fixture;

use analysis::trial::{Curve, Detail, Lane, Metric, Points, detail};
use model::message::Phase;
use model::record::TrialRecord;

fn trial() -> TrialRecord {
    fixture::detailed::trials().remove(0)
}

fn metric<'a>(detail: &'a Detail, metric: &str, of: Option<&str>) -> &'a Metric {
    detail.metrics.iter().find(|one| one.metric == metric && one.of.as_deref() == of).unwrap()
}

fn transactions(record: &TrialRecord) -> u64 {
    record.intervals.iter().flat_map(|interval| &interval.scripts).map(|script| script.transactions).sum()
}

#[test]
fn every_transaction_is_in_the_heat_map_once_however_it_is_thinned() {
    let record = trial();
    for most in [Points::All, Points::AtMost(1000), Points::AtMost(20), Points::AtMost(1)] {
        let heat = detail(&record, most).heat.unwrap();
        assert_eq!(heat.counts.iter().flatten().sum::<u64>(), transactions(&record), "{most:?}");
        assert!(heat.counts.iter().all(|column| column.len() + 1 == heat.edges_us.len()));
        assert_eq!(heat.counts.len(), heat.start_us.len());
    }
}

#[test]
fn the_window_s_curves_have_the_summary_s_percentiles() {
    let record = trial();
    let detail = detail(&record, Points::AtMost(10));
    let summary = record.trial.summary.unwrap();
    for (curve, figures) in [(detail.intended, summary.latency), (detail.service, summary.service)] {
        let (curve, figures) = (curve.unwrap(), figures.unwrap());
        assert_eq!(Some(curve.count), summary.transactions);
        for (share, figure) in [(0.5, figures.p50_us), (1.0, figures.max_us)] {
            let (at, figure) = (value(&curve, share), figure.unwrap());
            assert!((at - figure).abs() <= figure * 1e-4, "{share}: {at}, not {figure}");
        }
        // The curve does not have every share.
        for (share, figure) in [(0.9, figures.p90_us), (0.95, figures.p95_us), (0.999, figures.p999_us)] {
            let (below, above) = around(&curve, share);
            assert!(below * 0.9999 <= figure.unwrap() && figure.unwrap() <= above * 1.0001, "{share}");
        }
    }
}

fn value(curve: &Curve, share: f64) -> f64 {
    curve.us[curve.q.iter().position(|q| *q == share).unwrap()]
}

fn around(curve: &Curve, share: f64) -> (f64, f64) {
    let above = curve.q.iter().position(|q| *q >= share).unwrap();
    (curve.us[above - 1], curve.us[above])
}

#[test]
fn the_load_is_reported_second_by_second_or_by_several_with_their_extremes() {
    let record = trial();
    let whole = detail(&record, Points::All);
    assert_eq!(whole.load.start_us.len(), record.intervals.len());
    assert_eq!(whole.load.tps_low, None);
    assert_eq!(whole.window.map(|window| (window.start_us, window.end_us)), Some((5_000_000, 65_000_000)));
    assert_eq!(whole.load.failed.iter().flatten().sum::<u64>(), 1);

    let thinned = detail(&record, Points::AtMost(20)).load;
    assert!(thinned.start_us.len() <= 20, "{}", thinned.start_us.len());
    let extreme =
        |of: &[Option<f64>], better: fn(f64, f64) -> f64| of.iter().flatten().copied().reduce(better);
    let (low, high) = (thinned.tps_low.unwrap(), thinned.tps_high.unwrap());
    assert_eq!(extreme(&low, f64::min), extreme(&whole.load.tps, f64::min));
    assert_eq!(extreme(&high, f64::max), extreme(&whole.load.tps, f64::max));
    assert_eq!(extreme(&thinned.max_us, f64::max), extreme(&whole.load.max_us, f64::max));
    // No throughput is lost, and no group spans two phases; transactions in flight at the window's end do not count.
    let made =
        thinned.tps.iter().zip(&thinned.width_us).filter_map(|(tps, us)| Some((*tps)? * *us as f64 / 1e6));
    let made: f64 = made.sum();
    let drained: u64 = record
        .intervals
        .iter()
        .filter(|interval| interval.phase == Phase::Drain)
        .flat_map(|interval| &interval.scripts)
        .map(|script| script.transactions)
        .sum();
    assert!(drained > 0 && thinned.tps.last() == Some(&None), "{drained}: {:?}", thinned.tps.last());
    assert!((made / (transactions(&record) - drained) as f64 - 1.0).abs() < 1e-4, "{made}");
    for boundary in [Phase::Measure, Phase::Drain] {
        let first = record.intervals.iter().find(|interval| interval.phase == boundary).unwrap();
        assert!(thinned.start_us.contains(&(first.start_us as i64)), "{boundary:?}");
    }
}

#[test]
fn metrics_of_only_zeros_are_omitted_from_files_and_counted() {
    let record = trial();
    let whole = detail(&record, Points::All);
    assert_eq!(whole.left_out, 0);
    assert!(metric(&whole, "pg.database.deadlocks", None).values.iter().flatten().all(|rate| *rate == 0.0));
    let thinned = detail(&record, Points::AtMost(60));
    // Deadlocks, and steal of each CPU and of all.
    assert_eq!((thinned.left_out, thinned.metrics.len() + 4), (4, whole.metrics.len()));
    assert!(!thinned.metrics.iter().any(|metric| metric.metric == "pg.database.deadlocks"));
}

#[test]
fn metrics_of_one_source_share_their_times() {
    let record = trial();
    let whole = detail(&record, Points::All);
    assert_eq!(whole.clocks.len(), 4, "the driver's and three sources'");
    let wal = metric(&whole, "pg.wal.bytes", None);
    assert_eq!((wal.unit.as_str(), wal.rate), ("B/s", true));
    assert_eq!(wal.clock, metric(&whole, "pg.sessions", Some("active")).clock);
    let read: Vec<i64> =
        record.metrics.get("pg.wal.bytes", None).unwrap().points.iter().map(|p| p.at_us).collect();
    assert_eq!(whole.clocks[wal.clock], read, "times are exact");
    for metric in &whole.metrics {
        assert_eq!(metric.values.len(), whole.clocks[metric.clock].len(), "{}", metric.metric);
    }
    let pressure = metric(&whole, "psi.io_some_us", None);
    assert_eq!(pressure.values[21..24], [None, None, Some(10_000.0)], "two readings failed");
}

#[test]
fn checkpoints_and_vacuums_are_spans() {
    let detail = detail(&trial(), Points::All);
    let events: Vec<(Lane, i64, Option<i64>)> =
        detail.events.iter().map(|event| (event.lane, event.start_us, event.end_us)).collect();
    assert_eq!(
        events,
        [
            (Lane::Other, -900_000, None),
            (Lane::Checkpoint, 12_000_000, Some(40_000_000)),
            (Lane::Vacuum, 24_290_000, Some(24_500_000)),
            (Lane::Error, 50_200_000, None),
        ]
    );
    let checkpoint = &detail.events[1];
    assert_eq!(
        checkpoint.message,
        "checkpoint starting: time; checkpoint complete: wrote 4321 buffers (26.4%)"
    );
}

#[test]
fn a_trial_without_a_load_has_its_events_and_no_figure() {
    let mut record = trial();
    record.intervals.clear();
    record.metrics.0.clear();
    record.waits.clear();
    record.trial.load_started = None;
    record.trial.summary = None;
    let detail = detail(&record, Points::All);
    assert_eq!((detail.window, detail.heat, detail.intended, detail.waits), (None, None, None, None));
    assert_eq!(detail.explained, None);
    assert!(detail.unexplained.is_some());
    assert_eq!(detail.events.len(), 4);
    // Relative to the trial's start, which was 1130 ms before the load's would have been.
    assert_eq!(detail.events[0].start_us, 230_000);
}

#[test]
fn figures_are_rounded_and_times_are_integers() {
    let json: serde_json::Value =
        serde_json::from_str(&serde_json::to_string(&detail(&trial(), Points::All)).unwrap()).unwrap();
    let mut numbers = Vec::new();
    collect(&json["metrics"], &mut numbers);
    collect(&json["load"]["tps"], &mut numbers);
    assert!(numbers.len() > 1000);
    for number in numbers {
        let digits = number.trim_end_matches(".0").trim_start_matches(['-', '0', '.']).replace('.', "");
        assert!(digits.trim_end_matches('0').len() <= 5, "{number}");
    }
    assert_eq!(json["load"]["width_us"][65], 41_317);
}

fn collect(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Number(number) => into.push(number.to_string()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
        serde_json::Value::Object(values) => values.values().for_each(|value| collect(value, into)),
        _ => {}
    }
}
