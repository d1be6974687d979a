//! Two pgdynos on one host: campaigns that wait for each other, or measure at the same time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::process::Command;

use model::record::{Status, Trial};
use support::{Bench, signal, text};

fn bench(name: &str, duration: &str, more: &str) -> Bench {
    Bench::new(&format!(
        "name = '{name}'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '{duration}'\nwarmup = '0s'\nrepeats = 2\n{more}"
    ))
}

/// A command of `bench` that shares the queue of another one.
fn command(bench: &Bench, other: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.env("PGDYNO_QUEUE", other.path());
    command
}

/// The evidence that another pgdyno measured at the same time.
fn evidence(trial: &Trial) -> Option<&str> {
    let found = trial.validity.findings.iter().find(|finding| finding.gate == "other-pgdyno")?;
    Some(&found.evidence)
}

#[test]
fn a_campaign_waits_for_another_or_both_record_that_they_ran_at_the_same_time() {
    let (first, second) = (bench("first", "1h", ""), bench("second", "100ms", ""));
    let mut running = first.start();
    running.wait_for("trial 1/2");

    let mut waiting = second.start_command(command(&second, &first, &["run", "campaign.toml"]));
    waiting.wait_for(&format!(
        "waiting for other measurements on this host: campaign first (process {} of ",
        running.pid()
    ));
    signal(waiting.pid(), libc::SIGINT);
    let (code, stderr) = waiting.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.ends_with("interrupted before the first trial"), "{stderr}");
    assert_eq!(second.trials().len(), 0);

    let ran = command(&second, &first, &["run", "campaign.toml", "--allow-concurrent"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(text(&ran).contains("measuring at the same time as campaign first (process "), "{}", text(&ran));
    for trial in second.trials() {
        assert_eq!(evidence(&trial), Some("measured at the same time on this host: campaign first"));
        assert_eq!(trial.validity.status, Status::Suspect);
    }

    let mut waiting = second.start_command(command(&second, &first, &["run", "campaign.toml"]));
    waiting.wait_for("on this host: campaign first");
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    let interrupted = &first.trials()[0];
    assert_eq!(interrupted.validity.status, Status::Invalid);
    assert_eq!(evidence(interrupted), Some("measured at the same time on this host: campaign second"));
    let (code, stderr) = waiting.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(second.trials().iter().filter(|trial| evidence(trial).is_none()).count(), 2, "{stderr}");
}

#[test]
fn a_hook_may_measure() {
    let program = env!("CARGO_BIN_EXE_pgdyno");
    let bench = bench(
        "hooked",
        "100ms",
        &format!(
            "[hooks]\nbefore_trial = 'PGDYNO_STORE= {program} bench select-only -c 1 -t 10 --quiet --format json -o hook.json'\n"
        ),
    );
    let ran = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(bench.trials().iter().all(|trial| evidence(trial).is_none()));
    let report = std::fs::read_to_string(bench.path().join("hook.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    // Ten transactions on a busy machine may find their driver saturated.
    let warnings = report["warnings"].as_array().unwrap().iter();
    let others: Vec<_> = warnings.filter(|warning| warning["kind"] != "driver-saturated").collect();
    assert!(others.is_empty(), "{report:#}");
}
