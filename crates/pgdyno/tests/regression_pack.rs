//! The campaign `regression-pack`, scaled down: one type of statement is slower on one side, and it alone is named.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Bench, text};

/// With these settings, the statement of the workload `planted` sums up as many more numbers.
const PLANTED: &str = "\n[settings.other]\ninherits = \"pack\"\n\"planted.numbers\" = 2000\n\
                       [workloads.planted]\nbuiltin = \"micro-point\"\nscript = \"planted.sql\"\n";

/// The bundled campaign with some of its types, which compares its settings with those in which the plant is.
fn bench() -> Bench {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/regression-pack.toml");
    let campaign = fs::read_to_string(file).unwrap();
    let bench = Bench::new(&(campaign + PLANTED));
    let script = "\\set id random(1, :rows)\nselect label from item where id = :id and (select count(*)\n\
                  from generate_series(1, coalesce(nullif(current_setting('planted.numbers', true), ''), '0')::int)) >= 0;\n";
    fs::write(bench.path().join("planted.sql"), script).unwrap();
    bench
}

#[test]
fn the_type_of_statement_that_is_slower_is_named_and_no_other() {
    let bench = bench();
    let overrides = [
        "server=18",
        "settings=pack,other",
        "run.compare=settings",
        "workload=planted,micro-update,micro-insert,micro-delete,micro-order-by",
        // Other tests run at the same time: pinned servers would get no verdict.
        "pin=none",
        "effect=30%",
        "run.repeats.min=3",
        "run.repeats.max=8",
        "duration=300ms",
        "warmup=100ms",
    ];
    let mut arguments = vec!["run", "campaign.toml"];
    arguments.extend(overrides.iter().flat_map(|setting| ["--set", setting]));
    let output = bench.pgdyno(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let compared = bench.pgdyno(&["compare", "settings=pack", "settings=other", "--format", "json"]);
    let document: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let mut verdicts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for metric in document["metrics"].as_array().unwrap() {
        for cell in metric["cells"].as_array().unwrap() {
            let name = cell["cell"]["workload"].as_str().unwrap().to_owned();
            verdicts.entry(name).or_default().push(cell["verdict"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(verdicts.len(), 5, "{}", text(&output));
    for (cell, verdicts) in &verdicts {
        let has_changed = verdicts.iter().any(|verdict| verdict == "REGRESSION" || verdict == "IMPROVEMENT");
        assert_eq!(has_changed, cell == "planted", "{cell}: {verdicts:?}");
    }
}

#[test]
fn a_type_that_a_server_is_too_old_for_is_left_out_and_named() {
    let bench = bench();
    let planned = bench.pgdyno(&["plan", "campaign.toml", "--set", "server=13,18"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned));
    let shown = text(&planned);
    let expected =
        "micro-merge is left out on 13, and so are its pairs with it: it needs PostgreSQL 15 or newer";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.contains("96 cells in 48 comparisons"), "{shown}");
    assert!(!shown.contains("\nmicro-merge: "), "{shown}");
}
