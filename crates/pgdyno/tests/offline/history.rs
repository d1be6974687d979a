//! `pgdyno history` as a shell sees it: standard output, standard error, exit code, and stored acceptances.

use std::path::Path;
use std::process::Command;

use crate::bundles::{Bundles, cell, record, run, with_validity};
use crate::compare::cases;
use model::cell::Cell;
use model::record::Status;
use model::units::Rate;

/// Standard output, standard error and exit code of a command.
fn printed(bundles: &Bundles, args: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.arg("history").args(args).current_dir(bundles.directory.path());
    let output = command.env_remove("PGDYNO_STORE").env("USER", "ann").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Twelve minor releases, of which those from 18.6 on are slower by 10% with 8 clients.
fn minors() -> Bundles {
    let mut bundles = Bundles::new();
    for minor in 0..12 {
        for (clients, slower) in [(1, 1.0), (8, 0.9)] {
            let factor = if minor < 6 { 1.0 } else { slower };
            let noise = 1.0 + f64::from(minor * 5 % 7) / 1000.0;
            let mut trial = record(cell("18", clients), 1000.0 * factor * noise);
            trial.trial.server_version = Some(format!("18.{minor}"));
            bundles.write(trial);
        }
    }
    bundles
}

const TPS: [&str; 3] = ["tps", "--over", "version"];

#[test]
fn a_shift_is_reported_and_is_no_failure_without_a_gate() {
    let (out, err, code) = printed(&minors(), &TPS);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.contains("\nA  between 18.5 and 18.6: REGRESSION -10.0% in 1 of 2 cells\n"), "{out}");
    assert!(!out.contains('\x1b'), "colours are for terminals");
}

#[test]
fn without_a_metric_a_history_is_of_what_the_cells_are_judged_by() {
    let mut bundles = minors();
    let named = printed(&bundles, &["tps", "--over", "version", "clients=8"]);
    assert!(named.0.contains("REGRESSION -10.0%"), "{}", named.0);
    assert_eq!(printed(&bundles, &["clients=8", "--over", "version"]), named);
    assert_eq!(printed(&bundles, &["--over", "version", "clients=8"]), named);
    assert_eq!(printed(&bundles, &["--over", "version"]), printed(&bundles, &TPS));
    // A misspelt metric is not taken for the id of a trial.
    let (_, err, code) = printed(&bundles, &["tsp", "--over", "version"]);
    assert!(err.contains("there is no metric \"tsp\"; there are tps, latency.mean"), "{err}");
    assert_eq!(code, Some(2));
    // Cells at a rate are judged by p99.
    for minor in 0..12 {
        let cell = Cell { rate: Rate::per_second(100.0).unwrap(), ..cell("18", 4) };
        let mut trial = record(cell, 100.0);
        trial.trial.server_version = Some(format!("18.{minor}"));
        bundles.write(trial);
    }
    let (out, _, code) = printed(&bundles, &["rate=100", "--over", "version"]);
    assert!(out.starts_with("99th percentile of latency\n"), "{out}");
    assert_eq!(code, Some(0));
    let (_, err, code) = printed(&bundles, &["--over", "version"]);
    assert!(
        err.contains("are judged by tps, latency.p99: name one of them, as in `pgdyno history tps …`"),
        "{err}"
    );
    assert_eq!(code, Some(1));
}

/// [`minors`] with 2 clients in the newest releases only, and without a usable trial with 4.
fn minors_with_gaps() -> Bundles {
    let mut bundles = minors();
    for minor in 0..12 {
        let mut trial = with_validity(record(cell("18", 4), 1000.0), Status::Invalid, "server-exited");
        trial.trial.server_version = Some(format!("18.{minor}"));
        bundles.write(trial);
        let mut trial = record(cell("18", 2), 500.0 + f64::from(minor));
        trial.trial.server_version = Some(format!("18.{minor}"));
        if minor >= 8 {
            bundles.write(trial);
        }
    }
    bundles
}

#[test]
fn a_test_report_fails_where_a_gate_is_hit_or_a_regression_is_not_accepted() {
    let bundles = minors_with_gaps();
    let report = |more: &[&str]| {
        let (out, err, code) = printed(&bundles, &[&TPS[..], &["--format", "junit"], more].concat());
        assert_eq!(err, "", "{out}");
        let of_cells: Vec<String> = cases(&out).into_iter().map(|(_, kind)| kind).collect();
        (of_cells, code.unwrap(), out)
    };
    // By clients: 1, 2, 4, 8.
    let (cells, code, xml) = report(&["--fail", "tps < -5%"]);
    assert_eq!((cells, code), (["", "skipped", "error", "failure"].map(str::to_owned).to_vec(), 3));
    assert!(xml.contains("message=\"REGRESSION -10.0% (-10."), "{xml}");
    assert!(xml.contains("%) between 18.5 and 18.6\""), "{xml}");
    assert!(xml.contains("<testsuite name=\"transactions per second over version\""), "{xml}");
    assert!(xml.contains("message=\"it has fewer than 10 steps: too few to find a change\""), "{xml}");
    let (cells, code, _) = report(&["--fail", "tps < -20%", "--undecided", "fail"]);
    assert_eq!((cells, code), (["", "failure", "error", ""].map(str::to_owned).to_vec(), 3));
    let (cells, ..) = report(&["--fail", "tps < -5%", "--newest", "3"]);
    assert_eq!(cells, ["", "skipped", "error", ""]);
    let (cells, code, _) = report(&[]);
    assert_eq!((cells, code), (["", "skipped", "error", "failure"].map(str::to_owned).to_vec(), 4));
    let accepted = printed(&bundles, &[&TPS[..], &["--accept", "18.6", "--note", "a fix"]].concat());
    assert_eq!(accepted.2, Some(4), "{}", accepted.1);
    let (cells, _, xml) = report(&[]);
    assert_eq!(cells, ["", "skipped", "error", ""]);
    assert!(xml.contains("between 18.5 and 18.6, accepted"), "{xml}");
}

#[test]
fn trackers_of_benchmarks_get_the_newest_step_and_files_what_is_asked_for() {
    let bundles = minors_with_gaps();
    let path = |name: &str| bundles.directory.path().join(name);
    let files = ["--output", "github-benchmark=github.json", "--output", "bencher=bencher.json"];
    let (out, ..) = printed(&bundles, &[&TPS[..], &files].concat());
    assert_eq!(out, printed(&bundles, &TPS).0);
    let json = |name: &str| {
        serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
    };
    let github = json("github.json");
    let figure = |clients: &str| {
        let is_cell = |of: &&serde_json::Value| of["name"].as_str().unwrap().contains(clients);
        github.as_array().unwrap().iter().find(is_cell).unwrap()
    };
    assert_eq!(github.as_array().unwrap().len(), 3, "none without a usable trial: {github}");
    let eight = figure("clients 8");
    let is = |of: &serde_json::Value, figure: f64| (of.as_f64().unwrap() / figure - 1.0).abs() < 1e-9;
    // 18.11, with its noise.
    assert!(is(&eight["value"], 1000.0 * 0.9 * 1.006), "{eight}");
    assert_eq!(
        (&eight["unit"], &eight["extra"]),
        (&"transactions per second".into(), &"version 18.11".into())
    );
    let bencher = json("bencher.json");
    let two = bencher.as_object().unwrap().iter().find(|(name, _)| name.contains("clients 2")).unwrap().1;
    assert!(is(&two["tps"]["value"], 511.0), "{two}");
    // A gate's outcome is not in them.
    let gate = ["--fail", "tps < -5%", "--format", "bencher"];
    let (_, err, code) = printed(&bundles, &[&TPS[..], &gate].concat());
    assert!(err.contains("gate tps < -5%: HIT by"), "{err}");
    assert_eq!(code, Some(3));
}

#[test]
fn a_gate_exits_with_3_until_somebody_accepts_the_shift() {
    let bundles = minors();
    let gate = [&TPS[..], &["--fail", "tps < -5%"]].concat();
    let (out, _, code) = printed(&bundles, &gate);
    assert_eq!(code, Some(3));
    assert!(out.ends_with("gate tps < -5%: HIT by clients 8 since 18.6 (-10.0%)\n"), "{out}");
    let (out, err, code) = printed(&bundles, &[&gate[..], &["--format", "csv"]].concat());
    assert_eq!((out.lines().count(), code), (25, Some(3)));
    assert!(err.starts_with("gate tps < -5%: HIT"), "{err}");
    assert_eq!(printed(&bundles, &[&gate[..], &["--newest", "5"]].concat()).2, Some(0));

    let accept = ["--accept", "18.6", "--note", "the price of a fix"];
    let (out, err, code) = printed(&bundles, &[&TPS[..], &accept].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.contains(" by ann: the price of a fix\n"), "{out}");
    let (out, _, code) = printed(&bundles, &gate);
    assert_eq!(code, Some(0));
    assert!(out.contains("1 shift in 2 cells: 1 regression; 1 accepted\n"), "{out}");
    assert_eq!(printed(&bundles, &[&gate[..], &["--withdraw", "18.6"]].concat()).2, Some(3));
}

#[test]
fn data_that_may_not_be_used_exits_with_4_unless_a_gate_is_hit() {
    let mut bundles = minors();
    bundles.write(with_validity(record(cell("18", 16), 900.0), Status::Invalid, "server-exited"));
    let (out, _, code) = printed(&bundles, &TPS);
    assert_eq!(code, Some(4));
    assert!(out.contains("clients 16 has no trial that may be used"), "{out}");
    assert_eq!(printed(&bundles, &[&TPS[..], &["--fail", "tps < -5%"]].concat()).2, Some(3));
}

#[test]
fn usage_errors_exit_with_2() {
    let bundles = minors();
    for (args, why) in [
        (&["tps"][..], "--over <WHAT>"),
        (&["tps", "--over", "weather"], "possible values: version, commit, kernel, date"),
        (&["tsp", "--over", "date"], "there is no metric \"tsp\""),
        (&["tps", "--over", "version", "--accept", "18.6"], "--note <TEXT>"),
        (&["tps", "--over", "version", "--accept", "18.6", "--note", " "], "the note is empty"),
        (&["tps", "--over", "version", "--newest", "3"], "--fail <GATE>"),
        (&["tps", "--over", "version", "--control", "latest"], "is not a control"),
        (&["tps", "--over", "version", "--fail", "latency.p99 > 5%"], "specify a gate for tps"),
    ] {
        let (out, err, code) = printed(&bundles, args);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{args:?}: {err}");
        assert!(err.contains(why), "{args:?}: {err}");
    }
    let (_, err, code) = printed(&bundles, &[&TPS[..], &["--accept", "18.7", "--note", "x"]].concat());
    assert_eq!(code, Some(1));
    assert_eq!(err, "error: there is no shift at 18.7: shifts are at 18.6\n");
}

fn git(directory: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").arg("-C").arg(directory).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The order of measurement differs from that of the commits.
#[test]
fn commits_are_in_the_order_of_a_repository_only_if_asked() {
    let mut bundles = Bundles::new();
    let source = bundles.directory.path().join("source");
    std::fs::create_dir(&source).unwrap();
    git(&source, &["init", "-q"]);
    let commits: Vec<String> = (0..12)
        .map(|_| {
            git(&source, &["commit", "-q", "--allow-empty", "-m", "x"]);
            git(&source, &["rev-parse", "HEAD"])[..12].to_owned()
        })
        .collect();
    for (number, at) in [7, 3, 11, 0, 9, 5, 1, 10, 2, 8, 4, 6].into_iter().enumerate() {
        let noise = 1.0 + (at * 5 % 7) as f64 / 1000.0;
        let mut trial = record(cell("head", 8), if at < 6 { 1000.0 } else { 900.0 } * noise);
        trial.trial.run = run(&format!("01KAK3W8XQ5T2M9HC4ZP7VR{number:03}"), "nightly");
        trial.trial.run.campaign_toml = format!(
            "name = 'nightly'\n[servers.head]\nsource = 'source'\nref = '{}'\n\
             [factors]\nserver = ['head']\nworkload = ['select-only']\nclients = [8]\n",
            commits[at]
        );
        bundles.write(trial);
    }
    let source = source.to_str().unwrap();
    let ordered = ["tps", "--over", "commit", "--repository", source];
    let (out, err, code) = printed(&bundles, &ordered);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.contains(", in the order of git's history\n"), "{out}");
    assert!(out.contains(&format!("A  between {} and {}: REGRESSION", commits[5], commits[6])), "{out}");
    // Without --repository, git does not run in a directory that a bundle names.
    let (out, _, code) = printed(&bundles, &["tps", "--over", "commit"]);
    assert_eq!(code, Some(0));
    assert!(out.contains(", as they were first measured; --repository\n  orders commits by git\n"), "{out}");
    std::fs::remove_dir_all(source).unwrap();
    let (_, err, code) = printed(&bundles, &ordered);
    assert_eq!(code, Some(1));
    assert!(err.contains("git could not order ") && err.contains(source), "{err}");
}
