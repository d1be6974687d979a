//! `pgdyno export --format openmetrics|otlp`: the metrics of stored trials, read by Prometheus' and OpenTelemetry's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Output};

use crate::bundles::{Bundles, cell, record, ten_minutes};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use model::message::Phase;
use model::metrics::{Kind, Point, Series};
use model::record::TrialRecord;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, number_data_point};

fn pgdyno(bundles: &Bundles, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
    command.arg("export").args(args).current_dir(bundles.directory.path()).env_remove("PGDYNO_STORE");
    command.output().unwrap()
}

fn export(bundles: &Bundles, format: &str, file: &str) -> String {
    let output = pgdyno(bundles, &["--format", format, "-o", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.starts_with(file) && note.contains("samples of 2 trials"), "{note}");
    fs::read_to_string(bundles.directory.path().join(file)).unwrap()
}

/// A trial of ten minutes, with latencies in its first second, a gauge with a failed reading, and a counter that is reset;
/// and a short one.
fn bundles() -> (Bundles, Vec<TrialRecord>) {
    let mut bundles = Bundles::new();
    let mut long = ten_minutes();
    let mut latencies = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    latencies.record_n(2_000_000, 900).unwrap();
    latencies.record_n(8_000_000, 100).unwrap();
    let mut payload = Vec::new();
    V2DeflateSerializer::new().serialize(&latencies, &mut payload).unwrap();
    let of_window = long.intervals[0].scripts[0].latencies_of(Phase::Measure);
    of_window.latency_ns = base64::engine::general_purpose::STANDARD.encode(payload);
    let series = |metric: &str, label: &str, kind, values: &[(i64, Option<f64>)]| Series {
        metric: metric.to_owned(),
        label: Some(label.to_owned()),
        kind,
        points: values.iter().map(|&(at_us, value)| Point { at_us, value }).collect(),
    };
    long.metrics.0.extend([
        series(
            "disk.read_us",
            "sda \"1\"",
            Kind::Counter,
            &[
                (0, Some(5e6)),
                (1_000_000, Some(7e6)),
                // In the same millisecond.
                (1_000_400, Some(7.5e6)),
                (2_000_000, Some(1e6)),
            ],
        ),
        series(
            "memory.cached_bytes",
            "x",
            Kind::Gauge,
            &[(-500_000, Some(4096.0)), (0, None), (1_000_000, Some(0.5))],
        ),
        series("retired.metric_us", "y", Kind::Gauge, &[(0, Some(1500.0))]),
    ]);
    let mut records = vec![long, record(cell("17", 8), 500.0)];
    for record in &mut records {
        record.trial.id = bundles.write(record.clone());
        *record = bundles.store.load(&record.trial.id).unwrap();
    }
    (bundles, records)
}

fn seconds(record: &TrialRecord, after_start_us: i64) -> f64 {
    (record.trial.load_started.unwrap().as_microsecond() + after_start_us) as f64 / 1e6
}

/// Values over time of a sample by its name with labels.
fn samples(document: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut samples: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for line in document.lines().filter(|line| !line.starts_with('#')) {
        let (rest, time) = line.rsplit_once(' ').unwrap();
        let (name, value) = rest.rsplit_once(' ').unwrap();
        samples.entry(name.to_owned()).or_default().push((time.parse().unwrap(), value.parse().unwrap()));
    }
    samples
}

#[test]
fn openmetrics_has_each_family_once_and_the_values_of_the_bundles() {
    let (bundles, records) = bundles();
    let document = export(&bundles, "openmetrics", "trials.om");
    assert!(document.ends_with("\n# EOF\n"));
    // Each family is declared once, before all of its samples.
    let mut families = BTreeSet::new();
    let mut current = String::new();
    for line in document.lines().take_while(|line| *line != "# EOF") {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            current = declared.split(' ').next().unwrap().to_owned();
            assert!(families.insert(current.clone()), "twice: {current}");
        }
        let name =
            line.trim_start_matches("# TYPE ").trim_start_matches("# HELP ").trim_start_matches("# UNIT ");
        assert!(name.starts_with(&current), "{line} is not of {current}");
    }
    let samples = samples(&document);
    for (name, values) in &samples {
        let times: Vec<i64> = values.iter().map(|(time, _)| (time * 1000.0) as i64).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{name}: {times:?}");
    }
    let values = |record: &TrialRecord, name: &str, labels: &str| {
        let (run, trial) = (&record.trial.run.id, &record.trial.id);
        let name = format!("{name}{{run=\"{run}\",trial=\"{trial}\"{labels}}}");
        samples.get(&name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let long = &records[0];
    let transactions = values(long, "pgdyno_load_transactions_total", ",phase=\"measure\"");
    assert_eq!(transactions.len(), 600, "the last two ended in the same millisecond");
    assert_eq!(transactions[0], (seconds(long, 1_000_000), 1000.0));
    assert_eq!(transactions[599], (seconds(long, 600_000_900), 600_000.0));
    let tps = values(long, "pgdyno_interval_tps", "");
    assert_eq!((tps[200].1, tps[400].1), (0.0, 2000.0));
    assert_eq!(values(long, "pgdyno_interval_latency_p50_seconds", "").len(), 1, "null is no sample");
    let bucket = |le: &str| {
        values(long, "pgdyno_load_latency_seconds_bucket", &format!(",phase=\"measure\",le=\"{le}\""))[599].1
    };
    assert_eq!(
        [bucket("0.0016"), bucket("0.0025"), bucket("0.01"), bucket("+Inf")],
        [0.0, 900.0, 1000.0, 1000.0]
    );
    let sum = values(long, "pgdyno_load_latency_seconds_sum", ",phase=\"measure\"")[599].1;
    assert!((sum - 2.6).abs() < 0.01, "{sum}");
    let wal = values(long, "pgdyno_pg_wal_bytes_total", "");
    assert_eq!((wal.len(), wal[2]), (601, (seconds(long, 2_000_000), 6e6)));
    let read = values(long, "pgdyno_disk_read_seconds_total", ",of=\"sda \\\"1\\\"\"");
    assert_eq!(read.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [5.0, 7.5, 1.0]);
    let cached = values(long, "pgdyno_memory_cached_bytes", ",of=\"x\"");
    assert_eq!(cached, [(seconds(long, -500_000), 4096.0), (seconds(long, 1_000_000), 0.5)]);
    assert_eq!(values(long, "pgdyno_retired_metric_seconds", ",of=\"y\"")[0].1, 0.0015);
    let waits = values(
        long,
        "pgdyno_load_sessions",
        ",session=\"load\",wait_event_type=\"LWLock\",wait_event=\"WALWrite\"",
    );
    assert_eq!(waits, [(seconds(long, 1_000_000), 2.0)]);
    let short = &records[1];
    let of_short = values(short, "pgdyno_load_transactions_total", ",phase=\"measure\"");
    assert_eq!(of_short.len(), short.intervals.len());
    let info =
        samples.keys().find(|name| name.starts_with("pgdyno_trial_info") && name.contains(&short.trial.id));
    let info = info.unwrap();
    for label in ["server=\"17\"", "clients=\"8\"", "workload=\"select-only\"", "validity=\"valid\""] {
        assert!(info.contains(label), "{info}");
    }
}

/// `promtool` reads the document into blocks of Prometheus, and what it reads from these is what the bundle has.
#[test]
fn prometheus_imports_the_document() {
    let (bundles, records) = bundles();
    let document = export(&bundles, "openmetrics", "trials.om");
    let promtool = |args: &[&str]| {
        let mut command = Command::new("promtool");
        let output = command.arg("tsdb").args(args).current_dir(bundles.directory.path()).output().ok()?;
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    if promtool(&["create-blocks-from", "openmetrics", "trials.om", "blocks"]).is_none() {
        return skip::skip("promtool is not installed");
    }
    // As a server of Prometheus has it, which the blocks are moved to.
    fs::create_dir(bundles.directory.path().join("blocks/wal")).unwrap();
    let samples = |document: &str| document.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(promtool(&["dump", "blocks"]).unwrap().lines().count(), samples(&document));
    let dump = promtool(&["dump", "--match=pgdyno_pg_wal_bytes_total", "blocks"]).unwrap();
    let read: Vec<(f64, i64)> = dump
        .lines()
        .map(|line| {
            let mut words = line.rsplit(' ');
            let time = words.next().unwrap().parse().unwrap();
            (words.next().unwrap().parse().unwrap(), time)
        })
        .collect();
    let milliseconds = |at_us| (seconds(&records[0], at_us) * 1000.0) as i64;
    let points = &records[0].metrics.0[0].points;
    let expected = points.iter().map(|point| (point.value.unwrap(), milliseconds(point.at_us)));
    assert_eq!(read, expected.collect::<Vec<_>>());
}

/// Points of a metric in the requests of a trial.
struct Found {
    description: String,
    unit: String,
    data: Vec<Data>,
}

/// The attributes of each trial's resource, and its metrics by name.
fn requests(lines: &str) -> BTreeMap<String, (Vec<KeyValue>, BTreeMap<String, Found>)> {
    let mut trials = BTreeMap::new();
    for line in lines.lines() {
        assert!(line.len() < 1 << 20, "the Collector does not read lines of {} bytes", line.len());
        let request: ExportMetricsServiceRequest = serde_json::from_str(line).unwrap();
        for resource_metrics in request.resource_metrics {
            let attributes = resource_metrics.resource.unwrap().attributes;
            let trial = string(&attributes, "pgdyno.trial.id").unwrap();
            let (_, metrics) = trials.entry(trial).or_insert_with(|| (attributes, BTreeMap::new()));
            for Metric { name, description, unit, data, .. } in
                resource_metrics.scope_metrics.into_iter().flat_map(|scope| scope.metrics)
            {
                let found =
                    metrics.entry(name).or_insert_with(|| Found { description, unit, data: Vec::new() });
                found.data.extend(data);
            }
        }
    }
    trials
}

fn string(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    match value {
        any_value::Value::StringValue(text) => Some(text),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        _ => panic!("{key}: {value:?}"),
    }
}

fn values(points: &[NumberDataPoint]) -> Vec<(u64, f64)> {
    let value = |point: &NumberDataPoint| match point.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        other => panic!("{other:?}"),
    };
    points.iter().map(|point| (point.time_unix_nano, value(point))).collect()
}

impl Found {
    /// The points of a cumulative monotonic sum.
    fn sum(&self) -> Vec<NumberDataPoint> {
        let points = self.data.iter().flat_map(|data| match data {
            Data::Sum(sum) if sum.is_monotonic && sum.aggregation_temporality == 2 => sum.data_points.clone(),
            other => panic!("{other:?}"),
        });
        points.collect()
    }

    fn gauge(&self) -> Vec<NumberDataPoint> {
        let points = self.data.iter().flat_map(|data| match data {
            Data::Gauge(gauge) => gauge.data_points.clone(),
            other => panic!("{other:?}"),
        });
        points.collect()
    }
}

#[test]
fn otlp_requests_have_the_values_of_the_bundles() {
    let (bundles, records) = bundles();
    let trials = requests(&export(&bundles, "otlp", "trials.otlp"));
    assert_eq!(trials.len(), 2);
    let long = &records[0];
    let (attributes, metrics) = &trials[&long.trial.id];
    for (key, value) in [
        ("service.name", "pgdyno"),
        ("service.instance.id", long.trial.id.as_str()),
        ("db.system.name", "postgresql"),
        ("pgdyno.run.id", long.trial.run.id.as_str()),
        ("pgdyno.trial.repeat", "1"),
        ("pgdyno.trial.validity", "valid"),
        ("pgdyno.factor.clients", "4"),
        ("pgdyno.factor.server", "18"),
    ] {
        assert_eq!(string(attributes, key).as_deref(), Some(value), "{key}");
    }
    let start = u64::try_from(long.trial.load_started.unwrap().as_nanosecond()).unwrap();
    const SECOND: u64 = 1_000_000_000;
    let transactions = metrics["pgdyno.load.transactions"].sum();
    assert_eq!(transactions.len(), 601, "in several lines");
    assert!(transactions.iter().all(|point| point.start_time_unix_nano == start));
    assert_eq!(values(&transactions)[0], (start + SECOND, 1000.0));
    assert_eq!(values(&transactions)[600].1, 600_000.0);
    assert_eq!(string(&transactions[0].attributes, "phase").as_deref(), Some("measure"));

    let read = &metrics["pgdyno.disk.read_seconds"];
    assert_eq!(
        (read.unit.as_str(), read.description.contains("(of: device)")),
        ("s", true),
        "{}",
        read.description
    );
    let points = read.sum();
    assert_eq!(values(&points).iter().map(|(_, value)| *value).collect::<Vec<_>>(), [5.0, 7.0, 7.5, 1.0]);
    let starts: Vec<u64> = points.iter().map(|point| point.start_time_unix_nano).collect();
    assert_eq!(starts, [start, start, start, start + 2 * SECOND], "a reset is a new start");
    assert_eq!(string(&points[0].attributes, "of").as_deref(), Some("sda \"1\""));
    let cached = metrics["pgdyno.memory.cached_bytes"].gauge();
    assert_eq!(values(&cached), [(start - SECOND / 2, 4096.0), (start + SECOND, 0.5)]);
    assert_eq!(metrics["pgdyno.memory.cached_bytes"].unit, "By");

    let histograms: Vec<_> = metrics["pgdyno.load.latency_seconds"]
        .data
        .iter()
        .flat_map(|data| match data {
            Data::Histogram(histogram) => histogram.data_points.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(histograms.len(), 601);
    let last = &histograms[600];
    assert_eq!((last.count, last.bucket_counts.iter().sum::<u64>()), (1000, 1000));
    assert_eq!(last.bucket_counts.len(), last.explicit_bounds.len() + 1);
    let at_most = last.explicit_bounds.iter().position(|bound| *bound == 0.0025).unwrap();
    assert_eq!(last.bucket_counts[at_most], 900);
    assert!((last.sum.unwrap() - 2.6).abs() < 0.01);
    assert!(!metrics.contains_key("pgdyno.trial"), "what it says is in the resource");
}

/// A receiver that follows OpenTelemetry's rules for Prometheus names gives both exports the same ones: dots are
/// underscores, the unit is not repeated, a monotonic sum ends in `_total`.
#[test]
fn both_formats_have_the_same_families() {
    let (bundles, _) = bundles();
    let document = export(&bundles, "openmetrics", "trials.om");
    let declared = document.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let of_openmetrics: BTreeSet<String> = declared
        .filter(|family| !family.ends_with(" info"))
        .map(|family| family.split(' ').next().unwrap().to_owned())
        .collect();
    let trials = requests(&export(&bundles, "otlp", "trials.otlp"));
    let names = trials.values().flat_map(|(_, metrics)| metrics.keys());
    let of_otlp: BTreeSet<String> = names.map(|name| name.replace('.', "_")).collect();
    assert_eq!(of_openmetrics, of_otlp);
}

#[test]
fn metrics_are_one_file_without_tables() {
    let (bundles, _) = bundles();
    let tables = pgdyno(&bundles, &["--format", "otlp", "--table", "trials", "-o", "x"]);
    assert_eq!(tables.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&tables.stderr).contains("--table is for the formats of tables"),
        "{tables:?}"
    );
    let directory = pgdyno(&bundles, &["--format", "openmetrics", "-o", "."]);
    assert_eq!(directory.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&directory.stderr).contains("this export is one file: name it"),
        "{directory:?}"
    );
    let one = pgdyno(&bundles, &["server=17", "--format", "openmetrics", "-o", "-"]);
    let text = String::from_utf8(one.stdout).unwrap();
    assert!(text.ends_with("# EOF\n") && !text.contains("server=\"18\""), "{text}");
    let full = pgdyno(&bundles, &["--format", "otlp", "-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left on device"), "{full:?}");
}
