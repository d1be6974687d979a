//! Damaged bundles and indexes: each is detected and named, and none makes another trial unreadable.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sample::{bare, record, stored, update_checksums};
use store::{Problem, Store, StoreError, new_id};

const FILES: [&str; 15] = [
    "trial.json",
    "campaign.toml",
    "environment.json",
    "settings.json",
    "latency.hlog",
    "series.parquet",
    "spans.parquet",
    "metrics.parquet",
    "waits.parquet",
    "statements.parquet",
    "events.jsonl",
    "logs/server.log.zst",
    "stacks/background-writer.folded.zst",
    "logs/driver.log.zst",
    "SHA256SUMS",
];

/// A store of two trials: the id and the bundle of the first, the id of the second.
fn store_of_two() -> (tempfile::TempDir, Store, String, PathBuf, String) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let (first, second) = (new_id(), new_id());
    let bundle = store.write(&record(&first)).unwrap();
    store.write(&record(&second)).unwrap();
    (root, store, first, bundle, second)
}

fn problems(store: &Store) -> Vec<Problem> {
    store.check().unwrap().problems
}

#[test]
fn every_damaged_file_is_found_by_name_and_the_other_trial_stays_readable() {
    let flip = |path: &Path| {
        let mut content = fs::read(path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 0x01;
        fs::write(path, content).unwrap();
    };
    let truncate = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    };
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    for damage in [flip, truncate, remove] as [fn(&Path); 3] {
        for file in FILES {
            let (_root, store, first, bundle, second) = store_of_two();
            damage(&bundle.join(file));
            let problems = problems(&store);
            let restore = |problem: &&Problem| problem.advice.contains("restore the bundle");
            let damaged: Vec<&Problem> = problems.iter().filter(restore).collect();
            assert!(problems.iter().all(|problem| problem.bundle.as_deref() == Some(&first)), "{problems:?}");
            assert!(
                !damaged.is_empty() && damaged.iter().all(|problem| !problem.reason.is_empty()),
                "{file}"
            );
            // A damaged list may name another file, and omit one.
            if file != "SHA256SUMS" {
                assert_eq!(problems.len(), 1, "{file}: {problems:?}");
                assert_eq!(problems[0].file.as_deref(), Some(file));
            }
            assert!(matches!(store.load(&first), Err(StoreError::Unreadable(_))), "{file}");
            assert_eq!(store.load(&second).unwrap(), stored(record(&second)));
            assert!(store.trials().unwrap().iter().any(|trial| trial.id == second));
        }
    }
}

#[test]
fn all_damaged_files_of_a_bundle_are_named() {
    let (_root, store, _, bundle, _) = store_of_two();
    fs::write(bundle.join("settings.json"), "[]").unwrap();
    fs::remove_file(bundle.join("logs/server.log.zst")).unwrap();
    let files: Vec<Option<String>> = problems(&store).into_iter().map(|problem| problem.file).collect();
    assert_eq!(files, [Some("logs/server.log.zst".to_owned()), Some("settings.json".to_owned())]);
}

#[test]
fn contradictory_counts_are_found_despite_correct_checksums() {
    let edit = |bundle: &Path, file: &str, from: &str, to: &str| {
        let path = bundle.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
        update_checksums(bundle);
    };
    let (_root, store, _, bundle, _) = store_of_two();
    edit(&bundle, "trial.json", "\"transactions\": 7", "\"transactions\": 8");
    let found = problems(&store);
    assert!(found[0].reason.contains("by its transactions and the window's length"), "{found:?}");
    assert!(found[1].reason.contains("contain 7 transactions in the window, trial.json 8"), "{found:?}");

    let (_root, store, _, bundle, _) = store_of_two();
    edit(&bundle, "trial.json", "\"driver_transactions\": 11", "\"driver_transactions\": 12");
    assert!(problems(&store)[0].reason.contains("contain 11 transactions in total"));

    let (_root, store, _, bundle, _) = store_of_two();
    let log = fs::read_to_string(bundle.join("latency.hlog")).unwrap();
    let line = log.lines().find(|line| line.starts_with("Tag=tpcb-like,")).unwrap();
    edit(&bundle, "latency.hlog", &format!("{line}\n"), "");
    assert!(problems(&store)[0].reason.contains("service times without latencies"));
    let of_service = log.lines().find(|line| line.starts_with("Tag=tpcb-like:service,")).unwrap();
    edit(&bundle, "latency.hlog", &format!("{of_service}\n"), "");
    let found = problems(&store);
    assert!(found[0].reason.contains("contain 0 transactions, series.parquet 3"), "{found:?}");

    let (_root, store, _, bundle, _) = store_of_two();
    edit(&bundle, "latency.hlog", "Tag=tpcb-like,1.000000", "Tag=tpcb-like,1.000001");
    assert!(problems(&store)[0].reason.contains("no row"));
}

#[test]
fn a_table_with_other_content_is_found_despite_correct_checksums() {
    for file in ["series.parquet", "spans.parquet", "metrics.parquet", "waits.parquet"] {
        let (_root, store, _, bundle, _) = store_of_two();
        fs::copy(bundle.join("statements.parquet"), bundle.join(file)).unwrap();
        update_checksums(&bundle);
        let found = problems(&store);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].file.as_deref(), Some(file));
        assert!(
            found[0].reason.starts_with("row 1: column ") && found[0].reason.contains("no value"),
            "{found:?}"
        );
    }
}

#[test]
fn a_bundle_under_another_name_and_unlisted_files_are_reported() {
    let (root, store, first, bundle, _) = store_of_two();
    let elsewhere = new_id();
    fs::rename(&bundle, bundle.with_file_name(&elsewhere)).unwrap();
    fs::write(root.path().join("trials/notes.txt"), "mine").unwrap();
    fs::write(bundle.with_file_name(&elsewhere).join("logs/mine.txt"), "mine").unwrap();
    let found = problems(&store);
    let all: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 3, "{all:?}");
    assert!(all[0].starts_with(&format!("bundle {elsewhere}, logs/mine.txt: ")), "{all:?}");
    assert!(all[1].contains(&format!("it belongs to trial {first}")), "{all:?}");
    assert!(all[2].starts_with("trials/notes.txt: it is not a bundle"), "{all:?}");
}

#[test]
fn a_missing_damaged_or_outdated_index_is_rebuilt() {
    let (root, store, ..) = store_of_two();
    let index = root.path().join("index.sqlite");
    let expected = store.trials().unwrap();
    let sqlite =
        |statement: &str| rusqlite::Connection::open(&index).unwrap().execute_batch(statement).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let theirs = elsewhere.path().join("theirs");
    // As somebody can make it whose store one reads: a query that runs without end.
    let endless = "DROP TABLE trial; CREATE VIEW trial (id, stamp, head, campaign) AS WITH RECURSIVE t(x) AS \
                   (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x, '', x'00', '' FROM t";
    let triggered = "CREATE TRIGGER t AFTER UPDATE ON trial BEGIN SELECT 1; END";
    let damages: [(&str, &dyn Fn()); 10] = [
        ("lost", &|| fs::remove_file(&index).unwrap()),
        ("empty", &|| fs::write(&index, "").unwrap()),
        ("not a database", &|| fs::write(&index, "nonsense ".repeat(1000)).unwrap()),
        ("truncated", &|| fs::File::options().write(true).open(&index).unwrap().set_len(4096).unwrap()),
        ("of another version", &|| sqlite("PRAGMA user_version = 99; DROP TABLE trial; CREATE TABLE x (y)")),
        ("without its table", &|| sqlite("DROP TABLE trial")),
        ("full of nonsense", &|| sqlite("UPDATE trial SET head = 'x'")),
        ("a view without an end", &|| sqlite(endless)),
        ("with a trigger", &|| sqlite(triggered)),
        ("a link", &|| {
            fs::remove_file(&index).unwrap();
            std::os::unix::fs::symlink(&theirs, &index).unwrap();
        }),
    ];
    for (what, damage) in damages {
        damage();
        assert_eq!(store.trials().unwrap(), expected, "{what}");
        assert_eq!(store.trials().unwrap(), expected, "{what}, the second time");
        assert_eq!(problems(&store), [], "{what}");
        assert_eq!(trial_definitions(&index), ["table"], "{what}");
    }
    assert!(!theirs.exists());
    // A store may be reached by a link.
    let link = elsewhere.path().join("store");
    std::os::unix::fs::symlink(root.path(), &link).unwrap();
    fs::remove_file(&index).unwrap();
    assert_eq!(Store::existing(&link).unwrap().trials().unwrap(), expected);
    assert_eq!(trial_definitions(&index), ["table"]);
}

/// Types of what an index defines.
fn trial_definitions(index: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(index).unwrap();
    let mut query = connection.prepare("SELECT type FROM sqlite_schema").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_index_follows_the_bundles() {
    let (_root, store, first, bundle, second) = store_of_two();
    let ids = || store.trials().unwrap().into_iter().map(|trial| trial.id).collect::<Vec<_>>();
    assert_eq!(ids(), [first.clone(), second.clone()]);
    let third = new_id();
    store.write(&bare(&third)).unwrap();
    assert_eq!(ids(), [first.clone(), second.clone(), third.clone()]);

    let elsewhere = tempfile::tempdir().unwrap();
    let away = elsewhere.path().join("bundle");
    assert!(std::process::Command::new("mv").arg(&bundle).arg(&away).status().unwrap().success());
    assert_eq!(ids(), [second.clone(), third.clone()]);
    assert!(std::process::Command::new("mv").arg(&away).arg(&bundle).status().unwrap().success());
    assert_eq!(ids(), [first, second, third]);
}

#[test]
fn a_repaired_bundle_is_listed_again() {
    let (_root, store, first, bundle, _) = store_of_two();
    let head = fs::read(bundle.join("trial.json")).unwrap();
    fs::write(bundle.join("trial.json"), "{").unwrap();
    let listing = store.list().unwrap();
    assert_eq!((listing.trials.len(), listing.rejected.len()), (1, 1));
    assert_eq!(listing.rejected[0].bundle.as_deref(), Some(first.as_str()));
    let reindexed = store.reindex().unwrap();
    assert_eq!((reindexed.bundles, reindexed.rejected.len()), (1, 1));

    fs::write(bundle.join("trial.json"), head).unwrap();
    assert_eq!(store.trials().unwrap().len(), 2);
}

#[test]
fn a_wrong_index_is_reported_by_check_and_repaired_by_reindex() {
    let (root, store, first, ..) = store_of_two();
    let expected = store.trials().unwrap();
    let index = rusqlite::Connection::open(root.path().join("index.sqlite")).unwrap();
    index
        .execute_batch(
            "UPDATE trial SET head = CAST(replace(CAST(head AS TEXT), '\"repeat\": 2', '\"repeat\": 3') AS BLOB)
             WHERE id = (SELECT min(id) FROM trial)",
        )
        .unwrap();
    drop(index);
    let found = problems(&store);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].reason.contains(&first) && found[0].advice.contains("reindex"), "{found:?}");
    assert_eq!(store.reindex().unwrap().bundles, 2);
    assert_eq!(problems(&store), []);
    assert_eq!(store.trials().unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A damaged file with a correct checksum is rejected or read, but never crashes the reader.
    #[test]
    fn no_file_content_crashes_the_reader(
        file in prop::sample::select(&FILES[..12]),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (_root, store, first, bundle, _) = store_of_two();
        let path = bundle.join(file);
        let mut content = fs::read(&path).unwrap();
        let at = at.index(content.len());
        content[at] = byte;
        fs::write(&path, content).unwrap();
        update_checksums(&bundle);
        let _ = store.load(&first);
        let _ = store.check().unwrap();
        prop_assert!(!store.trials().unwrap().is_empty());
    }
}
