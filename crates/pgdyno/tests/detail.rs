//! Details of real trials: their figures are those of the bundle, and their command measures the same cell again.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::process::Command;

use analysis::trial::{Curve, Detail, Lane, Points, detail};
use hdrhistogram::Histogram;
use model::message::Phase;
use model::metrics::Kind;
use model::record::{Latency, TrialRecord};
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

/// The histograms of a bundle that have this tag, merged.
fn merged(bench: &Bench, record: &TrialRecord, tag: &str) -> Histogram<u64> {
    let bundle = bench.path().join(".pgdyno/trials").join(&record.trial.id);
    support::merged(&fs::read_to_string(bundle.join("latency.hlog")).unwrap(), tag)
}

/// Checks that a curve, a summary and the histograms of the window agree.
fn assert_same(curve: &Curve, summary: &Latency, window: &Histogram<u64>) {
    assert_eq!(curve.count, window.len());
    let us = |share: f64| Some(window.value_at_quantile(share) as f64 / 1e3);
    let shares = [us(0.5), us(0.9), us(0.95), us(0.99), us(0.999), us(1.0)];
    let Latency { p50_us, p90_us, p95_us, p99_us, p999_us, max_us, .. } = *summary;
    assert_eq!([p50_us, p90_us, p95_us, p99_us, p999_us, max_us], shares);
    assert_eq!(summary.mean_us, Some(window.mean() / 1e3));
    assert_eq!(summary.min_us, Some(window.min() as f64 / 1e3));
    for (share, figure) in [(0.0, summary.min_us), (0.5, p50_us), (1.0, max_us)] {
        let at = curve.us[curve.q.iter().position(|q| *q == share).unwrap()];
        // Histograms have three significant digits.
        assert!((at / figure.unwrap() - 1.0).abs() < 2e-3, "{share}: {at}, not {figure:?}");
    }
}

/// Transactions of an open loop that did not end: all that were due in the window.
fn unfinished(record: &TrialRecord) -> u64 {
    let scripts = record.intervals.iter().flat_map(|interval| &interval.scripts);
    scripts.filter_map(|script| script.unfinished).sum()
}

#[test]
fn figures_are_the_bundle_s() {
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
        let script = record.trial.cell.workload.known().unwrap().name();
        let window = merged(&bench, record, script);
        assert_same(detail.intended.as_ref().unwrap(), known.latency.as_ref().unwrap(), &window);
        assert_eq!(summary["latency"]["p99_us"].as_f64(), known.latency.as_ref().unwrap().p99_us);
        match (&detail.service, &known.service) {
            (Some(curve), Some(figures)) => {
                assert_same(curve, figures, &merged(&bench, record, &format!("{script}:service")));
            }
            (curve, figures) => {
                assert_eq!((curve, figures), (&None, &None));
                assert_eq!(Value::from(window.len()), summary["transactions"]);
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
        let ended = heat.counts.iter().flatten().sum::<u64>() - unfinished(record);
        assert_eq!(Value::from(ended), *driven);
        every_reading_is_there(record, detail);
        assert!(detail.explained.is_some() != detail.unexplained.is_some());
    }
    let checkpoint = |detail: &Detail| detail.events.iter().any(|event| event.lane == Lane::Checkpoint);
    assert!(trials.iter().all(|(_, detail)| checkpoint(detail)), "every trial begins with one");
}

/// A table is locked from the window to its end: some transactions end after it, others never begin.
#[test]
fn a_stall_across_the_end_of_a_window_is_in_every_figure() {
    let bench = Bench::new(
        "name = 'stall'\n[factors]\nserver = ['18']\nworkload = ['stalled']\nclients = [4]\nrate = [200]\n\
         [run]\nduration = '2s'\nwarmup = '500ms'\nrepeats = 1\nseed = 7\n\
         [workloads.stalled]\nbuiltin = 'select-only'\n\
         background = [{ workload = 'lock.sql', start = '1500ms' }]\n",
    );
    // It is cancelled when the load ends.
    let lock = "BEGIN;\nLOCK pgbench_accounts;\nSELECT pg_sleep(60);\nCOMMIT;\n";
    fs::write(bench.path().join("lock.sql"), lock).unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    let trial = bench.trials().pop().unwrap_or_else(|| panic!("{}", text(&output)));
    let record = bench.store().load(&trial.id).unwrap();
    let detail = detail(&record, Points::All);
    let summary = record.trial.summary.as_ref().unwrap();

    let window = merged(&bench, &record, "select-only");
    assert_same(detail.intended.as_ref().unwrap(), summary.latency.as_ref().unwrap(), &window);
    let service = merged(&bench, &record, "select-only:service");
    assert_same(detail.service.as_ref().unwrap(), summary.service.as_ref().unwrap(), &service);
    assert!(window.max() > 500_000_000, "{}", window.max());
    let unfinished = unfinished(&record);
    assert!(unfinished > 20, "{unfinished}");
    let ended_in = |phases: &[Phase]| -> u64 {
        let intervals = record.intervals.iter().filter(|interval| phases.contains(&interval.phase));
        intervals.flat_map(|interval| &interval.scripts).map(|script| script.transactions).sum()
    };
    assert!(ended_in(&[Phase::Drain]) > 0 && merged(&bench, &record, "select-only:drain").is_empty());
    let ended = ended_in(&[Phase::Warmup, Phase::Measure, Phase::Drain]);
    let counted = [window, merged(&bench, &record, "select-only:warmup")].map(|histogram| histogram.len());
    assert_eq!(counted.iter().sum::<u64>(), ended + unfinished);
    let counted = detail.heat.unwrap().counts.iter().flatten().sum::<u64>();
    assert_eq!(counted, ended + unfinished);
    let missing = &summary.statistics.as_ref().unwrap().missing;
    assert!(missing["percentiles"].starts_with(&format!("{unfinished} transactions")), "{missing:?}");
    let output = bench.pgdyno(&["store", "check"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
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
duration = '1s'
repeats = 1
";

/// Two servers: the command measures both sides.
const TWO_SERVERS: &str = "name = 'two'
[factors]
server = ['17', '18']
workload = ['select-only']
clients = [1, 2]
[run]
duration = '1s'
repeats = 1
";

#[test]
fn the_command_of_a_trial_measures_its_cell_and_what_it_is_compared_with() {
    for (campaign, sides) in
        [(CAMPAIGN.replace("2500ms", "1s"), 1), (MATRICES.to_owned(), 1), (TWO_SERVERS.to_owned(), 2)]
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
