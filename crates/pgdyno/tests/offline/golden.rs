//! Stores of earlier releases: every command that reads bundles reads theirs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

/// A directory with a store that has the bundles of every format.
pub(super) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    copy(&bundles(), &directory.path().join(".pgdyno/trials"));
    directory
}

fn bundles() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden/trials")
}

/// Selectors of two trials of the run [`RUN`], which share nothing else.
pub(super) const SIDES: [&str; 2] = [
    "workload=select-only,settings=big,protocol=prepared,transport=unix,rate=max,pin=one,cache=warm,memory=512MB,disk=slow",
    "workload=tpcb-like,settings=default,protocol=extended,transport=tcp,rate=100,pin=none,cache=as-is,memory=none,disk=none",
];
pub(super) const RUN: &str = "01M84CP9FDZEEG9MCQ5J48PNED";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, copied).unwrap();
        }
    }
}

#[test]
fn every_command_reads_bundles_of_every_format() {
    let directory = directory();
    let golden = bundles();
    let run = |command: &str| -> String {
        let mut program = Command::new(PROGRAM);
        program.args(command.split(' ')).current_dir(directory.path()).env_remove("PGDYNO_STORE");
        let output = program.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !stderr.contains("left out"), "{command}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |command: &str| -> Value { serde_json::from_str(&run(command)).unwrap() };

    run("store check");
    let listed = json("store list --format json");
    let trials = listed["trials"].as_array().unwrap();
    let mut formats = BTreeSet::new();
    let mut runs = BTreeSet::new();
    for trial in trials {
        let id = trial["id"].as_str().unwrap();
        let head = fs::read(golden.join(id).join("trial.json")).unwrap();
        let head: Value = serde_json::from_slice(&head).unwrap();
        formats.insert(head["format"].as_u64().unwrap());
        runs.insert(head["run"]["id"].as_str().unwrap().to_owned());
        assert_eq!(json(&format!("show {id} --format json"))["trial"]["id"], id);
        run(&format!("store show {id} --format json"));
    }
    let known = store::format::FORMATS.map(u64::from);
    assert_eq!(formats, BTreeSet::from(known), "keep a bundle of every format");
    for id in &runs {
        let report = json(&format!("report --run {id} --format json"));
        assert!(!report["runs"].as_array().unwrap().is_empty());
        run(&format!("report --run {id} -o report.html"));
    }
    run("export -o tables --format csv");
    assert!(
        fs::read_to_string(directory.path().join("tables/trials.csv")).unwrap().lines().count()
            > trials.len()
    );
    let [a, b] = SIDES;
    let compared = json(&format!("compare {a} {b} --run {RUN} --format json"));
    assert!(!compared["sides"].as_array().unwrap().is_empty());
    run("history tps --over version --format json");
}
