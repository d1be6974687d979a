//! A thousand damaged campaigns: each is planned or refused, with the place of the error.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::path::Path;

use model::plan::Plan;
use model::spec::Campaign;
use mutate::Mutator;

#[test]
fn damaged_campaigns_are_planned_or_refused_with_the_place() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let mut campaigns: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // `make demo` keeps its store there, too.
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    campaigns.sort();
    assert!(campaigns.len() >= 10);
    let mut mutator = Mutator::new(17);
    let (mut planned, mut refused) = (0, 0);
    for _ in 0..1000 {
        let original = mutator.pick(&campaigns).clone();
        let text = mutator.text(&original);
        match Campaign::parse(&text).and_then(|campaign| Plan::new(&campaign, 1)) {
            Ok(_) => planned += 1,
            Err(error) => {
                refused += 1;
                assert!(!error.message.is_empty());
                if let Some(at) = error.at {
                    // What the message quotes.
                    assert!(text.get(at.clone()).is_some(), "{at:?} of {text}");
                }
            }
        }
    }
    assert!(planned > 100 && refused > 100, "{planned} planned, {refused} refused");
}
