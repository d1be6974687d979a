//! `store check` judges values: of intact bundles, too, those that no trial can have are named.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use jiff::SignedDuration;
use model::record::{Finding, Status, TrialRecord};
use sample::{bare, imported, record};
use store::{Problem, Store, new_id};

/// The problems of a record that is stored as it is.
fn problems(record: &TrialRecord) -> Vec<Problem> {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    store.write(record).unwrap();
    store.check().unwrap().problems
}

#[test]
fn trials_as_they_are_measured_and_imported_have_no_problem() {
    for record in [record(&new_id()), bare(&new_id()), imported(&new_id())] {
        assert_eq!(problems(&record), []);
    }
}

type Change = fn(&mut TrialRecord);

/// A change of the sample, and the file and the reason that are named.
const CHANGES: [(Change, &str, &str); 26] = [
    (
        |record| record.trial.summary.as_mut().unwrap().tps = 1.7e308,
        "trial.json",
        "summary.tps is 1.7e308, not between 0.0 and 1000000000.0",
    ),
    (|record| record.trial.summary.as_mut().unwrap().tps = -1.0, "trial.json", "summary.tps is -1.0, not"),
    (
        |record| record.trial.summary.as_mut().unwrap().tps *= 2.0,
        "trial.json",
        "by its transactions and the window's length",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().window_us = Some(1 << 53),
        "trial.json",
        "summary.window_us is 9007199254740992.0",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().driver_busy_max = Some(1.5),
        "trial.json",
        "driver_busy_max is 1.5",
    ),
    (
        |record| record.trial.load_hosts[0].busy_max = Some(1.5),
        "trial.json",
        "busy_max of the load host \"load-1\" is 1.5",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().latency.as_mut().unwrap().p50_us = Some(-3.0),
        "trial.json",
        "summary.latency.p50_us is -3.0",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().latency.as_mut().unwrap().p90_us = Some(6.9e6),
        "trial.json",
        "summary.latency.p90_us is 6900000.0, above p95_us",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().latency.as_mut().unwrap().mean_us = Some(8e6),
        "trial.json",
        "summary.latency.mean_us is 8000000.0, above max_us",
    ),
    (
        |record| record.trial.summary.as_mut().unwrap().statistics.as_mut().unwrap().trend_p = Some(2.0),
        "trial.json",
        "trend_p is 2.0",
    ),
    (
        |record| {
            record.trial.summary.as_mut().unwrap().statistics.as_mut().unwrap().tps_interval =
                Some((2.0, 1.0));
        },
        "trial.json",
        "tps_interval goes from 2.0 to 1.0",
    ),
    (|record| record.trial.attempt = 0, "trial.json", "attempt is 0"),
    (
        |record| record.trial.ended = record.trial.started.map(|at| at - SignedDuration::from_hours(1)),
        "trial.json",
        "is before load_started",
    ),
    (
        |record| record.trial.clocks.as_mut().unwrap().ended.monotonic_us = 4_000_000,
        "trial.json",
        "the load ended before it started",
    ),
    (
        |record| record.trial.validity.status = Status::Valid,
        "trial.json",
        "validity.status is valid, but suspect by its findings",
    ),
    (
        |record| record.trial.validity.findings[0].gate = "phase-of-the-moon".to_owned(),
        "trial.json",
        "this release of pgdyno has no gate \"phase-of-the-moon\"",
    ),
    (
        |record| record.intervals[2].start_us = 500_000,
        "series.parquet",
        "at 500000 µs: the row before begins later, at 1000000 µs",
    ),
    (
        |record| record.intervals[1].width_us = 1 << 52,
        "series.parquet",
        "at 1000000 µs: the end is 4503599628370496.0",
    ),
    (|record| record.intervals[0].busy = Some(-0.5), "series.parquet", "at 0 µs: busy is -0.5"),
    (
        |record| record.intervals[1].lag_max_us = Some(1e300),
        "series.parquet",
        "at 1000000 µs: lag_max_us is 1e300",
    ),
    (
        |record| record.spans[0].end_us = 1 << 52,
        "spans.parquet",
        "the end of a transaction is 4503599627370496.0",
    ),
    (|record| record.metrics.0[0].points[0].value = Some(1e300), "metrics.parquet", "is 1e300, not between"),
    (
        |record| record.metrics.0[0].points[0].at_us = -(1 << 52),
        "metrics.parquet",
        "more than a year from the load's start",
    ),
    (|record| record.waits[0].samples = 0, "waits.parquet", "times in no sample"),
    (|record| record.statements[0].total_us = -1.0, "statements.parquet", "total_us of statement"),
    (
        |record| record.trial.profile.as_mut().unwrap().samples = 4,
        "stacks",
        "the stacks have 3 samples, trial.json 4",
    ),
];

#[test]
fn values_that_no_trial_can_have_are_named() {
    for (nth, (change, file, reason)) in CHANGES.into_iter().enumerate() {
        let mut record = record(&new_id());
        change(&mut record);
        let found = problems(&record);
        let fits = |problem: &&Problem| {
            problem.file.as_deref() == Some(file)
                && problem.reason.contains(reason)
                && problem.bundle.as_deref() == Some(record.trial.id.as_str())
                && !problem.advice.is_empty()
        };
        assert!(found.iter().any(|problem| fits(&problem)), "change {nth}: {found:?}");
    }
}

#[test]
fn a_step_of_the_wall_clock_is_a_finding_of_the_trial_and_no_problem_of_its_bundle() {
    let mut record = record(&new_id());
    let clocks = record.trial.clocks.as_mut().unwrap();
    clocks.ended.unix_us -= 3_600_000_000;
    record.trial.ended = record.trial.started.map(|at| at - SignedDuration::from_hours(1));
    record.trial.validity.findings.push(Finding {
        gate: "clock-stepped".to_owned(),
        status: Status::Suspect,
        evidence: "it was set back by an hour".to_owned(),
        threshold: None,
        advice: None,
        processes: Vec::new(),
    });
    assert_eq!(problems(&record), []);
}

#[test]
fn a_transaction_that_ends_before_its_start_is_not_stored() {
    let root = tempfile::tempdir().unwrap();
    let mut record = record(&new_id());
    record.spans[0].start_us = record.spans[0].end_us + 1;
    let error = Store::open(root.path()).unwrap().write(&record).unwrap_err().to_string();
    assert!(error.contains("spans.parquet: row 1: a transaction ends at"), "{error}");
}
