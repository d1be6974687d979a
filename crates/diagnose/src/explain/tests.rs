use std::collections::BTreeMap;

use model::message::{Interval, Phase, Slice};
use model::metrics::{Kind, Metrics, Point, Series};
use model::paired::{MeasuredSlice, PairedTrial, Side};
use model::plan::Plan;
use model::record::{BackgroundSummary, Event, Latency, Run, Setting, Summary, Trial};
use model::spec::Campaign;
use model::waits::{SessionKind, Waits};

use super::*;

const SECOND: i64 = 1_000_000;

fn latency(mean_us: f64) -> Latency {
    Latency {
        mean_us: Some(mean_us),
        stddev_us: Some(0.0),
        min_us: Some(mean_us),
        p50_us: Some(mean_us),
        p90_us: Some(mean_us),
        p95_us: Some(mean_us),
        p99_us: Some(mean_us),
        p999_us: Some(mean_us),
        max_us: Some(mean_us),
    }
}

fn counter(metric: &str, of: &str, in_window: f64) -> Series {
    let point = |at_us, value| Point { at_us, value: Some(value) };
    Series {
        metric: metric.to_owned(),
        label: Some(of.to_owned()).filter(|of| !of.is_empty()),
        kind: Kind::Counter,
        points: vec![point(0, 7.0), point(10 * SECOND, 7.0 + in_window)],
    }
}

fn seen(state: &str, event: Option<(&str, &str)>, seen: u32) -> Waits {
    Waits {
        at_us: 0,
        width_us: 10 * SECOND as u64,
        samples: 200,
        session: SessionKind::Load,
        state: Some(state.to_owned()),
        event_type: event.map(|(kind, _)| kind.to_owned()),
        event: event.map(|(_, event)| event.to_owned()),
        seen,
    }
}

/// Ten seconds of two clients that run 10,000 transactions of 2 ms: 20 s of clients' time. In 400 samples, a
/// session was idle in 100, active in 200, and waited in 100.
fn record(waits_for: (&str, &str)) -> TrialRecord {
    let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['tpcb-like']\nclients = [2]\n";
    let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
    let trial = Trial {
        started: Some("2026-11-22T10:00:00Z".parse().unwrap()),
        load_started: Some("2026-11-22T10:00:00Z".parse().unwrap()),
        ended: Some("2026-11-22T10:00:10Z".parse().unwrap()),
        summary: Some(Summary {
            worst_second_tps: None,
            longest_stall_us: None,
            instructions_per_transaction: None,
            window_us: Some(10 * SECOND as u64),
            transactions: Some(10_000),
            failed: Some(0),
            tps: 1000.0,
            latency: Some(latency(2000.0)),
            service: None,
            background: Vec::new(),
            connect_us: Some(0),
            driver_cpu_us: Some(SECOND as u64),
            driver_busy_max: Some(0.1),
            driver_lag_max_us: Some(0.0),
            driver_engine: None,
            driver_engine_reason: None,
            statistics: None,
        }),
        ..Trial::new(String::new(), Run::default(), plan.cells[0].clone())
    };
    let interval = Interval {
        start_us: 0,
        width_us: 10 * SECOND as u64,
        phase: Phase::Measure,
        scripts: Vec::new(),
        background: Vec::new(),
        spans: Vec::new(),
        busy: Some(0.1),
        lag_max_us: Some(0.0),
        lag_mean_us: None,
        responses: None,
        send_lag_max_us: None,
    };
    TrialRecord {
        intervals: vec![interval],
        metrics: Metrics(vec![
            counter("role.run_us", "load", 6e6),
            counter("role.wait_us", "load", 2e6),
            counter("role.run_us", "driver", 1e6),
            counter("role.wait_us", "driver", 0.0),
        ]),
        waits: vec![
            seen("active", None, 200),
            seen("active", Some(waits_for), 100),
            seen("idle", Some(("Client", "ClientRead")), 100),
        ],
        ..TrialRecord::new(trial)
    }
}

fn parts(explanation: &Explanation) -> BTreeMap<String, f64> {
    explanation.budget.parts.iter().map(|part| (part.name(), part.us.round())).collect()
}

#[test]
fn parts_are_counted_or_sampled_and_the_rest_is_unexplained() {
    let explanation = explain(&record(("LWLock", "BufferContent"))).unwrap();
    let expected = [
        // 6 s and 2 s in 10,000 transactions.
        ("server on CPU", 600.0),
        ("server waits for a CPU", 200.0),
        // A quarter of the samples at clients' 2 ms.
        ("LWLock BufferContent", 500.0),
        ("driver CPU", 100.0),
        ("network and wake-up", 400.0),
        // Active in half of the samples: 1 ms, of which the kernel accounts for 0.8.
        ("unexplained", 200.0),
    ];
    assert_eq!(parts(&explanation), expected.map(|(name, us)| (name.to_owned(), us)).into());
    let sum: f64 = explanation.budget.parts.iter().map(|part| part.us).sum();
    assert!((sum - 2000.0).abs() < 1e-6);
    assert_eq!(explanation.confidence(), Confidence::Medium, "a tenth of the latency is unexplained");
}

#[test]
fn behind_a_pooler_the_time_in_its_queue_is_known_and_idle_server_connections_are_nobodys() {
    let mut record = record(("LWLock", "BufferContent"));
    record.metrics = Metrics(vec![
        counter("role.run_us", "load", 4e6),
        counter("role.wait_us", "load", 1e6),
        counter("role.run_us", "driver", 1e6),
        counter("role.wait_us", "driver", 0.0),
        counter("role.run_us", "pgbouncer", 5e5),
        counter("pgbouncer.wait_us", "", 8e6),
    ]);
    record.waits = vec![
        seen("active", None, 120),
        seen("active", Some(("LWLock", "BufferContent")), 60),
        seen("idle", Some(("Client", "ClientRead")), 500),
    ];
    let explanation = explain(&record).unwrap();
    let expected = [
        ("waiting for a server connection", 800.0),
        ("server on CPU", 400.0),
        ("LWLock BufferContent", 300.0),
        // 2 ms less what is known.
        ("network and wake-up", 150.0),
        ("server waits for a CPU", 100.0),
        ("driver CPU", 100.0),
        ("pooler CPU", 50.0),
        ("unexplained", 100.0),
    ];
    assert_eq!(parts(&explanation), expected.map(|(name, us)| (name.to_owned(), us)).into());
    let cause = explanation.causes.iter().find(|cause| cause.name == "pooler-queue").unwrap();
    assert!((cause.share - 0.4).abs() < 1e-9, "{cause:?}");
}

#[test]
fn replay_that_works_or_waits_for_most_of_the_window_is_named() {
    for (activity, us, expected) in [
        ("busy", 9e6, Some(("replay-saturated", 0.9))),
        ("busy", 8e6, None),
        ("conflict", 2e6, Some(("replay-conflicts", 0.2))),
        ("conflict", 5e5, None),
        ("idle", 9e6, None),
        ("delay", 9e6, None),
    ] {
        let mut record = record(("LWLock", "BufferContent"));
        record.metrics.0.push(counter("replica.replay_us", activity, us));
        let causes = explain(&record).unwrap().causes;
        let found = causes.iter().find(|cause| cause.name.starts_with("replay-"));
        assert_eq!(found.map(|cause| (cause.name, cause.share)), expected, "{activity}");
    }
}

/// Sessions are not sampled in a pause, so that samples are of the time in slices.
#[test]
fn the_pauses_of_a_paired_trial_are_no_time_of_its_transactions() {
    let record = record(("LWLock", "BufferContent"));
    let mut paired = record.clone();
    paired.intervals[0].width_us = 20 * SECOND as u64;
    paired.metrics.0.iter_mut().for_each(|series| series.points.last_mut().unwrap().at_us = 20 * SECOND);
    let load = Slice {
        start_us: 0,
        pause_us: 8 * SECOND as u64,
        end_us: 8 * SECOND as u64,
        transactions: 7_000,
        failed: 0,
        guarded: 1_000,
        client_us: 16 * SECOND as u64,
        latency_us: 16 * SECOND as u64,
        service_us: None,
    };
    // 2,000 of the 10,000 were in the warm-up.
    let slices =
        vec![MeasuredSlice { load, server_cpu_us: None, paused_cpu_us: None, server_instructions: None }];
    paired.trial.paired = Some(PairedTrial { session: 1, side: Side::A, slices });
    assert_eq!(parts(&explain(&paired).unwrap()), parts(&explain(&record).unwrap()));
}

#[test]
fn work_in_idle_sessions_is_counted() {
    let mut record = record(("LWLock", "BufferContent"));
    record.metrics.0[0] = counter("role.run_us", "load", 9e6);
    let explanation = explain(&record).unwrap();
    let parts = parts(&explanation);
    assert_eq!(parts["server on CPU"], 900.0);
    // 0.5 ms of waiting for the client, of which 0.09 ms was work during which sessions did not count as active; the
    // rest of the 0.1 ms was waiting for a CPU after waiting for the lock.
    assert_eq!(parts["LWLock BufferContent"], 491.0);
    assert_eq!(parts["network and wake-up"] + parts["driver CPU"], 409.0);
    assert_eq!(parts["unexplained"], 0.0);
}

#[test]
fn work_in_system_calls_of_io_is_counted_once() {
    let mut record = record(("IO", "DataFileRead"));
    record.metrics.0[0] = counter("role.run_us", "load", 10e6);
    let parts = parts(&explain(&record).unwrap());
    // Of 1.2 ms of work, 1 ms was sampled as such; the rest is divided between I/O and waiting for the client.
    // A sixth of it was waiting for a CPU, and is none of either.
    assert_eq!((parts["I/O DataFileRead"], parts["server on CPU"]), (483.0, 917.0));
    assert_eq!(
        (parts["network and wake-up"] + parts["driver CPU"], parts["server waits for a CPU"]),
        (400.0, 200.0)
    );
    assert_eq!(parts["unexplained"], 0.0);
}

/// Sessions that have been woken up still show what they waited for.
#[test]
fn waiting_for_a_cpu_after_a_wait_is_counted_once() {
    let mut record = record(("Lock", "transactionid"));
    record.metrics.0[1] = counter("role.wait_us", "load", 8e6);
    let parts = parts(&explain(&record).unwrap());
    assert_eq!(parts["server waits for a CPU"], 800.0);
    // Of the 1.4 ms of work, 0.4 ms was not seen as such: four sevenths of it were waiting for a CPU, half of that in
    // sessions that waited for the lock.
    assert_eq!(parts["lock transactionid"], 386.0);
    assert_eq!(parts["unexplained"], 0.0);
}

#[test]
fn reads_of_io_workers_are_attributed_to_waiting_sessions() {
    let mut record = record(("IO", "DataFileRead"));
    let background = BackgroundSummary {
        rate: None,
        missed: None,
        workload: "scans".to_owned(),
        transactions: 10_000,
        failed: 0,
        tps: 1000.0,
        latency: None,
    };
    record.trial.summary.as_mut().unwrap().background.push(background);
    record.metrics.0.push(counter("role.read_bytes", "load", 1e6));
    record.metrics.0.push(counter("role.read_bytes", "io worker", 9e6));
    // The driver's second served twice as many transactions.
    assert_eq!(parts(&explain(&record).unwrap())["driver CPU"], 50.0);
    let cause = |record: &TrialRecord| {
        explain(record).unwrap().causes.into_iter().find(|cause| cause.name == "beside")
    };
    assert_eq!(cause(&record), None, "no background session waited for the workers");
    let waits =
        Waits { session: SessionKind::Background, ..seen("active", Some(("IO", "AioIoCompletion")), 150) };
    record.waits.push(waits);
    let cause = cause(&record).unwrap();
    // A quarter of the latency is waiting for reads, nine tenths of which are by the background workload.
    assert!((cause.share - 0.225).abs() < 1e-9 && cause.of == Measure::Latency, "{cause:?}");
    assert!(cause.sentence.contains("(scans): 90% of the reads from disk"), "{cause:?}");
}

#[test]
fn commit_delay_is_part_of_the_wal_flush() {
    let mut record = record(("LWLock", "WALWrite"));
    record.settings = vec![Setting {
        name: "commit_delay".to_owned(),
        value: "1000".to_owned(),
        unit: None,
        source: "configuration file".to_owned(),
        context: None,
        pending_restart: None,
    }];
    assert!((explain(&record).unwrap().causes[0].share - 0.35).abs() < 1e-9);
}

#[test]
fn locks_held_by_others_are_distinguished_from_the_loads_own() {
    let mut record = record(("Lock", "transactionid"));
    let names = |record: &TrialRecord| {
        explain(record).unwrap().causes.iter().map(|cause| cause.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&record), ["row-locks"]);
    // Half a session waited on average: 5 session-seconds, all of them for this lock holder.
    let figures = [("sessions_blocked", 1.0), ("looks", 5.0), ("is_load", 0.0)];
    record.events = vec![Event {
        kind: "lock-holder".to_owned(),
        at: record.trial.load_started.unwrap(),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Event::default()
    }];
    assert_eq!(names(&record), ["idle-transaction"]);
    record.events[0].figures.insert("is_load".to_owned(), 1.0);
    assert_eq!(names(&record), ["row-locks"]);
}

#[test]
fn a_cells_budget_is_the_mean_and_a_difference_names_the_component() {
    let budget = |latency_us: f64, flushes: u32| {
        let mut record = record(("IO", "WalSync"));
        record.trial.summary.as_mut().unwrap().latency = Some(latency(latency_us));
        record.waits[1].seen = flushes;
        explain(&record).unwrap().budget
    };
    let (before, after) = (budget(2000.0, 100), budget(2500.0, 200));
    let whole = "a transaction takes 0.500 ms longer (2.000 → 2.500 ms, +25.0%)";
    let part = "0.500 ms of it (100%) is WAL flush (WalSync)";
    let one = Difference::new(std::slice::from_ref(&before), std::slice::from_ref(&after)).unwrap();
    assert_eq!(
        one.verdict(),
        format!("{whole}; {part}; with one trial on a side, how much trials differ is unknown")
    );
    assert_eq!(one.changes[0].margin_us, None);

    // Trials that are alike, and trials that are not.
    let alike = Difference::new(&[before.clone(), before.clone()], &[after.clone(), after.clone()]).unwrap();
    assert_eq!(alike.verdict(), format!("{whole}, ± 0.000 ms between trials; {part}"));
    let spread = [budget(1000.0, 100), budget(3000.0, 100)];
    let unlike = Difference::new(&spread, &[after.clone(), after.clone()]).unwrap();
    assert!(
        unlike.verdict().starts_with(&format!("not decided: {whole}, but trials differ by as much (± 12.7")),
        "{}",
        unlike.verdict()
    );
    // A part that does not vary is known all the same.
    assert_eq!((unlike.changes[0].increase_us(), unlike.changes[0].margin_us), (500.0, Some(0.0)));
    assert!(Difference::new(&[], std::slice::from_ref(&after)).is_none());

    let mean = Budget::mean(&[before, after]).unwrap();
    assert!((mean.latency_us - 2250.0).abs() < 1e-9);
    assert!((mean.us(Component::WalFlush) - 750.0).abs() < 1e-9);
}

#[test]
fn every_metric_used_is_collected() {
    let sources = [
        include_str!("../cpu.rs"),
        include_str!("budget.rs"),
        include_str!("causes/driver.rs"),
        include_str!("causes/maintenance.rs"),
        include_str!("causes/memory.rs"),
        include_str!("causes/processors.rs"),
        include_str!("causes/reads.rs"),
        include_str!("causes/waits.rs"),
        include_str!("../gates/collectors.rs"),
        include_str!("../gates/driver.rs"),
        include_str!("../gates/machine.rs"),
        include_str!("../gates/server.rs"),
    ];
    let mut names: Vec<&str> = Vec::new();
    for source in sources {
        let code = source.split("#[cfg(test)]").next().unwrap();
        let is_metric = |text: &&str| {
            let kinds = ["pg.", "role.", "cpu.", "psi.", "vm.", "memory.", "collector.", "cgroup."];
            kinds.iter().any(|kind| text.starts_with(kind)) && !text.contains([' ', '{'])
        };
        names.extend(code.split('"').skip(1).step_by(2).filter(is_metric));
    }
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(model::metrics::find(name).is_some(), "{name}");
    }
}

#[test]
fn a_trial_without_data_is_rejected_with_the_reason() {
    let mut record = record(("IO", "WalSync"));
    record.metrics = Metrics::default();
    record.waits = Vec::new();
    assert!(explain(&record).unwrap_err().to_string().contains("[collect]"));
    record.trial.summary = None;
    assert_eq!(explain(&record).unwrap_err().to_string(), "no load ran in this trial");
}

fn named(record: &TrialRecord) -> Vec<&'static str> {
    explain(record).unwrap().causes.iter().map(|cause| cause.name).collect()
}

fn cause(record: &TrialRecord, name: &str) -> Option<Cause> {
    explain(record).unwrap().causes.into_iter().find(|cause| cause.name == name)
}

/// Ten seconds of two CPUs, with these seconds of each kind of time, and of processes that are neither the server's nor pgdyno's.
fn processors(record: &mut TrialRecord, busy_s: f64, steal_s: f64, foreign_s: f64) {
    let us = |seconds: f64| seconds * 1e6;
    record.metrics.0.extend([
        counter("cpu.user_us", "all", us(busy_s)),
        counter("cpu.steal_us", "all", us(steal_s)),
        counter("cpu.idle_us", "all", us(20.0 - busy_s - steal_s)),
        counter("role.run_us", "foreign", us(foreign_s)),
    ]);
}

#[test]
fn kinds_of_waits_are_causes_of_their_own() {
    for (event, expected) in [
        (("Lock", "transactionid"), "row-locks"),
        (("Lock", "tuple"), "row-locks"),
        (("Lock", "spectoken"), "row-locks"),
        (("Lock", "relation"), "table-locks"),
        (("Lock", "advisory"), "advisory-locks"),
        (("Lock", "extend"), "file-extension"),
        (("Lock", "virtualxid"), "other-locks"),
        (("IO", "WalSync"), "wal-flush"),
        (("LWLock", "WALWrite"), "wal-flush"),
        (("LWLock", "WALInsert"), "internal-locks"),
        (("IPC", "ProcarrayGroupUpdate"), "internal-locks"),
        (("IO", "DataFileRead"), "disk-reads"),
        (("IPC", "BufferIo"), "disk-reads"),
        (("IO", "AioIoCompletion"), "disk-reads"),
        (("IO", "DataFileWrite"), "data-writes"),
        (("IO", "DataFileExtend"), "file-extension"),
        (("IO", "BuffileWrite"), "temporary-files"),
        (("IPC", "SyncRep"), "sync-replication"),
        (("IPC", "ExecuteGather"), "parallel-workers"),
        (("IPC", "HashBuildHashInner"), "parallel-workers"),
        (("IPC", "CheckpointDone"), "checkpoint-waits"),
        (("Timeout", "PgSleep"), "sleep"),
        (("BufferPin", "BufferPin"), "other-waits"),
        (("IO", "WalInitWrite"), "other-waits"),
    ] {
        let record = record(event);
        assert_eq!(named(&record), [expected], "{event:?}");
        assert!((cause(&record, expected).unwrap().share - 0.25).abs() < 1e-9, "{event:?}");
    }
}

#[test]
fn a_small_wait_is_no_cause_and_two_kinds_are_not_added_up() {
    let mut record = record(("Lock", "relation"));
    record.waits[1].seen = 50;
    record.waits.push(seen("active", Some(("Lock", "advisory")), 50));
    assert_eq!(named(&record), Vec::<&str>::new());
}

#[test]
fn reads_count_as_the_disks_if_their_bytes_came_from_one() {
    let mut record = record(("IO", "DataFileRead"));
    // 10,000 blocks, 81.92 MB.
    record.metrics.0.push(counter("pg.database.blks_read", "", 10_000.0));
    assert_eq!(named(&record), ["disk-reads"]);
    let unknown = cause(&record, "disk-reads").unwrap();
    assert_eq!(unknown.confidence, Confidence::Low, "{unknown:?}");

    let with_bytes = |role, bytes| {
        let mut record = record.clone();
        record
            .metrics
            .0
            .extend([counter("role.read_bytes", "load", 0.0), counter("role.read_bytes", role, bytes)]);
        record
    };
    let from_disk = with_bytes("io worker", 40.96e6);
    assert_eq!(named(&from_disk), ["disk-reads"]);
    let evidence = cause(&from_disk, "disk-reads").unwrap().evidence;
    assert!(
        evidence.contains(&"50% of these bytes came from a disk, the rest from the page cache".to_owned()),
        "{evidence:?}"
    );
    let cached = with_bytes("io worker", 1e6);
    assert_eq!(named(&cached), ["cached-reads"]);
    assert!(cause(&cached, "cached-reads").unwrap().sentence.contains("page cache: 25% of latency"));
}

#[test]
fn autovacuum_is_reported_with_the_tables_that_it_processed() {
    let mut record = record(("Timeout", "VacuumDelay"));
    record.waits[1].seen = 0;
    let worker = Waits {
        session: SessionKind::Server("autovacuum worker".to_owned()),
        state: None,
        ..seen("", None, 100)
    };
    record.waits.push(worker);
    let sentence = |record: &TrialRecord| cause(record, "autovacuum").unwrap().sentence;
    assert!(sentence(&record).ends_with("for 50% of the window, on tables that are not known"));
    let ended = |table: &str, after_s: u32| Event {
        kind: "autovacuum".to_owned(),
        at: format!("2026-11-22T10:00:{after_s:02}Z").parse().unwrap(),
        object: Some(table.to_owned()),
        figures: BTreeMap::from([("elapsed_us".to_owned(), 1e6)]),
        ..Event::default()
    };
    let mut of_catalog = record.clone();
    of_catalog.events = vec![
        ended("pgdyno.pg_catalog.pg_statistic", 5),
        ended("template1.pg_catalog.pg_class", 6),
        // After the window.
        ended("pgdyno.public.pgbench_accounts", 20),
    ];
    let other = "for 50% of the window, on tables other than the tested ones: pg_catalog.pg_statistic, template1.pg_catalog.pg_class";
    assert!(sentence(&of_catalog).ends_with(other), "{}", sentence(&of_catalog));
    // It began in the window, and ended after it.
    let mut tested = of_catalog.clone();
    tested.events[2] = Event {
        figures: BTreeMap::from([("elapsed_us".to_owned(), 15e6)]),
        ..ended("pgdyno.public.pgbench_accounts", 20)
    };
    assert!(sentence(&tested).ends_with("on tested tables: pgbench_accounts"), "{}", sentence(&tested));
    // It still runs.
    let mut running = record.clone();
    let progress =
        Series { kind: Kind::Gauge, ..counter("pg.progress.vacuum.heap_blks_total", "pgbench_tellers", 1.0) };
    running.metrics.0.push(progress);
    assert!(sentence(&running).ends_with("on tested tables: pgbench_tellers"), "{}", sentence(&running));
}

#[test]
fn other_processes_are_a_cause_only_if_somebody_waits_for_a_cpu() {
    let mut idle = record(("LWLock", "BufferContent"));
    processors(&mut idle, 17.0, 0.0, 8.0);
    // They use 40%, and the load's sessions wait for 200 of 2000 us.
    assert_eq!(cause(&idle, "foreign-cpu"), None, "{:?}", explain(&idle));

    let mut waits = idle.clone();
    waits.metrics.0[1] = counter("role.wait_us", "load", 10e6);
    let found = cause(&waits, "foreign-cpu").unwrap();
    // 1000 of 2000 us; of the 17 s on CPUs, a session has 6 s / 1.75 itself, and others 8 s of the rest.
    assert!((found.share - 0.5 * 8.0 / (17.0 - 6.0 / 1.75)).abs() < 0.02, "{found:?}");
    assert!(found.evidence.iter().all(|evidence| !evidence.contains("busiest")), "{found:?}");
    // Of 20 s.
    let mut named = waits.clone();
    named.metrics.0.push(counter("foreign.run_us", "cc1", 6e6));
    let evidence = cause(&named, "foreign-cpu").unwrap().evidence;
    assert!(evidence.contains(&"busiest: cc1 30%, others 10% of the CPU".to_owned()), "{evidence:?}");
    // In a paired trial they are the other side.
    let mut paired = waits.clone();
    paired.trial.paired = Some(PairedTrial { session: 1, side: Side::A, slices: Vec::new() });
    assert_eq!(cause(&paired, "foreign-cpu"), None);
    // Without them, the same wait is the server's own.
    let mut own = waits.clone();
    own.metrics.0.retain(|series| series.label.as_deref() != Some("foreign"));
    own.metrics.0.push(counter("role.run_us", "foreign", 0.1e6));
    assert_eq!(cause(&own, "foreign-cpu"), None);
}

#[test]
fn a_starved_driver_is_not_the_limit_and_a_busy_one_is() {
    let with_driver = |run_s: f64, wait_s: f64, foreign_s: f64| {
        let mut record = record(("LWLock", "BufferContent"));
        // Sessions wait for their client most of the time.
        record.waits[0].seen = 80;
        record.waits[1].seen = 0;
        record.waits[2].seen = 320;
        record.metrics.0[0] = counter("role.run_us", "load", 3e6);
        record.metrics.0[1] = counter("role.wait_us", "load", 0.5e6);
        record.metrics.0[2] = counter("role.run_us", "driver", run_s * 1e6);
        record.metrics.0[3] = counter("role.wait_us", "driver", wait_s * 1e6);
        record.metrics.0.extend([
            counter("role.busiest_run_us", "driver", run_s * 1e6),
            counter("role.busiest_wait_us", "driver", wait_s * 1e6),
        ]);
        processors(&mut record, run_s + foreign_s + 3.0, 0.0, foreign_s);
        record
    };
    assert_eq!(named(&with_driver(2.0, 7.5, 8.0)), ["foreign-cpu"]);
    let mut busy = with_driver(9.5, 0.2, 0.2);
    // Each response waits while the thread handles others.
    busy.intervals[0].responses = Some(10_000);
    busy.intervals[0].lag_mean_us = Some(1500.0);
    assert_eq!(named(&busy), ["driver"]);
    // Responses that arrive while the thread works have no wake-up.
    assert_eq!(named(&with_driver(9.5, 0.2, 0.2)), ["driver"]);
    // One of two clients whose thread is hardly busy: the rest is the network.
    assert_eq!(named(&with_driver(2.0, 0.1, 0.2)), ["round-trips"]);
}

#[test]
fn in_an_open_loop_missing_sessions_are_unexplained_and_no_network() {
    let mut record = record(("LWLock", "BufferContent"));
    record.trial.cell.clients = model::cell::Level::Known(2);
    // 5000 transactions of 2 ms: clients have none for half of their time.
    let summary = record.trial.summary.as_mut().unwrap();
    summary.service = Some(latency(2000.0));
    summary.transactions = Some(5000);
    record.waits[0].seen = 100;
    record.waits[1].seen = 50;
    record.waits[2].seen = 250;
    record.metrics.0[0] = counter("role.run_us", "load", 4e6);
    record.metrics.0[1] = counter("role.wait_us", "load", 1e6);
    let complete = parts(&explain(&record).unwrap());
    assert_eq!((complete["LWLock BufferContent"], complete["unexplained"]), (500.0, 0.0));
    assert_eq!(complete["network and wake-up"] + complete["driver CPU"], 500.0);
    // Half of the sessions were not seen.
    for waits in &mut record.waits {
        waits.seen /= 2;
    }
    record.metrics.0[0] = counter("role.run_us", "load", 2e6);
    record.metrics.0[1] = counter("role.wait_us", "load", 0.5e6);
    let half = parts(&explain(&record).unwrap());
    assert_eq!(half["unexplained"], 1250.0, "{half:?}");
    assert!(!half.contains_key("network and wake-up"), "{half:?}");
}

#[test]
fn few_transactions_in_the_samples_of_an_open_loop_lower_the_confidence() {
    let mut record = record(("LWLock", "BufferContent"));
    let budget = explain(&record).unwrap().budget;
    assert_eq!(budget.effective_samples, 200.0);
    let summary = record.trial.summary.as_mut().unwrap();
    summary.service = Some(latency(2000.0));
    summary.transactions = Some(500);
    // 500 transactions of 2 ms in 10 s.
    assert!((explain(&record).unwrap().budget.effective_samples - 20.0).abs() < 1e-9);
}

#[test]
fn waiting_for_a_free_client_is_of_the_rate_with_busy_clients_and_of_stalls_with_idle_ones() {
    let mut record = record(("LWLock", "BufferContent"));
    record.trial.cell.clients = model::cell::Level::Known(2);
    record.trial.summary.as_mut().unwrap().latency = Some(latency(6000.0));
    let mut named = |transactions, service_us, stall_us| {
        let summary = record.trial.summary.as_mut().unwrap();
        summary.service = Some(latency(service_us));
        summary.transactions = Some(transactions);
        summary.longest_stall_us = stall_us;
        let causes = explain(&record).unwrap().causes;
        let causes = causes.into_iter().filter(|cause| matches!(cause.name, "free-clients" | "stalls"));
        causes.map(|cause| (cause.name, cause.evidence)).collect::<Vec<_>>()
    };
    // Clients' time is 20 s.
    let (wait, stall) =
        ("waiting for a free client: 4.000 ms per transaction", "no transaction ended for up to 312.000 ms");
    let evidence = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    let busy = evidence(&[wait, "the clients had transactions for 50% of their time"]);
    assert_eq!(named(5_000, 2000.0, None), [("free-clients", busy)]);
    let idle = evidence(&[wait, "the clients had transactions for 10% of their time", stall]);
    assert_eq!(named(1_000, 2000.0, Some(312_000)), [("stalls", idle)]);
    // Less than half of the latency.
    assert_eq!(named(1_000, 4000.0, None), []);
}

#[test]
fn causes_are_ordered_and_worded_by_confidence() {
    let mut record = record(("IO", "DataFileRead"));
    record.waits[0].seen = 100;
    record.waits[1].seen = 150;
    record.waits.push(seen("active", Some(("Lock", "relation")), 70));
    record.metrics.0[0] = counter("role.run_us", "load", 4e6);
    record.metrics.0[1] = counter("role.wait_us", "load", 1e6);
    record.waits.iter_mut().for_each(|waits| waits.samples = 400);
    record.waits.iter_mut().for_each(|waits| waits.seen *= 2);
    // Whether the reads are the disk's is unknown.
    let explanation = explain(&record).unwrap();
    let order: Vec<_> = explanation.causes.iter().map(|cause| (cause.name, cause.confidence)).collect();
    assert_eq!(order, [("table-locks", Confidence::High), ("disk-reads", Confidence::Low)]);
    assert!(explanation.causes[1].share > explanation.causes[0].share);
    assert_eq!(explanation.verdict(), explanation.causes[0].sentence);
    record.waits.pop();
    assert!(explain(&record).unwrap().verdict().starts_with("possibly: transactions wait for reads"));
}

#[test]
fn limits_of_the_machine_are_causes() {
    let mut stolen = record(("LWLock", "BufferContent"));
    processors(&mut stolen, 10.0, 3.0, 0.0);
    assert!((cause(&stolen, "cpu-steal").unwrap().share - 0.15).abs() < 1e-9);
    let mut quiet = record(("LWLock", "BufferContent"));
    processors(&mut quiet, 10.0, 0.5, 0.0);
    assert_eq!(cause(&quiet, "cpu-steal"), None);

    let group = "/sys/fs/cgroup/server";
    let throttled = |wait_s: f64, periods: f64| {
        let mut record = record(("LWLock", "BufferContent"));
        record.metrics.0[1] = counter("role.wait_us", "load", wait_s * 1e6);
        record.metrics.0.extend([
            counter("cgroup.periods", group, 100.0),
            counter("cgroup.throttled_periods", group, periods),
            counter("cgroup.throttled_us", group, 4e6),
        ]);
        cause(&record, "cpu-throttling")
    };
    let found = throttled(6.0, 80.0).unwrap();
    assert!((found.share - 0.3).abs() < 1e-9, "{found:?}");
    assert!(found.evidence[0].contains("/sys/fs/cgroup/server was stopped in 80%"), "{found:?}");
    assert_eq!(throttled(6.0, 1.0), None);
    assert_eq!(throttled(0.1, 80.0), None);

    let mut short = record(("LWLock", "BufferContent"));
    short.metrics.0.extend([counter("psi.memory_some_us", "", 3e6), counter("vm.allocstall", "", 40.0)]);
    let found = cause(&short, "memory-pressure").unwrap();
    assert!(
        (found.share - 0.3).abs() < 1e-9
            && found.evidence == ["allocations that had to free memory first: 40"]
    );

    let mut swapping = record(("LWLock", "BufferContent"));
    swapping.metrics.0[0] = counter("role.run_us", "load", 2e6);
    assert_eq!(cause(&swapping, "swap"), None, "unexplained, without swapping");
    swapping.metrics.0.push(counter("vm.pswpin", "", 5000.0));
    let found = cause(&swapping, "swap").unwrap();
    // Active for 1000 us, of which the kernel accounts for 400.
    assert!((found.share - 0.3).abs() < 1e-9, "{found:?}");
}

#[test]
fn parallel_workers_are_reported_with_their_own_share() {
    let mut record = record(("IPC", "ExecuteGather"));
    let worker = |event, count| Waits {
        session: SessionKind::Server("parallel worker".to_owned()),
        state: None,
        ..seen("", event, count)
    };
    record.waits.extend([worker(None, 300), worker(Some(("IO", "DataFileRead")), 100)]);
    record.metrics.0.extend([
        counter("role.run_us", "parallel worker", 14e6),
        counter("role.wait_us", "parallel worker", 1e6),
        counter("pg.database.parallel_workers_to_launch", "", 20_000.0),
        counter("pg.database.parallel_workers_launched", "", 15_000.0),
    ]);
    let evidence = cause(&record, "parallel-workers").unwrap().evidence;
    assert_eq!(
        evidence[1..],
        [
            "2.00 workers were running on average; they waited for 25% of their time",
            "workers on a CPU: 1.400 ms per transaction, waiting for one: 0.100 ms",
            "25% of the planned workers could not be launched",
        ]
    );
}
