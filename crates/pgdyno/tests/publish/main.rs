//! Content of real servers, the oldest and the newest, after `pgdyno publish`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../../analysis/tests/fixture/bundles.rs"]
mod bundles;
mod grafana;
#[path = "../../../analysis/tests/fixture/phases.rs"]
mod phases;

use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bundles::{Bundles, cell, record, ten_minutes, with_validity};
use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::record::{Status, TrialRecord};
use model::workload::Transport;
use report::export_tables::Table;
use server::Server;
use wire::blocking::Session;

const MAJORS: [&str; 2] = ["9.6", "18"];
const SCHEMA: &str = "pgdyno";

/// A server to publish to, and a store to publish.
struct Fixture {
    server: Server,
    bundles: Bundles,
}

impl Fixture {
    fn new(major: &str) -> Self {
        let cache = Cache::open().unwrap();
        let installation = server::install_newest(&cache, major, &NoProgress).unwrap();
        let settings: BTreeMap<String, String> = [("fsync".to_owned(), "off".to_owned())].into();
        let cluster = server::Cluster::empty(&cache, &installation, &[]).unwrap();
        let server = cluster.with_rules("local all all trust\n").start(&settings).unwrap();
        let mut bundles = Bundles::new();
        bundles.write(full());
        bundles.runs(&cell("17", 8), &[500.5, 510.25]);
        bundles.write(with_validity(record(cell("17", 8), 9e9), Status::Invalid, "x'\\"));
        Self { server, bundles }
    }

    fn address(&self) -> (String, u16) {
        let Endpoint::Unix { directory, port } = self.server.endpoint(Transport::Unix) else {
            panic!("not a socket")
        };
        (directory, port)
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_as(server::USER, args)
    }

    fn command_as(&self, user: &str, args: &[&str]) -> Command {
        let (host, port) = self.address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.args(["publish", &format!("host={host} port={port} user={user} dbname=postgres")]).args(args);
        command.current_dir(self.bundles.directory.path()).env_remove("PGDYNO_STORE");
        command
    }

    fn publish(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }

    fn client(&self) -> Session {
        self.server.session("postgres").unwrap()
    }

    /// Number of rows by table.
    fn counts(&self) -> BTreeMap<&'static str, i64> {
        let mut client = self.client();
        let mut count = |table: &str| -> i64 {
            client.query_one(&format!("SELECT count(*) FROM {SCHEMA}.{table}")).unwrap()
        };
        Table::ALL.iter().map(|table| (table.name(), count(table.name()))).collect()
    }

    /// Number of rows that the store has, by table.
    fn expected(&self) -> BTreeMap<&'static str, i64> {
        let trials = self.bundles.store.trials().unwrap();
        let heads: Vec<_> = trials.iter().collect();
        let rows = |table: Table| {
            let mut rows = 0;
            let mut add = |_: &[report::export_tables::Value<'_>]| -> Result<(), ()> {
                rows += 1;
                Ok(())
            };
            table.rows_of_runs(&heads, &mut add).unwrap();
            for trial in &trials {
                table.rows_of_trial(&self.bundles.store.load(&trial.id).unwrap(), &mut add).unwrap();
            }
            rows
        };
        Table::ALL.iter().map(|table| (table.name(), rows(*table))).collect()
    }
}

/// A trial with texts that COPY has to escape.
fn full() -> TrialRecord {
    let mut full = ten_minutes();
    full.trial.run.notes = Some("it's a\ttab, a \\N and\nlines".to_owned());
    full.events[0].message = "a\\b\tc\nd 'e' \"f\" ä".to_owned();
    full.metrics.0[0].points[7].value = None;
    full
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn trials_published_repeatedly_are_stored_once() {
    for major in MAJORS {
        let mut fixture = Fixture::new(major);
        let dry_run = fixture.publish(&["--dry-run"]);
        assert!(dry_run.contains("4 of 4 trials would be copied"), "{dry_run}");
        assert!(dry_run.contains("which would be created") && dry_run.contains("sweep"), "{dry_run}");
        let schemas: i64 = fixture
            .client()
            .query_one(&format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{SCHEMA}'"))
            .unwrap();
        assert_eq!(schemas, 0, "a dry run makes nothing");

        fixture.publish(&["server=17"]);
        assert_eq!(fixture.counts()["trials"], 3);
        assert!(fixture.publish(&[]).ends_with("1 trial published, 3 already present\n"));
        let counts = fixture.counts();
        assert_eq!(counts, fixture.expected(), "{major}");
        assert!(fixture.publish(&[]).ends_with("0 trials published, 4 already present\n"));
        assert_eq!(fixture.counts(), counts);

        fixture.bundles.write(phases::with_phases(record(phases::ingest(cell("17", 8)), 700.0), 100.0));
        fixture.publish(&[]);
        let more = fixture.counts();
        assert_eq!((more["trials"], more["cells"], more["phases"]), (5, 3, 3));
        assert_eq!(more, fixture.expected(), "{major}");
        assert!(fixture.publish(&["--dry-run"]).starts_with("0 of 5 trials would be copied"));
    }
}

#[test]
fn figures_are_those_of_the_bundles() {
    for major in MAJORS {
        let fixture = Fixture::new(major);
        fixture.publish(&[]);
        let mut client = fixture.client();
        // Before PostgreSQL 12, numbers are rounded to 15 digits by default.
        client.execute("SET extra_float_digits = 3").unwrap();
        for trial in fixture.bundles.store.trials().unwrap() {
            let record = fixture.bundles.store.load(&trial.id).unwrap();
            type Row = (f64, Option<f64>, i64, String, i64, String);
            let (tps, p99_us, clients, validity, load_started, findings): Row = client
                .query_one(&format!(
                    "SELECT tps, latency_p99_us, clients, validity, \
                            (extract(epoch from load_started) * 1e6)::bigint, findings \
                     FROM pgdyno.trials WHERE trial = '{}'",
                    trial.id
                ))
                .unwrap();
            let summary = trial.summary.as_ref().unwrap();
            assert_eq!(tps, summary.tps);
            assert_eq!(p99_us, summary.latency.as_ref().unwrap().p99_us);
            assert_eq!(clients, i64::from(trial.cell.clients.into_known().unwrap()));
            assert_eq!(validity, trial.validity.status.as_str());
            assert_eq!(load_started, trial.load_started.unwrap().as_microsecond());
            assert_eq!(findings.contains(r"x'\\"), trial.validity.status == Status::Invalid);
            let readings =
                format!("SELECT value FROM pgdyno.series WHERE trial = '{}' ORDER BY at_us", trial.id);
            let read: Vec<Option<f64>> = client.query(&readings).unwrap();
            let stored: Vec<Option<f64>> =
                record.metrics.0.iter().flat_map(|series| &series.points).map(|point| point.value).collect();
            assert_eq!(read, stored);
        }
        let message: String = client.query_one("SELECT message FROM pgdyno.events").unwrap();
        assert_eq!(message, full().events[0].message);
        let notes: Vec<Option<String>> = client.query("SELECT notes FROM pgdyno.runs").unwrap();
        assert_eq!(notes.len(), 1);
        let (n, invalid, median): (i64, i64, f64) =
            client.query_one("SELECT n, invalid, tps_median FROM pgdyno.cells WHERE clients = 8").unwrap();
        assert_eq!((n, invalid), (2, 1));
        assert!((median - 505.375).abs() < 1e-9);
    }
}

/// Grafana requires a time, a metric and a value.
#[test]
fn views_have_time_metric_and_value() {
    for major in MAJORS {
        let fixture = Fixture::new(major);
        fixture.publish(&[]);
        let mut client = fixture.client();
        for view in ["grafana_tps", "grafana_latency", "grafana_series", "grafana_waits"] {
            let types: Vec<String> = client
                .query_one(&format!("SELECT pg_typeof(\"time\")::text, pg_typeof(metric)::text, pg_typeof(value)::text FROM {SCHEMA}.{view} LIMIT 1"))
                .unwrap();
            assert_eq!(types, ["timestamp with time zone", "text", "double precision"], "{view}");
        }
        let tps: f64 = client
            .query_one(
                "SELECT max(value) FROM pgdyno.grafana_tps WHERE metric = '18 select-only clients 4 #1'",
            )
            .unwrap();
        assert_eq!(tps, 2000.0);
        // WAL grew by 3 MB each second; a missing reading makes the seconds before and after it unknown.
        let (min, max, count): (f64, f64, i64) = client
            .query_one("SELECT min(value), max(value), count(value) FROM pgdyno.grafana_series")
            .unwrap();
        assert_eq!((min, max, count), (3e6, 3e6, 598));
        let waits: f64 = client
            .query_one("SELECT value FROM pgdyno.grafana_waits WHERE metric = 'LWLock WALWrite'")
            .unwrap();
        assert_eq!(waits, 2.0);
        let commented: i64 = client
            .query_one("SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'pgdyno' AND c.relkind = 'r' AND a.attnum > 0 AND c.relname <> 'pgdyno_schema' \
                   AND col_description(c.oid, a.attnum) IS NULL")
            .unwrap();
        assert_eq!(commented, 0, "every column has a comment");
    }
}

/// Killed while a trial is being copied: nothing of that trial is published, and the next run copies it.
#[test]
fn a_killed_publish_leaves_only_complete_trials() {
    for major in MAJORS {
        let fixture = Fixture::new(major);
        fixture.publish(&["server=17"]);
        let before = fixture.counts();
        // The trial's waits follow its intervals and metrics: the lock stops the copy in the middle of the trial.
        let mut holder = fixture.client();
        holder.execute("BEGIN; LOCK TABLE pgdyno.waits IN ACCESS EXCLUSIVE MODE").unwrap();
        let mut child = fixture.command(&[]).stderr(Stdio::null()).spawn().unwrap();
        let mut observer = fixture.client();
        wait_until("it waits for the lock", || {
            let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
            observer.query_one::<i64>(waiting).unwrap() > 0
        });
        child.kill().unwrap();
        child.wait().unwrap();
        holder.execute("ROLLBACK").unwrap();
        wait_until("its session has ended", || {
            let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno publish'";
            observer.query_one::<i64>(sessions).unwrap() == 0
        });
        assert_eq!(fixture.counts(), before, "{major}");
        fixture.publish(&[]);
        assert_eq!(fixture.counts(), fixture.expected());
    }
}

#[test]
fn tables_of_an_older_version_are_upgraded_and_keep_their_rows() {
    let fixture = Fixture::new("18");
    fixture.publish(&[]);
    let mut client = fixture.client();
    let mut rows = || -> Vec<String> {
        let sql = "SELECT row(trial, cell, topology, extension, kernel, acceleration, kernel_args, sysctl, cpus, storage)::text
                   FROM pgdyno.trials UNION ALL
                   SELECT row(run, cell, topology, extension, kernel, acceleration, kernel_args, sysctl, cpus, storage)::text
                   FROM pgdyno.cells ORDER BY 1";
        client.query(sql).unwrap()
    };
    let before = rows();
    assert!(
        before.iter().any(|row| row
            .contains("topology=single,extension=none,kernel=host,acceleration=none,kernel_args=none")),
        "{before:?}"
    );
    for table in ["trials", "cells"] {
        fixture
            .client()
            .execute(&format!(
                "UPDATE pgdyno.{table} SET kernel = 'any', cell = replace(cell,
                   'topology=single,extension=none,kernel=host,acceleration=none,kernel_args=none,sysctl=default,cpus=host,storage=host', 'kernel=any');
                 ALTER TABLE pgdyno.{table} DROP COLUMN acceleration, DROP COLUMN kernel_args, DROP COLUMN sysctl,
                   DROP COLUMN cpus, DROP COLUMN storage, DROP COLUMN topology, DROP COLUMN extension;
                 ALTER TABLE pgdyno.{table} DROP COLUMN IF EXISTS instructions_per_transaction;
                 UPDATE pgdyno.pgdyno_schema SET version = 1"
            ))
            .unwrap();
    }
    fixture
        .client()
        .execute("DROP TABLE pgdyno.phases; ALTER TABLE pgdyno.trials DROP COLUMN figures")
        .unwrap();
    fixture.publish(&[]);
    assert_eq!(rows(), before);
    let version: i32 = fixture.client().query_one("SELECT version FROM pgdyno.pgdyno_schema").unwrap();
    assert_eq!(version, 6);
    assert_eq!(fixture.counts()["phases"], 0, "trials that were published before have no rows in it");
}

#[test]
fn unsuitable_targets_are_reported_and_left_unchanged() {
    let fixture = Fixture::new("18");
    let mut client = fixture.client();
    let refused = |command: &mut Command, message: &str| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(message), "{}", text(&output));
    };
    client.execute("CREATE SCHEMA other; CREATE TABLE other.t (); CREATE ROLE guest LOGIN").unwrap();
    refused(&mut fixture.command(&["--schema", "other"]), "it has tables that are not pgdyno's");
    refused(&mut fixture.command_as("guest", &[]), "permission denied for database postgres");
    refused(&mut fixture.command_as("guest", &[]), "needs CREATE on the database");
    refused(&mut fixture.command_as("nobody", &[]), "role \"nobody\" does not exist");
    let mut nowhere = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    nowhere.args(["publish", "host=/nowhere dbname=x user=y"]).current_dir(fixture.bundles.directory.path());
    refused(&mut nowhere, "/nowhere/.s.PGSQL.5432");

    // A name that needs quoting, and an empty schema that was created for the guest.
    client.execute("CREATE SCHEMA \"My \"\"tables\" AUTHORIZATION guest").unwrap();
    let output = fixture.command_as("guest", &["--schema", "My \"tables"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));

    fixture.publish(&[]);
    client.execute("UPDATE pgdyno.pgdyno_schema SET version = 99").unwrap();
    let before = fixture.counts();
    refused(&mut fixture.command(&[]), "its tables are of version 99, and this pgdyno knows them up to 6");
    client.execute("UPDATE pgdyno.pgdyno_schema SET version = 5; SET application_name = 'pgdyno'").unwrap();
    refused(&mut fixture.command(&[]), "a load of pgdyno is running on this server (1 sessions)");
    assert_eq!(fixture.counts(), before);
}

#[test]
fn a_damaged_bundle_is_left_out_and_published_once_it_is_repaired() {
    let fixture = Fixture::new("18");
    let damaged = fixture.bundles.store.trials().unwrap()[1].id.clone();
    let file = fixture.bundles.store.root().join("trials").join(&damaged).join("series.parquet");
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, "damaged").unwrap();
    let text = fixture.publish(&[]);
    assert!(text.contains("3 trials published, 0 already present"), "{text}");
    assert!(text.contains(&format!("left out: bundle {damaged}, series.parquet: it was changed")), "{text}");
    assert_eq!(fixture.counts()["trials"], 3);

    let only = fixture.command(&[&damaged]).output().unwrap();
    assert_eq!(only.status.code(), Some(1));
    assert!(self::text(&only).contains("series.parquet: it was changed"), "{}", self::text(&only));

    std::fs::write(&file, content).unwrap();
    assert!(fixture.publish(&[]).contains("1 trial published, 3 already present"));
    assert_eq!(fixture.counts(), fixture.expected());
}
