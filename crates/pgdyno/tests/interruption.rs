//! Killed processes and interruptions by the user: no measurement is lost, and no process survives.

#[cfg(test)]
mod support;

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

#[test]
fn a_pgdyno_that_is_killed_leaves_an_intact_store_no_process_and_no_data_for_long() {
    let bench = bench("2s");
    let mut running = bench.start();
    let process_tree = in_second_load(&mut running);
    signal(running.pid(), libc::SIGKILL);
    let (code, _) = running.end();
    assert_eq!(code, None);
    wait_until_gone(&process_tree);
    let postgres = process_tree.iter().find(|process| process.command.contains("bin/postgres ")).unwrap();
    let data = postgres.command.split(" -D ").nth(1).unwrap().split(' ').next().unwrap();
    // The next pgdyno that uses servers deletes the remains; one that runs concurrently may have done so already.
    let list = bench.pgdyno(&["server", "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list));
    assert!(!std::path::Path::new(data).exists(), "{data}");
    assert_eq!(status(&bench.trials()), [Status::Valid]);
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}
