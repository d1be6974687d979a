//! Messages in a server's log become events of the trial during which they were logged, and of no other.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use model::record::{Event, TrialRecord};
use model::workload::Workload;
use support::{Bench, text};

fn of_kind<'a>(record: &'a TrialRecord, kind: &str) -> Vec<&'a Event> {
    record.events.iter().filter(|event| event.kind == kind).collect()
}

#[test]
fn a_trials_checkpoints_are_its_events() {
    let bench = Bench::new(
        "name = 'events'\n[factors]\nserver = ['18']\nsettings = ['small', 'unreadable']\n\
         workload = ['select-only', 'tpcb-like']\nclients = [2]\n[run]\nduration = '1s'\nrepeats = 2\n\
         [servers.18]\nversion = '18'\ninitdb = ['--wal-segsize=1']\n\
         [settings.small]\nmax_wal_size = '2MB'\nmin_wal_size = '2MB'\nfsync = false\nautovacuum = false\n\
         [settings.unreadable]\nlog_line_prefix = 'mine '\nautovacuum = false\n",
    );
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let records: Vec<_> = bench.trials().iter().map(|trial| bench.store().load(&trial.id).unwrap()).collect();
    assert_eq!(records.len(), 2 * 2 * 2);
    for record in &records {
        let trial = &record.trial;
        let events = &record.events;
        assert!(events.is_sorted_by_key(|event| event.at), "{events:#?}");
        let during = trial.started.unwrap()..=trial.ended.unwrap();
        assert!(events.iter().all(|event| during.contains(&event.at)), "{}: {events:#?}", trial.cell);
        let started = of_kind(record, "checkpoint-started");
        if trial.cell.settings.known().unwrap().name == "unreadable" {
            assert!(started.is_empty(), "{events:#?}");
            assert!(of_kind(record, "note")[0].message.contains("log_line_prefix"), "{events:#?}");
            continue;
        }
        // Every trial begins with a checkpoint, even if the server was kept from the previous trial.
        let load = trial.load_started.unwrap();
        let asked: Vec<_> = started.iter().filter(|event| event.message.contains("force")).collect();
        assert_eq!(asked.len(), 1, "{}: {events:#?}", trial.cell);
        assert!(asked[0].at < load, "{events:#?}");
        let ended = of_kind(record, "checkpoint-ended");
        assert!(ended[0].figures.contains_key("total_us"), "{events:#?}");
        let writes = trial.cell.workload == Workload::TpcbLike;
        if writes {
            // A trial that writes starts its own server.
            assert_eq!(of_kind(record, "server-started").len(), 1, "{events:#?}");
        }
        // This many transactions write several times the WAL that triggers a checkpoint.
        if writes && trial.summary.as_ref().unwrap().transactions >= Some(1000) {
            let by_wal = |event: &&&Event| event.message.contains("wal") && event.at >= load;
            assert!(started.iter().filter(by_wal).count() > 0, "{}: {events:#?}", trial.cell);
        }
    }
}
