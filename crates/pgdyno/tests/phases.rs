//! Phases of a workload on real servers: exact counts, rates that are held and those that are not, stalls, and failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::record::{BackgroundSummary, Status, Summary, Trial};
use support::{Bench, text};

/// A campaign with the files of its workloads.
fn bench(campaign: &str, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(campaign);
    for (name, text) in files {
        fs::write(bench.path().join(name), text).unwrap();
    }
    bench
}

/// The results of a phase.
fn summary(trial: &Trial, phase: &str) -> Summary {
    trial.of_phase(phase).unwrap().summary.unwrap_or_else(|| panic!("{phase}: {:?}", trial.validity))
}

fn background<'a>(summary: &'a Summary, workload: &str) -> &'a BackgroundSummary {
    summary.background.iter().find(|background| background.workload == workload).unwrap()
}

/// The findings of a gate in a trial.
fn evidence(trial: &Trial, gate: &str) -> Vec<String> {
    let findings = trial.validity.findings.iter().filter(|finding| finding.gate == gate);
    findings.map(|finding| finding.evidence.clone()).collect()
}

/// What `pgdyno show` prints of a trial.
fn shown(bench: &Bench, args: &[&str]) -> String {
    let output = bench.pgdyno(&[&["show"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

const PHASES: &str = "name = 'phases'\n[factors]\nserver = ['9.6', '18']\nsettings = ['quick']\nworkload = ['ingest']\nclients = [2]\n\
     duration = ['3s']\nwarmup = ['200ms']\n[run]\nrepeats = 1\nretries = 0\nseed = 1\n\
     [settings.quick]\nsynchronous_commit = false\n\
     [workloads.ingest]\nsetup = 'table.sql'\nteardown = 'count.sql'\ntables = 'none'\njudged = 'read'\n\
     parameters = { rows = 600, batch = 20 }\n\
     [[workloads.ingest.phases]]\nname = 'load'\nscript = 'insert.sql'\nrows = ':rows'\nrows_per_transaction = ':batch'\n\
     [[workloads.ingest.phases]]\nname = 'index'\nscript = 'index.sql'\nclients = 1\niterations = 1\n\
     [[workloads.ingest.phases]]\nname = 'read'\nscript = 'read.sql'\n\
     background = [{ script = 'insert.sql', name = 'held', rate = '600.0 / :batch', rows_per_transaction = ':batch', per_client = true }]\n\
     [[workloads.ingest.phases]]\nname = 'overload'\nscript = 'read.sql'\nclients = 1\nduration = '4s'\n\
     background = [{ script = 'slow.sql', rate = 10 }]\n";

const FILES: [(&str, &str); 6] = [
    ("table.sql", "create table sale (id bigserial primary key, n int);\n"),
    ("insert.sql", "insert into sale (n) select generate_series(1, :batch::int);\n"),
    ("index.sql", "create index sale_n on sale (n);\n"),
    ("read.sql", "select n from sale where id = 7;\n"),
    // Twice as many are due as one client can run.
    ("slow.sql", "select pg_sleep(0.2);\n"),
    ("count.sql", "do $$ begin raise warning 'sale has % rows', (select count(*) from sale); end $$;\n"),
];

/// The number of rows that the teardown counted.
fn counted(bench: &Bench, trial: &Trial) -> u64 {
    let record = bench.store().load(&trial.id).unwrap();
    let log = record.logs.iter().find(|log| log.name == "server").unwrap();
    let (_, rest) = log.text.split_once("sale has ").unwrap_or_else(|| panic!("{}", log.text));
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn each_phase_has_exact_counts_and_a_rate_that_is_not_held_is_reported() {
    let bench = bench(PHASES, &FILES);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let context = format!("{}: {:?}", trial.cell, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.cell.phase_names(), ["load", "index", "read", "overload"]);
        assert_eq!(
            trial.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
            ["load", "index", "overload"]
        );

        let load = summary(trial, "load");
        assert_eq!((load.transactions, load.failed), (Some(2 * 600 / 20), Some(0)), "{context}");
        assert_eq!(summary(trial, "index").transactions, Some(1));
        let read = summary(trial, "read");
        assert_eq!(Some(&read), trial.summary.as_ref(), "the judged phase is the trial");
        assert!(read.worst_second_tps.unwrap() <= read.tps && read.worst_second_tps.unwrap() > 0.0);

        // 600 rows per second and client are 60 transactions; a schedule of random arrivals has about as many.
        let held = background(&read, "held");
        assert_eq!(held.rate, Some(60.0));
        assert!(held.missed_share().unwrap() < 0.05, "{context} {held:?}");
        assert!((held.tps / 60.0 - 1.0).abs() < 0.4, "{held:?}");
        let overload = summary(trial, "overload");
        let slow = background(&overload, "slow");
        assert!(slow.tps < 6.0 && slow.missed_share().unwrap() > 0.25, "{slow:?}");
        let missed = evidence(trial, "background-rate");
        assert_eq!(missed.len(), 1, "{missed:?}");
        assert!(missed[0].starts_with("phase overload: SLA missed: slow ran "), "{missed:?}");

        // Of all phases, warm-ups included, as the driver's count and the server's agree on the commits.
        for name in trial.cell.phase_names() {
            let phase = trial.of_phase(name).unwrap();
            let surplus = phase.accounting.surplus();
            assert!(surplus >= Some(0), "{context} {name}: {surplus:?}");
        }
        let record = bench.store().load(&trial.id).unwrap();
        let inserted: u64 =
            record.intervals.iter().flat_map(|interval| &interval.background).map(|of| of.transactions).sum();
        assert_eq!(counted(&bench, trial), 2 * 600 + 20 * inserted, "{context}");
        let phase = record.of_phase("overload").unwrap();
        assert!(phase.intervals.len() >= 4 && !phase.metrics.0.is_empty() && !phase.waits.is_empty());
    }
    assert_eq!(bench.store().check().unwrap().problems, []);

    let page = shown(&bench, &[&trials[1].id]);
    let line = |name: &str| {
        page.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{page}"))
    };
    assert!(line("overload").ends_with("SLA missed") || line("overload").contains("SLA missed,"), "{page}");
    assert!(line("read").contains("judged"), "{page}");
    let one = shown(&bench, &[&trials[1].id, "--phase", "load", "--format", "json"]);
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["trial"]["transactions"], 60);
    let unknown = bench.pgdyno(&["show", &trials[1].id, "--phase", "lode"]);
    assert!(
        text(&unknown).contains("has no phase \"lode\"; it has load, index, read, overload"),
        "{}",
        text(&unknown)
    );
}

#[test]
fn alone_the_longest_stall_of_a_phase_is_that_of_a_lock() {
    let campaign = "name = 'stall'\n[factors]\nserver = ['13']\nworkload = ['stall']\nclients = [2]\n\
         duration = ['6s']\nwarmup = ['100ms']\n[run]\nrepeats = 1\nretries = 0\nseed = 1\n\
         [workloads.stall]\nsetup = 'table.sql'\ntables = 'none'\n\
         [[workloads.stall.phases]]\nname = 'locked'\nscript = 'read.sql'\n\
         background = [{ script = 'lock.sql', iterations = 1, start = '2s' }]\n\
         [[workloads.stall.phases]]\nname = 'free'\nscript = 'read.sql'\n";
    let lock = "begin;\nlock table sale;\nselect pg_sleep(2.5);\ncommit;\n";
    let bench = bench(campaign, &[FILES[0], FILES[3], ("lock.sql", lock)]);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trial = bench.trials().remove(0);
    let (locked, free) = (summary(&trial, "locked"), summary(&trial, "free"));
    let stall = locked.longest_stall_us.unwrap();
    assert!((2_250_000..=2_750_000).contains(&stall), "{stall}");
    assert_eq!(locked.worst_second_tps, Some(0.0));
    // Other programs may take the CPUs for a while.
    assert!(free.longest_stall_us.unwrap() < 1_000_000, "{free:?}");
    assert!(free.worst_second_tps.unwrap() > 0.0);
    // The clients waited for a lock in one phase only: 42% of its window, of which other programs may take a part.
    let lock = |phase: &str| {
        let explained = bench.pgdyno(&["explain", "--phase", phase, "--format", "json"]);
        let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
        let parts = explained["explained"][0]["parts"].as_array().unwrap();
        let of_lock =
            parts.iter().find(|part| part["place"] == "lock").and_then(|part| part["share"].as_f64());
        of_lock.unwrap_or_default()
    };
    let shares = ["locked", "free"].map(lock);
    assert!((0.15..0.5).contains(&shares[0]) && shares[1] < 0.05, "{shares:?}");
    let history =
        bench.pgdyno(&["history", "--over", "date", "phase.longest_stall{locked}", "--format", "json"]);
    assert!(text(&history).contains(&stall.to_string()), "{}", text(&history));
}

#[test]
fn a_phase_that_fails_is_the_last_one() {
    let campaign = PHASES.replace("['9.6', '18']", "['18']");
    let broken = ("index.sql", "create index sale_m on sale (m);\n");
    let files: Vec<(&str, &str)> =
        FILES.into_iter().filter(|(name, _)| *name != "index.sql").chain([broken]).collect();
    let bench = bench(&campaign, &files);
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("column \"m\" does not exist"), "{}", text(&output));
    let trial = bench.trials().remove(0);
    assert_eq!(trial.validity.status, Status::Invalid);
    assert_eq!(trial.phases.len(), 2, "those that ran");
    assert!(trial.summary.is_none());
    let failed = evidence(&trial, "load-failed");
    assert!(
        failed.iter().any(|evidence| evidence.contains("the phase \"index\" did not run to its end")),
        "{failed:?}"
    );
    let not_run = bench.pgdyno(&["show", &trial.id, "--phase", "read"]);
    assert!(text(&not_run).contains("the phase \"read\" of trial"), "{}", text(&not_run));
}

#[test]
fn what_can_not_be_combined_with_phases_is_refused_by_the_plan() {
    let plan = |from: &str, to: &str| {
        let bench = bench(&PHASES.replacen(from, to, 1), &FILES);
        let output = bench.pgdyno(&["plan", "campaign.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    let pairs = plan("repeats = 1\nretries = 0", "order = 'paired'");
    assert!(pairs.contains("the workload \"ingest\" has phases, which run one after the other"), "{pairs}");
    let kernel = plan("clients = [2]", "clients = [2]\nkernel = ['6.1']");
    assert!(kernel.contains("has phases, which do not run in a virtual machine"), "{kernel}");
    let hosts = plan("server = ['9.6', '18']", "server = ['theirs']");
    assert!(hosts.contains("theirs"), "{hosts}");
    let hosts = plan(
        "server = ['9.6', '18']\nsettings = ['quick']\nworkload = ['ingest']\nclients = [2]\nduration = ['3s']\nwarmup = ['200ms']\n[run]\n",
        "server = ['theirs']\nworkload = ['ingest']\nclients = [2]\n[servers.theirs]\ndsn = 'host=db.example'\n[run]\nload_hosts = 2\n",
    );
    assert!(hosts.contains("has phases, which run on this host only"), "{hosts}");
}

/// The bundled workload, with a teardown that counts its rows.
fn insert_benchmark(servers: &str) -> Bench {
    let campaign = format!(
        "name = 'ib'\n[factors]\nserver = {servers}\nworkload = ['ib']\nclients = [2]\nduration = ['1s']\n\
         warmup = ['100ms']\n[run]\nrepeats = 1\nretries = 0\nseed = 1\n[workloads.ib]\ndirectory = 'ib'\n\
         parameters = {{ rows = 4000, i1_rows = 1000, i2_rows = 200 }}\n"
    );
    let bench = bench(&campaign, &[]);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/insert-benchmark");
    let to = bench.path().join("ib");
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    let table = fs::read_to_string(to.join("workload.toml")).unwrap();
    fs::write(to.join("workload.toml"), format!("teardown = 'count.sql'\n{table}")).unwrap();
    fs::write(to.join("count.sql"), FILES[5].1).unwrap();
    bench
}

#[test]
fn the_insert_benchmark_inserts_and_deletes_exactly_what_it_says() {
    let bench = insert_benchmark("['9.6', '13', '18']");
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        let context = format!("{}: {:?}", trial.cell, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        let bounded: BTreeMap<&str, Summary> =
            ["l.i0", "l.x", "l.i1", "l.i2"].into_iter().map(|phase| (phase, summary(trial, phase))).collect();
        let counts: Vec<Option<u64>> = bounded.values().map(|summary| summary.transactions).collect();
        assert_eq!(
            counts,
            [Some(2 * 4000 / 50), Some(2 * 1000 / 50), Some(2 * 200 / 5), Some(1)],
            "{context}"
        );
        for (phase, batch, rows) in [("l.i1", 50, 1000), ("l.i2", 5, 200)] {
            assert_eq!(background(&bounded[phase], "deletes").transactions, 2 * rows / batch, "{context}");
        }
        // What is left of l.i0, and what the query phases added and deleted, also before and after their windows.
        let record = bench.store().load(&trial.id).unwrap();
        let mut expected = 2 * 4000_i64;
        for rate in [100, 500, 1000] {
            for kind in ["qr", "qp"] {
                let phase = record.of_phase(&format!("{kind}{rate}")).unwrap();
                let of = |workload: &str| -> i64 {
                    let scripts = phase.intervals.iter().flat_map(|interval| &interval.background);
                    let scripts = scripts.filter(|of| of.script.starts_with(&format!("{workload}/")));
                    scripts.map(|of| of.transactions as i64).sum()
                };
                assert!(of("inserts") > 0, "{context} {kind}{rate}");
                expected += 50 * (of("inserts") - of("deletes"));
                let summary = phase.trial.summary.unwrap();
                assert_eq!(background(&summary, "inserts").rate, Some(f64::from(2 * rate) / 50.0));
                assert!(summary.tps > 0.0 && summary.failed == Some(0), "{context}");
            }
        }
        assert_eq!(i64::try_from(counted(&bench, trial)).unwrap(), expected, "{context}");
        assert_eq!(trial.summary, Some(summary(trial, "qr100")));
    }
    assert_eq!(bench.store().check().unwrap().problems, []);
}
