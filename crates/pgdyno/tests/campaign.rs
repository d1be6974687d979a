//! Campaigns on real servers: each trial becomes a bundle, and driver and server count the same transactions.

#[cfg(test)]
mod support;

use std::fs;
use std::process::{Child, Command};

use model::factor::Factor;
use model::record::Status;
use skip::skip;
use support::{Bench, bundle, joined, text};

#[test]
fn driver_and_server_count_the_same_transactions() {
    let bench = Bench::new(
        "name = 'count'\n[factors]\nserver = ['13', '18']\nsettings = ['no-autovacuum']\n\
         workload = ['select-only', 'simple-update', 'tpcb-like']\nclients = [3]\n\
         protocol = ['simple', 'extended', 'prepared']\n\
         [run]\nduration = '300ms'\nwarmup = '100ms'\nrepeats = 1\nthreads = 2\nseed = 1\n\
         [settings.no-autovacuum]\nautovacuum = false\nsynchronous_commit = false\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let trials = bench.trials();
    assert_eq!(trials.len(), 2 * 3 * 3);
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let in_intervals: u64 = record
            .intervals
            .iter()
            .flat_map(|interval| &interval.scripts)
            .map(|script| script.transactions)
            .sum();
        assert_eq!(trial.accounting.driver_transactions, Some(in_intervals), "{}", trial.cell);
        assert!(in_intervals > 0, "{}", trial.cell);
        assert_eq!(trial.accounting.surplus(), Some(0), "{}: {:?}", trial.cell, trial.accounting);
        // Trials with windows this short may be suspect on a busy machine.
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        assert!(
            trial.server_version.as_ref().unwrap().starts_with(&Factor::Server.level(&trial.cell)),
            "{trial:?}"
        );
    }

    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));

    // The index is a cache: deleting it loses nothing.
    std::fs::remove_file(bench.path().join(".pgdyno/index.sqlite")).unwrap();
    assert_eq!(bench.trials(), trials);
}

#[test]
fn a_write_trial_begins_with_the_same_state_and_tcp_works() {
    let bench = Bench::new(
        "name = 'state'\n[factors]\nserver = ['18']\nworkload = ['tpcb-like']\nclients = [2]\ntransport = ['tcp']\n\
         [run]\nduration = '1s'\nrepeats = 3\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let sizes: Vec<_> = bench.trials().iter().map(|trial| trial.database_bytes).collect();
    assert_eq!(sizes.len(), 3);
    assert!(sizes.iter().all(|size| *size == sizes[0] && size.is_some()), "{sizes:?}");
}

#[test]
fn settings_reach_the_server_and_invalid_ones_are_reported_before_the_first_trial() {
    let campaign = |value: &str| {
        Bench::new(&format!(
            "name = 'settings'\n[factors]\nserver = ['18']\nsettings = ['odd']\nworkload = ['select-only']\n\
             clients = [1]\n[run]\nduration = '100ms'\nrepeats = 1\n[settings.odd]\nwork_mem = '{value}'\n"
        ))
    };
    let good = campaign("7MB");
    let output = good.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let id = good.trials()[0].id.clone();
    let record = good.store().load(&id).unwrap();
    let work_mem = record.settings.iter().find(|setting| setting.name == "work_mem").unwrap();
    assert_eq!((work_mem.value.as_str(), work_mem.unit.as_deref()), ("7168", Some("kB")));

    let bad = campaign("plenty");
    let output = bad.pgdyno(&["run", "campaign.toml"]);
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("invalid value for parameter \"work_mem\": \"plenty\""), "{printed}");
    assert!(bad.trials().is_empty());
}

#[test]
fn a_run_prints_its_tables_and_makes_a_report() {
    let bench = Bench::new(
        "name = 'tables'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n\
         [run]\nduration = '100ms'\nrepeats = 1\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml", "--format", "csv"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout.lines().count(), 1 + 2, "{stdout}");
    let report = bench.pgdyno(&["report", "-o", "report.html"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    let html = std::fs::read_to_string(bench.path().join("report.html")).unwrap();
    assert!(html.starts_with("<!doctype html>"), "{}", &html[..100]);
    assert!(bundle(&bench, &bench.trials()[0].id).join("trial.json").is_file());
}

/// Trials whose driver has one thread although it would have more by default, with and without CPUs that idle while it
/// works.
#[test]
fn alone_too_few_threads_are_found_while_cpus_idle() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        skip("there is only one processor: too few driver threads");
        return;
    }
    let bench = Bench::new(
        "name = 'threads'\n[factors]\nserver = ['18']\nworkload = ['busy', 'nap']\nclients = [4]\n\
         threads = [1, 'auto']\n[workloads.busy]\nscripts = ['busy.sql']\n[workloads.nap]\nscripts = ['nap.sql']\n\
         [run]\nduration = '3s'\nwarmup = '500ms'\nrepeats = 2\n",
    );
    // Only the driver executes \set.
    let busy = "\\set x random_zipfian(1, 1000000, 1.5)\n".repeat(200) + "select 1;\n";
    fs::write(bench.path().join("busy.sql"), busy).unwrap();
    fs::write(bench.path().join("nap.sql"), "select pg_sleep(0.002);\n").unwrap();
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert!(run.status.success(), "{}", text(&run));
    for trial in bench.trials() {
        let cell = trial.cell.to_string();
        let has = |gate: &str| trial.validity.findings.iter().any(|finding| finding.gate == gate);
        let too_few = cell.contains("busy") && trial.cell.threads == Some(1);
        if too_few && has("foreign-cpu") {
            skip(format!("other processes use the CPUs: too few driver threads in {cell}"));
            continue;
        }
        assert_eq!(has("driver-threads"), too_few, "{cell}: {:?}", trial.validity.findings);
    }
}

/// Findings, trials and explanations name the processes that used the CPU, and only those.
#[test]
fn alone_busy_processes_are_named() {
    const NAME: &str = "planted-busy";
    let bench = Bench::new(
        "name = 'busy'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [2]\n\
         [run]\nduration = '3s'\nwarmup = '1s'\nrepeats = 1\n",
    );
    let program = bench.path().join(NAME);
    fs::copy("/bin/sh", &program).unwrap();
    let run_next_to = |processes: usize| {
        let mut burner = Command::new(&program);
        burner.args(["-c", "while :; do :; done"]);
        let burners: Vec<Child> = (0..processes).map(|_| burner.spawn().unwrap()).collect();
        let run = bench.pgdyno(&["run", "campaign.toml"]);
        for mut burner in burners {
            burner.kill().unwrap();
            burner.wait().unwrap();
        }
        assert!(run.status.success(), "{}", text(&run));
        let trial = bench.trials().pop().unwrap();
        let id = trial.id.as_str();
        let shown = [&["store", "show", id][..], &["show", id], &["explain", id], &["report"]]
            .map(|arguments| joined(&text(&bench.pgdyno(arguments))));
        (trial, shown)
    };
    let cpus = std::thread::available_parallelism().unwrap().get();
    let (trial, shown) = run_next_to(4 * cpus);
    let finding = trial.validity.findings.iter().find(|finding| finding.gate == "foreign-cpu").unwrap();
    // Others may be as busy.
    let planted = finding.processes.iter().find(|process| process.name.as_deref() == Some(NAME)).unwrap();
    assert!(planted.share > 0.1 && planted.share < 1.0, "{finding:?}");
    for shown in &shown {
        assert!(shown.contains("busiest: ") && shown.contains(&format!("{NAME} ")), "{shown}");
    }
    let (trial, shown) = run_next_to(0);
    assert!(!format!("{:?}", trial.validity).contains(NAME), "{:?}", trial.validity);
    assert!(shown.iter().all(|shown| !shown.contains(NAME)), "{shown:?}");
    let metrics = bench.store().load(&trial.id).unwrap().metrics;
    assert!(metrics.get("foreign.run_us", Some(NAME)).is_none());
}
