//! A report in one file: the trials that it has in detail, their thinning, and its histories.

#![allow(clippy::unwrap_used)]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;
#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use std::collections::BTreeSet;
use std::io::Read;

use analysis::history::run_histories;
use analysis::overview::read;
use analysis::select::RunSelection;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bundles::Bundles;
use flate2::read::GzDecoder;
use model::metrics::{Kind, Point};
use model::record::{Status, Trial};
use report::{MAX_DETAIL_BYTES, ReportFile, file};
use serde_json::Value;

/// A cell of five trials with 670 readings of each metric; the second is invalid.
fn five() -> (Bundles, Vec<String>) {
    let mut bundles = Bundles::new();
    let mut whole = fixture::detailed::trials().remove(0);
    for series in &mut whole.metrics.0 {
        let readings = series.points.clone();
        let grown = |of: &[Point]| Some(of.last()?.value? - of.first()?.value?);
        let by = if series.kind == Kind::Counter { grown(&readings).unwrap() } else { 0.0 };
        for round in 1..10 {
            series.points.extend(readings.iter().map(|point| Point {
                at_us: point.at_us + round * 67_000_000,
                value: point.value.map(|value| value + round as f64 * by),
            }));
        }
    }
    let mut ids = Vec::new();
    for (repeat, tps) in [(1, 300.0), (2, 401.0), (3, 402.0), (4, 390.0), (5, 500.0)] {
        let mut record = whole.clone();
        record.trial.repeat = repeat;
        record.trial.summary.as_mut().unwrap().tps = tps;
        if repeat == 2 {
            record = bundles::with_validity(record, Status::Invalid, "server-exited");
        }
        ids.push(bundles.write(record));
    }
    (bundles, ids)
}

fn written(bundles: &Bundles, room_bytes: usize) -> ReportFile {
    let reader = bundles.reader();
    let view = read(&reader, &RunSelection::Latest).unwrap();
    file(&reader, view, room_bytes).unwrap()
}

fn embedded(page: &str, id: &str) -> Option<Value> {
    let (_, from) = page.split_once(&format!("<script id=\"{id}\" type=\"text/plain\">"))?;
    let (data, _) = from.split_once("</script>")?;
    let mut json = String::new();
    GzDecoder::new(STANDARD.decode(data).unwrap().as_slice()).read_to_string(&mut json).unwrap();
    Some(serde_json::from_str(&json).unwrap())
}

fn in_detail<'a>(page: &str, ids: &'a [String]) -> BTreeSet<&'a str> {
    let has = |id: &&String| embedded(page, &format!("trial-{id}")).is_some();
    ids.iter().filter(has).map(String::as_str).collect()
}

#[test]
fn with_enough_room_all_trials_are_complete() {
    let (bundles, ids) = five();
    let file = written(&bundles, MAX_DETAIL_BYTES);
    assert_eq!((file.thinned_to, file.left_out), (None, 0));
    for id in &ids {
        let detail = embedded(&file.html, &format!("trial-{id}")).unwrap();
        assert_eq!((&detail["id"], &detail["load"]["tps_low"]), (&Value::from(id.as_str()), &Value::Null));
    }
    assert_eq!(embedded(&file.html, "view").unwrap()["panels"].as_array().unwrap().len(), 1);
}

#[test]
fn with_less_room_all_trials_are_thinned() {
    let (bundles, ids) = five();
    let whole = written(&bundles, MAX_DETAIL_BYTES).html.len() - written(&bundles, 0).html.len();
    let file = written(&bundles, whole * 94 / 100);
    assert_eq!(file.left_out, 0);
    // Out of 670 readings.
    assert!(file.thinned_to.is_some_and(|points| (60..400).contains(&points)), "{:?}", file.thinned_to);
    assert_eq!(in_detail(&file.html, &ids).len(), 5);
}

#[test]
fn with_too_little_room_only_trials_nearest_to_the_median_are_included() {
    let (bundles, ids) = five();
    let whole = written(&bundles, MAX_DETAIL_BYTES).html.len() - written(&bundles, 0).html.len();
    let file = written(&bundles, whole * 2 / 5);
    // The median of the usable trials is 396.
    assert_eq!(in_detail(&file.html, &ids), BTreeSet::from([ids[2].as_str(), ids[3].as_str()]));
    assert_eq!(file.left_out, 3);
}

fn stored(bundles: &mut Bundles, server: &str, run: &str, minute: u32) {
    let mut record = bundles::record(bundles::cell(server, 4), 1000.0);
    record.trial.run = bundles::run(run, "nightly");
    record.trial.started = Some(format!("2026-11-21T09:{minute:02}:12Z").parse().unwrap());
    record.trial.server_version = Some(format!("{server}.1"));
    bundles.write(record);
}

fn offered_histories(bundles: &Bundles, run: &str) -> Vec<(Value, usize)> {
    let histories = run_histories(&bundles.reader(), run).unwrap();
    histories.iter().map(|history| (history.over.name().into(), history.steps.len())).collect()
}

#[test]
fn histories_are_of_four_runs_and_of_four_versions_within_the_run() {
    let run = |n: usize| format!("01KAK3W8XQ5T2M9HC4ZP7VRB{n:02}");
    let mut bundles = Bundles::new();
    for (minute, server) in ["14", "15", "16"].into_iter().enumerate() {
        stored(&mut bundles, server, &run(1), minute as u32);
    }
    assert_eq!(offered_histories(&bundles, &run(1)), [], "three versions in one run");
    stored(&mut bundles, "17", &run(1), 3);
    assert_eq!(offered_histories(&bundles, &run(1)), [(Value::from("version"), 4)]);
    for later in 2..=4 {
        stored(&mut bundles, "17", &run(later), 10 * later as u32);
    }
    assert_eq!(offered_histories(&bundles, &run(1)), [(Value::from("date"), 4), (Value::from("version"), 4)]);
    assert_eq!(offered_histories(&bundles, &run(4)), [(Value::from("date"), 4)], "it has but one version");
    let trials: Vec<Trial> = bundles.store.trials().unwrap();
    assert_eq!(trials.len(), 7);
    assert_eq!(offered_histories(&bundles, "01KAK3W8XQ5T2M9HC4ZP7VNONE"), []);
}
