//! Completion of arguments, in a real bash and as the other shells ask for it; manual pages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bundles::{Bundles, cell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

fn store() -> Bundles {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &[1000.0, 1005.0]);
    bundles.runs(&cell("18", 1), &[500.0, 505.0]);
    bundles
}

fn stdout(command: &mut Command) -> String {
    let output = command.env_remove("PGDYNO_STORE").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs bash with the completion script and a directory with the program in its path.
fn bash(directory: &Path, line: &str) -> Vec<String> {
    let script = "source <(pgdyno completions bash); COMP_LINE=$1 COMP_POINT=${#1}; _pgdyno; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash", line]).current_dir(directory).env("PATH", path);
    stdout(&mut command).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let bundles = store();
    let directory = bundles.directory.path();
    fs::write(directory.join("upgrade.toml"), "").unwrap();
    fs::write(directory.join("notes.txt"), "").unwrap();
    let complete = |line: &str| bash(directory, line);

    assert_eq!(complete("pgdyno rep"), ["replay", "report"]);
    assert_eq!(complete("pgdyno show --camp"), ["--campaign"]);
    let campaigns = complete("pgdyno run ");
    assert!(
        campaigns.contains(&"upgrade.toml".to_owned()) && !campaigns.contains(&"notes.txt".to_owned()),
        "{campaigns:?}"
    );
    let workloads = complete("pgdyno bench -b ");
    assert!(
        ["tpcb-like", "queue"].iter().all(|name| workloads.iter().any(|found| found == name)),
        "{workloads:?}"
    );
    let servers = complete("pgdyno ab 1");
    assert!(["10", "18"].iter().all(|major| servers.iter().any(|found| found == major)), "{servers:?}");
    assert_eq!(complete("pgdyno run x.toml --set scale=1,2 --set clie"), ["clients="]);
    assert!(complete("pgdyno run x.toml --set server=9").contains(&"9.6".to_owned()));
    assert!(complete("pgdyno run x.toml --set server=9.6,17,1").contains(&"9.6,17,18".to_owned()));
}

#[test]
fn bash_completes_terms_of_selectors_behind_the_characters_that_split_words() {
    let bundles = store();
    let directory = bundles.directory.path();
    let complete = |line: &str| bash(directory, line);
    let list =
        stdout(Command::new(PROGRAM).args(["store", "list", "--format", "json"]).current_dir(directory));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let ids: BTreeSet<&str> =
        list["trials"].as_array().unwrap().iter().map(|trial| trial["id"].as_str().unwrap()).collect();
    let runs: BTreeSet<&str> =
        list["trials"].as_array().unwrap().iter().map(|trial| trial["run"].as_str().unwrap()).collect();

    assert_eq!(complete("pgdyno show ser"), ["server="]);
    assert_eq!(complete("pgdyno compare server="), ["17", "18"]);
    assert_eq!(complete("pgdyno compare server=17 latest,server=1"), ["17", "18"]);
    let found = complete("pgdyno show run:");
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), runs);
    let found = complete("pgdyno store show 01");
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), ids);
    assert_eq!(found.first().map(String::as_str), ids.last().copied(), "the newest is first");
    let newest = ids.last().unwrap();
    assert_eq!(complete(&format!("pgdyno show {}", newest.to_lowercase())), [*newest]);
    // The store that the line names.
    let elsewhere = tempfile::tempdir().unwrap();
    let line = format!("pgdyno show --store {} server=", directory.join(".pgdyno").display());
    assert_eq!(bash(elsewhere.path(), &line), ["17", "18"]);
    assert_eq!(
        bash(elsewhere.path(), "pgdyno show server="),
        [""],
        "without a store there is nothing, and no message"
    );
}

#[test]
fn other_shells_get_descriptions_too() {
    let bundles = store();
    for shell in ["zsh", "fish"] {
        let script = stdout(Command::new(PROGRAM).args(["completions", shell]));
        assert!(script.contains("PGDYNO_COMPLETE") && script.contains("pgdyno"), "{script}");
        let mut command = Command::new(PROGRAM);
        command.args(["--", "pgdyno", "show", "--run", ""]).current_dir(bundles.directory.path());
        command.env("PGDYNO_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "3");
        let found = stdout(&mut command);
        assert!(found.lines().all(|line| line.contains("01") && line.contains(", 20")), "{found}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    stdout(Command::new(PROGRAM).arg("man-pages").arg(directory.path()));
    let pages: BTreeSet<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["pgdyno.1", "pgdyno-run.1", "pgdyno-ab.1", "pgdyno-store-check.1", "pgdyno-completions.1"] {
        assert!(pages.contains(page), "{pages:?}");
    }
    assert!(!pages.contains("pgdyno-guest.1"), "internal commands have none");
    let page = fs::read_to_string(directory.path().join("pgdyno-run.1")).unwrap();
    assert!(page.contains("allow\\-concurrent") && page.contains(".SH \"EXIT CODES\""), "{page}");

    let output =
        Command::new(PROGRAM).args([OsStr::new("man-pages"), OsStr::new("/nonexistent")]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("/nonexistent"));
    assert_eq!(output.status.code(), Some(1));
}
