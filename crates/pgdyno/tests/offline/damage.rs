//! Stores with a damaged bundle: every command gives the result of the others, and names the bundle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use model::metrics::Kind;
use model::profile::{ProfileSummary, Scope, Stacks, Unwinding};
use model::record::{Event, Log, TrialRecord};
use model::waits::{SessionKind, StatementUse, Waits};
use serde_json::Value;

use crate::bundles::{Bundles, cell, record, with_metric, with_setting};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgdyno");

/// A trial with a file of nearly every kind.
fn rich(server: &str, tps: f64) -> TrialRecord {
    let record = with_setting(record(cell(server, 1), tps), "shared_buffers", "16384");
    let mut record = with_metric(record, "pg.wal.bytes", None, Kind::Counter, [Some(0.0), Some(tps * 1e4)]);
    record.trial.run.campaign_toml = "name = 'sweep' # as it was run\n".to_owned();
    record.trial.server_version = Some(format!("{server}.1"));
    record.environment.kernel = Some("Linux 6.1.0".to_owned());
    record.trial.profile = Some(ProfileSummary {
        event: Some("cycles".to_owned()),
        hz: 99,
        instructions_per_sample: None,
        callgraph: Unwinding::FramePointers,
        callgraph_reason: "it has frame pointers".to_owned(),
        scope: Scope::Machine,
        from_us: 0,
        to_us: 10_000_000,
        samples: 2,
        lost: 0,
        nameless: [].into(),
        perf_version: "6.1".to_owned(),
        perf_cpu_us: None,
        off_cpu: None,
    });
    record.stacks = vec![Stacks::from_folded("load", "postgres;main 2\n").unwrap()];
    record.waits = vec![Waits {
        at_us: 0,
        width_us: 1_000_000,
        samples: 20,
        session: SessionKind::Load,
        state: Some("active".to_owned()),
        event_type: None,
        event: None,
        seen: 20,
    }];
    record.statements = vec![StatementUse {
        query_id: 1,
        query: "SELECT 1".to_owned(),
        calls: 3,
        total_us: 1.0,
        rows: 3,
        shared_hit_blocks: 0,
        shared_read_blocks: 0,
        shared_dirtied_blocks: 0,
        wal_bytes: None,
    }];
    let at = record.trial.load_started.unwrap();
    record.events = vec![Event { at, kind: "note".to_owned(), message: "a".to_owned(), ..Event::default() }];
    record.logs = vec![Log { name: "server".to_owned(), text: "LOG:  ready\n".to_owned() }];
    record
}

/// Four trials of two servers each; the id of the first one.
fn store() -> (Bundles, String) {
    let mut bundles = Bundles::new();
    let mut ids = Vec::new();
    for server in ["17", "18"] {
        for tps in [1000.0, 1001.0, 999.0, 1000.5] {
            ids.push(bundles.write(rich(server, tps)));
        }
    }
    (bundles, ids.remove(0))
}

fn bundle(bundles: &Bundles, id: &str) -> PathBuf {
    bundles.store.root().join("trials").join(id)
}

/// Files of a bundle, with their directories.
fn files(bundle: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut directories = vec![bundle.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => files.push(path.strip_prefix(bundle).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    files.sort();
    files
}

fn run(bundles: &Bundles, command: &str) -> Output {
    let mut program = Command::new(PROGRAM);
    program.args(command.split(' ')).current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE");
    program.output().unwrap()
}

/// These are in the index, which follows them; the list of files is read with everything else.
const HEAD: [&str; 2] = ["campaign.toml", "trial.json"];
const CONTEXT: [&str; 3] = ["SHA256SUMS", "environment.json", "settings.json"];

/// Commands, and the files of a bundle that they need, by their beginnings; "" is every file.
const COMMANDS: [(&str, &[&[&str]]); 14] = [
    ("report", &[&HEAD, &CONTEXT, &["series.parquet", "stacks/"]]),
    ("report -o report.html", &[&[""]]),
    ("compare server=17 server=18", &[&HEAD, &CONTEXT]),
    ("compare server=17 server=18 --metric pg.wal.bytes", &[&[""]]),
    ("history tps --over version", &[&HEAD]),
    ("history pg.wal.bytes --over version", &[&[""]]),
    ("history tps --over kernel server=17", &[&HEAD, &["SHA256SUMS", "environment.json"]]),
    (
        "explain server=17",
        &[&HEAD, &CONTEXT, &["series.parquet", "metrics.parquet", "waits.parquet", "events.jsonl"]],
    ),
    ("profile server=17", &[&HEAD, &["SHA256SUMS", "environment.json", "series.parquet", "stacks/"]]),
    ("power server=17", &[&HEAD]),
    ("show server=17", &[&HEAD]),
    ("export -o tables", &[&[""]]),
    ("export --table cells -o cells.csv", &[&HEAD]),
    ("store list", &[&HEAD]),
];

#[test]
fn a_damaged_file_costs_one_trial_and_is_named() {
    let (bundles, id) = store();
    let bundle = bundle(&bundles, &id);
    let files = files(&bundle);
    assert!(files.len() >= 12, "{files:?}");
    let healthy: Vec<Output> = COMMANDS.iter().map(|(command, _)| run(&bundles, command)).collect();
    for file in &files {
        let path = bundle.join(file);
        let content = fs::read(&path).unwrap();
        fs::write(&path, &content[..content.len() / 2]).unwrap();
        for ((command, needed), healthy) in COMMANDS.iter().zip(&healthy) {
            let output = run(&bundles, command);
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), healthy.status.code(), "{command}, {file}: {stderr}");
            let is_needed = needed.iter().copied().flatten().any(|needed| file.starts_with(needed));
            let named = stderr.lines().filter(|line| line.contains(&format!("bundle {id}, ")));
            let named: Vec<&str> = named.collect();
            assert_eq!(named.len(), usize::from(is_needed), "{command}, {file}: {stderr}");
            for line in named {
                assert!(line.contains(&format!(", {file}: ")), "{command}: {line}");
                assert!(line.ends_with(
                    "restore the bundle from a copy, or remove its directory and repeat the trial"
                ));
            }
            if !is_needed && !command.contains(" -o ") {
                assert_eq!(output.stdout, healthy.stdout, "{command}, {file}");
            }
        }
        fs::write(&path, content).unwrap();
    }
}

#[test]
fn without_a_bundle_that_can_not_be_read_results_are_as_if_it_were_not_there() {
    let commands = [
        "report --format json",
        "compare server=17 server=18 --metric pg.wal.bytes --format json",
        "history pg.wal.bytes --over version --format json",
        "history tps --over kernel server=17 --format json",
        "explain server=17 --format json",
        "profile server=17 --format json",
        "power server=17 --format json",
        "show server=17 --format json",
    ];
    let (bundles, id) = store();
    let bundle = bundle(&bundles, &id);
    let document = |command: &str| -> Value {
        let output = run(&bundles, command);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command}: {output:?}"))
    };
    for command in commands {
        assert_eq!(document(command)["left_out"], Value::Array(Vec::new()), "{command}");
    }
    let away = bundles.directory.path().join("away");
    fs::rename(&bundle, &away).unwrap();
    let expected: Vec<Value> = commands.iter().map(|command| document(command)).collect();
    fs::rename(&away, &bundle).unwrap();
    for file in ["trial.json", "environment.json"] {
        let content = fs::read(bundle.join(file)).unwrap();
        fs::remove_file(bundle.join(file)).unwrap();
        for (command, expected) in commands.iter().zip(&expected) {
            if file == "environment.json" && (command.starts_with("power") || command.starts_with("show")) {
                continue;
            }
            let mut found = document(command);
            let left_out = found["left_out"].take();
            assert_eq!(left_out[0]["bundle"], id, "{command}");
            assert_eq!(
                (&left_out[0]["file"], &left_out[0]["reason"]),
                (&file.into(), &"it is missing".into())
            );
            found["left_out"] = Value::Array(Vec::new());
            assert_eq!(&found, expected, "{command} without {file}");
        }
        fs::write(bundle.join(file), content).unwrap();
    }
}

#[test]
fn exported_tables_are_all_of_the_same_trials() {
    let (bundles, id) = store();
    fs::write(bundle(&bundles, &id).join("metrics.parquet"), "nonsense").unwrap();
    let output = run(&bundles, "export -o tables --format json");
    assert!(output.status.success(), "{output:?}");
    let rows = |table: &str| -> Vec<Value> {
        let text =
            fs::read_to_string(bundles.directory.path().join(format!("tables/{table}.jsonl"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of =
        |table: &str| rows(table).iter().map(|row| row["trial"].to_string()).collect::<BTreeSet<_>>().len();
    assert_eq!((rows("trials").len(), of("series"), of("waits")), (7, 7, 7));
    let runs: Vec<u64> = rows("cells").iter().map(|row| row["trials"].as_u64().unwrap()).collect();
    assert_eq!(runs, [3, 4]);
    assert_eq!(rows("runs")[0]["trials"], 7);
}

#[test]
fn where_nothing_is_left_the_damage_is_the_error() {
    let (bundles, id) = store();
    fs::write(bundle(&bundles, &id).join("waits.parquet"), "nonsense").unwrap();
    let failed = |command: &str| {
        let output = run(&bundles, command);
        assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for command in [&format!("show {id}"), &format!("explain {id}"), &format!("explain --timeline {id}")] {
        assert!(failed(command).contains(&format!("error: bundle {id}, waits.parquet: ")), "{command}");
    }
    assert!(failed(&format!("export {id} -o x")).contains("waits.parquet"));
    for trial in fs::read_dir(bundles.store.root().join("trials")).unwrap() {
        let trial = trial.unwrap().path();
        if trial.is_dir() {
            fs::write(trial.join("campaign.toml"), "nonsense").unwrap();
        }
    }
    for (command, _) in COMMANDS.iter().filter(|(command, _)| !command.starts_with("store")) {
        let error = failed(command);
        assert!(
            error.contains("none of the 8 bundles of the store .pgdyno can be read"),
            "{command}: {error}"
        );
        assert!(error.contains(&format!("bundle {id}, campaign.toml: it was changed")), "{command}: {error}");
    }
}
