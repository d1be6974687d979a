//! The action for GitHub and the template for GitLab in `ci/`: their steps, run as these systems run them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Bench, text};

/// Arguments of a short comparison of reads.
const READS: &str =
    "-S -s 1 -c 1 --margin 60% --allow-concurrent --pin none --output github-benchmark=tracker.json";
/// Settings that make them several times as slow.
const SLOWER: &str =
    "--b-set enable_indexscan=off --b-set enable_bitmapscan=off --b-set enable_indexonlyscan=off";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci").canonicalize().unwrap()
}

fn read(file: &str) -> String {
    fs::read_to_string(directory().join(file)).unwrap()
}

/// The value after a key in a line of YAML, without quotes.
fn value<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let value = line.trim_start().strip_prefix(key)?.trim();
    let is_quoted = |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    Some(if is_quoted('"') || is_quoted('\'') { &value[1..value.len() - 1] } else { value })
}

/// The exit code and the output of a script of the system, in an environment.
fn run(bench: &Bench, script: &str, environment: &BTreeMap<String, String>) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_pgdyno")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(bench.path()).env("PATH", path).envs(environment);
    command.env_remove("PGDYNO_STORE").env("PGDYNO_QUEUE", bench.path());
    let output = command.output().unwrap();
    (output.status.code().unwrap(), text(&output))
}

/// Runs the action's step with these inputs; the others have their defaults.
fn act(bench: &Bench, inputs: &[(&str, &str)]) -> (i32, String) {
    let action = read("action.yml");
    let mut of_inputs: BTreeMap<&str, &str> = BTreeMap::new();
    let mut name = "";
    for line in action.lines().take_while(|line| *line != "runs:") {
        match (line.starts_with("  ") && !line.starts_with("   "), value(line, "default:")) {
            (true, _) => name = line.trim().trim_end_matches(':'),
            (false, Some(default)) => {
                of_inputs.insert(name, default);
            }
            (false, None) => {}
        }
    }
    of_inputs.extend(inputs.iter().copied());
    let script = action.lines().find_map(|line| value(line, "run:")).unwrap();
    let variable = |line: &str| {
        let (name, input) = line.trim().split_once(": ${{ inputs.")?;
        let input = input.strip_suffix(" }}").unwrap();
        Some((name.to_owned(), of_inputs[input].to_owned()))
    };
    let mut environment: BTreeMap<String, String> = action.lines().filter_map(variable).collect();
    assert_eq!(environment.len(), 7, "{environment:?}");
    environment.insert("GITHUB_ACTION_PATH".to_owned(), directory().display().to_string());
    environment.insert("GITHUB_STEP_SUMMARY".to_owned(), "step-summary.md".to_owned());
    run(bench, script, &environment)
}

#[test]
fn a_regression_makes_the_action_fail() {
    let bench = Bench::new("");
    let arguments = format!("{READS} {SLOWER}");
    let (code, output) = act(&bench, &[("base", "18"), ("head", "18"), ("arguments", &arguments)]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("::error title=pgdyno::the gate tps < -5% is hit"), "{output}");
    let result = |name: &str| fs::read_to_string(bench.path().join("pgdyno-results").join(name)).unwrap();
    assert!(result("junit.xml").contains("<failure "), "{}", result("junit.xml"));
    let suite = "<testsuite name=\"settings=b against settings=a: transactions per second\"";
    assert!(result("junit.xml").contains(suite), "{}", result("junit.xml"));
    assert!(result("summary.md").contains("REGRESSION"), "{}", result("summary.md"));
    assert!(result("result.json").contains("\"is_hit\": true"));
    assert!(result("report.html").starts_with("<!doctype html>"));
    // Throughput decides; CPU time has another direction.
    let tracker = fs::read_to_string(bench.path().join("tracker.json")).unwrap();
    assert_eq!(tracker.matches("\"unit\": \"transactions per second\"").count(), 1, "{tracker}");
    assert_eq!(tracker.matches("\"unit\"").count(), 1, "{tracker}");
    let summary = fs::read_to_string(bench.path().join("step-summary.md")).unwrap();
    assert_eq!(summary, result("summary.md"));
}

#[test]
fn no_change_lets_the_action_pass_and_an_undecided_one_is_neutral() {
    let bench = Bench::new("");
    let (code, output) =
        act(&bench, &[("base", "18"), ("head", "18"), ("arguments", READS), ("fail", "tps < -60%")]);
    assert_eq!(code, 0, "{output}");
    assert!(!output.contains("::error") && !output.contains("::notice"), "{output}");
    let junit = fs::read_to_string(bench.path().join("pgdyno-results/junit.xml")).unwrap();
    assert!(junit.contains("failures=\"0\"") && !junit.contains("<skipped"), "{junit}");

    // One session decides nothing.
    let undecided = |bench: &Bench, meaning: &str| {
        let inputs = [("base", "18"), ("head", "18"), ("arguments", READS), ("max-time", "1ms")];
        act(bench, &[&inputs[..], &[("undecided", meaning)]].concat())
    };
    let bench = Bench::new("");
    let (code, output) = undecided(&bench, "neutral");
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("::notice title=pgdyno::not decided within the time"), "{output}");
    let junit = fs::read_to_string(bench.path().join("pgdyno-results/junit.xml")).unwrap();
    assert!(junit.contains("<skipped"), "{junit}");
    assert_eq!(undecided(&Bench::new(""), "fail").0, 3);
    let (code, output) = undecided(&Bench::new(""), "perhaps");
    assert_eq!(code, 2, "{output}");
    assert!(output.contains("expected neutral, pass or fail"), "{output}");
}

#[test]
fn the_template_for_gitlab_runs_the_same_script() {
    let bench = Bench::new("");
    let template = read("gitlab.yml");
    let directory = template.lines().find_map(|line| value(line, "PGDYNO_DIRECTORY:")).unwrap();
    // A project has the script where the variable says.
    assert_eq!(directory.split(" #").next().unwrap(), "ci");
    fs::create_dir(bench.path().join("ci")).unwrap();
    fs::copy(self::directory().join("compare.sh"), bench.path().join("ci/compare.sh")).unwrap();
    let script =
        template.lines().filter_map(|line| value(line, "-")).find(|line| line.contains(".sh")).unwrap();
    let variables = [
        ("PGDYNO_DIRECTORY", "ci"),
        ("PGDYNO_BASE", "18"),
        ("PGDYNO_HEAD", "18"),
        ("PGDYNO_ARGUMENTS", READS),
        ("PGDYNO_FAIL", "tps < -60%"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (code, output) = run(&bench, script, &variables.into_iter().collect());
    assert_eq!(code, 0, "{output}");
    for file in template.lines().filter_map(|line| value(line, "junit:")) {
        assert!(bench.path().join(file).exists(), "{file}");
    }
}
