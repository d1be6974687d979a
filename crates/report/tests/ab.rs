//! The text of `pgdyno ab` for a mailing list.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use analysis::context::TrialContext;
use analysis::overview;
use fixture::paired::{Planted, SAME, THREE, loss, records};
use model::cell::Cell;
use model::record::TrialRecord;
use model::units::Span;
use report::ab::{Subject, text};

fn context(record: &TrialRecord) -> TrialContext {
    TrialContext { environment: record.environment.clone(), ..TrialContext::default() }
}

/// The text, as if the same trials had been counted, too.
fn result(sessions: u32, is_counted: bool, planted: impl Fn(&Cell) -> Planted) -> String {
    let records = records(THREE, sessions, planted);
    let trials: Vec<_> = records.iter().map(|record| record.trial.clone()).collect();
    let contexts = records.iter().map(|record| (record.trial.id.clone(), context(record))).collect();
    let fact = |label: &str, text: &str| (label.to_owned(), text.to_owned());
    let subject = Subject {
        facts: vec![
            fact(
                "16",
                "PostgreSQL 16.1, built from REL_16_STABLE, commit 0123456789ab; gcc 14.2.0, -O2 -g -fno-omit-frame-pointer",
            ),
            fact("a-long-name-of-a-server", "PostgreSQL 17.1, downloaded"),
        ],
        command:
            "pgdyno ab REL_16_STABLE REL_17_STABLE REL_18_STABLE --repo ../postgresql -S -c 4 --margin 5%"
                .to_owned(),
        gates: vec!["gate tps < -5%: not hit at any of the cells of a long line that has to be wrapped, as it ends here".to_owned()],
        max_time: Some(Span::from_us(600_000_000)),
    };
    let view = overview(&trials, &contexts);
    text(&view, is_counted.then_some(&view), &subject)
}

#[test]
fn lines_fit_a_mailing_list_and_state_each_verdict() {
    let text = result(60, false, |cell| if cell.server == "18" { loss(0.08) } else { SAME });
    assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    for expected in [
        "16          PostgreSQL 16.1, built from REL_16_STABLE, commit 0123456789ab;",
        "a-long-name-of-a-server",
        "            PostgreSQL 17.1, downloaded",
        "workload    select-only, scale 10, clients 4, protocol prepared",
    ] {
        assert!(lines.contains(&expected), "{expected} is not in\n{text}");
    }
    for (of, verdict) in [("17.1", "EQUIVALENT"), ("18.1", "REGRESSION")] {
        let title =
            format!("PostgreSQL {of} against PostgreSQL 16.1: {verdict} by transactions per second: ");
        let sentence = text.replace("\n  ", " ");
        assert!(sentence.contains(&title), "{title} is not in\n{text}");
    }
    assert!(text.contains("Changes within ±5% count as equivalent."), "{text}");
    assert!(text.contains("for 2 comparisons together"), "{text}");
    assert!(!text.contains("Not decidable"), "{text}");
    let command = text.rsplit_once("To repeat it:\n").unwrap().1;
    assert_eq!(
        command,
        "pgdyno ab REL_16_STABLE REL_17_STABLE REL_18_STABLE --repo ../postgresql -S \\\n  -c 4 --margin 5%\n"
    );
}

#[test]
fn an_open_comparison_tells_what_it_takes() {
    let text = result(6, false, |_| SAME);
    assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
    let sentence = text.replace("\n  ", " ");
    assert!(sentence.contains("Not decidable here in 10min by transactions per second."), "{text}");
    assert!(sentence.contains("`--count` counts instructions"), "{text}");
}

#[test]
fn a_second_opinion_stands_below_what_is_open() {
    let text = result(6, true, |_| SAME);
    assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
    let (open, counted) = text.split_once("Not decidable here in 10min").unwrap();
    assert!(open.contains("PostgreSQL 17.1 against PostgreSQL 16.1: INCONCLUSIVE"), "{text}");
    assert!(counted.contains("PostgreSQL 17.1 against PostgreSQL 16.1: "), "{text}");
    assert!(counted.contains("path length") && !text.contains("`--count` counts"), "{text}");
}
