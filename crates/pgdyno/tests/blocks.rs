//! The workload `blocks`: it reads exactly the blocks that the server counts, and its updates do not deadlock.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;

use model::record::{Status, TrialRecord};
use support::{Bench, text};

/// Growth of metrics over all tables, from the first reading, before the load, to the last one, after it.
fn growth(record: &TrialRecord, metrics: &[&str]) -> f64 {
    let series = metrics.iter().flat_map(|metric| record.metrics.all(metric));
    series.map(|series| series.points.last().unwrap().value.unwrap() - series.points[0].value.unwrap()).sum()
}

#[test]
fn reads_are_those_that_the_server_counts() {
    let ask = "psql -XAt -c 'select sum(heap_blks_read + heap_blks_hit), sum(idx_blks_read + idx_blks_hit), \
               (select sum(relpages) from pg_class where relname like $$block__$$) from pg_statio_user_tables' >> asked";
    let bench = Bench::new(&format!(
        "name = 'blocks'\n[factors]\nserver = ['13', '18']\nsettings = ['quiet']\nworkload = ['two', 'mixed']\n\
         clients = [3]\ncache = ['as-is']\n[run]\nduration = '1s'\nwarmup = '300ms'\nrepeats = 1\nseed = 1\n\
         order = 'sequential'\n[settings.quiet]\nautovacuum = false\nshared_buffers = '4MB'\n\
         [hooks]\nbefore_trial = \"\"\"{ask}\"\"\"\nafter_trial = \"\"\"{ask}\"\"\"\n\
         [workloads.two]\nbuiltin = 'blocks'\nparameters = {{ size = '8MB', tables = 2, work_unit = 100 }}\n\
         [workloads.mixed]\nbuiltin = 'blocks'\nparameters = {{ size = '8MB', work_unit = 64, update_share = 30 }}\n"
    ));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let asked = fs::read_to_string(bench.path().join("asked")).unwrap();
    let asked: Vec<Vec<f64>> =
        asked.lines().map(|line| line.split('|').map(|number| number.parse().unwrap()).collect()).collect();
    let mut trials = bench.trials();
    trials.sort_by_key(|trial| trial.position);
    assert_eq!((trials.len(), asked.len()), (4, 8));
    for (trial, asked) in trials.iter().zip(asked.chunks(2)) {
        let context = format!("{}: {asked:?} {:?}", trial.cell, trial.validity);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        let record = bench.store().load(&trial.id).unwrap();
        let heap = growth(&record, &["pg.table.heap_blks_read", "pg.table.heap_blks_hit"]);
        let index = growth(&record, &["pg.table.index_blks_read", "pg.table.index_blks_hit"]);
        assert_eq!(heap, asked[1][0] - asked[0][0], "{context}");
        assert_eq!(index, asked[1][1] - asked[0][1], "{context}");
        assert!(heap > 0.0 && index > 0.0, "{context}");
        let is_mixed = trial.cell.workload.known().unwrap().name() == "mixed";
        // One row per block.
        assert_eq!(asked[0][2], if is_mixed { 1024.0 } else { 2048.0 }, "{context}");
        if !is_mixed {
            let transactions = trial.accounting.driver_transactions.unwrap() as f64;
            assert_eq!(
                heap,
                transactions * 100.0,
                "each call reads its work unit, and nothing else: {context}"
            );
            assert_eq!(growth(&record, &["pg.table.index_tuples_fetched"]), heap, "{context}");
        } else {
            assert!(growth(&record, &["pg.table.tuples_updated"]) > 0.0, "{context}");
        }
    }
    let figures = [
        "blocks.logical_reads",
        "blocks.physical_reads",
        "blocks.hit_ratio",
        "blocks.writes",
        "blocks.visited",
    ];
    let metrics: Vec<&str> = figures.iter().flat_map(|figure| ["--metric", figure]).collect();
    let compare = [&["compare", "server=13", "server=18", "--format", "csv"], metrics.as_slice()].concat();
    let compared = bench.pgdyno(&compare);
    let printed = text(&compared);
    for figure in figures {
        assert!(printed.contains(figure), "{figure}: {printed}");
    }
    assert!(!printed.contains("not measured"), "{printed}");
}

#[test]
fn concurrent_updates_wait_and_do_not_deadlock() {
    let bench = Bench::new(
        "name = 'deadlocks'\n[factors]\nserver = ['9.6', '18']\nworkload = ['tight']\nclients = [4]\n\
         [run]\nduration = '4s'\nwarmup = '100ms'\nrepeats = 1\nseed = 1\n\
         [workloads.tight]\nbuiltin = 'blocks'\n\
         parameters = { size = '512kB', work_unit = 16, update_share = 50, update_unit = 16 }\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    for trial in bench.trials() {
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:?}", trial.cell, trial.summary, trial.validity);
        assert_eq!(trial.summary.as_ref().unwrap().failed, Some(0), "{context}");
        assert_eq!(growth(&record, &["pg.database.deadlocks"]), 0.0, "{context}");
        assert!(growth(&record, &["pg.table.tuples_updated"]) > 0.0, "{context}");
        assert!(record.events.iter().all(|event| event.kind != "client-died"), "{context}");
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
    }
}
