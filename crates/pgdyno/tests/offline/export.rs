//! `pgdyno export` writes the content of the bundles, in every format.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use crate::bundles::{Bundles, cell, record, ten_minutes, with_validity};
use crate::phases::{ingest, with_phases};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use model::message::Phase;
use model::record::{Status, TrialRecord};
use model::waits::StatementUse;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use report::export_tables::{Kind, Table, Value};

fn pgdyno(bundles: &Bundles, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.arg("export").args(args).current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE");
    command.output().unwrap()
}

fn export(bundles: &Bundles, args: &[&str]) {
    let output = pgdyno(bundles, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A trial of ten minutes with latencies in the first second and every other kind of data, and two short ones, one with
/// phases and one that is invalid.
fn bundles() -> (Bundles, Vec<TrialRecord>) {
    let mut bundles = Bundles::new();
    let mut long = ten_minutes();
    let mut latencies = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    latencies.record_n(2_000_000, 90).unwrap();
    latencies.record_n(8_000_000, 10).unwrap();
    let mut payload = Vec::new();
    V2DeflateSerializer::new().serialize(&latencies, &mut payload).unwrap();
    let of_window = long.intervals[0].scripts[0].latencies_of(Phase::Measure);
    of_window.latency_ns = base64::engine::general_purpose::STANDARD.encode(payload);
    long.metrics.0[0].points[7].value = None;
    long.statements.push(StatementUse {
        query_id: -7,
        query: "SELECT 'a,\"b\"'\n".to_owned(),
        calls: 3,
        total_us: 1.5,
        rows: 3,
        shared_hit_blocks: 9,
        shared_read_blocks: 1,
        shared_dirtied_blocks: 0,
        wal_bytes: None,
    });
    long.trial.run.tags = vec!["night".to_owned()];
    let mut records = vec![
        long,
        with_phases(record(ingest(cell("17", 8)), 500.5), 100.0),
        with_validity(record(ingest(cell("17", 8)), 9e9), Status::Invalid, "x"),
    ];
    for record in &mut records {
        record.trial.id = bundles.write(record.clone());
        record.trial = bundles.store.load(&record.trial.id).unwrap().trial;
    }
    (bundles, records)
}

/// Rows of a table for these trials.
fn rows(table: Table, records: &[TrialRecord]) -> Vec<Vec<Value<'static>>> {
    let mut rows = Vec::new();
    let mut add = |values: &[Value<'_>]| -> Result<(), ()> {
        let owned = values.iter().map(|value| match value {
            Value::Text(text) => Value::Text(text.clone().into_owned().into()),
            Value::Integer(value) => Value::Integer(*value),
            Value::Real(value) => Value::Real(*value),
            Value::Time(value) => Value::Time(*value),
            Value::Null => Value::Null,
        });
        rows.push(owned.collect());
        Ok(())
    };
    let heads: Vec<_> = records.iter().map(|record| &record.trial).collect();
    table.rows_of_runs(&heads, &mut add).unwrap();
    records.iter().for_each(|record| table.rows_of_trial(record, &mut add).unwrap());
    rows
}

/// A value as a field of Parquet.
fn as_field(value: &Value<'_>) -> Field {
    match value {
        Value::Null => Field::Null,
        Value::Integer(value) => Field::Long(*value),
        Value::Real(value) => Field::Double(*value),
        Value::Time(value) => Field::TimestampMicros(value.as_microsecond()),
        Value::Text(text) => Field::Str(text.clone().into_owned()),
    }
}

fn read_parquet(path: &Path) -> (Vec<String>, Vec<Vec<Field>>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let names =
        reader.metadata().file_metadata().schema().get_fields().iter().map(|field| field.name().to_owned());
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect());
    (names.collect(), rows.collect())
}

#[test]
fn parquet_files_have_the_values_of_the_bundles() {
    let (bundles, records) = bundles();
    export(&bundles, &["-o", "tables"]);
    let directory = bundles.directory.path().join("tables");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), Table::ALL.len());
    for table in Table::ALL {
        let (names, read) = read_parquet(&directory.join(format!("{}.parquet", table.name())));
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
        assert_eq!(names, columns);
        let expected = rows(table, &records);
        assert!(!expected.is_empty(), "{} has no row to be tried with", table.name());
        assert_eq!(read.len(), expected.len(), "{}", table.name());
        for (read, expected) in read.iter().zip(&expected) {
            let expected: Vec<Field> = expected.iter().map(as_field).collect();
            assert_eq!(*read, expected, "{}", table.name());
        }
    }
}

/// Compares with the records, figure by figure, not with the code that builds the rows.
#[test]
fn figures_are_those_of_the_bundles() {
    let (bundles, records) = bundles();
    export(&bundles, &["-o", "tables"]);
    let read = |table: &str| -> Vec<BTreeMap<String, Field>> {
        let (names, rows) = read_parquet(&bundles.directory.path().join(format!("tables/{table}.parquet")));
        rows.into_iter().map(|row| names.iter().cloned().zip(row).collect()).collect()
    };
    let trials = read("trials");
    for (row, TrialRecord { trial, .. }) in trials.iter().zip(&records) {
        let latency = trial.summary.as_ref().unwrap().latency.as_ref().unwrap();
        assert_eq!(row["trial"], Field::Str(trial.id.clone()));
        assert_eq!(row["tps"], Field::Double(trial.summary.as_ref().unwrap().tps));
        assert_eq!(row["latency_p99_us"], Field::Double(latency.p99_us.unwrap()));
        assert_eq!(row["clients"], Field::Long(trial.cell.clients.into_known().unwrap().into()));
        assert_eq!(row["rate_per_s"], Field::Null);
        assert_eq!(row["validity"], Field::Str(trial.validity.status.as_str().to_owned()));
        assert_eq!(row["load_started"], Field::TimestampMicros(trial.load_started.unwrap().as_microsecond()));
    }
    assert_eq!(
        trials[2]["findings"],
        Field::Str(r#"[{"gate":"x","status":"invalid","evidence":"seen"}]"#.to_owned())
    );
    let cells = read("cells");
    assert_eq!((cells.len(), &cells[0]["n"]), (2, &Field::Long(1)), "an invalid trial is in no figure");
    let (n, median) = (&cells[0]["tps_median"], &cells[0]["invalid"]);
    assert_eq!((n, median), (&Field::Double(500.5), &Field::Long(1)));

    let intervals = read("intervals");
    assert_eq!(intervals.len(), 601 + 2);
    assert_eq!(
        (&intervals[400]["tps"], &intervals[200]["tps"]),
        (&Field::Double(2000.0), &Field::Double(0.0))
    );
    let Field::Double(p95) = intervals[0]["latency_p95_us"] else { panic!("{:?}", intervals[0]) };
    assert!((p95 - 8000.0).abs() < 8.0, "{p95}");
    assert_eq!(intervals[1]["latency_p95_us"], Field::Null);
    let start = records[0].trial.load_started.unwrap().as_microsecond();
    assert_eq!(intervals[3]["time"], Field::TimestampMicros(start + 3_000_000));
    assert_eq!(read("scripts")[5]["script"], Field::Str("tpcb-like".to_owned()));

    let series = read("series");
    let points = &records[0].metrics.0[0].points;
    assert_eq!(series.len(), points.len());
    for (row, point) in series.iter().zip(points) {
        assert_eq!(row["at_us"], Field::Long(point.at_us));
        assert_eq!(row["value"], point.value.map_or(Field::Null, Field::Double));
        assert_eq!(row["kind"], Field::Str("counter".to_owned()));
    }
    let waits = read("waits");
    assert_eq!(
        (&waits[1]["wait_event"], &waits[1]["sessions"]),
        (&Field::Str("WALWrite".to_owned()), &Field::Double(2.0))
    );
    assert_eq!(read("events")[0]["figures"], Field::Str(r#"{"total_us":60000000.0}"#.to_owned()));
    assert_eq!(read("statements")[0]["query"], Field::Str(records[0].statements[0].query.clone()));
}

/// A table of several row groups, each of which is written when it is full.
#[test]
fn a_table_of_many_rows_is_complete() {
    let mut bundles = Bundles::new();
    let mut long = ten_minutes();
    let one = long.metrics.0[0].clone();
    for number in 0..250 {
        let mut series = one.clone();
        series.label = Some(number.to_string());
        long.metrics.0.push(series);
    }
    bundles.write(long);
    export(&bundles, &["--table", "series", "-o", "series.parquet"]);
    let (_, rows) = read_parquet(&bundles.directory.path().join("series.parquet"));
    assert_eq!(rows.len(), 251 * 601);
    assert_eq!(rows[251 * 601 - 1][2], Field::Str("249".to_owned()));
}

#[test]
fn csv_and_json_have_the_same_rows() {
    let (bundles, records) = bundles();
    export(&bundles, &["-o", "tables", "--format", "csv"]);
    export(&bundles, &["-o", "tables", "--format", "json"]);
    let path = |name: String| bundles.directory.path().join("tables").join(name);
    for table in Table::ALL {
        let expected = rows(table, &records);
        let columns = table.columns();
        let mut csv = csv::Reader::from_path(path(format!("{}.csv", table.name()))).unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        assert_eq!(csv.headers().unwrap(), names);
        let read: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        assert_eq!(read.len(), expected.len());
        let json = fs::read_to_string(path(format!("{}.jsonl", table.name()))).unwrap();
        let json: Vec<serde_json::Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(json.len(), expected.len());
        for ((read, json), expected) in read.iter().zip(&json).zip(&expected) {
            for (((text, column), value), at) in read.iter().zip(&columns).zip(expected).zip(0..) {
                let of_json = &json[column.name];
                match value {
                    Value::Null => assert!(text.is_empty() && of_json.is_null()),
                    Value::Integer(value) => {
                        assert_eq!((text, of_json.as_i64()), (value.to_string().as_str(), Some(*value)))
                    }
                    Value::Real(value) => {
                        assert_eq!((text.parse().ok(), of_json.as_f64()), (Some(*value), Some(*value)))
                    }
                    Value::Time(value) => {
                        assert_eq!((text, of_json.as_str()), (value.to_string().as_str(), Some(text)))
                    }
                    Value::Text(value) if column.kind == Kind::Json => {
                        assert_eq!((text, of_json), (&**value, &serde_json::from_str(value).unwrap()));
                    }
                    Value::Text(value) => {
                        assert_eq!((text, of_json.as_str()), (&**value, Some(&**value)), "{at}")
                    }
                }
            }
        }
    }
}

/// A value of a kind other than its column's would become null in a file.
#[test]
fn values_are_of_their_columns_kinds() {
    let (_bundles, records) = bundles();
    for table in Table::ALL {
        let columns = table.columns();
        for row in rows(table, &records) {
            assert_eq!(row.len(), columns.len());
            for (value, column) in row.iter().zip(&columns) {
                let fits = matches!(
                    (value, column.kind),
                    (Value::Null, _)
                        | (Value::Integer(_), Kind::Integer)
                        | (Value::Real(_), Kind::Real)
                        | (Value::Text(_), Kind::Text | Kind::Json)
                        | (Value::Time(_), Kind::Time)
                );
                assert!(fits, "{}.{}: {value:?}", table.name(), column.name);
            }
        }
    }
}

#[test]
fn one_table_is_one_file_in_the_format_of_its_extension() {
    let (bundles, _) = bundles();
    export(&bundles, &["server=18", "--table", "trials", "-o", "trials.csv"]);
    let csv = fs::read_to_string(bundles.directory.path().join("trials.csv")).unwrap();
    assert_eq!(csv.lines().count(), 2, "a selector leaves out what it does not select");
    let to_stdout = pgdyno(&bundles, &["--table", "cells", "--format", "json", "-o", "-"]);
    assert_eq!(String::from_utf8(to_stdout.stdout).unwrap().lines().count(), 2);

    let several = pgdyno(&bundles, &["-o", "all.csv"]);
    assert_eq!(several.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&several.stderr).contains("name one with --table"));
    let nothing = pgdyno(&bundles, &["clients=5", "-o", "none"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(!bundles.directory.path().join("none").exists());
}

/// A failed export keeps the existing files, and leaves no others.
#[test]
fn files_are_replaced_completely_or_not_at_all() {
    let (bundles, records) = bundles();
    let directory = bundles.directory.path().join("tables");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("trials.csv"), "old").unwrap();
    // No bundle is readable.
    for record in &records {
        let bundle = bundles.directory.path().join(".pgdyno/trials").join(&record.trial.id);
        fs::write(bundle.join("environment.json"), "{").unwrap();
    }
    let output = pgdyno(&bundles, &["-o", "tables", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("environment.json"), "{output:?}");
    assert_eq!(fs::read_to_string(directory.join("trials.csv")).unwrap(), "old");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);

    let full = pgdyno(&bundles, &["--table", "cells", "--format", "csv", "-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    let error = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(error.contains("could not write /dev/full: No space left on device"), "{error}");
}
