//! Scans of one table, and raw reads of it from the disk.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;

use host::Cache;
use model::limits::{DiskLimit, Limits};
use model::record::Status;
use skip::skip;
use support::{Bench, signal, text, wait_until, wait_until_gone};

#[test]
fn a_cold_trial_has_the_throughput_of_a_raw_read_of_the_table() {
    let ask = "psql -XAt -c 'select pg_relation_size($$scanned$$)' >> asked";
    let bench = Bench::new(&format!(
        "name = 'raw'\n[factors]\nserver = ['9.6', '18']\nworkload = ['small']\nclients = [1]\n\
         cache = ['cold', 'as-is']\n[run]\nduration = '500ms'\nwarmup = '0s'\nrepeats = 1\norder = 'sequential'\n\
         [hooks]\nafter_trial = \"\"\"{ask}\"\"\"\n\
         [workloads.small]\nbuiltin = 'scans'\nparameters = {{ rows = 30000 }}\n"
    ));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let asked = fs::read_to_string(bench.path().join("asked")).unwrap();
    let bytes: Vec<u64> = asked.lines().map(|line| line.parse().unwrap()).collect();
    // A block holds 58 rows of a number and 100 letters.
    assert_eq!(bytes, [8192 * 30_000_u64.div_ceil(58); 4]);
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:?}", trial.cell, trial.raw_read, record.events);
        assert_eq!(trial.accounting.surplus(), Some(0), "{context}");
        let note = record.events.iter().find(|event| event.message.contains("no raw read"));
        match &trial.raw_read {
            Some(read) => {
                assert_eq!(trial.cell.cache, model::factor::cache::CacheState::Cold, "{context}");
                assert_eq!((read.relation.as_str(), read.bytes), ("scanned", bytes[0]), "{context}");
                assert!(read.elapsed_us > 0, "{context}");
            }
            // If the cache is on tmpfs, for example.
            None if trial.cell.cache == model::factor::cache::CacheState::Cold => {
                assert!(note.is_some(), "{context}")
            }
            None => assert!(note.is_none(), "{context}"),
        }
    }
}

#[test]
fn raw_reads_respect_limits_and_interrupts() {
    let disk = DiskLimit { name: "slow".to_owned(), read_bytes_s: Some(4 << 20), ..DiskLimit::none() };
    let limits = Limits { disk, ..Limits::none() };
    if let Err(why) = server::check_limits(&Cache::open().unwrap(), &limits) {
        return skip(why);
    }
    let bench = Bench::new(
        "name = 'slow'\n[factors]\nserver = ['18']\nworkload = ['scans']\nclients = [1]\ncache = ['cold']\n\
         disk = ['slow']\n[disks.slow]\nread = '4MB/s'\n[run]\nduration = '1s'\nwarmup = '0s'\nrepeats = 1\n",
    );
    let running = bench.start();
    let mut process_tree = Vec::new();
    wait_until("the table is read", || {
        process_tree = running.process_tree();
        process_tree.iter().any(|process| process.command.contains("read-files"))
    });
    let reader = running.process("read-files").pid;
    let groups = |pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let of_server = groups(running.process("bin/postgres ").pid);
    assert!(of_server.contains("pgdyno-c-"), "{of_server}");
    assert_eq!(groups(reader), of_server);
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    wait_until_gone(&process_tree);
    assert!(bench.trials().iter().all(|trial| trial.raw_read.is_none()));
}

#[test]
fn scans_begin_one_after_the_other_and_the_window_ends_with_the_last() {
    let bench = Bench::new(
        "name = 'staggered'\n[factors]\nserver = ['9.6', '18']\nworkload = ['small']\nclients = [1, 3]\n\
         cache = ['cold']\n[run]\nrepeats = 1\nseed = 1\n\
         [workloads.small]\nbuiltin = 'scans'\nparameters = { rows = 50000 }\nstagger = '200ms'\niterations = 2\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:?}", trial.cell, record.spans, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(record.spans.len(), 2 * trial.cell.clients.into_known().unwrap() as usize, "{context}");
        assert!(record.spans.is_sorted_by_key(|span| span.start_us), "{context}");
        assert!(record.spans.iter().all(|span| span.script == "scan.sql" && !span.failed), "{context}");
        for client in 0..trial.cell.clients.into_known().unwrap() {
            let spans: Vec<_> = record.spans.iter().filter(|span| span.client == client).collect();
            let [first, second] = spans.as_slice() else {
                panic!("client {client} has two scans: {context}")
            };
            // Not before its staggered start, but perhaps later on a busy machine.
            assert!(first.start_us >= u64::from(client) * 200_000, "{context}");
            assert!(first.start_us < first.end_us && first.end_us <= second.start_us, "{context}");
            assert!(second.start_us < second.end_us, "{context}");
        }
        let last = record.spans.iter().map(|span| span.end_us).max().unwrap();
        let window = trial.summary.as_ref().unwrap().window_us.unwrap();
        // Within the delay until the end is detected.
        assert!(window >= last && window < last + 1_000_000, "{window}: {context}");
        assert_eq!(trial.accounting.surplus(), Some(0), "{context}");
    }
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));

    let report = bench.pgdyno(&["report", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for point in 0..2 {
        let spans =
            |row: usize| report["panels"][0]["rows"][row]["points"][point]["runs"][0]["spans"].clone();
        let (lone, three) = (spans(0), spans(1));
        assert_eq!((lone["count"].as_u64(), three["count"].as_u64()), (Some(2), Some(6)), "{report}");
        assert!(lone["mean_us"].as_f64() > Some(0.0), "{lone}");
        assert_eq!(three["lone_us"], lone["mean_us"], "{three}");
        assert!(three["read_bytes"].as_f64().is_some(), "{three}");
    }
    let shown = bench.pgdyno(&["store", "show", &trials[0].id]);
    let shown = text(&shown);
    assert!(shown.contains("Transactions one by one\n  client 0 │"), "{shown}");
}
