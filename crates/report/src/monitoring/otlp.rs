//! A stored trial in OTLP/JSON: lines that each are an ExportMetricsServiceRequest, as the file exporter of the OpenTelemetry
//! Collector writes and its receiver `otlpjsonfile` reads them.
//!
//! Sources: OpenTelemetry Protocol 1.5, "JSON Protobuf Encoding" (64-bit integers are strings, enumerations numbers); the
//! metrics data model ("Resets and gaps": the start of a counter that nobody saw begin is its first reading); semantic
//! conventions 1.37 for resources and databases.

use std::io;

use model::record::TrialRecord;
use serde::Serialize;

use super::family::{Family, Kind, Unit};
use super::point::{Point, Stream, Value};
use super::trial;

/// Most points of a line. The Collector reads lines up to 1 MiB unless told otherwise, and a point of a histogram takes
/// about 1 KB.
const MAX_POINTS: usize = 500;

const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: Resource<'a>,
    scope_metrics: [ScopeMetrics<'a>; 1],
    schema_url: &'static str,
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: &'a [Attribute],
}

#[derive(Serialize)]
struct ScopeMetrics<'a> {
    scope: Scope,
    metrics: [Metric<'a>; 1],
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Metric<'a> {
    name: String,
    description: &'a str,
    unit: &'static str,
    #[serde(flatten)]
    data: Data,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data {
    #[serde(rename_all = "camelCase")]
    Gauge { data_points: Vec<DataPoint> },
    #[serde(rename_all = "camelCase")]
    Sum { data_points: Vec<DataPoint>, aggregation_temporality: u8, is_monotonic: bool },
    #[serde(rename_all = "camelCase")]
    Histogram { data_points: Vec<DataPoint>, aggregation_temporality: u8 },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DataPoint {
    attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time_unix_nano: Option<String>,
    time_unix_nano: String,
    #[serde(flatten)]
    value: PointValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PointValue {
    #[serde(rename_all = "camelCase")]
    Number { as_double: f64 },
    #[serde(rename_all = "camelCase")]
    Histogram { count: String, sum: f64, bucket_counts: Vec<String>, explicit_bounds: Vec<f64> },
}

#[derive(Clone, Serialize)]
struct Attribute {
    key: String,
    value: AttributeValue,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
enum AttributeValue {
    StringValue(String),
    IntValue(String),
}

/// Writes the lines of a trial; returns the number of points.
///
/// # Errors
/// Errors of `out`.
pub(crate) fn write_otlp(record: &TrialRecord, out: &mut dyn io::Write) -> io::Result<u64> {
    let attributes = resource(record);
    let load_start_us = record.trial.load_started.map(|start| start.as_microsecond());
    let mut count = 0;
    for (family, streams) in trial::metrics(record).into_families() {
        // What they say is in the attributes of the resource.
        if family.kind == Kind::Info {
            continue;
        }
        let mut points = Vec::new();
        for stream in streams {
            points.extend(data_points(&family, &stream, load_start_us));
        }
        count += points.len() as u64;
        while !points.is_empty() {
            let rest = points.split_off(points.len().min(MAX_POINTS));
            write_line(&family, points, &attributes, out)?;
            points = rest;
        }
    }
    Ok(count)
}

fn write_line(
    family: &Family,
    data_points: Vec<DataPoint>,
    attributes: &[Attribute],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let data = match family.kind {
        Kind::Counter => Data::Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true },
        Kind::Histogram => Data::Histogram { data_points, aggregation_temporality: CUMULATIVE },
        Kind::Gauge | Kind::Info => Data::Gauge { data_points },
    };
    let metric =
        Metric { name: family.dotted_name(), description: &family.help, unit: ucum(family.unit()), data };
    let scope = Scope { name: "pgdyno", version: model::release::VERSION };
    let request = Request {
        resource_metrics: [ResourceMetrics {
            resource: Resource { attributes },
            scope_metrics: [ScopeMetrics { scope, metrics: [metric] }],
            schema_url: SCHEMA_URL,
        }],
    };
    serde_json::to_writer(&mut *out, &request)?;
    out.write_all(b"\n")
}

/// The points of a stream. Those of the load count from its start; counters of collectors from their first reading, and
/// again after a reset.
fn data_points(family: &Family, stream: &Stream<'_>, load_start_us: Option<i64>) -> Vec<DataPoint> {
    let attributes: Vec<Attribute> = stream.labels.iter().map(|(key, value)| text(key, value)).collect();
    let (mut start_us, mut before) = (load_start_us.filter(|_| family.is_of_load()), f64::NEG_INFINITY);
    let mut data_points = Vec::new();
    for Point { at_us, value } in &stream.points {
        let Some(at_us) = *at_us else { continue };
        if let Value::Number(number) = value {
            if start_us.is_none() || *number < before {
                start_us = Some(at_us);
            }
            before = *number;
        }
        let is_cumulative = matches!(family.kind, Kind::Counter | Kind::Histogram);
        data_points.push(DataPoint {
            attributes: attributes.clone(),
            start_time_unix_nano: start_us.filter(|_| is_cumulative).map(nanoseconds),
            time_unix_nano: nanoseconds(at_us),
            value: point_value(family, value),
        });
    }
    data_points
}

fn point_value(family: &Family, value: &Value) -> PointValue {
    match value {
        Value::Number(number) => PointValue::Number { as_double: family.value(*number) },
        Value::Histogram(histogram) => PointValue::Histogram {
            count: histogram.count().to_string(),
            sum: family.value(histogram.sum),
            bucket_counts: histogram.counts.iter().map(u64::to_string).collect(),
            explicit_bounds: store::LATENCY_BOUNDS_US.map(|bound| family.value(bound as f64)).into(),
        },
    }
}

fn nanoseconds(us: i64) -> String {
    (i128::from(us) * 1000).to_string()
}

/// A unit in the Unified Code for Units of Measure, which OpenTelemetry uses; empty for plain counts.
const fn ucum(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "",
        Unit::Seconds => "s",
        Unit::Bytes => "By",
        Unit::Hertz => "Hz",
        Unit::Celsius => "Cel",
        Unit::Ratio => "1",
    }
}

/// The trial as a resource: attributes of the semantic conventions where they exist, else with `pgdyno.` before them.
fn resource(record: &TrialRecord) -> Vec<Attribute> {
    let trial = &record.trial;
    let environment = &record.environment;
    let mut attributes = vec![
        text("service.name", "pgdyno"),
        text("service.version", &trial.run.pgdyno_version),
        text("service.instance.id", &trial.id),
        text("db.system.name", "postgresql"),
        text("os.type", "linux"),
    ];
    for (key, value) in [
        ("host.name", &environment.hostname),
        ("host.cpu.model.name", &environment.cpu_model),
        ("pgdyno.machine.kernel", &environment.kernel),
        ("pgdyno.server.version", &trial.server_version),
    ] {
        attributes.extend(value.iter().map(|value| text(key, value)));
    }
    attributes.extend([
        text("pgdyno.run.id", &trial.run.id),
        text("pgdyno.campaign.name", &trial.run.campaign),
        text("pgdyno.trial.id", &trial.id),
        integer("pgdyno.trial.position", trial.position),
        integer("pgdyno.trial.repeat", trial.repeat),
        integer("pgdyno.trial.attempt", trial.attempt),
        text("pgdyno.trial.validity", trial.validity.status.as_str()),
        text("pgdyno.cell", &trial.cell.to_string()),
    ]);
    let levels = trial::levels(record);
    attributes.extend(levels.map(|(name, level)| text(&format!("pgdyno.factor.{name}"), &level)));
    attributes
}

fn text(key: &str, value: &str) -> Attribute {
    Attribute { key: key.to_owned(), value: AttributeValue::StringValue(value.to_owned()) }
}

fn integer(key: &str, value: u32) -> Attribute {
    Attribute { key: key.to_owned(), value: AttributeValue::IntValue(value.to_string()) }
}
