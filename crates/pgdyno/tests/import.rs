//! Imports are stored once and completely, and every command that reads a store can read them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use model::record::Trial;
use support::{Bench, signal, text};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/data");

/// Arguments that import the client sweep of 2008 by its two factors.
fn sweep(more: &[&'static str]) -> Vec<String> {
    let options =
        ["--factor", "kernel", "--factor", "clients", "--repeat", "run", "--set", "workload=select-only"];
    let mut args = vec!["import".to_owned(), "csv".to_owned(), format!("{DATA}/client-sweep-2008.csv")];
    args.extend(options.iter().chain(more).map(|option| (*option).to_owned()));
    args
}

fn pgdyno(bench: &Bench, args: &[String]) -> (i32, String) {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = bench.pgdyno(&args);
    (ended.status.code().unwrap(), text(&ended))
}

fn runs(trials: &[Trial]) -> BTreeSet<&str> {
    trials.iter().map(|trial| trial.run.id.as_str()).collect()
}

/// Checks that the sweep is stored once and completely, and that the store is intact.
fn check_complete(bench: &Bench) {
    let trials = bench.trials();
    assert_eq!((trials.len(), runs(&trials).len()), (299, 1));
    let positions: BTreeSet<u32> = trials.iter().map(|trial| trial.position).collect();
    assert_eq!(positions, (1..=299).collect());
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

/// Rows of a file of expected figures, by column.
fn expected(name: &str) -> Vec<BTreeMap<String, String>> {
    let file =
        format!("{}/../stats/tests/data/client-sweep-2008.expected-{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let mut rows = csv::Reader::from_path(file).unwrap();
    rows.deserialize().map(Result::unwrap).collect()
}

/// Checks that a figure times `unit` is the expected one, to 4 digits.
#[track_caller]
fn is_alike(ours: &serde_json::Value, theirs: &str, unit: f64) {
    let (ours, theirs) = (ours.as_f64().unwrap() * unit, theirs.parse::<f64>().unwrap());
    assert!((ours - theirs).abs() <= 5e-5 * theirs.abs(), "{ours} is not {theirs}");
}

/// The sweep of five kernels, imported and compared by two commands, against the results of an independent
/// implementation of the rules.
#[test]
fn the_sweep_of_2008_is_compared_as_expected() {
    let bench = Bench::new("");
    assert_eq!(pgdyno(&bench, &sweep(&[])).0, 0);
    let verdicts = expected("compare");
    let cells = expected("cells");
    let (mut compared, mut classed) = (0, BTreeSet::new());
    // The last pair covers the kernel that is in no other pair: its runs are from another machine.
    for (a, b) in [
        ("2.6.22.19", "2.6.24.4"),
        ("2.6.22.19", "2.6.25"),
        ("2.6.24.4", "2.6.25"),
        ("2.6.25", "2.6.26-rc2"),
        ("2.6.25", "2.6.25-remote"),
    ] {
        let ended =
            bench.pgdyno(&["compare", &format!("kernel={a}"), &format!("kernel={b}"), "--format", "json"]);
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
        let document: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        for cell in document["metrics"][0]["cells"].as_array().unwrap() {
            let clients = cell["cell"]["clients"].as_str().unwrap();
            assert!(cell["cell"]["scale"].is_null(), "no scale was given");
            if let Some(row) =
                verdicts.iter().find(|row| row["a"] == a && row["b"] == b && row["clients"] == clients)
            {
                compared += 1;
                assert_eq!(cell["verdict"], row["verdict"].as_str(), "{row:?}");
                assert_eq!(cell["ranges_are_disjoint"], row["ranges"] != "overlap", "{row:?}");
                for (ours, theirs) in [
                    ("ratio", "ratio_gm"),
                    ("ratio_of_medians", "ratio_med"),
                    ("ci95_low", "ci95_lo"),
                    ("ci95_high", "ci95_hi"),
                    ("ci99_low", "ci99_lo"),
                    ("ci99_high", "ci99_hi"),
                    ("degrees_of_freedom", "df"),
                    ("p", "p_welch"),
                    ("p_holm", "p_holm"),
                    ("p_benjamini_hochberg", "p_bh"),
                    ("p_permutation", "p_perm"),
                    ("p_permutation_holm", "p_perm_holm"),
                    ("p_permutation_benjamini_hochberg", "p_perm_bh"),
                    ("p_mann_whitney", "p_mwu"),
                    ("share_smaller", "p_b_slower"),
                ] {
                    is_alike(&cell[ours], &row[theirs], 1.0);
                }
            }
            for (kernel, side) in [(a, &cell["a"]), (b, &cell["b"])] {
                let row =
                    cells.iter().find(|row| row["kernel"] == kernel && row["clients"] == clients).unwrap();
                classed.insert((kernel, clients.to_owned()));
                assert_eq!(side["class"], row["cls"].as_str(), "{row:?}");
                assert_eq!(!side["first_run_apart"].is_null(), row["first_run"] == "True", "{row:?}");
                for (ours, theirs, unit) in [
                    ("minimum", "min", 1.0),
                    ("median", "median", 1.0),
                    ("maximum", "max", 1.0),
                    ("geometric_mean", "gmean", 1.0),
                    ("log_sd", "logsd_pct", 100.0),
                    ("relative_mad", "mad_pct", 100.0),
                    ("ci95_low", "ci95_lo", 1.0),
                    ("ci95_high", "ci95_hi", 1.0),
                    ("n", "n", 1.0),
                    ("runs_needed", "runs_for_2pct", 1.0),
                ] {
                    is_alike(&side[ours], &row[theirs], unit);
                }
                for (ours, theirs) in [("lower", "split_lo"), ("t", "split_T"), ("ratio", "mode_ratio")] {
                    is_alike(&side["modes"][ours], &row[theirs], 1.0);
                }
            }
        }
    }
    assert_eq!((compared, classed.len()), (verdicts.len(), cells.len()), "each of them once at least");
}

#[test]
fn every_command_reads_what_was_imported() {
    let bench = Bench::new("");
    let (code, output) = pgdyno(&bench, &sweep(&["--tag", "old", "--format", "json"]));
    assert_eq!(code, 0, "{output}");
    check_complete(&bench);
    let trials = bench.trials();
    assert!(trials.iter().all(|trial| trial.run.tags == ["old"] && trial.imported.is_some()));

    let report = text(&bench.pgdyno(&["report"]));
    assert!(
        report.contains("client-sweep-2008 · imported from client-sweep-2008.csv · 299 trials"),
        "{report}"
    );
    assert!(report.contains("kernel 2.6.24.4"), "{report}");
    let long = text(&bench.pgdyno(&["report", "--format", "csv"]));
    assert_eq!(long.lines().filter(|line| line.starts_with("client-sweep-2008,")).count(), 299);
    assert_eq!(bench.pgdyno(&["report", "-o", "x.html"]).status.code(), Some(0));
    assert!(fs::metadata(bench.path().join("x.html")).unwrap().len() > 100_000);

    let shown = text(&bench.pgdyno(&["store", "show", &trials[0].id]));
    for part in
        ["kernel 2.6.25-remote, workload select-only, clients 1", "client-sweep-2008.csv, line 2", "3057.8"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("Latency") && !shown.contains("seed"), "{shown}");
    let listed = bench.pgdyno(&["store", "list", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(listed["trials"][0]["cell"]["scale"].is_null(), "{}", listed["trials"][0]);
    let explained = bench.pgdyno(&["explain", &trials[0].id]);
    assert_eq!(explained.status.code(), Some(1));
    assert!(text(&explained).contains("it was imported"));
    assert_eq!(bench.pgdyno(&["resume"]).status.code(), Some(2), "there is nothing to be run again");
    assert_eq!(bench.pgdyno(&["store", "reindex"]).status.code(), Some(0));
}

#[test]
fn the_same_files_are_not_imported_twice_unless_that_is_wanted() {
    let bench = Bench::new("");
    assert_eq!(pgdyno(&bench, &sweep(&[])).0, 0);
    let run = bench.trials()[0].run.id.clone();
    let other_name = bench.path().join("renamed.csv");
    fs::copy(format!("{DATA}/client-sweep-2008.csv"), &other_name).unwrap();
    let again = pgdyno(&bench, &sweep(&["--name", "other"]));
    let in_another_way = ["import", "csv", "renamed.csv", "--factor", "kernel"].map(str::to_owned);
    let renamed = pgdyno(&bench, &in_another_way);
    for (code, output) in [again, renamed] {
        assert_eq!(code, 2, "{output}");
        assert!(output.contains(&run) && output.contains("--again"), "{output}");
    }
    check_complete(&bench);
    assert_eq!(pgdyno(&bench, &sweep(&["--again"])).0, 0);
    assert_eq!((bench.trials().len(), runs(&bench.trials()).len()), (598, 2));
}

#[test]
fn an_invalid_row_prevents_the_import() {
    let bench = Bench::new("");
    fs::write(bench.path().join("bad.csv"), "clients,tps\n1,10\n2,much\n").unwrap();
    let import = ["import", "csv", "bad.csv", "--factor", "clients"].map(str::to_owned);
    let (code, output) = pgdyno(&bench, &import);
    assert_eq!(code, 1);
    assert!(
        output.contains("bad.csv: nothing was imported") && output.contains("line 3, column tps"),
        "{output}"
    );
    assert!(!bench.path().join(".pgdyno").exists());
    let (code, output) = pgdyno(&bench, &[&import[..], &["--skip-bad".to_owned()]].concat());
    assert_eq!((code, bench.trials().len()), (0, 1), "{output}");
    assert!(output.contains("left out: line 3, column tps"), "{output}");
    let (code, output) =
        pgdyno(&bench, &["import", "csv", "bad.csv", "--factor", "kernel"].map(str::to_owned));
    assert_eq!(code, 2);
    assert!(output.contains("no column \"kernel\"; it has clients, tps"), "{output}");
}

#[test]
fn an_incomplete_import_continues_its_run() {
    let bench = Bench::new("");
    assert_eq!(pgdyno(&bench, &sweep(&[])).0, 0);
    let trials = bench.trials();
    // As a killed process would leave it.
    for trial in trials.iter().filter(|trial| trial.position > 100) {
        fs::remove_dir_all(bench.path().join(".pgdyno/trials").join(&trial.id)).unwrap();
    }
    let (code, output) = pgdyno(&bench, &sweep(&[]));
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("continued run"), "{output}");
    check_complete(&bench);
    assert_eq!(runs(&bench.trials()), runs(&trials));
}

#[test]
fn an_import_that_is_killed_leaves_no_half_trial() {
    let bench = Bench::new("");
    let args = sweep(&[]);
    let running = bench.start_with(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let bundles = || {
        let entries = fs::read_dir(bench.path().join(".pgdyno/trials")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().len() == 26).count()
    };
    let patience = Instant::now() + Duration::from_secs(240);
    while bundles() < 10 && Instant::now() < patience {
        std::thread::yield_now();
    }
    signal(running.pid(), libc::SIGKILL);
    running.end();
    let there = bench.trials().len();
    let (code, output) = pgdyno(&bench, &sweep(&[]));
    // On a very fast machine, the import had ended before the signal.
    assert_eq!(code, if there == 299 { 2 } else { 0 }, "{output}");
    check_complete(&bench);
}

#[test]
fn pgbenchs_files_become_a_trial_with_histograms() {
    let bench = Bench::new("");
    let data = |name: &str| format!("{DATA}/pgbench/{name}");
    let mut args = ["import", "pgbench", "--log"].map(str::to_owned).to_vec();
    args.extend([data("threads.log"), data("threads.log.1"), "--progress".to_owned(), data("threads.err")]);
    args.extend(["--set".to_owned(), "rate=300".to_owned(), "--".to_owned(), data("v15-threads.out")]);
    let (code, output) = pgdyno(&bench, &args);
    assert_eq!(code, 0, "{output}");
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
    let shown = text(&bench.pgdyno(&["store", "show", &bench.trials()[0].id]));
    assert!(shown.contains("99 %") && shown.contains("rate 300"), "{shown}");
    let timeline = text(&bench.pgdyno(&["explain", "--timeline", &bench.trials()[0].id]));
    assert!(timeline.lines().count() >= 4, "{timeline}");
    let tools = format!("{DATA}/pgbench-tools");
    let tools = ["import", "pgbench-tools", &format!("{tools}/tests.csv"), "--skip-bad"].map(str::to_owned);
    assert_eq!(pgdyno(&bench, &tools).0, 0);
    assert_eq!(bench.trials().len(), 4);
}
