//! Merged parts against one driver: both get the same records, in parts and summed.

use std::sync::Arc;

use model::message::{self, Connection, Endpoint};
use model::units::{Rate, Span};
use model::workload::{BackgroundWorkload, Custom, Protocol, WeightedScript, Workload};
use script::RandomState;

use super::*;
use crate::observer::{self, EngineUsed};
use crate::program::Program;
use crate::record::{Intended, Record, TransactionSpan};
use crate::serve::load_from_message;
use crate::summary::Summary;

const SECOND_NS: u64 = 1_000_000_000;

fn script(name: &str) -> WeightedScript {
    WeightedScript { name: name.to_owned(), weight: 1, text: "SELECT 1;\n".to_owned() }
}

/// A load of two scripts, next to two background workloads with a script each.
fn load(rate: Rate) -> Load {
    let background = |workload| BackgroundWorkload {
        workload,
        clients: 2,
        rate,
        start: Span::default(),
        per_client: false,
        replica: false,
    };
    let mut custom = Custom::new("own", vec![script("a"), script("b")]);
    custom.background = vec![
        background(Workload::SelectOnly),
        background(Workload::Custom(Arc::new(Custom::new("other", vec![script("c")])))),
    ];
    Load {
        connection: Connection {
            endpoint: Endpoint::Tcp { host: "localhost".to_owned(), port: 5432 },
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: None,
        },
        workload: Workload::Custom(Arc::new(custom)),
        scale: 1,
        trace: None,
        replica: None,
        protocol: Protocol::Simple,
        clients: 8,
        threads: 2,
        rate,
        cpus: None,
        seed: 1,
        warmup_us: 1_000_000,
        duration_us: 2_000_000,
        interval_us: 1_000_000,
        slices: None,
        part: None,
    }
}

/// Records of a part: a second of warm-up, two of the window, and a drain.
fn records(load: &crate::Load, random: &mut RandomState) -> Vec<Record> {
    let shapes = Program::new(load).unwrap().shapes(load);
    let phases = [Phase::Warmup, Phase::Measure, Phase::Measure, Phase::Drain];
    let record = |(number, phase)| {
        let mut record = Record::new(&shapes).unwrap();
        (record.number, record.phase) = (number, phase);
        (record.start_ns, record.end_ns) = (number * SECOND_NS, (number + 1) * SECOND_NS);
        for (at, script) in record.scripts.iter_mut().enumerate() {
            for _ in 0..random.range_i64(0, 400) {
                // Over six orders of magnitude, as latencies are.
                let latency_ns = 10_f64.powf(3.0 + 6.0 * random.f64()) as u64;
                script.latency.saturating_record(latency_ns);
                script.moments.add(latency_ns);
                script.service.iter_mut().for_each(|service| service.saturating_record(latency_ns / 2));
            }
            script.failures.other = random.range_i64(0, 3) as u64;
            let is_open = script.is_open && phase != Phase::Warmup;
            if is_open && at == 0 {
                script.add_from_warmup(random.range_i64(1, 1_000_000) as u64, 1);
                script.add_unfinished(random.range_i64(1, 1_000_000) as u64, None);
            }
        }
        record.spans = vec![TransactionSpan { script: 0, client: 3, start_ns: 1, end_ns: 2, failed: false }];
        record.lag.add(random.range_i64(1, 1_000_000) as u64);
        record.send_lag.add(random.range_i64(1, 1_000_000) as u64);
        record.busy = random.f64();
        record.commits = random.range_i64(0, 9) as u64;
        record
    };
    (0..).zip(phases).map(record).collect()
}

/// The replies of a driver with these records.
fn replies(load: &crate::Load, records: &[Record], connections: u64) -> (Vec<Interval>, Outcome) {
    let names = vec!["select-only".to_owned(), "other".to_owned()];
    let mut summary = Summary::new(load, names).unwrap();
    let mut intended: Vec<Intended> = match load.main.arrivals.is_open() {
        true => load.main.scripts.iter().map(|_| Intended::new().unwrap()).collect(),
        false => Vec::new(),
    };
    for record in records.iter().filter(|record| record.phase != Phase::Warmup) {
        intended.iter_mut().zip(&record.scripts).for_each(|(sum, script)| sum.add_interval(script));
    }
    let intervals = records.iter().map(|record| summary.interval(record).unwrap()).collect();
    let outcome = observer::Outcome {
        elapsed_ns: 4 * SECOND_NS,
        window_ns: 2 * SECOND_NS,
        stopped_early: false,
        aborted: 0,
        missed: 0,
        background_missed: load.background.iter().map(|_| connections).collect(),
        intended,
        connections,
        cpu_us: 7 * connections,
        engine: EngineUsed { name: "epoll", reason: None },
    };
    (intervals, summary.outcome(&outcome, connections))
}

/// An interval whose latencies are decoded.
type Decoded = (Interval, Vec<Vec<(Phase, Histogram<u64>, Option<Histogram<u64>>)>>);

fn decoded(interval: &Interval) -> Decoded {
    let mut interval = interval.clone();
    let scripts = interval.scripts.iter_mut().chain(&mut interval.background);
    let latencies = scripts.map(|script| {
        let taken = PhaseSum::take_all(script).unwrap();
        taken.into_iter().map(|PhaseSum { phase, latency, service }| (phase, latency, service)).collect()
    });
    let latencies = latencies.collect();
    (interval, latencies)
}

#[test]
fn merged_parts_are_what_one_driver_reports() {
    for rate in [Rate::MAX, Rate::per_second(100.0).unwrap()] {
        let message = load(rate);
        let whole = load_from_message(&message).unwrap();
        let mut random = RandomState::from_seed(1);
        let parts: Vec<Vec<Record>> = (0..4).map(|_| records(&whole, &mut random)).collect();
        let mut sum = parts[0].clone();
        for part in &parts[1..] {
            sum.iter_mut().zip(part).for_each(|(sum, record)| sum.add(record));
        }
        let (expected, mut expected_outcome) = replies(&whole, &sum, 4);

        let mut merged = MergedLoad::new(&message, parts.len()).unwrap();
        let mut intervals = Vec::new();
        for (part, records) in parts.iter().enumerate() {
            let (of_part, outcome) = replies(&whole, records, 1);
            of_part.into_iter().for_each(|interval| merged.add(part, interval).unwrap());
            merged.end(part, outcome).unwrap();
            intervals.extend(std::iter::from_fn(|| merged.next_interval().unwrap()));
        }
        assert_eq!(intervals.len(), expected.len());
        for (mut merged, mut expected) in intervals.into_iter().zip(expected) {
            // Divided and multiplied again: equal but for rounding.
            let means = (merged.lag_mean_us.take().unwrap(), expected.lag_mean_us.take().unwrap());
            assert!((means.0 / means.1 - 1.0).abs() < 1e-9, "{means:?}");
            assert_eq!(decoded(&merged), decoded(&expected));
            assert_eq!(merged, expected, "also as bytes");
        }
        // Without the ends of other hosts' transactions, no stall is known.
        expected_outcome.longest_stall_us = None;
        assert_eq!(merged.outcome(), Some(expected_outcome));
    }
}

/// In warm-up, window and drain, in a closed and in an open loop, with failed and background transactions.
#[test]
fn a_part_whose_intervals_did_not_all_arrive_is_lost() {
    for rate in [Rate::MAX, Rate::per_second(100.0).unwrap()] {
        let message = load(rate);
        let whole = load_from_message(&message).unwrap();
        let (intervals, outcome) = replies(&whole, &records(&whole, &mut RandomState::from_seed(2)), 1);
        let succeeded =
            outcome.warmup_transactions + outcome.window_transactions + outcome.drain_transactions;
        let of_background: u64 =
            outcome.background.iter().map(|one| one.transactions + one.failed_transactions).sum();
        let all = succeeded + outcome.failed_transactions + of_background;
        assert!(outcome.failed_transactions > 0 && of_background > 0);
        for dropped in 0..=intervals.len() {
            let mut merged = MergedLoad::new(&message, 1).unwrap();
            let arrived = intervals.iter().enumerate().filter(|(at, _)| *at != dropped);
            arrived.for_each(|(_, interval)| merged.add(0, interval.clone()).unwrap());
            let ended = merged.end(0, outcome.clone());
            let Some(interval) = intervals.get(dropped) else {
                ended.unwrap();
                assert!(merged.outcome().is_some());
                continue;
            };
            let scripts = interval.scripts.iter().chain(&interval.background);
            let missing: u64 = scripts.map(|script| script.transactions + script.failed.unwrap()).sum();
            let error = ended.unwrap_err().to_string();
            let figures = format!("have {} of its {all} transactions", all - missing);
            assert!(error.contains(&figures), "{error}; expected: {figures}");
            assert_eq!(merged.outcome(), None, "the totals are not of all intervals");
        }
    }
}

fn interval(phase: Phase, start_us: u64, width_us: u64) -> Interval {
    Interval {
        start_us,
        width_us,
        phase,
        scripts: Vec::new(),
        background: Vec::new(),
        spans: Vec::new(),
        busy: Some(0.5),
        lag_max_us: Some(1.0),
        lag_mean_us: None,
        responses: Some(0),
        send_lag_max_us: None,
    }
}

/// Phase, start and end of the intervals that are complete.
fn complete(merged: &mut MergedLoad) -> Vec<(Phase, u64, u64)> {
    let all = std::iter::from_fn(|| merged.next_interval().unwrap());
    all.map(|interval| (interval.phase, interval.start_us, interval.start_us + interval.width_us)).collect()
}

#[test]
fn an_interval_waits_for_all_parts_but_not_for_a_lost_one() {
    let mut merged = MergedLoad::new(&load(Rate::MAX), 2).unwrap();
    merged.add(0, interval(Phase::Warmup, 0, 10)).unwrap();
    merged.add(0, interval(Phase::Measure, 10, 10)).unwrap();
    assert_eq!(complete(&mut merged), []);
    merged.add(1, interval(Phase::Warmup, 0, 10)).unwrap();
    assert_eq!(complete(&mut merged), [(Phase::Warmup, 0, 10)]);
    merged.lose(1);
    assert_eq!(complete(&mut merged), [(Phase::Measure, 10, 20)]);
    assert_eq!(merged.outcome(), None, "the other one still runs");
}

/// Each part has stopped a little later than the one before.
#[test]
fn parts_that_stop_one_after_the_other_have_one_end() {
    let mut merged = MergedLoad::new(&load(Rate::MAX), 3).unwrap();
    let parts = [
        [(Phase::Measure, 10, 8), (Phase::Drain, 18, 3), (Phase::Drain, 21, 1)].as_slice(),
        &[(Phase::Measure, 10, 10), (Phase::Measure, 20, 1), (Phase::Drain, 21, 2)],
        &[(Phase::Measure, 10, 9), (Phase::Drain, 19, 5)],
    ];
    for (part, intervals) in parts.into_iter().enumerate() {
        for (phase, start_us, width_us) in intervals {
            merged.add(part, interval(*phase, *start_us, *width_us)).unwrap();
        }
        merged.lose(part);
    }
    assert_eq!(
        complete(&mut merged),
        [
            (Phase::Measure, 10, 20),
            (Phase::Measure, 20, 21),
            (Phase::Drain, 21, 24),
            // It has ended before the others.
            (Phase::Drain, 24, 24),
        ]
    );
}

#[test]
fn a_part_with_other_scripts_is_an_error() {
    let of = |name: &str| {
        let script = ScriptInterval {
            script: name.to_owned(),
            transactions: 1,
            failed: Some(0),
            unfinished: None,
            latencies: Vec::new(),
        };
        Interval { scripts: vec![script], ..interval(Phase::Measure, 0, 10) }
    };
    let mut merged = MergedLoad::new(&load(Rate::MAX), 2).unwrap();
    merged.add(0, of("a")).unwrap();
    let error = merged.add(1, of("b")).unwrap_err().to_string();
    assert!(error.contains("it ran the scripts b, others a"), "{error}");
}

#[test]
fn iterations_that_one_part_does_not_complete_are_not_complete() {
    let early = |stopped_early| {
        let load = load_from_message(&load(Rate::MAX)).unwrap();
        Outcome { stopped_early, ..replies(&load, &[], 1).1 }
    };
    let ended = |load: &message::Load, parts: [bool; 2]| {
        let mut merged = MergedLoad::new(load, 2).unwrap();
        (0..).zip(parts).for_each(|(part, stopped)| merged.end(part, early(stopped)).unwrap());
        merged.outcome().unwrap().stopped_early
    };
    let by_time = load(Rate::MAX);
    assert!(!ended(&by_time, [true, false]), "the clients of one host died");
    assert!(ended(&by_time, [true, true]));
    let mut custom = by_time.workload.custom().unwrap().clone();
    custom.iterations = Some(10);
    let by_iterations = Load { workload: Workload::Custom(Arc::new(custom)), ..by_time };
    assert!(ended(&by_iterations, [true, false]));
    assert!(!ended(&by_iterations, [false, false]));
}
