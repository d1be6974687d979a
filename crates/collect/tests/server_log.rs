//! The logs of real servers of every major, made by `cargo run -p server --example server_logs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use collect::server_log::{ServerLog, events};
use model::record::Event;
use proptest::prelude::*;

const MAJORS: [&str; 10] = ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"];

fn text(major: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/server_log/{major}.log"));
    std::fs::read_to_string(file).unwrap()
}

fn of_kind(log: &ServerLog, kind: &str) -> Vec<Event> {
    log.events.iter().filter(|event| event.kind == kind).cloned().collect()
}

/// One line per event: time, kind, object, figures, message.
fn shown(log: &ServerLog) -> String {
    let mut text = String::new();
    for Event { at, kind, message, object, figures } in &log.events {
        let _ = write!(text, "{at} {kind}");
        if let Some(object) = object {
            let _ = write!(text, " of {object:?}");
        }
        let _ = writeln!(text, ": {message:?}");
        for (name, value) in figures {
            let _ = writeln!(text, "    {name} = {value}");
        }
    }
    text
}

#[test]
fn the_log_of_every_major_is_parsed_completely() {
    for major in MAJORS {
        let log = events(&text(major));
        assert_eq!(log.unparsed, 0, "{major}");
        assert!(log.events.is_sorted_by_key(|event| event.at), "{major}");
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("server_log_{major}"), shown(&log));
        });
    }
}

#[test]
fn every_major_has_events_of_each_kind() {
    for major in MAJORS {
        let log = events(&text(major));
        let kinds: BTreeSet<&str> = log.events.iter().map(|event| event.kind.as_str()).collect();
        for kind in [
            "autoanalyze",
            "autovacuum",
            "autovacuum-cancelled",
            "checkpoint-ended",
            "checkpoint-started",
            "checkpoints-too-frequent",
            "deadlock",
            "lock-acquired",
            "lock-wait",
            "server-crashed",
            "server-error",
            "server-fatal",
            "server-recovering",
            "server-started",
            "server-stopped",
            "server-stopping",
            "server-warning",
            "temp-file",
        ] {
            assert!(kinds.contains(kind), "{major}: no {kind} in {kinds:?}");
        }
    }
}

#[test]
fn figures_are_in_base_units_in_every_major() {
    for major in MAJORS {
        let log = events(&text(major));
        let vacuum = of_kind(&log, "autovacuum");
        let vacuum =
            vacuum.iter().find(|event| event.object.as_deref() == Some("postgres.public.t")).unwrap();
        // Half of 5000 rows were deleted.
        for (name, value) in [("index_scans", 1.0), ("tuples_removed", 2500.0), ("tuples_remain", 2500.0)] {
            assert_eq!(vacuum.figures.get(name), Some(&value), "{major}: {name} in {vacuum:?}");
        }
        for name in [
            "pages_remain",
            "tuples_dead",
            "buffers_hit",
            "buffers_missed",
            "buffers_dirtied",
            "read_bytes_per_second",
            "write_bytes_per_second",
            "user_us",
            "system_us",
            "elapsed_us",
        ] {
            assert!(vacuum.figures.contains_key(name), "{major}: no {name} in {vacuum:?}");
        }
        let analyze = of_kind(&log, "autoanalyze");
        let odd = Some("postgres.public.odd: \"one\", 7 removed");
        let analyze = analyze.iter().find(|event| event.object.as_deref() == odd).unwrap();
        assert!(analyze.figures.contains_key("elapsed_us"), "{major}: {analyze:?}");
        assert!(!analyze.figures.contains_key("pages_removed"), "{major}: {analyze:?}");

        for checkpoint in of_kind(&log, "checkpoint-ended") {
            for name in
                ["buffers", "wal_added", "wal_removed", "wal_recycled", "sync_files", "distance_bytes"]
            {
                assert!(checkpoint.figures.contains_key(name), "{major}: no {name} in {checkpoint:?}");
            }
            let figure = |name: &str| checkpoint.figures[name];
            assert!((0.0..=1.0).contains(&figure("buffers_share")), "{major}: {checkpoint:?}");
            assert!(figure("total_us") >= figure("write_us"), "{major}: {checkpoint:?}");
            assert!(figure("longest_us") >= figure("average_us"), "{major}: {checkpoint:?}");
        }
        // deadlock_timeout was 50 ms.
        for wait in of_kind(&log, "lock-wait") {
            assert!((50e3..60e6).contains(&wait.figures["waited_us"]), "{major}: {wait:?}");
            assert_eq!(wait.object.as_deref(), Some("pgdyno"), "{major}");
        }
        assert!(of_kind(&log, "temp-file").iter().any(|file| file.figures["bytes"] >= 280e3), "{major}");
        let deadlock = &of_kind(&log, "deadlock")[0].message;
        assert!(deadlock.starts_with("deadlock detected: Process "), "{major}: {deadlock}");
        assert!(deadlock.contains("waits for ShareLock on transaction"), "{major}: {deadlock}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let log = events(&text);
        prop_assert!(log.unparsed as usize <= text.lines().count());
    }

    /// Pieces of real logs in random order.
    #[test]
    fn arbitrary_pieces_of_logs_do_not_panic(
        pieces in prop::collection::vec((0..MAJORS.len(), any::<prop::sample::Index>(), 0..400usize), 0..20),
        noise in "[\\t\\n\"\\(:,< >0-9a-z]{0,20}",
    ) {
        let logs = MAJORS.map(text);
        let mut text = String::new();
        for (major, at, length) in pieces {
            let log: Vec<char> = logs[major].chars().collect();
            let at = at.index(log.len());
            text.extend(&log[at..log.len().min(at + length)]);
            text += &noise;
        }
        let log = events(&text);
        prop_assert!(log.events.iter().all(|event| event.figures.values().all(|figure| figure.is_finite())));
    }
}
