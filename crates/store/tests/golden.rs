//! Bundles of an earlier release are read with the same result, and rewritten byte for byte.
//!
//! `golden/README.md` describes their origin. `BLESS=1` regenerates `golden/read.json`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::factor::Factor;
use model::record::TrialRecord;
use sample::files;
use serde_json::{Value, json};
use store::Store;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// A copy of the golden store: opening a store writes into it.
fn golden() -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files(Path::new(GOLDEN)) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let store = Store::existing(root.path()).unwrap();
    (root, store)
}

/// The contents of a trial that every release can report.
fn rendered(record: &TrialRecord) -> Value {
    let trial = &record.trial;
    let levels: BTreeMap<&str, Option<String>> =
        Factor::ALL.into_iter().map(|factor| (factor.name(), factor.known_level(&trial.cell))).collect();
    let summary = trial.summary.as_ref().map(|summary| {
        let background =
            summary.background.iter().map(|one| json!([one.workload, one.transactions, one.tps]));
        json!({
            "tps": summary.tps,
            "transactions": summary.transactions,
            "instructions_per_transaction": summary.instructions_per_transaction,
            "latency": summary.latency,
            "background": background.collect::<Vec<_>>(),
        })
    });
    json!({
        "campaign": trial.run.campaign,
        "tags": trial.run.tags,
        "cell": trial.cell,
        "cell in words": trial.cell.to_string(),
        "levels": levels,
        "workload is custom": trial.cell.workload.known().is_some_and(|workload| workload.custom().is_some()),
        "repeat": trial.repeat,
        "server_version": trial.server_version,
        "validity": trial.validity.status.as_str(),
        "summary": summary,
        "imported": trial.imported.as_ref().map(|imported| &imported.format),
        "limited memory": trial.limits.as_ref().map(|limits| limits.memory_bytes),
        "settings": record.settings.len(),
        "intervals": record.intervals.len(),
        "spans": record.spans.len(),
        "waits": record.waits.len(),
        "metrics": record.metrics.0.len(),
        "events": record.events.iter().map(|event| &event.kind).collect::<Vec<_>>(),
    })
}

/// Factors that are missing from an object with a key for each factor: they are newer than the golden store.
fn new_factors(levels: &Value) -> Vec<Factor> {
    Factor::ALL.into_iter().filter(|factor| levels.get(factor.name()).is_none()).collect()
}

fn remove(object: &mut Value, key: &str) -> Value {
    object.as_object_mut().unwrap().remove(key).unwrap()
}

#[test]
fn bundles_of_earlier_releases_are_read_unchanged() {
    let (_root, store) = golden();
    let mut read: BTreeMap<String, Value> = store
        .trials()
        .unwrap()
        .into_iter()
        .map(|trial| (trial.id.clone(), rendered(&store.load(&trial.id).unwrap())))
        .collect();
    let path = Path::new(GOLDEN).join("read.json");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&read).unwrap() + "\n").unwrap();
    }
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for (id, trial) in &mut read {
        for factor in new_factors(&expected[id]["levels"]) {
            let level = remove(&mut trial["levels"], factor.name());
            let default = factor.default_level().map_or(Value::Null, Value::from);
            assert!(level.is_null() || level == default, "{}: {level}", factor.name());
            remove(&mut trial["cell"], factor.name());
        }
    }
    assert_eq!(read, expected);
}

/// Whether two versions of `trial.json` differ only by the null or unknown levels of newer factors.
fn differs_by_new_factors(before: &[u8], after: &[u8]) -> bool {
    let (Ok(before), Ok(mut after)) = (from_json(before), from_json(after)) else { return false };
    let cells = (before.get("cell"), after.get_mut("cell"));
    let (Some(Value::Object(old)), Some(Value::Object(new))) = cells else { return false };
    let levels = new.len();
    new.retain(|key, level| old.contains_key(key) || !level.is_null());
    if let (Some(old), Some(Value::Array(unknown))) = (old.get("unknown"), new.get_mut("unknown")) {
        unknown.retain(|factor| old.as_array().is_some_and(|old| old.contains(factor)));
    }
    new.len() < levels && after == before
}

fn from_json(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text)
}

#[test]
fn bundles_of_earlier_releases_have_no_problem() {
    let (_root, store) = golden();
    let check = store.check().unwrap();
    assert_eq!((check.bundles, check.problems), (8, Vec::new()));
}

#[test]
fn bundles_of_earlier_releases_are_rewritten_byte_for_byte() {
    let (root, store) = golden();
    let again = tempfile::tempdir().unwrap();
    let copy = Store::open(again.path()).unwrap();
    let trials = store.trials().unwrap();
    assert_eq!(trials.len(), 8);
    for trial in trials {
        let written = copy.write(&store.load(&trial.id).unwrap()).unwrap();
        let (before, after) = (files(&root.path().join("trials").join(&trial.id)), files(&written));
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        for (path, before) in before {
            let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
            let is_text =
                Path::new(&path).extension().is_some_and(|ending| ending != "parquet" && ending != "zst");
            if is_text && !differs_by_new_factors(&before, &after[&path]) {
                assert_eq!(text(&before), text(&after[&path]), "{path} of {}", trial.id);
            }
        }
    }
}
