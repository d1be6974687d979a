//! A campaign resumes where it stopped, however it stopped, and measures nothing twice.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use model::plan::Plan;
use model::record::{Status, Trial};
use model::spec::Campaign;
use model::workload::Workloads;
use support::{Bench, Random, signal, text};

/// Kills pgdyno at `kills` random moments of a campaign, resumes it each time, and checks the trials at its end.
fn killed_again_and_again(campaign: &str, kills: usize, longest: Duration) {
    let bench = Bench::new(campaign);
    let seed = u64::from(std::process::id()) | 1;
    let mut random = Random(seed);
    for _ in 0..kills {
        let begun = bench.path().join(".pgdyno").exists() && !bench.trials().is_empty();
        let running = bench.start_with(&[if begun { "resume" } else { "run" }, "campaign.toml"]);
        std::thread::sleep(Duration::from_millis(random.below(longest.as_millis() as u64)));
        // The run may have ended already.
        if running.process_tree().first().is_some_and(|first| first.pid == running.pid()) {
            signal(running.pid(), libc::SIGKILL);
        }
        running.end();
    }
    let begun = !bench.trials().is_empty();
    let (code, stderr) = bench.start_with(&[if begun { "resume" } else { "run" }, "campaign.toml"]).end();
    assert_eq!(code, Some(0), "seed {seed}: {stderr}");

    let basis = bench.trials()[0].run.basis().unwrap();
    let plan =
        Plan::with_workloads(&Campaign::parse(campaign).unwrap(), basis, &Workloads::default()).unwrap();
    let mut usable: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for trial in bench.trials() {
        if trial.validity.status != Status::Invalid {
            *usable.entry((trial.cell.to_string(), trial.repeat)).or_default() += 1;
        }
    }
    assert_eq!(usable.len(), plan.trials.len(), "seed {seed}");
    for planned in &plan.trials {
        let key = (plan.cell(planned).to_string(), planned.repeat);
        assert_eq!(usable.get(&key), Some(&1), "seed {seed}: {key:?}");
    }
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

#[test]
fn a_campaign_that_is_killed_at_any_moment_ends_with_each_trial_once() {
    let campaign = "name = 'killed'\n[factors]\nserver = ['13', '18']\nworkload = ['select-only', 'tpcb-like']\n\
                    clients = [1, 2]\n[run]\nduration = '300ms'\nwarmup = '50ms'\nrepeats = 2\nseed = 1\n";
    killed_again_and_again(campaign, 6, Duration::from_secs(6));
}

/// The same at full size: 180 trials of 3 s, about half an hour.
#[test]
#[ignore = "takes half an hour: cargo test -p pgdyno --test resume -- --ignored"]
fn a_large_campaign_that_is_killed_20_times_ends_with_each_trial_once() {
    let campaign = "name = 'killed'\n[factors]\nserver = ['9.6', '12', '14', '16', '18']\n\
                    settings = ['default', 'small']\nworkload = ['select-only', 'tpcb-like']\nclients = [1, 2, 4]\n\
                    [run]\nduration = '3s'\nwarmup = '300ms'\nrepeats = 3\nseed = 1\n\
                    [settings.small]\nshared_buffers = '16MB'\n";
    killed_again_and_again(campaign, 20, Duration::from_secs(90));
}

const SHORT: &str = "name = 'edited'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n\
                     [run]\nduration = '200ms'\nwarmup = '50ms'\nrepeats = 1\nseed = 1\n";

#[test]
fn changes_of_an_edited_campaign_are_listed_and_it_continues_if_requested() {
    let bench = Bench::new(SHORT);
    let first = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));

    let again = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    assert_eq!(bench.trials().len(), 2, "nothing was left to be run");

    fs::write(bench.path().join("campaign.toml"), SHORT.replace("[1, 2]", "[2, 4]")).unwrap();
    let refused = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let printed = text(&refused);
    for expected in ["has been edited since", "new: 1 cells", "removed", "unchanged: 1 cells", "--edited"] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    let edited = bench.pgdyno(&["resume", "campaign.toml", "--edited"]);
    assert_eq!(edited.status.code(), Some(0), "{}", text(&edited));
    let clients: Vec<u32> =
        bench.trials().iter().filter_map(|trial| trial.cell.clients.into_known()).collect();
    assert_eq!(clients.iter().filter(|clients| **clients == 4).count(), 1);
    assert_eq!(clients.len(), 3);

    fs::write(bench.path().join("campaign.toml"), SHORT.replace("seed = 1", "seed = 1\nvacuum = 'freeze'"))
        .unwrap();
    let conflicting = bench.pgdyno(&["resume", "campaign.toml", "--edited"]);
    assert_eq!(conflicting.status.code(), Some(2));
    assert!(text(&conflicting).contains("vacuum: None → Freeze"), "{}", text(&conflicting));
}

#[test]
fn trials_for_another_kernel_wait_and_an_unknown_run_is_refused() {
    let campaign =
        SHORT.replace("clients = [1, 2]", "clients = [1]\nkernel = ['host', '1.2']\nacceleration = ['none']");
    let bench = Bench::new(&campaign);
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(5), "{}", text(&run));
    assert!(text(&run).contains("1 wait for another kernel or host"), "{}", text(&run));
    assert_eq!(bench.trials().len(), 1);
    let unknown = bench.pgdyno(&["resume", "--run", "01ZZ"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).contains("there is no run 01ZZ in"), "{}", text(&unknown));
}

#[test]
fn invalid_trials_are_tried_again_and_their_attempts_numbered_on() {
    let bench = Bench::new(
        "name = 'healed'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 1\nretries = 1\n\
         [hooks]\nbefore_trial = 'test -e healed'\n",
    );
    let attempts = || {
        let usable = |trial: &Trial| trial.validity.status != Status::Invalid;
        bench.trials().iter().map(|trial| (trial.attempt, usable(trial))).collect::<Vec<_>>()
    };
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(4), "{}", text(&run));
    assert!(text(&run).contains("to try the invalid ones again: pgdyno resume --store"), "{}", text(&run));
    assert_eq!(attempts(), [(1, false), (2, false)]);
    fs::write(bench.path().join("healed"), "").unwrap();
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert_eq!(attempts(), [(1, false), (2, false), (3, true)]);
}

#[test]
fn one_run_is_executed_by_one_pgdyno_at_a_time() {
    let bench = Bench::new(&SHORT.replace("200ms", "60s").replace("clients = [1, 2]", "clients = [1]"));
    let mut running = bench.start();
    running.wait_for("trial 1/1");
    // There is nothing to resume before the first bundle.
    signal(running.pid(), libc::SIGINT);
    assert_eq!(running.end().0, Some(130));
    let mut running = bench.start_with(&["resume", "campaign.toml"]);
    running.wait_for("trial 1/1");
    let second = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another pgdyno is executing run"), "{}", text(&second));
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
}
