//! Killed processes and interruptions by the user: no measurement is lost, and no process survives.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::{Cache, NoProgress};
use model::record::{Status, Trial};
use support::{Bench, Process, Running, signal, text, wait_until, wait_until_gone};

/// A campaign whose trials are long enough to interrupt, and short enough to wait for.
fn bench(duration: &str) -> Bench {
    Bench::new(&format!(
        "name = 'interruption'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2, 4]\n\
         [run]\nduration = '{duration}'\nwarmup = '0s'\nrepeats = 1\norder = 'sequential'\n"
    ))
}

/// Waits until the second trial has its load: its driver and two clients, in addition to a collector's session in the
/// same database. Returns all processes at that time.
fn in_second_load(running: &mut Running) -> Vec<Process> {
    running.wait_for("trial 2/3");
    let mut process_tree = Vec::new();
    wait_until("two clients are connected", || {
        process_tree = running.process_tree();
        process_tree.iter().filter(|process| process.command.contains("postgres pgdyno [local]")).count() == 3
    });
    process_tree
}

/// Data directory of the server in a process tree.
fn data_directory(process_tree: &[Process]) -> PathBuf {
    let postgres = process_tree.iter().find(|process| process.command.contains("bin/postgres ")).unwrap();
    postgres.command.split(" -D ").nth(1).unwrap().split(' ').next().unwrap().into()
}

/// Status of each trial, with suspect as valid: a busy machine may make a trial suspect.
fn status(trials: &[Trial]) -> Vec<Status> {
    let usable = |trial: &Trial| trial.validity.status != Status::Invalid;
    trials.iter().map(|trial| if usable(trial) { Status::Valid } else { Status::Invalid }).collect()
}

fn evidence(trial: &Trial) -> String {
    trial
        .validity
        .findings
        .iter()
        .map(|finding| format!("{}: {}\n", finding.gate, finding.evidence))
        .collect()
}

#[test]
fn ctrl_c_ends_the_running_trial_and_keeps_the_finished_ones() {
    let bench = bench("2s");
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    wait_until_gone(&process_tree);
    let trials = bench.trials();
    assert_eq!(status(&trials), [Status::Valid, Status::Invalid], "{stderr}");
    assert!(evidence(&trials[1]).contains("interrupted: ended by the user"), "{}", evidence(&trials[1]));
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

#[test]
fn a_hangup_ends_a_campaign_like_ctrl_c() {
    let campaign = "name = 'hangup'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2, 4]\n\
                    [run]\nduration = '2s'\nwarmup = '0s'\nrepeats = 1\norder = 'sequential'\n\
                    [hooks]\nafter_campaign = 'echo $PGDYNO_CAMPAIGN > ended'\n";
    let bench = Bench::new(campaign);
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    let data = data_directory(&process_tree);
    signal(running.pid(), libc::SIGHUP);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    wait_until_gone(&process_tree);
    assert_eq!(status(&bench.trials()), [Status::Valid, Status::Invalid], "{stderr}");
    assert_eq!(fs::read_to_string(bench.path().join("ended")).unwrap(), "hangup\n");
    assert!(!data.parent().unwrap().exists(), "{data:?}");
}

#[test]
fn a_campaign_under_nohup_does_not_end_at_a_hangup() {
    let bench = bench("300ms");
    let mut nohup = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_pgdyno");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" run campaign.toml", program]);
    nohup.current_dir(bench.path()).env_remove("PGDYNO_STORE").env("PGDYNO_QUEUE", bench.path());
    let mut running = bench.start_command(nohup);
    running.wait_for("trial 1/3");
    signal(running.pid(), libc::SIGHUP);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(status(&bench.trials()), [Status::Valid; 3], "{stderr}");
}

#[test]
fn a_server_that_is_killed_makes_one_trial_invalid_and_the_campaign_goes_on() {
    let bench = bench("2s");
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    signal(running.process("bin/postgres ").pid, libc::SIGKILL);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = bench.trials();
    assert_eq!(status(&trials), [Status::Valid, Status::Invalid, Status::Valid, Status::Valid], "{stderr}");
    assert_eq!((trials[3].position, trials[3].attempt), (2, 2), "it was run again");
    assert!(evidence(&trials[1]).contains("server-exited: "), "{}", evidence(&trials[1]));
    assert!(stderr.contains("the server ended during the trial: signal: 9"), "{stderr}");
    wait_until_gone(&process_tree);
}

#[test]
fn a_driver_that_is_killed_makes_one_trial_invalid_and_the_campaign_goes_on() {
    let bench = bench("2s");
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    signal(running.process("pgdyno driver").pid, libc::SIGKILL);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = bench.trials();
    assert_eq!(status(&trials), [Status::Valid, Status::Invalid, Status::Valid, Status::Valid], "{stderr}");
    assert_eq!((trials[3].position, trials[3].attempt), (2, 2), "it was run again");
    assert!(
        evidence(&trials[1]).contains("load-failed: the driver process died (signal: 9"),
        "{}",
        evidence(&trials[1])
    );
    wait_until_gone(&process_tree);
}

/// Names in a directory that begin like this.
fn names(directory: &Path, begin: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(begin)).collect()
}

#[test]
fn what_a_kill_before_the_first_bundle_leaves_is_removed_by_later_commands() {
    let bench = bench("300ms");
    // A cache of its own, so deep that sockets are in the temporary directory.
    let cache = bench.path().join("d".repeat(100));
    let installation = server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap();
    let installed = Cache::open().unwrap().installations().join(installation.identity());
    fs::set_permissions(bench.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let temporary = bench.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    fs::create_dir_all(cache.join("installations")).unwrap();
    let copied = Command::new("cp").arg("-a").args([&installed, &cache.join("installations")]).status();
    assert!(copied.unwrap().success());
    let command = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PGDYNO_CACHE", &cache).env("TMPDIR", &temporary);
        command
    };
    let store = bench.path().join(".pgdyno");
    let leftovers = || {
        [
            names(&cache.join("clusters"), ""),
            names(&cache.join("scratch"), ""),
            names(&cache.join("installations"), "."),
            names(&temporary, ""),
            names(&store, ".run-"),
            names(&store, ".live-"),
        ]
        .concat()
    };

    for stage in ["creating", "loading pgbench_accounts", "starting PostgreSQL", "trial 1/3"] {
        let mut running = bench.start_command(command(&["run", "campaign.toml"]));
        running.wait_for(stage);
        let process_tree = running.process_tree();
        signal(running.pid(), libc::SIGKILL);
        running.end();
        wait_until_gone(&process_tree);
        assert_ne!(leftovers(), [""; 0], "killed at {stage:?}");
    }
    let resume = command(&["resume", "campaign.toml"]).output().unwrap();
    assert_eq!(resume.status.code(), Some(2), "{}", text(&resume));
    assert!(
        text(&resume).contains("has nothing to resume\nStart one with `pgdyno run`"),
        "{}",
        text(&resume)
    );
    let list = command(&["server", "list"]).output().unwrap();
    assert!(text(&list).contains("removed leftovers of a killed pgdyno"), "{}", text(&list));
    assert_eq!(leftovers(), [""; 0]);

    let run = command(&["run", "campaign.toml"]).output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", text(&run));
    assert!(!text(&run).contains("creating"), "the data set was filled before the last kill: {}", text(&run));
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn a_pgdyno_that_is_killed_leaves_an_intact_store_no_process_and_no_data_for_long() {
    let bench = bench("2s");
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    signal(running.pid(), libc::SIGKILL);
    let (code, _) = running.end();
    assert_eq!(code, None);
    wait_until_gone(&process_tree);
    let data = data_directory(&process_tree);
    // The next pgdyno that uses servers deletes the remains; one that runs concurrently may have done so already.
    let list = bench.pgdyno(&["server", "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list));
    assert!(!data.exists(), "{data:?}");
    assert_eq!(status(&bench.trials()), [Status::Valid]);
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}
