//! Finding a trial by its id, and a store by its directory.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use sample::bare;
use store::{Store, StoreError};

const FIRST: &str = "01JD7N0000AAAAAAAAAAAAAAAA";
const SECOND: &str = "01JD7N0000AAAAAAAAAAAAAAAB";
const THIRD: &str = "01JD7P0000AAAAAAAAAAAAAAAA";

fn store() -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    for id in [THIRD, FIRST, SECOND] {
        store.write(&bare(id)).unwrap();
    }
    (root, store)
}

#[test]
fn a_unique_prefix_is_enough_in_either_case() {
    let (_root, store) = store();
    for prefix in [THIRD, "01JD7P", "01jd7p"] {
        assert_eq!(store.load(prefix).unwrap().trial.id, THIRD, "{prefix}");
    }
}

#[test]
fn an_ambiguous_prefix_names_the_candidates() {
    let (_root, store) = store();
    let error = store.load("01JD7N").unwrap_err();
    assert!(matches!(&error, StoreError::Ambiguous { candidates, .. } if candidates == &[FIRST, SECOND]));
    assert!(error.to_string().ends_with(&format!("{FIRST}, {SECOND}; specify more of the id")), "{error}");
    assert!(matches!(store.load(""), Err(StoreError::Ambiguous { .. })));
}

#[test]
fn an_unknown_prefix_is_reported_with_the_command_that_lists_ids() {
    let (_root, store) = store();
    for prefix in ["02", "01JD7N0000AAAAAAAAAAAAAAAAA", "../trials", ".writers"] {
        let error = store.load(prefix).unwrap_err();
        assert!(matches!(&error, StoreError::NotFound { trials: 3, .. }), "{error}");
        assert!(error.to_string().contains("pgdyno store list"), "{error}");
    }
}

#[test]
fn trials_are_listed_oldest_first() {
    let (_root, store) = store();
    let ids: Vec<String> = store.trials().unwrap().into_iter().map(|trial| trial.id).collect();
    assert_eq!(ids, [FIRST, SECOND, THIRD]);
}

#[test]
fn opening_a_missing_store_does_not_create_it() {
    let root = tempfile::tempdir().unwrap();
    let error = Store::existing(root.path()).unwrap_err();
    assert!(matches!(error, StoreError::NoStore { .. }));
    assert!(error.to_string().contains("--store"), "{error}");
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
