//! The workload `analytic`: its queries on all versions, their verdicts and plans, and its streams, on real servers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use model::record::{Status, Trial};
use model::spec::Campaign;
use model::workload::Workloads;
use serde_json::Value;
use support::{Bench, text};
use trace::{Action, TraceReader};
use workload::StreamsFile;

/// The files of the workload.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/analytic");
/// Its queries.
const QUERIES: usize = 22;

/// Copies the workload to a directory of the campaign, with more in its table and in its setup.
fn copy(bench: &Bench, name: &str, keys: &str, (before, after): (&str, &str)) {
    let to = bench.path().join(name);
    fs::create_dir(&to).unwrap();
    for file in fs::read_dir(FILES).unwrap().map(|entry| entry.unwrap().path()) {
        let mut content = fs::read_to_string(&file).unwrap();
        match file.file_name().unwrap().to_str().unwrap() {
            "workload.toml" => content = content.replace("[parameters]", &format!("{keys}\n[parameters]")),
            "indexes.sql" => content = format!("{before}\n{content}{after}\n"),
            _ => {}
        }
        fs::write(to.join(file.file_name().unwrap()), content).unwrap();
    }
}

/// The queries of the only stream with their values, by name, in their order.
fn queries() -> Vec<(String, String)> {
    let campaign = Campaign::parse("name = 'n'\n[factors]\nworkload = ['analytic']\n").unwrap();
    let workloads =
        workload::workloads(&campaign, Path::new("."), &Workloads::default(), &host::NoProgress).unwrap();
    let file = StreamsFile::new(&workloads.get("analytic").unwrap()).unwrap().unwrap();
    let trace = TraceReader::open(&file.path()).unwrap();
    let texts = trace.events().unwrap().filter_map(|event| match event.unwrap().action {
        Action::Execute(statement) => Some(statement.text.to_string()),
        _ => None,
    });
    texts.map(|text| (name(&text), text.trim_end_matches(';').to_owned())).collect()
}

/// The name that a query has in a comment.
fn name(text: &str) -> String {
    text.split("/*").nth(1).unwrap().split("*/").next().unwrap().trim().to_owned()
}

/// A teardown that raises the number of rows and a hash of the result of each query; rows without any value do not count.
fn results(queries: &[(String, String)]) -> String {
    let mut sql = "do $results$\ndeclare\n    result text;\n    results text := '';\nbegin\n".to_owned();
    for (name, query) in queries {
        let _ = writeln!(
            sql,
            "select count(*) || '/' || md5(string_agg(r::text, '|')) into result from ({query}) r where r::text <> '()';\n\
             results := results || ' {name}=' || coalesce(result, '0/');"
        );
    }
    sql + "raise exception 'results:%', results;\nend\n$results$;\n"
}

/// What the teardown of a trial raised.
fn raised(bench: &Bench, trial: &Trial) -> BTreeMap<String, String> {
    let record = bench.store().load(&trial.id).unwrap();
    let message = record.events.iter().find(|event| event.message.contains("results:"));
    let message = message.unwrap_or_else(|| panic!("{:?}", record.events)).message.clone();
    let results = message.split("results:").nth(1).unwrap().split_whitespace();
    results
        .filter_map(|result| result.split_once('=').map(|(name, of)| (name.to_owned(), of.to_owned())))
        .collect()
}

#[test]
fn all_queries_have_the_same_results_on_all_versions() {
    let bench = Bench::new(
        "name = 'results'\n[factors]\nserver = ['9.6', '13', '18']\nworkload = ['analytic', 'checked']\n\
         [run]\nrepeats = 1\nseed = 1\norder = 'sequential'\n[workloads.checked]\ndirectory = 'checked'\n",
    );
    let queries = queries();
    let names: BTreeSet<&str> = queries.iter().map(|(name, _)| name.as_str()).collect();
    let scripts: BTreeSet<String> = fs::read_dir(FILES)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".sql").map(str::to_owned))
        .filter(|name| name != "indexes")
        .collect();
    assert_eq!((queries.len(), names.len()), (QUERIES, QUERIES));
    assert_eq!(names, scripts.iter().map(String::as_str).collect());
    copy(&bench, "checked", "teardown = 'results.sql'", ("", ""));
    fs::write(bench.path().join("checked/results.sql"), results(&queries)).unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2 * 3);
    let mut found: Vec<BTreeMap<String, String>> = Vec::new();
    for trial in &trials {
        let context = format!("{}: {:?} {:?}", trial.cell, trial.validity, trial.accounting);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.summary.as_ref().unwrap().transactions, Some(QUERIES as u64), "{context}");
        assert_eq!(trial.summary.as_ref().unwrap().failed, Some(0), "{context}");
        let record = bench.store().load(&trial.id).unwrap();
        assert_eq!(record.played.len(), QUERIES, "{context}");
        for statement in &record.played {
            assert_eq!((statement.calls, statement.different), (1, 0), "{context}: {statement:?}");
            assert!(statement.rows > 0 && statement.plan.is_some(), "{context}: {statement:?}");
        }
        if trial.cell.workload.known().unwrap().name() == "checked" {
            found.push(raised(&bench, trial));
        }
    }
    assert_eq!(found.len(), 3);
    for results in &found {
        assert_eq!(results.len(), QUERIES, "{results:?}");
        assert!(results.values().all(|result| !result.starts_with("0/")), "{results:?}");
        assert_eq!(results, &found[0]);
    }
}

/// Statistics of all rows, which do not differ between two data sets of the same rows.
const ALL_ROWS: &str = "set default_statistics_target = 400;";
/// Queries that read order lines by their parts, with the index that the planted side lacks.
const DROPPED: &str = "drop index order_line_part_supplier;";

fn compared(bench: &Bench, a: &str, b: &str) -> Value {
    let output = bench.pgdyno(&["compare", a, b, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["statements"][0]["statements"].clone()
}

/// Names of the statements for which this holds.
fn named(statements: &Value, holds: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let all = statements.as_array().unwrap().iter();
    all.filter(|one| holds(one)).map(|one| name(one["text"].as_str().unwrap())).collect()
}

fn has_another_plan(statement: &Value) -> bool {
    statement["plan_changes"] != serde_json::json!([])
}

#[test]
fn alone_a_dropped_index_is_a_regression_of_the_queries_that_used_it_with_their_plans() {
    let bench = Bench::new(
        "name = 'dropped'\n[factors]\nserver = ['18']\nsettings = ['quiet']\nworkload = ['all', 'same', 'dropped']\n\
         [run]\nrepeats = 5\nseed = 1\neffect = '50%'\n\
         [settings.quiet]\nautovacuum = false\nmax_parallel_workers_per_gather = 0\njit = false\n\
         [workloads.all]\ndirectory = 'all'\n[workloads.same]\ndirectory = 'all'\n\
         [workloads.dropped]\ndirectory = 'dropped'\n",
    );
    copy(&bench, "all", "", (ALL_ROWS, ""));
    copy(&bench, "dropped", "", (ALL_ROWS, DROPPED));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3 * 5);
    // The queries that use the index: their plans say so.
    let of_all = trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == "all").unwrap();
    let record = bench.store().load(&of_all.id).unwrap();
    let uses = |plan: &model::trace::PlanNode| format!("{plan:?}").contains("order_line_part_supplier");
    let users = record.played.iter().filter(|one| one.plan.as_ref().is_some_and(uses));
    let users: BTreeSet<String> = users.map(|one| name(&one.text)).collect();
    assert!(users.contains("small-quantities") && users.contains("surplus-stock"), "{users:?}");

    let planted = compared(&bench, "workload=all", "workload=dropped");
    let shown = format!("{planted:#}");
    assert_eq!(named(&planted, has_another_plan), users, "{shown}");
    let regressions = named(&planted, |one| one["verdict"] == "REGRESSION");
    assert!(regressions.is_subset(&users), "{regressions:?} {users:?} {shown}");
    assert!(regressions.contains("small-quantities") && regressions.contains("surplus-stock"), "{shown}");

    let same = compared(&bench, "workload=all", "workload=same");
    assert_eq!(named(&same, has_another_plan), BTreeSet::new(), "{same:#}");
    let verdicts =
        |one: &Value| ["REGRESSION", "IMPROVEMENT"].contains(&one["verdict"].as_str().unwrap_or_default());
    assert_eq!(named(&same, verdicts), BTreeSet::new(), "{same:#}");

    let text_of = |args: &[&str]| text(&bench.pgdyno(args));
    let table = text_of(&["compare", "workload=all", "workload=dropped"]);
    assert!(table.contains("small-quantities") && table.contains("→"), "{table}");
}

#[test]
fn streams_run_all_scripts_of_any_workload_in_orders_of_their_own() {
    let bench = Bench::new(
        "name = 'streams'\n[factors]\nserver = ['18']\nworkload = ['three', 'own', 'mixed']\nclients = [2]\n\
         [run]\nduration = '1s'\nrepeats = 1\nseed = 1\n\
         [workloads.three]\nbuiltin = 'analytic'\nduration = '10min'\nparameters = { streams = 3, seed = 7 }\n\
         [workloads.own]\nscripts = ['count.sql', 'sum.sql@2']\nstreams = 2\ntables = 'star'\nwrites = false\nduration = '10min'\n\
         [workloads.mixed]\nbuiltin = 'select-only'\nbackground = [{ workload = 'analytic' }]\n",
    );
    fs::write(bench.path().join("count.sql"), "select count(*) from nation;\n").unwrap();
    fs::write(
        bench.path().join("sum.sql"),
        "\\set id random(1, 5)\nselect sum(id) from nation where region = :id;\n",
    )
    .unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let played = |name: &str| -> BTreeMap<String, u64> {
        let trials = bench.trials();
        let trial =
            trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == name).unwrap().clone();
        assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        let record = bench.store().load(&trial.id).unwrap();
        record.played.iter().map(|one| (one.text.clone(), one.calls)).collect()
    };
    let three = played("three");
    assert_eq!((three.len(), three.values().all(|calls| *calls == 3)), (QUERIES, true), "{three:?}");
    let own = played("own");
    assert_eq!(
        own,
        [
            ("select count(*) from nation".to_owned(), 2),
            ("select sum(id) from nation where region = $1".to_owned(), 4)
        ]
        .into()
    );
    // In the background, clients run the queries.
    assert_eq!(played("mixed"), BTreeMap::new());
    let trials = bench.trials();
    let mixed = trials.iter().find(|trial| trial.cell.workload.known().unwrap().name() == "mixed").unwrap();
    let background = format!("{:?}", mixed.summary);
    assert!(mixed.accounting.driver_transactions.unwrap() > 0, "{background}");

    let rejected = |tables: &str| {
        let campaign =
            format!("name = 'n'\n[factors]\nserver = ['18']\nworkload = ['x']\n[workloads.x]\n{tables}");
        fs::write(bench.path().join("other.toml"), campaign).unwrap();
        let output = bench.pgdyno(&["plan", "other.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    for (tables, message) in [
        ("builtin = 'analytic'\niterations = 2\n", "a workload with streams has no `iterations`"),
        ("builtin = 'analytic'\nparameters = { streams = 0 }\n", "invalid number of streams: 0"),
        ("builtin = 'analytic'\nparameters = { seed = 'x' }\n", "the parameter \"seed\" is \"x\""),
        ("builtin = 'analytic'\nstreams = 3\n", "has no `streams`"),
        ("script = 'count.sql'\nstreams = ':n'\n", "undefined variable \"n\""),
        ("script = 'count.sql'\ntables = 'stars'\n", "expected \"pgbench\", \"star\" or \"none\""),
    ] {
        let found = rejected(tables);
        assert!(found.contains(message), "{tables}: {found}");
    }
}
