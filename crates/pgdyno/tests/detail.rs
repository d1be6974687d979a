//! Details of real trials: their figures are those of the bundle, and their command measures the same cell again.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::process::Command;

use analysis::trial::{Detail, Lane, Points, detail};
use model::metrics::Kind;
use model::record::TrialRecord;
use serde_json::Value;
use support::{Bench, text};

/// Cells with and without a rate; each trial begins with a checkpoint.
const CAMPAIGN: &str = "name = 'detail'
[factors]
server = ['18']
settings = ['plain']
workload = ['simple-update', 'select-only']
clients = [1, 4]
rate = [150, 'max']
zip = [['clients', 'rate']]
exclude = [{ workload = 'select-only', clients = 1 }]
include = [{ server = '18', workload = 'select-only', clients = 2, settings = 'plain', transport = 'tcp' }]
[run]
duration = '2500ms'
warmup = '500ms'
repeats = 1
seed = 7
[settings.plain]
autovacuum = false
";

fn run(bench: &Bench) -> Vec<(TrialRecord, Detail)> {
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let load = |trial: &model::record::Trial| {
        let record = bench.store().load(&trial.id).unwrap();
        let detail = detail(&record, Points::All);
        (record, detail)
    };
    bench.trials().iter().map(load).collect()
}

/// Alone: where others delay transactions of the open loop beyond the window, the curve counts those that ended in it, and
/// the summary those that were due.
#[test]
fn alone_figures_are_the_bundle_s() {
    let bench = Bench::new(CAMPAIGN);
    let trials = run(&bench);
    assert_eq!(trials.len(), 4);
    for (record, detail) in &trials {
        let output = bench.pgdyno(&["store", "show", &record.trial.id, "--format", "json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let summary = &shown["trial"]["summary"];
        let has_rate = record.trial.cell.rate != model::units::Rate::MAX;
        assert_eq!(detail.service.is_some(), has_rate, "{}", detail.cell);
        let known = record.trial.summary.as_ref().unwrap();
        let service = known.service.as_ref().map(|service| [service.min_us, service.p50_us, service.max_us]);
        let shown_latency = ["min_us", "p50_us", "max_us"].map(|figure| summary["latency"][figure].as_f64());
        for (curve, figures) in [(&detail.intended, Some(shown_latency)), (&detail.service, service)] {
            assert_eq!(curve.is_some(), figures.is_some());
            let (Some(curve), Some(figures)) = (curve, figures) else { continue };
            assert_eq!(Value::from(curve.count), summary["transactions"]);
            for (share, figure) in [0.0, 0.5, 1.0].into_iter().zip(figures) {
                let at = curve.us[curve.q.iter().position(|q| *q == share).unwrap()];
                // Histograms have three significant digits.
                assert!((at / figure.unwrap() - 1.0).abs() < 2e-3, "{share}: {at}, not {figure:?}");
            }
        }
        let window = detail.window.unwrap();
        assert_eq!(Value::from(window.end_us - window.start_us), summary["window_us"]);
        let in_window = detail.load.start_us.iter().zip(&detail.load.tps).zip(&detail.load.width_us);
        let made: f64 = in_window
            .filter(|((start_us, _), _)| (window.start_us..window.end_us).contains(start_us))
            .map(|((_, tps), width_us)| tps.unwrap() * *width_us as f64 / 1e6)
            .sum();
        let tps = made / (window.end_us - window.start_us) as f64 * 1e6;
        assert!((tps / summary["tps"].as_f64().unwrap() - 1.0).abs() < 1e-3, "{tps}: {summary}");
        let driven = &shown["trial"]["accounting"]["driver_transactions"];
        let heat = detail.heat.as_ref().unwrap();
        assert_eq!(Value::from(heat.counts.iter().flatten().sum::<u64>()), *driven);
        every_reading_is_there(record, detail);
        assert!(detail.explained.is_some() != detail.unexplained.is_some());
    }
    let checkpoint = |detail: &Detail| detail.events.iter().any(|event| event.lane == Lane::Checkpoint);
    assert!(trials.iter().all(|(_, detail)| checkpoint(detail)), "every trial begins with one");
}

/// Checks that the rates of each counter add up to its growth, and that each gauge has the values that were read.
fn every_reading_is_there(record: &TrialRecord, detail: &Detail) {
    assert!(record.metrics.0.len() > 60, "{}", record.metrics.0.len());
    for series in record.metrics.0.iter().filter(|series| !series.points.is_empty()) {
        let is_it =
            |metric: &&analysis::trial::Metric| metric.metric == series.metric && metric.of == series.label;
        let metric = detail.metrics.iter().find(is_it).unwrap();
        let times = &detail.clocks[metric.clock];
        assert!(times.iter().eq(series.points.iter().map(|point| &point.at_us)), "{}", series.metric);
        let (from_us, to_us) = (times[0], times[times.len() - 1]);
        let is_whole = metric.values.iter().skip(1).all(Option::is_some);
        if series.kind == Kind::Counter && is_whole {
            let grown: f64 = metric
                .values
                .iter()
                .zip(times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).fold(
                    vec![0.0],
                    |mut spans, span| {
                        spans.push(span);
                        spans
                    },
                ))
                .filter_map(|(rate, seconds)| Some((*rate)? * seconds))
                .sum();
            let growth = series.growth(from_us, to_us).unwrap();
            assert!(
                (grown - growth).abs() <= growth.abs() * 1e-4,
                "{}: {grown}, not {growth}",
                series.metric
            );
        }
        if series.kind == Kind::Gauge {
            for (point, value) in series.points.iter().zip(&metric.values) {
                assert_eq!(point.value.is_some(), value.is_some(), "{}", series.metric);
                let (read, shown) = (point.value.unwrap_or_default(), value.unwrap_or_default());
                assert!((read - shown).abs() <= read.abs() * 1e-4, "{}: {read} {shown}", series.metric);
            }
        }
    }
}

#[test]
fn a_report_file_has_every_trial_in_detail() {
    let bench = Bench::new(
        "name = 'file'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n\
         [run]\nduration = '300ms'\nrepeats = 2\n",
    );
    let trials = run(&bench);
    let output = bench.pgdyno(&["report", "-o", "report.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let page = std::fs::read_to_string(bench.path().join("report.html")).unwrap();
    for (record, _) in &trials {
        let id = &record.trial.id;
        assert_eq!(page.matches(&format!("<script id=\"trial-{id}\"")).count(), 1, "{id}");
    }
}

/// Two matrices, each with a factor that the other does not have.
const MATRICES: &str = "name = 'matrices'
[factors]
server = ['18']
[[matrix]]
workload = ['select-only']
clients = [1, 2]
rate = [100]
[[matrix]]
workload = ['simple-update']
clients = [2]
protocol = ['simple', 'prepared']
[run]
duration = '200ms'
repeats = 1
";

/// Two servers: the command measures both sides.
const TWO_SERVERS: &str = "name = 'two'
[factors]
server = ['17', '18']
workload = ['select-only']
clients = [1, 2]
[run]
duration = '200ms'
repeats = 1
";

#[test]
fn the_command_of_a_trial_measures_its_cell_and_what_it_is_compared_with() {
    for (campaign, sides) in
        [(CAMPAIGN.replace("2500ms", "200ms"), 1), (MATRICES.to_owned(), 1), (TWO_SERVERS.to_owned(), 2)]
    {
        let bench = Bench::new(&campaign);
        let trials = run(&bench);
        assert_eq!(trials.len(), 4);
        // The campaign's file may have another name, or be gone.
        std::fs::remove_file(bench.path().join("campaign.toml")).unwrap();
        let (record, detail) = trials.into_iter().last().unwrap();
        let command = detail.rerun.unwrap();
        let pasted = command.replacen("pgdyno", env!("CARGO_BIN_EXE_pgdyno"), 1);
        let output = Command::new("sh").args(["-c", &pasted]).current_dir(bench.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}\n{}", text(&output));
        let all = bench.trials();
        let added: Vec<_> = all.iter().filter(|trial| trial.repeat == 2).collect();
        assert_eq!((all.len(), added.len()), (4 + sides, sides), "{command}");
        for trial in added {
            assert_eq!(trial.run.id, record.trial.run.id);
            let cell =
                model::cell::RecordedCell { server: record.trial.cell.server.clone(), ..trial.cell.clone() };
            assert_eq!(cell, record.trial.cell, "{command}");
        }
    }
}
