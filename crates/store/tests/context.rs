//! Reading a few files of many bundles.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::fs;
use std::sync::Arc;

use sample::{bare, record, stored};
use store::{Part, Store, StoreError, new_id};

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
    let mut reader = store.contexts();
    let read: Vec<store::StoredContext> =
        written.iter().map(|one| reader.read(&one.trial.id).unwrap()).collect();
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
            .all(|script| script.latency_ns.is_empty())
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
    for id in ["../trials", "..", &new_id()] {
        let error = store.contexts().read(id).unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. } | StoreError::Unreadable(_)), "{id}: {error}");
    }
}
