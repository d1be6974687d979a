//! The dashboard in grafana/: each of its queries on a real server, with variables and macros replaced as Grafana does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use model::message::Phase;
use model::record::TrialRecord;
use serde_json::{Map, Value};
use wire::blocking::Session;

use crate::bundles::{cell, record, run, ten_minutes};
use crate::{Fixture, MAJORS};

/// As the dashboard's time range, which has all trials of the test.
const RANGE: &str = "BETWEEN '2026-11-01T00:00:00Z' AND '2026-12-01T00:00:00Z'";

const TEN_MINUTES: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(86_400);

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../../../grafana/pgdyno.json")).unwrap()
}

/// Two runs of a campaign, a day between them, of two servers. The first trial of each has every kind of data.
fn fixture(major: &str) -> Fixture {
    let mut fixture = Fixture::new(major);
    for (number, factor) in [(1, 1.0), (2, 0.9)] {
        let mut full = ten_minutes();
        let mut latencies = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        latencies.record_n(2_000_000, 1000).unwrap();
        let mut payload = Vec::new();
        V2DeflateSerializer::new().serialize(&latencies, &mut payload).unwrap();
        full.intervals[0].scripts[0].latencies_of(Phase::Measure).latency_ns = STANDARD.encode(payload);
        full.trial.ended = full.trial.load_started.map(|start| start + TEN_MINUTES);
        fixture.bundles.write(of_run(number, Duration::ZERO, full));
        for (server, tps) in
            [("17", 1000.0), ("17", 1010.0), ("18", 1100.0 * factor), ("18", 1110.0 * factor)]
        {
            fixture.bundles.write(of_run(number, TEN_MINUTES, record(cell(server, 8), tps)));
        }
    }
    fixture
}

/// A record in a run of the campaign, so long after its start.
fn of_run(number: u32, after: Duration, mut record: TrialRecord) -> TrialRecord {
    let after = DAY * number + after;
    record.trial.run = run(&format!("01KAK3W8XQ5T2M9HC4ZP7VRB{number}0"), "it's nightly");
    for time in [&mut record.trial.started, &mut record.trial.load_started, &mut record.trial.ended] {
        *time = time.map(|time| time + after);
    }
    for event in &mut record.events {
        event.at += after;
    }
    record
}

/// Values of the dashboard's variables.
struct Variables(BTreeMap<String, Vec<String>>);

impl Variables {
    /// Those that Grafana selects at first: the first value of each, or all where the variable has `All`.
    fn new(dashboard: &Value, client: &mut Session) -> Self {
        let mut variables = Self(BTreeMap::new());
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            let name = variable["name"].as_str().unwrap().to_owned();
            if variable["type"] == "datasource" {
                continue;
            }
            let sql = variables.expand(variable["query"].as_str().unwrap());
            let rows = rows(client, &sql);
            assert!(!rows.is_empty(), "no value of {name}: {sql}");
            // With several columns, one is named __value and one __text.
            let value = |row: &Map<String, Value>| match (row.len(), row.values().next()) {
                (1, Some(value)) => value.as_str().unwrap().to_owned(),
                _ => {
                    assert!(
                        row.len() == 2 && row["__text"].as_str().is_some_and(|text| !text.is_empty()),
                        "{row:?}"
                    );
                    row["__value"].as_str().unwrap().to_owned()
                }
            };
            let mut values: Vec<String> = rows.iter().map(value).collect();
            if variable["includeAll"] != true {
                values.truncate(1);
            }
            variables.0.insert(name, values);
        }
        variables
    }

    /// A query as Grafana sends it.
    fn expand(&self, sql: &str) -> String {
        let mut sql = sql.to_owned();
        for (name, values) in &self.0 {
            let literals: Vec<String> =
                values.iter().map(|value| format!("'{}'", value.replace('\'', "''"))).collect();
            sql = sql.replace(&format!("${{{name}:sqlstring}}"), &literals.join(","));
        }
        while let Some((before, rest)) = sql.split_once("$__timeFilter(") {
            let (column, after) = rest.split_once(')').unwrap();
            sql = format!("{before}{column} {RANGE}{after}");
        }
        assert!(!sql.contains('$'), "a variable or macro is unknown: {sql}");
        sql
    }
}

fn rows(client: &mut Session, sql: &str) -> Vec<Map<String, Value>> {
    let rows: Vec<String> = client
        .query(&format!("SELECT row_to_json(q)::text FROM ({sql}) AS q"))
        .unwrap_or_else(|error| panic!("{error}: {sql}"));
    rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// Columns that a panel names for its own purposes.
fn named_columns(panel: &Value) -> BTreeSet<&str> {
    let overrides = panel["fieldConfig"]["overrides"].as_array().unwrap();
    overrides
        .iter()
        .map(|one| {
            assert_eq!(one["matcher"]["id"], "byName");
            one["matcher"]["options"].as_str().unwrap()
        })
        .collect()
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row")
}

fn is_filtered_by_time(sql: &str) -> bool {
    sql.contains("$__timeFilter(")
}

#[test]
fn every_panel_has_rows_with_the_columns_that_it_needs() {
    let dashboard = dashboard();
    for major in MAJORS {
        let fixture = fixture(major);
        fixture.publish(&[]);
        let mut client = fixture.client();
        let variables = Variables::new(&dashboard, &mut client);
        assert_eq!(variables.0["campaign"], ["it's nightly"], "the latest");
        for panel in panels(&dashboard) {
            let title = panel["title"].as_str().unwrap();
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{title}");
            for target in targets {
                let sql = target["rawSql"].as_str().unwrap();
                let found = rows(&mut client, &variables.expand(sql));
                assert!(!found.is_empty(), "{title} has no rows on {major}: {}", variables.expand(sql));
                let columns: BTreeSet<&str> = found[0].keys().map(String::as_str).collect();
                match (panel["type"].as_str().unwrap(), target["format"].as_str().unwrap()) {
                    ("timeseries", "time_series") => {
                        assert_eq!(columns, ["metric", "time", "value"].into(), "{title}");
                        assert!(is_filtered_by_time(sql), "{title}");
                        let types: Vec<String> = client
                            .query(&format!(
                                "SELECT concat_ws(', ', pg_typeof(\"time\"), pg_typeof(metric), pg_typeof(value)) FROM ({}) q LIMIT 1",
                                variables.expand(sql)
                            ))
                            .unwrap();
                        assert_eq!(types, ["timestamp with time zone, text, double precision"], "{title}");
                        let times: Vec<&str> =
                            found.iter().map(|row| row["time"].as_str().unwrap()).collect();
                        assert!(times.is_sorted(), "{title}: Grafana needs rows in the order of time");
                        assert!(found.iter().any(|row| row["value"].is_number()), "{title}");
                    }
                    ("table", "table") => {
                        let missing: Vec<_> = named_columns(panel).difference(&columns).copied().collect();
                        assert!(missing.is_empty(), "{title} has no column {missing:?}");
                    }
                    other => panic!("{title}: {other:?}"),
                }
            }
        }
        for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
            let sql = annotation["target"]["rawSql"].as_str().unwrap();
            let found = rows(&mut client, &variables.expand(sql));
            let name = &annotation["name"];
            assert!(!found.is_empty() && is_filtered_by_time(sql), "{name}");
            assert!(found[0]["time"].is_string() && found[0]["text"].is_string(), "{name}");
        }
    }
}

#[test]
fn figures_are_those_of_the_runs() {
    let dashboard = dashboard();
    let fixture = fixture("18");
    fixture.publish(&[]);
    let mut client = fixture.client();
    let variables = Variables::new(&dashboard, &mut client);
    let mut rows_of = |title: &str| {
        let panel = panels(&dashboard).find(|panel| panel["title"] == title).unwrap();
        rows(&mut client, &variables.expand(panel["targets"][0]["rawSql"].as_str().unwrap()))
    };
    let close = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
    let eight_clients = |row: &&Map<String, Value>| {
        row.values().any(|value| value.as_str().is_some_and(|text| text.ends_with("clients 8")))
    };

    let throughput = rows_of("Throughput by cell");
    let medians: Vec<f64> =
        throughput.iter().filter(eight_clients).map(|row| row["value"].as_f64().unwrap()).collect();
    assert_eq!(medians, [1005.0, 1105.0, 1005.0, 994.5]);
    // Only the second run has one before it: server 17 was the same there, 18 lost a tenth.
    let changes = rows_of("Change of throughput since the run before");
    let changes: Vec<&Value> = changes.iter().filter(eight_clients).map(|row| &row["value"]).collect();
    assert!(changes.len() == 2 && close(changes[0], 0.0) && close(changes[1], -0.1), "{changes:?}");
    let largest = rows_of("Changes of throughput, the largest first");
    assert!(
        close(&largest[0]["change"], -0.1) && largest[0]["cell"] == "18 select-only scale 10 clients 8",
        "{largest:?}"
    );
    let noise = largest[0]["noise"].as_f64().unwrap();
    assert!((0.012..0.014).contains(&noise), "two trials of each run, 0.9% apart: {noise}");

    let servers = rows_of("Servers compared with $baseline");
    let compared: Vec<&Map<String, Value>> = servers.iter().filter(|row| row["clients"] == 8).collect();
    let of_18 = (990.0_f64 * 999.0 / (1000.0 * 1010.0)).sqrt() - 1.0;
    assert_eq!(
        (compared.len(), &compared[0]["server"], &compared[1]["server"]),
        (2, &"17".into(), &"18".into())
    );
    assert!(close(&compared[0]["change"], 0.0) && close(&compared[1]["change"], of_18), "{compared:?}");

    // The link of a trial has its time.
    let trials = rows_of("Trials of the run");
    assert_eq!(trials.len(), 5);
    let range = |row: &Map<String, Value>| row["to_ms"].as_i64().unwrap() - row["from_ms"].as_i64().unwrap();
    assert!(trials.iter().any(|row| range(row) == 602_000), "{trials:?}");
}

/// Identifiers that Grafana and the docs rely on.
#[test]
fn panels_have_ids_of_their_own_and_one_data_source() {
    let dashboard = dashboard();
    assert_eq!((&dashboard["uid"], &dashboard["title"]), (&"pgdyno".into(), &"pgdyno".into()));
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let declared: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    for used in ["campaign", "cell", "run", "baseline", "trial", "metric", "datasource"] {
        assert!(declared.contains(used), "{used}");
    }
    fn check(value: &Value, path: &str) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    if key == "datasource" {
                        assert_eq!(value["uid"], "${datasource}", "{path}");
                        assert_eq!(value["type"], "grafana-postgresql-datasource", "{path}");
                    }
                    check(value, &format!("{path}.{key}"));
                }
            }
            Value::Array(values) => values.iter().for_each(|value| check(value, path)),
            _ => {}
        }
    }
    check(&dashboard, "dashboard");
}
