//! Any results of other tools are imported or refused, and imported trials are as they were after storing them. An input
//! consists of files, each after a line such as `=== log`.

#![no_main]

use std::collections::BTreeMap;

use import::csv::{LatencyFigure, Mapping};
use import::pgbench::Run;
use import::{Import, ImportError, Request, Source, pgbench_tools};
use libfuzzer_sys::fuzz_target;
use model::factor::Factor;
use store::Store;

/// Most intervals of a trial that is stored.
const MAX_INTERVALS: usize = 5000;

fn read(kind: &str, files: &BTreeMap<&str, Vec<Source>>) -> Option<Result<Import, ImportError>> {
    let first = |kind: &str| files.get(kind).and_then(|files| files.first()).cloned();
    let levels = BTreeMap::from([(Factor::Server, "18".to_owned())]);
    match kind {
        "csv" => Some(import::csv::read(&first("csv")?, &mapping(), false)),
        "csv-skip" => Some(import::csv::read(&first("csv-skip")?, &numbered_mapping(), true)),
        "tests" => Some(pgbench_tools::read(&first("tests")?, first("testset").as_ref(), &levels, true)),
        "output" | "progress" | "log" => {
            let logs = files.get("log").cloned().unwrap_or_default();
            let run = Run { output: first("output"), progress: first("progress"), logs };
            Some(import::pgbench::read(&[run], &levels))
        }
        _ => None,
    }
}

fn mapping() -> Mapping {
    Mapping {
        factors: BTreeMap::from([
            (Factor::Clients, "clients".to_owned()),
            (Factor::Server, "server".to_owned()),
        ]),
        levels: BTreeMap::from([(Factor::Workload, "select-only".to_owned())]),
        tps: "tps".to_owned(),
        latency_ms: BTreeMap::from([(LatencyFigure::P99, "p99".to_owned())]),
        repeat: None,
        started: None,
    }
}

fn numbered_mapping() -> Mapping {
    Mapping { repeat: Some("repeat".to_owned()), started: Some("started".to_owned()), ..mapping() }
}

/// Files by kind.
fn files(text: &[u8]) -> BTreeMap<&str, Vec<Source>> {
    let mut files: BTreeMap<&str, Vec<Source>> = BTreeMap::new();
    let mut kind = "";
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let named = line.strip_prefix(b"=== ").and_then(|name| std::str::from_utf8(name).ok());
        if let Some(name) = named {
            kind = name.trim_end();
            files.entry(kind).or_default().push(Source::Bytes(kind.to_owned(), Vec::new()));
        } else if let Some(Source::Bytes(_, content)) = files.get_mut(kind).and_then(|files| files.last_mut())
        {
            content.extend_from_slice(line);
        }
    }
    files
}

fuzz_target!(|text: &[u8]| {
    let files = files(text);
    let Some(result) = files.keys().find_map(|kind| read(kind, &files)) else { return };
    let import = match result {
        Ok(import) => import,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!import.drafts.is_empty());
    // Two transactions may be eleven days apart, which takes long to store.
    if import.drafts.iter().map(|draft| draft.intervals.len()).sum::<usize>() > MAX_INTERVALS {
        return;
    }
    let directory = fuzz::directory();
    let store = Store::open(directory.path()).expect("a store");
    match import.persist(&store, Request { name: None, tags: Vec::new(), again: false }) {
        Ok(_) => {
            let listing = store.list().expect("the store can be listed");
            assert_eq!((listing.trials.len(), listing.rejected.len()), (import.drafts.len(), 0));
            for trial in &listing.trials {
                store.load(&trial.id).expect("a stored trial can be read");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
