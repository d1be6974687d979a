//! `pgdyno compare` as a shell sees it: standard output, standard error and exit code.

use std::process::{Command, Output};

use crate::bundles::{Bundles, cell, record, with_validity};
use model::record::Status;

const STEADY: [f64; 5] = [1000.0, 1005.0, 995.0, 1002.0, 998.0];

fn pgdyno(bundles: &Bundles, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.arg("compare").args(args).current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE");
    command.output().unwrap()
}

/// Standard output, standard error and exit code of a command.
fn printed(bundles: &Bundles, args: &[&str]) -> (String, String, Option<i32>) {
    let output = pgdyno(bundles, args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// 18 is slower by 10% with 8 clients.
fn sweep() -> Bundles {
    let mut bundles = Bundles::new();
    for (server, factor) in [("17", 1.0), ("18", 0.9)] {
        bundles.runs(&cell(server, 1), &STEADY);
        bundles.runs(&cell(server, 8), &STEADY.map(|tps| tps * 4.0 * factor));
    }
    bundles
}

#[test]
fn without_a_gate_a_regression_is_no_failure() {
    let (out, err, code) = printed(&sweep(), &["server=17", "server=18"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.contains("\n1 of 2 cells regressed, 1 equivalent; worst: clients 8, -10.0%"), "{out}");
    assert!(!out.contains('\x1b'), "colours are for terminals");
}

#[test]
fn a_gate_that_is_hit_exits_with_3_and_names_the_cell() {
    let bundles = sweep();
    let (out, _, code) = printed(&bundles, &["server=17", "server=18", "--fail", "tps < -5%"]);
    assert_eq!(code, Some(3));
    assert!(out.ends_with("gate tps < -5%: HIT by B at clients 8 (-10.0%)\n"), "{out}");
    let (out, _, code) = printed(&bundles, &["server=17", "server=18", "--fail", "tps < -20%"]);
    assert_eq!(code, Some(0));
    assert!(out.ends_with("gate tps < -20%: not hit\n"), "{out}");
    // Standard output has only the table: the outcome of the gate goes to standard error.
    let (out, err, code) =
        printed(&bundles, &["server=17", "server=18", "--fail", "tps < -5%", "--format", "csv"]);
    assert_eq!((out.lines().count(), code), (3, Some(3)));
    assert!(err.starts_with("gate tps < -5%: HIT"), "{err}");
}

#[test]
fn a_gate_that_is_not_decided_exits_with_6_unless_told_otherwise() {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 2), &STEADY);
    bundles.runs(&cell("18", 2), &[700.0, 701.0]);
    let code = |gate: &str, others: &[&str]| {
        printed(&bundles, &[&["server=17", "server=18", "--fail", gate], others].concat()).2
    };
    assert_eq!(code("tps < -20%", &[]), Some(6));
    assert_eq!(code("tps < -20%", &["--undecided", "pass"]), Some(0));
    assert_eq!(code("tps < -20%", &["--undecided", "fail"]), Some(3));
    assert_eq!(code("tps < -5%", &[]), Some(3), "another cell hits it");
    assert_eq!(code("tps < -5%", &["--undecided", "pass"]), Some(3));
    // Without a gate there is nothing to decide.
    let (_, err, code) = printed(&bundles, &["server=17", "server=18", "--undecided", "fail"]);
    assert_eq!(code, Some(2), "{err}");
    assert_eq!(printed(&bundles, &["server=17", "server=18"]).2, Some(0));
}

/// 18 is slower by 10% with 8 clients, equal with 1, unknown with 2, and never ran with 16.
fn four_cells() -> Bundles {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 2), &STEADY);
    bundles.runs(&cell("18", 2), &[700.0, 701.0]);
    bundles.runs(&cell("17", 16), &STEADY);
    bundles.write(with_validity(record(cell("18", 16), 900.0), Status::Invalid, "server-exited"));
    bundles
}

/// For each test case of a JUnit report its clients, and what it has but its output: `failure`, `skipped`, `error` or nothing.
pub(crate) fn cases(xml: &str) -> Vec<(String, String)> {
    let of_case = |case: &str| {
        let name = case.split("name=\"").nth(1).unwrap().split('"').next().unwrap();
        let clients = name.split(" · ").find_map(|level| level.strip_prefix("clients ")).unwrap();
        let kinds = ["failure", "skipped", "error"];
        let kind = kinds.into_iter().find(|kind| case.contains(&format!("<{kind} "))).unwrap_or_default();
        (clients.to_owned(), kind.to_owned())
    };
    let mut cases: Vec<_> = xml.split("<testcase ").skip(1).map(of_case).collect();
    cases.sort_by_key(|(clients, _)| clients.parse::<u32>().unwrap());
    cases
}

#[test]
fn a_test_report_fails_where_a_gate_is_hit() {
    let bundles = four_cells();
    let report = |more: &[&str]| {
        let (out, err, code) =
            printed(&bundles, &[&["server=17", "server=18", "--format", "junit"], more].concat());
        assert_eq!(err, "", "{out}");
        let of_cells: Vec<String> = cases(&out).into_iter().map(|(_, kind)| kind).collect();
        (of_cells, code.unwrap(), out)
    };
    let (cells, code, xml) = report(&["--fail", "tps < -5%"]);
    assert_eq!((cells, code), (["", "skipped", "failure", "error"].map(str::to_owned).to_vec(), 3));
    assert!(xml.contains("<testsuites name=\"pgdyno\" tests=\"4\" failures=\"1\" errors=\"1\">"), "{xml}");
    assert!(xml.contains("message=\"REGRESSION: -10.0% (-10."), "{xml}");
    assert!(xml.contains("name=\"server=18 against server=17: transactions per second\""), "{xml}");
    let (cells, code, _) = report(&["--fail", "tps < -20%", "--undecided", "fail"]);
    assert_eq!((cells, code), (["", "failure", "", "error"].map(str::to_owned).to_vec(), 3));
    let (cells, code, _) = report(&["--fail", "tps < -20%", "--undecided", "pass"]);
    assert_eq!((cells, code), (["", "", "", "error"].map(str::to_owned).to_vec(), 4));
    // Without a gate, a regression fails.
    let (cells, ..) = report(&[]);
    assert_eq!(cells, ["", "skipped", "failure", "error"]);
    let (cells, ..) = report(&["--metric", "latency.p99", "--fail", "tps < -20%"]);
    assert_eq!(cells.len(), 8, "the gate's metric is compared, too");
}

#[test]
fn trackers_of_benchmarks_get_the_figures_of_the_variant() {
    let bundles = four_cells();
    let json = |format: &str, more: &[&str]| {
        let (out, err, code) =
            printed(&bundles, &[&["server=17", "server=18", "--format", format], more].concat());
        (serde_json::from_str::<serde_json::Value>(&out).unwrap_or_default(), err, code)
    };
    let (github, _, code) = json("github-benchmark", &[]);
    let all = github.as_array().unwrap();
    assert_eq!((all.len(), code), (3, Some(4)), "the cell without a usable trial has no figure: {github}");
    let eight = all.iter().find(|of| of["name"].as_str().unwrap().contains("clients 8")).unwrap();
    assert_eq!(eight["unit"], "transactions per second");
    assert!((eight["value"].as_f64().unwrap() / 3600.0 - 1.0).abs() < 1e-3, "{eight}");
    assert!(eight["extra"].as_str().unwrap().starts_with("REGRESSION: -10.0%"), "{eight}");

    let (bencher, ..) = json("bencher", &["--metric", "tps", "--metric", "latency.p99"]);
    let (name, eight) =
        bencher.as_object().unwrap().iter().find(|(name, _)| name.contains("clients 8")).unwrap();
    assert!(!name.contains("18"), "the name is the same for each version: {name}");
    let [value, low, high] =
        ["value", "lower_value", "upper_value"].map(|key| eight["tps"][key].as_f64().unwrap());
    assert!(low < value && value < high, "{eight}");
    assert!(eight["latency.p99"]["value"].as_f64().unwrap() > 0.0, "{eight}");

    // One file has one direction: that of the first metric.
    assert_eq!(json("github-benchmark", &["--metric", "tps", "--metric", "latency.p99"]).0, github);
    let (latencies, ..) = json("github-benchmark", &["--metric", "latency.p99", "--metric", "tps"]);
    assert!(latencies.as_array().unwrap().iter().all(|of| of["unit"] == "µs"), "{latencies}");
}

#[test]
fn data_that_may_not_be_used_exits_with_4_unless_a_gate_is_hit() {
    let mut bundles = sweep();
    bundles.runs(&cell("17", 16), &STEADY);
    bundles.write(with_validity(record(cell("18", 16), 900.0), Status::Invalid, "server-exited"));
    let (out, _, code) = printed(&bundles, &["server=17", "server=18"]);
    assert_eq!(code, Some(4));
    assert!(out.contains("1 invalid, not used: server-exited 1"), "{out}");
    let (_, _, code) = printed(&bundles, &["server=17", "server=18", "--fail", "tps < -5%"]);
    assert_eq!(code, Some(3));
}

#[test]
fn usage_errors_exit_with_2() {
    let bundles = sweep();
    for (args, why) in [
        (&["server=17"][..], "<VARIANT>"),
        (&["server=17", "server=17"], "A and B are the same selector"),
        (&["server=17", "sever=18"], "there is no factor \"sever\""),
        (&["server=17", "server=18", "--metric", "tsp"], "there is no metric \"tsp\""),
        (&["server=17", "server=18", "--fail", "tps < 5"], "a gate is METRIC < CHANGE%"),
    ] {
        let (out, err, code) = printed(&bundles, args);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{args:?}: {err}");
        assert!(err.contains(why), "{args:?}: {err}");
    }
    let (_, err, code) = printed(&bundles, &["server=17", "server=19"]);
    assert_eq!(code, Some(1));
    assert!(err.starts_with("error: B (server=19): no trial of run"), "{err}");
}

#[test]
fn json_can_be_read() {
    let (out, _, _) = printed(&sweep(), &["server=17", "server=18", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&json["schema"], &json["metrics"][0]["cells"][1]["verdict"]),
        (&1.into(), &"REGRESSION".into())
    );
}
