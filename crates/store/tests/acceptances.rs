//! Accepted shifts are stored, listed and withdrawn.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::fs;

use model::acceptance::Acceptance;
use store::{Store, new_id};

fn acceptance() -> Acceptance {
    Acceptance {
        id: new_id(),
        metric: "tps".to_owned(),
        control: None,
        over: "kernel".to_owned(),
        before: "3.7.10".to_owned(),
        after: "3.8.13".to_owned(),
        fell: true,
        cells: vec![BTreeMap::from([("clients".to_owned(), "8".to_owned())])],
        note: "the scheduler's price for fairness".to_owned(),
        by: None,
        at: "2026-11-22T10:00:00Z".parse().unwrap(),
    }
}

#[test]
fn acceptances_are_read_oldest_first_and_can_be_withdrawn() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    assert_eq!(store.acceptances().unwrap(), []);
    let (first, second) = (acceptance(), acceptance());
    store.accept(&second).unwrap();
    store.accept(&first).unwrap();
    assert_eq!(store.acceptances().unwrap(), [first.clone(), second.clone()]);
    store.withdraw(&first).unwrap();
    assert_eq!(store.acceptances().unwrap(), [second]);
    assert!(store.withdraw(&first).is_err());
}

#[test]
fn an_unreadable_acceptance_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    let accepted = acceptance();
    store.accept(&accepted).unwrap();
    let file = format!("accepted/{}.json", accepted.id);
    let newer =
        fs::read_to_string(root.path().join(&file)).unwrap().replace("\"format\": 1", "\"format\": 9");
    for (text, why) in [("{", "it can't be read"), (&newer, "it has format 9")] {
        fs::write(root.path().join(&file), text).unwrap();
        let error = store.acceptances().unwrap_err().to_string();
        assert!(error.contains(&file) && error.contains(why) && !error.contains("bundle"), "{error}");
        let problems = store.check().unwrap().problems;
        assert_eq!((problems.len(), problems[0].file.as_ref()), (1, Some(&file)));
    }
}
