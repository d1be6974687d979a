//! Paired trials on real servers: planted differences are found, sessions survive faults, nothing is left.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::collections::BTreeSet;
use std::fs;

use model::paired::{PAIRS, PairedFigure, Side};
use model::record::{Status, Trial};
use stats::session_log_ratio;
use support::{Bench, Process, Running, signal, text, wait_until, wait_until_gone};

/// A campaign that compares two settings of a server: with the second one, each transaction hashes so many bytes instead
/// of 1000.
fn bench(bytes: u32, run: &str) -> Bench {
    let bench = Bench::new(&format!(
        "name = 'pairs'\n[factors]\nserver = ['18']\nsettings = ['a', 'b']\nworkload = ['hashing']\nclients = [2]\n\
         [workloads.hashing]\nscripts = ['hashing.sql']\n\
         [settings.a]\n'planted.bytes' = 1000\n[settings.b]\n'planted.bytes' = {bytes}\n\
         [run]\norder = 'paired'\ncompare = 'settings'\nduration = '300ms'\nwarmup = '100ms'\n{run}"
    ));
    let script = "SELECT hashtext(repeat('x', current_setting('planted.bytes')::int));\n";
    fs::write(bench.path().join("hashing.sql"), script).unwrap();
    bench
}

/// The trials of each session that is complete and usable, in order.
fn sessions(trials: &[Trial]) -> Vec<[&Trial; 2]> {
    let usable = |trial: &&Trial| trial.validity.status != Status::Invalid;
    let of = |number: u32, side: Side| {
        let is_side = |trial: &&Trial| {
            trial.paired.as_ref().is_some_and(|paired| (paired.session, paired.side) == (number, side))
        };
        trials.iter().filter(usable).find(is_side)
    };
    let last = trials.iter().map(|trial| trial.repeat).max().unwrap_or(0);
    (1..=last).filter_map(|number| Some([of(number, Side::A)?, of(number, Side::B)?])).collect()
}

fn evidence(trials: &[Trial]) -> String {
    let findings = trials.iter().flat_map(|trial| &trial.validity.findings);
    findings.map(|finding| format!("{}: {}\n", finding.gate, finding.evidence)).collect()
}

/// Waits until both drivers run with connected clients. Returns all processes at that time.
fn in_session(running: &mut Running) -> Vec<Process> {
    let mut process_tree = Vec::new();
    wait_until("both sides have clients", || {
        process_tree = running.process_tree();
        let count = |of: &str| process_tree.iter().filter(|process| process.command.contains(of)).count();
        count("pgdyno driver") == 2 && count("postgres pgdyno [local]") >= 4
    });
    process_tree
}

#[test]
fn a_planted_difference_is_found_in_every_session_and_slices_never_overlap() {
    let bench = bench(1_000_000, "repeats = { min = 3, max = 12 }\n");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    let sessions = sessions(&trials);
    assert_eq!(sessions.len() * 2, trials.len(), "{}", evidence(&trials));
    assert!((3..12).contains(&sessions.len()), "{}: {}", sessions.len(), text(&output));
    for [a, b] in sessions {
        let [of_a, of_b] = [a, b].map(|trial| trial.paired.as_ref().unwrap());
        // Servers that take long to start have more pairs.
        assert_eq!(of_a.slices.len(), of_b.slices.len());
        assert!((PAIRS as usize..=4 * PAIRS as usize).contains(&of_a.slices.len()), "{}", of_a.slices.len());
        for (figure, least) in [(PairedFigure::Throughput, -0.7), (PairedFigure::ServerCpu, 0.7)] {
            let log_ratio = session_log_ratio(&figure.pairs([of_a, of_b], [2, 2])).unwrap();
            assert!(log_ratio / least > 1.0, "{figure:?}: {log_ratio}");
        }
        // By one clock, each slice ends before the next one begins, whichever side it is on.
        let mut slices: Vec<(i64, i64)> = [a, b]
            .into_iter()
            .flat_map(|trial| {
                let origin_us = trial.clocks.unwrap().started.monotonic_us;
                let at = move |us: u64| origin_us + i64::try_from(us).unwrap();
                let slices = &trial.paired.as_ref().unwrap().slices;
                slices.iter().map(move |slice| (at(slice.load.start_us), at(slice.load.end_us)))
            })
            .collect();
        slices.sort_unstable();
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{slices:?}");
        for trial in [a, b] {
            let accounting = &trial.accounting;
            let commits = accounting.driver_commits.unwrap() + accounting.other_commits.unwrap();
            assert_eq!(Some(commits), accounting.server_commits);
            let paused = trial.paired.as_ref().unwrap().slices.iter();
            let [paused_us, used_us] = paused.fold([0, 0], |[paused_us, used_us], slice| {
                [paused_us + slice.paused_cpu_us.unwrap(), used_us + slice.server_cpu_us.unwrap()]
            });
            assert!(paused_us * 4 < used_us, "paused servers used {paused_us} µs, running ones {used_us} µs");
        }
    }
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
}

/// Servers of different sessions are different processes: each session has its own luck.
#[test]
fn each_session_starts_both_servers_and_equal_ones_are_not_told_apart() {
    // The lock file of a socket begins with the postmaster's process id.
    let log = "[hooks]\nbefore_trial = 'echo \"$PGDYNO_SETTINGS $(head -n 1 $PGHOST/.s.PGSQL.*.lock)\" >> servers'\n";
    let bench = bench(1000, &format!("repeats = 4\neffect = '40%'\n{log}"));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(sessions(&trials).len(), 4, "{}", evidence(&trials));
    let servers = fs::read_to_string(bench.path().join("servers")).unwrap();
    let started = |side: &str| {
        let of_side = servers.lines().filter_map(|line| line.strip_prefix(side)?.trim().parse::<u32>().ok());
        of_side.collect::<BTreeSet<u32>>()
    };
    assert_eq!((started("a").len(), started("b").len()), (4, 4), "{servers}");
    assert!(started("a").is_disjoint(&started("b")), "{servers}");
    let log_ratios: Vec<f64> = sessions(&trials)
        .iter()
        .map(|sides| sides.map(|trial| trial.paired.as_ref().unwrap()))
        .map(|sides| session_log_ratio(&PairedFigure::Throughput.pairs(sides, [2, 2])).unwrap())
        .collect();
    let mean = log_ratios.iter().sum::<f64>() / 4.0;
    assert!(mean.abs() < 0.5, "{log_ratios:?}");
}

#[test]
fn a_killed_server_costs_its_session_and_both_sides_end() {
    let bench = bench(1000, "repeats = 3\nretries = 2\n");
    let mut running = bench.start();
    let process_tree = in_session(&mut running);
    signal(running.process("bin/postgres ").pid, libc::SIGKILL);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = bench.trials();
    assert_eq!(sessions(&trials).len(), 3, "{stderr}");
    assert!(trials.len() == 8 && evidence(&trials).contains("server-exited: "), "{}", evidence(&trials));
    assert!(evidence(&trials).contains("the other side of the session has ended"), "{}", evidence(&trials));
    wait_until_gone(&process_tree);
}

#[test]
fn a_pgdyno_killed_in_a_session_leaves_nothing_and_resume_keeps_what_has_ended() {
    let bench = bench(1000, "repeats = 3\n");
    let mut running = bench.start();
    wait_until("a session has ended", || {
        bench.path().join(".pgdyno/trials").exists() && bench.trials().len() >= 2
    });
    let process_tree = in_session(&mut running);
    signal(running.pid(), libc::SIGKILL);
    running.end();
    wait_until_gone(&process_tree);
    let ended: Vec<String> = bench.trials().iter().map(|trial| trial.id.clone()).collect();
    let before = sessions(&bench.trials()).len();
    assert!((1..3).contains(&before));
    let output = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(sessions(&trials).len(), 3);
    assert!(ended.iter().all(|id| trials.iter().any(|trial| trial.id == *id)));
}

#[test]
fn ctrl_c_ends_both_sides() {
    let bench = bench(1000, "repeats = 3\n");
    let mut running = bench.start();
    let process_tree = in_session(&mut running);
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    wait_until_gone(&process_tree);
    assert!(stderr.contains("remain: pgdyno resume"), "{stderr}");
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert_eq!(sessions(&bench.trials()).len(), 3);
}
