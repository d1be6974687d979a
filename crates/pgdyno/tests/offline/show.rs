//! `pgdyno show` as a shell and a terminal see it.

use std::process::Command;

use crate::bundles::{Bundles, cell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

fn cells() -> Bundles {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &[1000.0, 1005.0, 995.0]);
    bundles.runs(&cell("18", 1), &[500.0, 505.0, 495.0]);
    bundles
}

fn printed(command: &mut Command, bundles: &Bundles) -> String {
    let output = command.current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Output on a terminal of its own, which util-linux' `script` creates.
fn on_a_terminal(bundles: &Bundles, environment: &[(&str, &str)]) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty columns 90; '{PROGRAM}' show"), "/dev/null"]);
    script.env("TERM", "xterm").env_remove("NO_COLOR").envs(environment.iter().copied());
    printed(&mut script, bundles)
}

#[test]
fn there_are_charts_on_terminals_alone_and_colours_where_they_are_wanted() {
    let bundles = cells();
    let file = printed(Command::new(PROGRAM).arg("show").env("TERM", "xterm"), &bundles);
    assert!(!file.contains(['█', '\x1b']) && file.contains("REGRESSION"), "{file}");

    let terminal = on_a_terminal(&bundles, &[]);
    assert!(terminal.contains('█') && terminal.contains("\x1b[1;31mREGRESSION\x1b[0m"), "{terminal}");
    let plain = on_a_terminal(&bundles, &[("NO_COLOR", "1")]);
    assert!(plain.contains('█') && !plain.contains('\x1b'), "{plain}");
    let dumb = on_a_terminal(&bundles, &[("TERM", "dumb")]);
    assert_eq!(dumb.replace('\r', ""), file);
}

#[test]
fn missing_trials_are_errors() {
    let bundles = cells();
    let mut command = Command::new(PROGRAM);
    let output = command.args(["show", "clients=7"]).current_dir(bundles.directory.path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("no trial of run") && error.contains("clients: 1"), "{error}");
}

#[test]
fn intervals_in_documents_keep_their_keys() {
    let bundles = cells();
    let stored = printed(Command::new(PROGRAM).args(["store", "list", "--format", "json"]), &bundles);
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let id = stored["trials"][0]["id"].as_str().unwrap();
    let shown = printed(Command::new(PROGRAM).args(["store", "show", id, "--format", "json"]), &bundles);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let mut keys: Vec<&String> = shown["intervals"][0].as_object().unwrap().keys().collect();
    keys.sort();
    let expected =
        "beside busy lag_max_us lag_mean_us phase responses scripts send_lag_max_us spans start_us width_us";
    assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
}
