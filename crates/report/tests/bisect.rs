//! The text and the document of `pgdyno bisect`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use analysis::overview::view::View;
use report::bisect::{Document, text};
use serde_json::Value;

fn result(view: &View) -> String {
    let facts =
        [("bisect", view.bisections[0].searched.clone()), ("load", "workload select-only".to_owned())];
    let text = text(&view.bisections[0], &facts, "pgdyno bisect v1 v2 --repo /src/postgres -S -c 8");
    assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
    text
}

#[test]
fn a_commit_is_named_with_what_was_measured_around_it() {
    insta::assert_snapshot!(result(&fixture::bisection::view()));
}

#[test]
fn an_open_search_has_its_probabilities() {
    insta::assert_snapshot!(result(&fixture::bisection::open()));
}

/// The document has ratios where the page has changes, and both are of the same values.
#[test]
fn the_document_has_each_level() {
    let view = fixture::bisection::view();
    let bisection = &view.bisections[0];
    let document: Value = serde_json::to_value(Document::new(bisection)).unwrap();
    assert_eq!((&document["schema"], &document["state"]), (&Value::from(1), &Value::from("found")));
    assert_eq!(document["sentence"], bisection.sentence.as_str());
    assert_eq!(document["found"][0]["levels"], serde_json::json!([bisection.levels[41].name]));
    let is_near = |value: &Value, expected: Option<f64>| match (value.as_f64(), expected) {
        (Some(value), Some(expected)) => (value - expected).abs() < 1e-12,
        (None, None) => true,
        _ => false,
    };
    for (level, of) in document["levels"].as_array().unwrap().iter().zip(&bisection.levels) {
        assert!(is_near(&level["ratio"], of.change.map(|change| 1.0 + change)), "{level}");
        assert!(is_near(&level["interval"][1], of.ci95_high.map(|high| 1.0 + high)), "{level}");
        assert_eq!(level["log_ratios"].as_array().unwrap().len(), of.sessions.len());
        assert_eq!(level["title"].as_str(), of.title.as_deref());
        assert_eq!(level["unavailable"].as_str(), of.unavailable.as_deref());
    }
}
