//! `pgdyno init`: campaigns that it writes, on its own and by answers on a terminal.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

fn init(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("init")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The plan of a campaign in the directory.
fn plan(directory: &Path, file: &str) -> serde_json::Value {
    let mut command = Command::new(PROGRAM);
    let output = command.args(["plan", file, "--format", "json"]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_campaign_without_options_compares_two_majors() {
    let directory = tempfile::tempdir().unwrap();
    let output = init(directory.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("pgdyno run campaign.toml"), "{note}");
    let text = fs::read_to_string(directory.path().join("campaign.toml")).unwrap();
    assert!(text.contains("order    = \"paired\"") && text.contains("max_time = \"10min\""), "{text}");
    assert!(
        text.contains("for 4 comparisons") && text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    // Two servers, two workloads, two numbers of clients.
    assert_eq!(plan(directory.path(), "campaign.toml")["cells"].as_array().unwrap().len(), 8);

    let output = init(directory.path(), &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("campaign.toml exists") && error.contains("--force"), "{error}");
    assert!(init(directory.path(), &["--force", "--clients", "3"]).status.success());
    assert_eq!(plan(directory.path(), "campaign.toml")["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn options_are_in_the_campaign_and_errors_name_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let output = init(
        directory.path(),
        &["-", "--servers", "16.4", "--workloads", "queue", "--clients", "1,8", "--time", "5min"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && fs::read_dir(directory.path()).unwrap().next().is_none());
    // Five minutes for six runs, with what surrounds them.
    assert!(text.contains("duration = \"40s\"") && !text.contains("paired"), "{text}");

    let output = init(directory.path(), &["--workloads", "tpcc"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("there is no workload \"tpcc\"") && error.contains("tpcb-like"), "{error}");
    assert!(!directory.path().join("campaign.toml").exists());

    let output = init(directory.path(), &["/nonexistent/campaign.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("/nonexistent"), "{error}");
}

#[test]
fn scripts_in_the_directory_are_workloads() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("orders.sql"), "SELECT 1;\n").unwrap();
    fs::write(directory.path().join("schema.sql"), "CREATE TABLE orders (id int);\n").unwrap();
    assert!(init(directory.path(), &["--clients", "2"]).status.success());
    let text = fs::read_to_string(directory.path().join("campaign.toml")).unwrap();
    assert!(text.contains("[workloads.orders]") && text.contains("setup   = [\"schema.sql\"]"), "{text}");
    let plan = plan(directory.path(), "campaign.toml");
    assert!(plan["cells"].as_array().unwrap().iter().all(|cell| cell["workload"] == "orders"), "{plan}");
}

#[test]
fn a_terminal_is_asked_until_the_answer_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("'{PROGRAM}' init --workloads select-only"), "/dev/null"]);
    script.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    // Servers, clients (wrong, then right), margin (the suggestion), time.
    child.stdin.take().unwrap().write_all(b"14,18\nmany\n4 16\n\n3min\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let terminal = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && terminal.contains("many: "), "{terminal}");
    let text = fs::read_to_string(directory.path().join("campaign.toml")).unwrap();
    for expected in ["[\"14\", \"18\"]", "clients  = [4, 16]", "effect   = \"5%\"", "max_time = \"3min\""] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
