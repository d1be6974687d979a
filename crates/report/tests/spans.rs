//! Transactions one by one: synthetic scans, some of which end together.

#![allow(clippy::unwrap_used)]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use std::collections::BTreeMap;

use analysis::context::TrialContext;
use analysis::overview;
use analysis::spans::spans;
use bundles::{cell, record};
use model::environment::BlockDevice;
use model::limits::LimitsInForce;
use model::message::TransactionSpan;
use model::metrics::{Kind, Point, Series};
use model::record::{RawRead, TrialRecord};
use plaintext::table::Format;
use report::{gantt, tables};

const SECOND: u64 = 1_000_000;

/// Scans in seconds: client, start and end.
fn scans(of: &[(u32, f64, f64)]) -> Vec<TransactionSpan> {
    let us = |seconds: f64| (seconds * 1e6) as u64;
    let span = |&(client, start, end): &(u32, f64, f64)| TransactionSpan {
        script: "scan.sql".to_owned(),
        client,
        start_us: us(start),
        end_us: us(end),
        failed: false,
    };
    of.iter().map(span).collect()
}

/// A trial of `clients` clients with these scans, during which the disk read 10 MB a second.
fn trial(id: &str, clients: u32, of: &[(u32, f64, f64)]) -> TrialRecord {
    let mut record = record(cell("18", clients), 1.0);
    record.trial.id = id.to_owned();
    record.spans = scans(of);
    record.environment.data_devices = vec![BlockDevice { name: "vda".to_owned(), facts: BTreeMap::new() }];
    let points = (0..200).map(|second| Point { at_us: second * 1_000_000, value: Some(second as f64 * 1e7) });
    let points: Vec<Point> = points.collect();
    for metric in ["disk.read_bytes", "disk.write_bytes"] {
        record.metrics.0.push(Series {
            metric: metric.to_owned(),
            label: Some("vda".to_owned()),
            kind: Kind::Counter,
            points: points.clone(),
        });
    }
    record
}

/// Four scans two seconds apart, of which the last three end together; and each client's second one.
const TOGETHER: [(u32, f64, f64); 8] = [
    (0, 0.0, 70.0),
    (1, 2.0, 90.001),
    (2, 4.0, 90.0),
    (3, 6.0, 90.002),
    (0, 70.0, 100.0),
    (1, 90.001, 120.0),
    (2, 90.0, 120.0),
    (3, 90.002, 120.0),
];

#[test]
fn scans_that_end_together_are_found_and_their_successors_are_not_found_again() {
    let found = spans(&trial("A", 4, &TOGETHER)).unwrap();
    let clumps: Vec<(usize, u64, u64)> = found
        .clumps
        .iter()
        .map(|clump| (clump.transactions, clump.first_end_us, clump.last_end_us))
        .collect();
    assert_eq!(clumps, [(3, 90 * SECOND, 90_002_000)]);
    let clumped: Vec<(u32, usize)> = found
        .each
        .iter()
        .filter(|span| span.clump == Some(0))
        .map(|span| (span.client, span.iteration))
        .collect();
    assert_eq!(clumped, [(1, 1), (2, 1), (3, 1)]);
    let order: Vec<(u32, usize)> = found.each.iter().map(|span| (span.client, span.iteration)).collect();
    assert_eq!(order, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]);
    assert_eq!((found.start_us, found.end_us), (0, 120 * SECOND));
    assert_eq!(found.read_bytes, Some(1.2e9));
    assert_eq!(found.longest_us, Some(88_001_000));

    let apart: Vec<_> =
        (0..8).map(|client| (client, f64::from(client) * 2.0, 14.0 + f64::from(client) * 2.0)).collect();
    assert_eq!(spans(&trial("B", 8, &apart)).unwrap().clumps, []);
}

#[test]
fn reads_of_the_server_take_precedence_over_those_of_all_processes() {
    let mut record = trial("A", 2, &[(0, 0.0, 10.0), (1, 1.0, 20.0)]);
    assert_eq!(spans(&record).unwrap().read_bytes, Some(2e8));
    record.trial.limits =
        Some(LimitsInForce { groups: vec!["/a".to_owned(), "/b".to_owned()], ..LimitsInForce::default() });
    record.metrics.0.push(Series {
        metric: "cgroup.read_bytes".to_owned(),
        label: Some("/b".to_owned()),
        kind: Kind::Counter,
        points: [(0, 5e6), (19_000_000, 9e7), (20_400_000, 1e8)]
            .map(|(at_us, value)| Point { at_us, value: Some(value) })
            .into(),
    });
    assert_eq!(spans(&record).unwrap().read_bytes, Some(9.5e7));
}

#[test]
fn failed_scans_are_in_no_figure() {
    let mut record = trial("A", 2, &[(0, 0.0, 10.0), (1, 1.0, 90.0)]);
    record.spans[1].failed = true;
    let found = spans(&record).unwrap();
    assert_eq!((found.mean_us, found.longest_us, found.end_us), (Some(1e7), Some(10 * SECOND), 90 * SECOND));
    assert!(gantt(&found).contains("89.0 s failed"), "{}", gantt(&found));
    record.spans.clear();
    assert_eq!(spans(&record), None);
}

#[test]
fn a_report_has_multiples_of_the_lone_scan() {
    let mut lone = trial("A", 1, &[(0, 0.0, 13.0), (0, 13.0, 28.0)]);
    lone.trial.raw_read =
        Some(RawRead { relation: "scanned".to_owned(), bytes: 1_400_000_000, elapsed_us: 14_000_000 });
    let records = [lone, trial("B", 4, &TOGETHER)];
    let contexts = records
        .iter()
        .map(|record| {
            let context = TrialContext { spans: spans(record), ..TrialContext::default() };
            (record.trial.id.clone(), context)
        })
        .collect();
    let trials: Vec<_> = records.into_iter().map(|record| record.trial).collect();
    let view = overview(&trials, &contexts);
    let text = tables(&view, Format::Table, None);
    insta::assert_snapshot!(text);
    let json: serde_json::Value = serde_json::from_str(&tables(&view, Format::Json, None)).unwrap();
    let together = &json["panels"][0]["rows"][1]["points"][0]["runs"][0]["spans"];
    assert_eq!(together["lone_us"].as_f64(), Some(14e6));
    assert_eq!(together["each"].as_array().unwrap().len(), 8);

    // Without the lone client's trial there is no multiple.
    let alone = overview(&trials[1..], &contexts);
    let json: serde_json::Value = serde_json::from_str(&tables(&alone, Format::Json, None)).unwrap();
    assert!(json["panels"][0]["rows"][0]["points"][0]["runs"][0]["spans"]["lone_us"].is_null());
}
