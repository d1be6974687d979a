//! Records are read back unchanged, and other programs can read them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod sample;

use std::fs;
use std::process::Command;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::cell::Level;
use model::factor::Factor;
use model::merit::{Merit, NamedFigure};
use model::message::{Phase, Slice};
use model::metrics::{Kind, Metrics, Series};
use model::paired::{MeasuredSlice, PairedTrial, Side};
use model::record::{Environment, Trial, TrialRecord};
use model::secret::MaskSecrets;
use model::topology::Topology;
use model::units::{Rate, Span};
use model::waits::{SessionKind, Waits};
use proptest::prelude::*;
use sample::{bare, imported, latencies, record, series, stored, update_checksums};
use store::{Check, Store, StoreError, new_id};

fn store() -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path()).unwrap();
    (root, store)
}

#[test]
fn a_trial_is_read_back_unchanged() {
    let (_root, store) = store();
    for record in [record(&new_id()), bare(&new_id()), imported(&new_id())] {
        let bundle = store.write(&record).unwrap();
        assert!(bundle.ends_with(format!("trials/{}", record.trial.id)));
        assert_eq!(store.load(&record.trial.id).unwrap(), stored(record));
    }
    assert_eq!(store.check().unwrap(), Check { bundles: 3, problems: Vec::new() });
    assert_eq!(store.trials().unwrap().len(), 3);
}

/// The throughput of a paired trial is that of its slices.
#[test]
fn the_slices_of_a_paired_trial_are_read_back_and_checked() {
    let (_root, store) = store();
    let load = Slice {
        start_us: 200_000,
        pause_us: 250_000,
        end_us: 251_000,
        transactions: 300,
        failed: 1,
        guarded: 20,
        client_us: 180_000,
        latency_us: 150_000,
        service_us: Some(140_000),
    };
    let slice = MeasuredSlice {
        load,
        server_cpu_us: Some(20_000),
        paused_cpu_us: None,
        server_instructions: Some(90_000_000),
    };
    let paired = PairedTrial { session: 7, side: Side::B, slices: vec![slice] };
    let mut record = record(&new_id());
    let clients = record.trial.cell.clients.known().copied().unwrap();
    record.trial.summary.as_mut().unwrap().tps = paired.tps(clients).unwrap();
    record.trial.paired = Some(paired);
    store.write(&record).unwrap();
    assert_eq!(store.load(&record.trial.id).unwrap(), stored(record.clone()));
    assert_eq!(store.check().unwrap().problems, Vec::new());

    let trial = Trial { id: new_id(), ..record.trial.clone() };
    let mut other = TrialRecord { trial, ..record };
    other.trial.summary.as_mut().unwrap().tps = 1.0;
    store.write(&other).unwrap();
    let problems = store.check().unwrap().problems;
    assert!(problems.len() == 1 && problems[0].reason.contains("by its slices"), "{problems:?}");
}

#[test]
fn files_without_content_are_not_written() {
    let (_root, store) = store();
    let names = |record: &TrialRecord| {
        let bundle = store.write(record).unwrap();
        let mut names: Vec<String> =
            fs::read_dir(bundle).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&bare(&new_id())), ["SHA256SUMS", "campaign.toml", "environment.json", "trial.json"]);
    assert_eq!(
        names(&record(&new_id())),
        [
            "SHA256SUMS",
            "campaign.toml",
            "environment.json",
            "events.jsonl",
            "latency.hlog",
            "logs",
            "metrics.parquet",
            "off-cpu",
            "series.parquet",
            "settings.json",
            "spans.parquet",
            "stacks",
            "statements.parquet",
            "trial.json",
            "waits.parquet"
        ]
    );
}

#[test]
fn unknown_values_of_an_imported_trial_are_null() {
    let (_root, store) = store();
    let bundle = store.write(&imported(&new_id())).unwrap();
    let text = fs::read_to_string(bundle.join("trial.json")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(trial["format"], 3);
    assert_eq!((&trial["cell"]["clients"], &trial["cell"]["workload"]), (&8.into(), &"insert.sql".into()));
    for (part, known) in [("cell", 2), ("summary", 2)] {
        let fields = trial[part].as_object().unwrap().iter();
        let fields = fields.filter(|(name, value)| *name != "unknown" && !value.is_null());
        assert_eq!(fields.count(), known, "{part}: {text}");
    }
    let unknown = trial["cell"]["unknown"].as_array().unwrap();
    // The two that are known, and two whose keys are left out, which has the same meaning.
    assert_eq!(unknown.len(), Factor::ALL.len() - 4);
    for key in ["topology", "extension"] {
        assert!(trial["cell"].get(key).is_none(), "{text}");
    }
    assert!(trial["started"].is_null() && trial["run"]["seed"].is_null(), "{text}");
}

/// Bundles of trials without a topology are what they were before that factor.
#[test]
fn the_topology_has_a_key_only_if_there_is_one() {
    let (_root, store) = store();
    for (topology, stored) in [(Topology::Single, None), (Topology::StandbySync, Some("standby-sync"))] {
        let mut record = record(&new_id());
        record.trial.cell.topology = Level::Known(topology);
        let bundle = store.write(&record).unwrap();
        let text = fs::read_to_string(bundle.join("trial.json")).unwrap();
        let trial: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(trial["cell"].get("topology").and_then(|level| level.as_str()), stored, "{text}");
        assert_eq!(store.load(&record.trial.id).unwrap().trial.cell.topology, topology);
    }
    // In an imported trial, a known level differs from an unknown one.
    let mut known = imported(&new_id());
    known.trial.cell.topology = Level::Known(Topology::Single);
    store.write(&known).unwrap();
    assert_eq!(store.load(&known.trial.id).unwrap().trial.cell.topology, Topology::Single);
    // Also if all of its levels are known.
    let mut measured = record(&new_id());
    measured.trial.imported = known.trial.imported.clone();
    store.write(&measured).unwrap();
    let unknown = imported(&new_id());
    store.write(&unknown).unwrap();
    assert_eq!(store.load(&unknown.trial.id).unwrap().trial.cell.topology, Level::Unknown);
}

/// A bundle has the server's name of a wait event, and is read with that of PostgreSQL 18.
#[test]
fn wait_events_of_older_servers_are_stored() {
    let (_root, store) = store();
    let mut record = record(&new_id());
    record.waits[1].event_type = Some("IO".to_owned());
    record.waits[1].event = Some("WALSync".to_owned());
    store.write(&record).unwrap();
    let read = store.load(&record.trial.id).unwrap();
    assert_eq!(read.waits[1].event.as_deref(), Some("WalSync"));
    assert_eq!(read.waits.len(), record.waits.len());
}

#[test]
fn bundles_from_before_virtual_machines_get_the_machines_levels() {
    let (_root, store) = store();
    let rewritten = |record: &TrialRecord| {
        let id = &record.trial.id;
        let bundle = store.write(record).unwrap();
        let path = bundle.join("trial.json");
        let mut trial: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let cell = trial["cell"].as_object_mut().unwrap();
        let new = ["acceleration", "kernel_args", "sysctl", "cpus", "storage"];
        for name in new {
            assert!(cell.remove(name).is_some(), "{name}");
        }
        if let Some(unknown) = cell.get_mut("unknown").and_then(|unknown| unknown.as_array_mut()) {
            unknown.retain(|name| !new.contains(&name.as_str().unwrap()));
        }
        fs::write(&path, trial.to_string()).unwrap();
        update_checksums(&bundle);
        let cell = store.load(id).unwrap().trial.cell;
        new.map(|name| name.parse::<Factor>().unwrap().level(&cell))
    };
    assert_eq!(rewritten(&record(&new_id())), ["none", "none", "default", "host", "host"]);
    assert_eq!(rewritten(&imported(&new_id())), ["unknown"; 5]);
}

#[test]
fn a_measured_trial_needs_a_level_of_every_factor() {
    let (_root, store) = store();
    let id = new_id();
    let bundle = store.write(&record(&id)).unwrap();
    let path = bundle.join("trial.json");
    let text = fs::read_to_string(&path).unwrap();
    for (what, edited) in [
        // The first one: load hosts have clients, too.
        ("the cell has no clients", text.replacen("\"clients\":", "\"others\":", 1)),
        ("only imported trials", text.replace("\"cell\": {", "\"cell\": { \"unknown\": [\"clients\"],")),
    ] {
        fs::write(&path, &edited).unwrap();
        update_checksums(&bundle);
        assert!(store.load(&id).unwrap_err().to_string().contains(what), "{edited}");
    }
}

#[test]
fn sha256sum_agrees() {
    let (_root, store) = store();
    let bundle = store.write(&record(&new_id())).unwrap();
    let check =
        Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(bundle).output();
    assert!(check.unwrap().status.success());
}

#[test]
fn hdrhistograms_own_reader_reads_the_log() {
    let (_root, store) = store();
    let record = record(&new_id());
    let bundle = store.write(&record).unwrap();
    let log = fs::read(bundle.join("latency.hlog")).unwrap();
    let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(&log).collect::<Result<_, _>>().unwrap();
    let tags: Vec<&str> = entries
        .iter()
        .filter_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval.tag().unwrap().as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(tags.len(), 20, "each with one of service times");
    assert_eq!(tags.iter().filter(|tag| **tag == "tpcb-like").count(), 3, "the window only");
    assert!(tags.contains(&"my%20script%2C%20v2%3A%2050%25:drain"), "{tags:?}");
    assert!(entries.iter().any(|entry| matches!(entry, LogEntry::BaseTime(_))));
    let slowest = entries.iter().filter_map(|entry| match entry {
        LogEntry::Interval(interval) => Some(interval.max()),
        _ => None,
    });
    assert_eq!(slowest.fold(0.0, f64::max).round(), 7000.0, "in ms");
}

/// Of transactions that were to start in another phase than the one in which they ended, or did not end.
#[test]
fn latencies_of_an_open_loop_count_where_they_were_to_start() {
    let (_root, store) = store();
    let mut open = record(&new_id());
    for interval in &mut open.intervals {
        interval.scripts.iter_mut().for_each(|script| script.unfinished = Some(0));
    }
    let first = &mut open.intervals[1].scripts[0];
    first.transactions += 1;
    first.latencies.push(latencies(Phase::Warmup, &[1_100_000]));
    let drain = &mut open.intervals[4].scripts[0];
    drain.latencies = vec![latencies(Phase::Measure, &[812, 4_000_000])];
    drain.unfinished = Some(1);
    let summary = open.trial.summary.as_mut().unwrap();
    summary.transactions = summary.transactions.map(|count| count + 1);
    summary.tps *= 8.0 / 7.0;
    open.trial.accounting.driver_transactions =
        open.trial.accounting.driver_transactions.map(|count| count + 1);
    let bundle = store.write(&open).unwrap();
    assert_eq!(store.load(&open.trial.id).unwrap(), stored(open));
    assert_eq!(store.check().unwrap(), Check { bundles: 1, problems: Vec::new() });
    let head = fs::read_to_string(bundle.join("trial.json")).unwrap();
    assert!(head.contains("\"format\": 4"), "releases without such tags refuse it");
    let log = fs::read_to_string(bundle.join("latency.hlog")).unwrap();
    assert!(log.contains("\nTag=tpcb-like,3.500001,0.001234,"), "the drain has transactions of the window");
}

#[test]
fn unknown_fields_are_ignored_and_unknown_formats_rejected() {
    let (_root, store) = store();
    let record = bare(&new_id());
    let bundle = store.write(&record).unwrap();
    let head = fs::read_to_string(bundle.join("trial.json")).unwrap();
    let replace_head = |text: &str| {
        fs::write(bundle.join("trial.json"), text).unwrap();
        update_checksums(&bundle);
    };

    replace_head(&head.replacen('{', "{\n  \"added_later\": [1],", 1));
    assert_eq!(store.load(&record.trial.id).unwrap(), record);

    replace_head(&head.replace("\"format\": 2", "\"format\": 5"));
    let error = store.load(&record.trial.id).unwrap_err().to_string();
    assert!(error.contains("bundle format 5") && error.contains("newer release"), "{error}");
    for format in [0, 1] {
        replace_head(&head.replace("\"format\": 2", &format!("\"format\": {format}")));
        let error = store.load(&record.trial.id).unwrap_err().to_string();
        assert!(
            error.contains(&format!("bundle format {format}")) && error.contains("no release reads it"),
            "{error}"
        );
    }
}

#[test]
fn a_bundle_with_a_minimal_environment_is_read() {
    let (_root, store) = store();
    let record = record(&new_id());
    let bundle = store.write(&record).unwrap();
    fs::write(bundle.join("environment.json"), r#"{"hostname": "old", "sysctl": {"vm.swappiness": "1"}}"#)
        .unwrap();
    let settings = r#"[{"name": "fsync", "value": "on", "unit": null, "source": "default"}]"#;
    fs::write(bundle.join("settings.json"), settings).unwrap();
    update_checksums(&bundle);
    let read = store.load(&record.trial.id).unwrap();
    let sysctl = [("vm.swappiness".to_owned(), "1".to_owned())].into();
    let hostname = Some("old".to_owned());
    assert_eq!(read.environment, Environment { hostname, sysctl, ..Environment::default() });
    assert_eq!((&read.settings[0].context, read.settings[0].pending_restart), (&None, None));
}

#[test]
fn a_bundle_without_statistics_is_read() {
    let (_root, store) = store();
    let record = record(&new_id());
    let bundle = store.write(&record).unwrap();
    let file = bundle.join("trial.json");
    let mut head: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(head["summary"].as_object_mut().unwrap().remove("statistics").is_some());
    fs::write(file, head.to_string()).unwrap();
    update_checksums(&bundle);
    let read = store.load(&record.trial.id).unwrap().trial.summary.unwrap();
    assert_eq!(read.statistics, None);
    assert_eq!(read.tps, record.trial.summary.unwrap().tps);
}

#[test]
fn a_record_that_could_not_be_read_back_is_rejected_before_anything_is_written() {
    let (root, store) = store();
    let mut records = vec![record("not-an-id"), record("../../escape")];
    for change in [
        (|r| r.trial.summary.as_mut().unwrap().tps = f64::NAN) as fn(&mut TrialRecord),
        |r| r.intervals[1].lag_max_us = Some(f64::NAN),
        |r| r.intervals[1].busy = Some(f64::INFINITY),
        |r| r.metrics.0[0].points[0].value = Some(f64::NAN),
        |r| r.metrics.0[0].points[0].value = Some(f64::INFINITY),
        |r| r.statements[0].total_us = f64::NAN,
        |r| r.waits[0].width_us = u64::MAX,
        |r| r.metrics.0[0].points[0].at_us = i64::MAX,
        |r| r.trial.database_bytes = Some((1 << 53) + 1),
        |r| r.statements.iter_mut().for_each(|statement| statement.calls = 1 << 53),
        |r| r.intervals[0].scripts[0].latencies[0].latency_ns = "no histogram".to_owned(),
        |r| r.logs[0].name = "../server".to_owned(),
        |r| r.logs[0].name = "driver".to_owned(),
    ] {
        let mut record = record(&new_id());
        change(&mut record);
        records.push(record);
    }
    for record in records {
        let error = store.write(&record).unwrap_err();
        assert!(matches!(&error, StoreError::NotWritten { .. }), "{error}");
    }
    assert!(!fs::read_dir(root.path().join("trials")).unwrap().any(|e| e.unwrap().path().is_dir()));
}

#[test]
fn a_metric_without_readings_is_not_stored() {
    let (_root, store) = store();
    let mut record = record(&new_id());
    record.metrics.0.insert(1, series("never.read", None, Kind::Gauge, &[]));
    store.write(&record).unwrap();
    record.metrics.0.remove(1);
    assert_eq!(store.load(&record.trial.id).unwrap(), stored(record));

    let mut nothing = bare(&new_id());
    nothing.metrics.0.push(series("never.read", None, Kind::Gauge, &[]));
    assert!(!store.write(&nothing).unwrap().join("metrics.parquet").exists());
}

#[test]
fn a_bundle_is_never_replaced() {
    let (_root, store) = store();
    let first = record(&new_id());
    store.write(&first).unwrap();
    assert!(matches!(store.write(&bare(&first.trial.id)), Err(StoreError::Exists { .. })));
    assert_eq!(store.load(&first.trial.id).unwrap(), stored(first));
}

/// Integers of a bundle are not larger, except for seeds and ids.
const MAX_INTEGER: i64 = 1 << 53;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_and_any_figure_is_read_back(
        texts in prop::collection::vec(any::<String>(), 8),
        figures in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL, 4),
        count in ..=MAX_INTEGER as u64,
        seed in any::<u64>(),
        nothing in any::<bool>(),
    ) {
        let (_root, store) = store();
        let mut record = record(&new_id());
        record.trial.run.campaign_toml = texts[0].clone();
        record.trial.server_banner = (!nothing).then(|| texts[1].clone());
        record.trial.database_bytes = Some(count);
        record.trial.run.seed = Some(seed);
        record.environment.hostname = Some(texts[2].clone());
        record.settings[0].value = texts[3].clone();
        record.events[0].message = texts[4].clone();
        record.logs[0].text = texts[5].clone();
        for interval in &mut record.intervals {
            interval.scripts[0].script = format!("a{}", texts[6]);
            interval.scripts[1].script = format!("b{}", texts[7]);
            interval.lag_mean_us = (!nothing).then_some(figures[0]);
            interval.busy = Some(figures[1]);
        }
        let summary = record.trial.summary.as_mut().unwrap();
        summary.tps = figures[2];
        summary.latency.as_mut().unwrap().mean_us = Some(figures[3]);
        store.write(&record).unwrap();
        record.mask_secrets();
        prop_assert_eq!(store.load(&record.trial.id).unwrap(), stored(record));
    }
}

/// Readings of a few metrics with a few labels, each at most once.
fn any_metrics() -> impl Strategy<Value = Metrics> {
    let value = prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL);
    let points = prop::collection::vec((-MAX_INTEGER..=MAX_INTEGER, value), 1..5);
    let subject = prop::option::of("|all|cpu0|.{0,3}");
    let one = ("cpu\\.user_us|memory|.{0,3}", subject, any::<bool>(), points);
    prop::collection::vec(one, 0..8).prop_map(|all| {
        let mut metrics: Vec<Series> = Vec::new();
        for (metric, of, gauge, points) in all {
            let kind = if gauge { Kind::Gauge } else { Kind::Counter };
            if metrics.iter().all(|series| series.metric != metric || series.label != of) {
                metrics.push(series(&metric, of.as_deref(), kind, &points));
            }
        }
        Metrics(metrics)
    })
}

fn any_waits() -> impl Strategy<Value = Vec<Waits>> {
    let name = || prop::option::of("active||.{0,3}");
    let one = (-MAX_INTEGER..=MAX_INTEGER, any::<u32>(), ".{0,3}|load|other", name(), name(), name());
    let waits = |(at_us, figure, session, state, event_type, event): (i64, u32, String, _, _, _)| Waits {
        at_us,
        width_us: figure.into(),
        samples: figure,
        session: SessionKind::from_name(&session),
        state,
        event_type,
        event,
        seen: u32::MAX - figure,
    };
    prop::collection::vec(one.prop_map(waits), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_reading_and_any_wait_is_read_back(
        metrics in any_metrics(),
        waits in any_waits(),
        query in any::<String>(),
        figure in any::<i64>(),
    ) {
        let (_root, store) = store();
        let mut record = record(&new_id());
        record.metrics = metrics;
        record.waits = waits;
        record.statements[0].query_id = figure;
        record.statements[0].calls = figure.unsigned_abs() >> 11;
        record.statements[1].query = query;
        store.write(&record).unwrap();
        prop_assert_eq!(store.load(&record.trial.id).unwrap(), stored(record));
    }
}

#[test]
fn a_custom_workload_is_stored_with_all_of_its_texts() {
    let text =
        |name: &str| model::workload::ScriptText { name: name.to_owned(), text: format!("-- {name} ü\n") };
    let other = std::sync::Arc::new(model::workload::Custom::new("scans", Vec::new()));
    let background = |workload, rate| model::workload::BackgroundWorkload {
        per_client: true,
        replica: true,
        workload,
        clients: 2,
        rate,
        start: Span::from_us(1_000),
    };
    let custom = model::workload::Custom {
        name: "queue".to_owned(),
        description: Some("jobs".to_owned()),
        scripts: vec![model::workload::WeightedScript {
            name: "a.sql".to_owned(),
            weight: 3,
            text: "select :x;\n".to_owned(),
        }],
        parameters: [("x".to_owned(), "1".to_owned())].into(),
        setup: vec![text("setup.sql")],
        teardown: vec![text("check.sql")],
        consistency: vec![text("sums.sql")],
        figures: [("figure.recall".to_owned(), text("recall.sql"))].into(),
        minimum_version: Some(model::version::Major::new(15)),
        pgbench_tables: false,
        star_tables: true,
        trace: None,
        dataset: Some(model::dataset::OwnDatabase {
            name: "shop".to_owned(),
            kind: model::dataset::DatabaseKind::Dump,
            database: None,
            content: Some("5e".repeat(32)),
            bytes: Some(7),
        }),
        writes: false,
        reconnect: true,
        raw_read: Some("rows".to_owned()),
        stagger: Span::from_us(2_500_000),
        iterations: Some(3),
        spans: true,
        figure: NamedFigure(Some(Merit::Blocks)),
        background: vec![
            background(model::workload::Workload::SelectOnly, Rate::MAX),
            background(model::workload::Workload::Custom(other.clone()), Rate::per_second(2.5).unwrap()),
        ],
        rows_per_transaction: Some(50),
        phases: vec![
            model::workload::Phase {
                name: "load".to_owned(),
                parameters: [("x".to_owned(), "2".to_owned())].into(),
                load: Some(model::workload::PhaseLoad {
                    workload: other,
                    clients: Some(2),
                    rate: Rate::per_second(7.5).unwrap(),
                    duration: Some(Span::from_us(3)),
                    warmup: None,
                }),
            },
            model::workload::Phase { name: "judged".to_owned(), parameters: [].into(), load: None },
        ],
    };
    let mut record = record(&new_id());
    record.trial.cell.workload = model::cell::Level::Known(model::workload::Workload::Custom(custom.into()));
    let (_root, store) = store();
    store.write(&record).unwrap();
    let read = store.load(&record.trial.id).unwrap().trial.cell;
    assert_eq!(read, record.trial.cell);
    // Cells are equal whatever their figure.
    let figure = read.workload.known().and_then(|workload| workload.custom()?.figure.0);
    assert_eq!(figure, Some(Merit::Blocks));
}

#[test]
fn the_measurements_of_a_phase_are_stored_as_those_of_a_trial() {
    use model::record::{PhaseOutcome, PhaseRecord};
    use model::workload::{Custom, Phase, PhaseLoad, Workload};

    let mut record = record(&new_id());
    let load = PhaseLoad {
        workload: Custom::new("l.i0", Vec::new()).into(),
        clients: None,
        rate: Rate::MAX,
        duration: None,
        warmup: None,
    };
    let phase = |name: &str, load| Phase { name: name.to_owned(), parameters: [].into(), load };
    let mut custom = Custom::new("ingest", Vec::new());
    custom.phases = vec![phase("l.i0", Some(load)), phase("reads", None)];
    record.trial.cell.workload = model::cell::Level::Known(Workload::Custom(custom.into()));
    record.trial.phases = vec![PhaseOutcome {
        name: "l.i0".to_owned(),
        load_started: record.trial.load_started,
        clocks: record.trial.clocks,
        database_bytes: Some(8192),
        validity: record.trial.validity.clone(),
        summary: record.trial.summary.clone(),
        accounting: record.trial.accounting,
    }];
    record.phases = vec![PhaseRecord {
        name: "l.i0".to_owned(),
        intervals: record.intervals.clone(),
        metrics: record.metrics.clone(),
        waits: record.waits.clone(),
        statements: record.statements.clone(),
    }];
    let (_root, store) = store();
    let bundle = store.write(&record).unwrap();
    assert!(bundle.join("phases/l.i0/latency.hlog").is_file());
    let read = store.load(&record.trial.id).unwrap();
    assert_eq!((&read.trial, &read.phases), (&record.trial, &record.phases));

    // A phase is a trial of its own for those who read it.
    let phase = read.of_phase("l.i0").unwrap();
    assert_eq!((&phase.intervals, &phase.metrics), (&record.intervals, &record.metrics));
    assert_eq!((phase.trial.database_bytes, phase.trial.phases.len()), (Some(8192), 0));
    assert_eq!(read.of_phase("reads").unwrap().intervals, record.intervals, "the judged phase is the trial");
    assert_eq!(read.of_phase("l.i9"), None);

    let parts = store.load_parts(&record.trial.id, &[store::Part::Series]).unwrap();
    assert!(parts.phases[0].metrics.0.is_empty() && !parts.phases[0].intervals.is_empty());
    assert_eq!(store.check().unwrap().problems, []);

    let mut damaged = record.clone();
    damaged.trial.id = new_id();
    damaged.phases[0].intervals[1].scripts[0].transactions += 1;
    store.write(&damaged).unwrap();
    let problems = store.check().unwrap().problems;
    assert_eq!(problems[0].file.as_deref(), Some("phases/l.i0/latency.hlog"), "{problems:?}");

    damaged.trial.id = new_id();
    damaged.trial.phases[0].name = "../l.i0".to_owned();
    damaged.phases[0].name = "../l.i0".to_owned();
    assert!(store.write(&damaged).unwrap_err().to_string().contains("no name of a phase"));
}

#[test]
fn what_became_of_the_statements_of_a_trace_is_kept() {
    use model::trace::{OverTime, PlanNode, PlayedStatement, Slice, Trace};
    use model::workload::{Custom, Workload};

    let mut record = record(&new_id());
    let mut custom = Custom::new("app", Vec::new());
    custom.trace = Some(Trace {
        file: "app.pgdt".to_owned(),
        sha256: "5".repeat(64),
        speed: "0.5x".parse().unwrap(),
        rate_scale: "3x".parse().unwrap(),
        closed: false,
        sessions: Some("user=web".to_owned()),
        streams: Some(4),
    });
    record.trial.cell.workload = model::cell::Level::Known(Workload::Custom(custom.into()));
    let scan = PlanNode {
        node: "Index Scan".to_owned(),
        relation: Some("t".to_owned()),
        index: Some("t_v".to_owned()),
        ..PlanNode::default()
    };
    let with_plan = PlayedStatement {
        fingerprint: "00ff00ff00ff00ff".to_owned(),
        text: "select v from t where v = $1".to_owned(),
        calls: 7,
        failures: [("57014".to_owned(), 2)].into(),
        different: 2,
        not_executed: 1,
        rows: 5,
        total_ns: 12_345,
        latency_ns: "HISTFAAA".to_owned(),
        over_time: Some(OverTime {
            slice_us: 26_400,
            slices: [(0, 4, 0), (99, 3, 2)]
                .map(|(number, calls, failures)| Slice { number, calls, failures, total_ns: 7 })
                .into(),
        }),
        waits: Some([("CPU".to_owned(), 7), ("IO:DataFileRead".to_owned(), 2)].into()),
        plan: Some(PlanNode {
            node: "Sort".to_owned(),
            keys: vec!["v".to_owned()],
            plans: vec![scan],
            ..PlanNode::default()
        }),
        without_plan: None,
        without_waits: None,
    };
    let without_plan = PlayedStatement {
        text: "commit".to_owned(),
        without_waits: Some("sessions were not sampled".to_owned()),
        without_plan: Some("not a statement with a plan".to_owned()),
        ..PlayedStatement::default()
    };
    record.played = vec![with_plan, without_plan];
    let (_root, store) = store();
    store.write(&record).unwrap();
    let read = store.load(&record.trial.id).unwrap();
    assert_eq!((&read.trial.cell, &read.played), (&record.trial.cell, &record.played));
    let parts = store.load_parts(&record.trial.id, &[store::Part::Played]).unwrap();
    assert_eq!((parts.played, parts.intervals), (record.played.clone(), Vec::new()));
    assert!(store.load_parts(&record.trial.id, &[store::Part::Series]).unwrap().played.is_empty());
    // Wait events of older servers have the names of later ones.
    record.trial.id = new_id();
    let waits = [("IPC:Hash/Batch/Electing".to_owned(), 3), ("IPC:HashBatchElect".to_owned(), 1)];
    record.played[0].waits = Some(waits.into());
    store.write(&record).unwrap();
    let read = store.load(&record.trial.id).unwrap();
    assert_eq!(read.played[0].waits, Some([("IPC:HashBatchElect".to_owned(), 4)].into()));
}
