//! Figures that queries of a workload's own return: their values, their verdicts, and queries that fail.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;

use model::record::{Status, Trial};
use serde_json::Value;
use support::{Bench, text};

/// A workload with figures that the settings plant.
fn bench(servers: &str, figures: &str) -> Bench {
    let bench = Bench::new(&format!(
        "name = 'own'\n[factors]\nserver = [{servers}]\nsettings = ['first', 'other', 'same']\nworkload = ['point']\n\
         clients = [1]\n[run]\nduration = '300ms'\nwarmup = '100ms'\nrepeats = 3\nseed = 1\n\
         [settings.first]\n'planted.share' = '0.9'\n'planted.work' = '200'\n\
         [settings.other]\n'planted.share' = '0.8'\n'planted.work' = '150'\n\
         [settings.same]\ninherits = 'first'\n\
         [workloads.point]\nscript = 'point.sql'\nwrites = false\nparameters = {{ part = 2 }}\n{figures}"
    ));
    let write = |file: &str, sql: &str| fs::write(bench.path().join(file), sql).unwrap();
    write(
        "point.sql",
        "\\set id random(1, 100000 * :scale)\nselect abalance from pgbench_accounts where aid = :id;\n",
    );
    write("share.sql", "set seed = 0.5;\nselect 'text';\nselect current_setting('planted.share')::float8;\n");
    write(
        "work.sql",
        "\\set half 1.0 / :part\nselect current_setting('planted.work')::int * :half, 'ignored';\n",
    );
    write("writes.sql", "create table grown as select 1 as n;\nselect 1;\n");
    write("rows.sql", "select n from generate_series(1, 3) n;\n");
    write("fails.sql", "select 1 / (count(*) - count(*)) from pgbench_branches;\n");
    write("words.sql", "select 'many';\n");
    write("nothing.sql", "\\set x 1\n");
    bench
}

fn figure(trial: &Trial, name: &str) -> Option<f64> {
    trial.figures.get(name).copied()
}

#[test]
fn figures_have_the_planted_values_and_verdicts_in_their_direction() {
    let bench = bench("'9.6', '18'", "figures = { share = 'share.sql' }\ncosts = { work = 'work.sql' }\n");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 18);
    for trial in &trials {
        let settings = trial.cell.settings.known().unwrap().name.clone();
        let expected = if settings == "other" { [0.8, 75.0] } else { [0.9, 100.0] };
        assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        let found = ["figure.share", "cost.work"].map(|name| figure(trial, name).unwrap());
        assert_eq!(found, expected, "{}", trial.cell);
        assert_eq!(trial.accounting.surplus(), Some(0), "{:?}", trial.accounting);
    }

    let compared = |other: &str, arguments: &[&str]| -> (Option<i32>, Value) {
        let sides = ["compare", "settings=first", other, "--format", "json"];
        let output = bench.pgdyno(&[&sides, arguments].concat());
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
    };
    let verdicts = |document: &Value, metric: &str| -> Vec<String> {
        let metrics = document["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|of| of["metric"] == metric).unwrap();
        found["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["verdict"].as_str().unwrap().to_owned())
            .collect()
    };
    let (code, document) = compared("settings=other", &[]);
    assert_eq!(code, Some(0));
    assert_eq!(verdicts(&document, "figure.share"), ["REGRESSION", "REGRESSION"]);
    assert_eq!(verdicts(&document, "cost.work"), ["IMPROVEMENT", "IMPROVEMENT"]);
    let (_, document) = compared("settings=same", &[]);
    assert_eq!(verdicts(&document, "figure.share"), ["EQUIVALENT", "EQUIVALENT"]);
    assert_eq!(verdicts(&document, "cost.work"), ["EQUIVALENT", "EQUIVALENT"]);
    // A gate on it, and a metric that no workload has.
    assert_eq!(compared("settings=other", &["--fail", "figure.share < -5%"]).0, Some(3));
    let unknown = bench.pgdyno(&["compare", "settings=first", "settings=other", "--metric", "figure.recall"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", text(&unknown));
    assert!(text(&unknown).contains("none of their workloads has a query for it"), "{}", text(&unknown));

    let shown = text(&bench.pgdyno(&["show"]));
    assert!(shown.contains("figure.share") && shown.contains("cost.work"), "{shown}");
    let of_one = text(&bench.pgdyno(&["show", &trials[0].id]));
    assert!(of_one.contains("figure.share"), "{of_one}");
}

#[test]
fn a_query_that_fails_or_writes_is_a_note_and_one_that_is_no_query_an_error() {
    let figures = "figures = { writes = 'writes.sql', rows = 'rows.sql', fails = 'fails.sql', words = 'words.sql', share = 'share.sql' }\n";
    let bench = bench("'18'", figures);
    let output = bench.pgdyno(&["run", "campaign.toml", "--set", "repeats=1", "--set", "settings=first"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    let [trial] = &trials[..] else { unreachable!("{trials:?}") };
    assert_eq!(trial.figures.keys().collect::<Vec<_>>(), ["figure.share"]);
    let shown = text(&bench.pgdyno(&["store", "show", &trial.id, "--format", "json"]));
    for expected in [
        "figure.writes is not known: writes.sql:1: cannot execute CREATE TABLE AS in a read-only transaction",
        "figure.rows is not known: rows.sql:1: expected one row with a number as its first column, got 3 rows",
        "figure.fails is not known: fails.sql:1: division by zero",
        "figure.words is not known: words.sql:1: ",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }

    for (given, expected) in [
        (
            "figures = { nothing = 'nothing.sql' }\n",
            "nothing.sql has no query, which is to return figure.nothing",
        ),
        ("figures = { 'a b' = 'share.sql' }\n", "invalid name of a figure: \"a b\""),
        ("costs = { share = 'missing.sql' }\n", "missing.sql"),
    ] {
        let campaign = fs::read_to_string(bench.path().join("campaign.toml")).unwrap();
        fs::write(bench.path().join("wrong.toml"), campaign.replace(figures, given)).unwrap();
        let output = bench.pgdyno(&["plan", "wrong.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(expected), "{expected}: {}", text(&output));
    }
}
