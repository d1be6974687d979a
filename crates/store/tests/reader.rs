//! Reading a few files of many bundles.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use sample::{bare, record, stored};
use store::{Part, Store, StoreError, StoreReader, new_id};

#[test]
fn equal_settings_are_read_once_and_environments_for_each_trial() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let [first, second, other, none] = [new_id(), new_id(), new_id(), new_id()];
    let mut written = [record(&first), record(&second), record(&other), bare(&none)];
    written[1].environment.load_average_1m_centi = Some(4711);
    written[2].settings[0].value = "something else".to_owned();
    written[2].spans.clear();
    for record in &written {
        store.write(record).unwrap();
    }
    let reader = store.reader().unwrap();
    let read: Vec<store::StoredContext> =
        written.iter().map(|one| reader.context(&one.trial.id).unwrap()).collect();
    for (written, read) in written.iter().zip(&read) {
        assert_eq!((&written.environment, &written.settings), (&read.environment, &*read.settings));
        assert_eq!(read.has_spans, !written.spans.is_empty());
    }
    assert!(Arc::ptr_eq(&read[0].settings, &read[1].settings));
    assert!(!Arc::ptr_eq(&read[0].settings, &read[2].settings));
    assert!(read[3].settings.is_empty());
}

#[test]
fn only_the_requested_parts_are_read() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let id = new_id();
    let bundle = store.write(&record(&id)).unwrap();
    // Parts that are not requested may even be damaged.
    fs::write(bundle.join("metrics.parquet"), "nonsense").unwrap();
    fs::write(bundle.join("latency.hlog"), "nonsense").unwrap();
    let whole = stored(record(&id));
    let part = store.load_parts(&id[..20], &[Part::Spans, Part::Stacks, Part::Series]).unwrap();
    assert_eq!((&part.trial, &part.environment), (&whole.trial, &whole.environment));
    assert_eq!((&part.spans, &part.stacks, &part.off_cpu), (&whole.spans, &whole.stacks, &whole.off_cpu));
    assert_eq!(part.intervals.len(), whole.intervals.len());
    assert!(
        part.intervals
            .iter()
            .flat_map(|interval| &interval.scripts)
            .all(|script| script.latencies.is_empty())
    );
    assert!(part.settings.is_empty() && part.events.is_empty() && part.metrics.0.is_empty());
    assert!(store.load_parts(&id, &[Part::Metrics]).is_err());
    let log = &whole.logs[0];
    assert_eq!(store.log(&id, &log.name).unwrap().as_ref(), Some(&log.text));
    assert_eq!(store.log(&id, "never-written").unwrap(), None);
    fs::write(bundle.join(format!("logs/{}.log.zst", log.name)), "nonsense").unwrap();
    assert!(store.log(&id, &log.name).is_err());
}

#[test]
fn a_missing_trial_is_not_searched_for_outside_the_store() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(&root.path().join("store")).unwrap();
    store.write(&record(&new_id())).unwrap();
    let reader = store.reader().unwrap();
    for id in ["../trials", "..", "", &new_id()] {
        assert!(reader.context(id).is_none() && reader.load(id).is_none());
        assert!(matches!(reader.error(id), StoreError::Unreadable(_)), "{id}");
    }
}

#[test]
fn what_a_reader_can_not_read_is_left_out_with_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let ids = [new_id(), new_id(), new_id()];
    let bundles: Vec<PathBuf> = ids.iter().map(|id| store.write(&record(id)).unwrap()).collect();
    fs::remove_file(bundles[0].join("trial.json")).unwrap();
    fs::write(bundles[1].join("metrics.parquet"), "nonsense").unwrap();
    let left_out = |reader: &StoreReader| {
        let problems = reader.left_out().into_iter();
        problems.map(|problem| (problem.bundle.unwrap(), problem.file.unwrap())).collect::<Vec<_>>()
    };

    let reader = store.reader().unwrap();
    let headless = (ids[0].clone(), "trial.json".to_owned());
    assert_eq!(left_out(&reader), std::slice::from_ref(&headless));
    assert_eq!(reader.trials().iter().map(|trial| &trial.id).collect::<Vec<_>>(), [&ids[1], &ids[2]]);
    assert!(reader.context(&ids[1]).is_some() && reader.log(&ids[1], "server").unwrap().is_some());
    assert_eq!(reader.log(&ids[1], "never-written"), Some(None));
    assert_eq!(left_out(&reader).len(), 1);
    assert!(reader.load(&ids[1]).is_none() && reader.load(&ids[2]).is_some());
    assert_eq!(left_out(&reader), [headless, (ids[1].clone(), "metrics.parquet".to_owned())]);
    assert!(reader.is_left_out(&ids[1]) && !reader.is_left_out(&ids[2]));

    assert_eq!(reader.find(&ids[2].to_lowercase()).unwrap().id, ids[2]);
    let error = reader.find(&ids[0]).unwrap_err().to_string();
    assert!(error.contains("trial.json: it is missing; restore"), "{error}");
    assert!(matches!(reader.find("0"), Err(StoreError::Ambiguous { .. })));
}

#[test]
fn a_store_without_a_readable_bundle_is_an_error_that_names_them() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    assert!(store.reader().unwrap().trials().is_empty());
    for number in 0..12 {
        let bundle = store.write(&bare(&new_id())).unwrap();
        fs::write(bundle.join(if number % 2 == 0 { "trial.json" } else { "SHA256SUMS" }), "nonsense")
            .unwrap();
    }
    let error = store.reader().unwrap_err().to_string();
    assert!(error.starts_with("none of the 12 bundles of the store"), "{error}");
    assert!(error.ends_with("and 2 more; `pgdyno store check` lists them"), "{error}");
    assert_eq!(error.lines().count(), 12);
}
