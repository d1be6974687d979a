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
