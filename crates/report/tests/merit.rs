//! What cells are judged by, and what is reported next to a verdict.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;
#[path = "../../analysis/tests/fixture/scripts.rs"]
mod scripts;

use std::sync::Arc;

use analysis::compare::{Compared, Request, compare};
use analysis::overview;
use analysis::overview::view::{AnswerKind, Panel, Verdict};
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, cell, emulated, on, record, with_metric, with_validity};
use model::cell::Cell;
use model::machine::Acceleration;
use model::merit::{Merit, NamedFigure};
use model::metrics::Kind;
use model::record::{Status, TrialRecord};
use model::units::Rate;
use model::workload::{Custom, Workload};
use plaintext::table::Format;
use report::compare::text;
use report::show::show;
use report::tables;
use scripts::{mix, with_scripts};

const RUNS: [f64; 5] = [1.0, 1.005, 0.995, 1.002, 0.998];

fn compared(bundles: &Bundles, metrics: &[&str], gates: &[&str]) -> Compared {
    let request = Request {
        selectors: ["server=17", "server=18"].map(|text| text.parse::<Selector>().unwrap()).into(),
        run: RunSelection::Latest,
        metrics: metrics.iter().map(|text| text.parse().unwrap()).collect(),
        gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
        margins: Vec::new(),
    };
    compare(&bundles.reader(), &request).unwrap()
}

/// The compared metrics, each with the verdicts on its cells.
fn verdicts(compared: &Compared) -> Vec<(String, Vec<&'static str>)> {
    let names = |of: &analysis::compare::MetricRows| {
        of.rows.iter().map(|row| row.judged.outcome.name(of.metric.better())).collect()
    };
    compared.metrics.iter().map(|of| (of.metric.to_string(), names(of))).collect()
}

fn in_one_line(compared: &Compared) -> String {
    text(compared, Format::Table, None).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn panels(bundles: &Bundles) -> (Vec<Panel>, String) {
    let view = overview::read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let text = tables(&view, Format::Table, None);
    (view.panels, text)
}

fn verdict(panel: &Panel) -> &Verdict {
    panel.rows[0].points[1].as_ref().unwrap().verdict.as_ref().unwrap()
}

/// A trial at 100 transactions per second, which the server keeps up with, and with this p99.
fn at_a_rate(server: &str, p99_us: f64) -> TrialRecord {
    let cell = Cell { rate: Rate::per_second(100.0).unwrap(), ..cell(server, 4) };
    let mut record = record(cell, 100.0);
    let latency = record.trial.summary.as_mut().unwrap().latency.as_mut().unwrap();
    latency.p99_us = Some(p99_us);
    latency.mean_us = Some(p99_us / 4.0);
    record
}

fn open_loops(p99_us: [f64; 2]) -> Bundles {
    let mut bundles = Bundles::new();
    for (server, p99_us) in ["17", "18"].into_iter().zip(p99_us) {
        for run in RUNS {
            bundles.write(at_a_rate(server, p99_us * run));
        }
    }
    bundles
}

#[test]
fn open_loops_are_judged_by_latency_and_their_throughput_is_not() {
    let bundles = open_loops([7_000.0, 24_000.0]);
    let slower = compared(&bundles, &[], &[]);
    let regression = |metric: &str| (metric.to_owned(), vec!["REGRESSION"]);
    assert_eq!(verdicts(&slower), [regression("latency.p99"), regression("latency.mean")]);

    let throughput = compared(&bundles, &["tps"], &["tps < -5%"]);
    assert_eq!(verdicts(&throughput), [("tps".to_owned(), vec!["NO VERDICT"])]);
    assert!(throughput.gates_state().undecided && !throughput.gates_state().hit);
    let page = text(&throughput, Format::Table, None);
    assert!(page.contains("throughput at a rate is the schedule's"), "{page}");

    let (panels, page) = panels(&bundles);
    let figure = &panels[0].figure;
    assert_eq!((&*figure.metric, figure.unit, figure.better), ("latency.p99", "ms", "lower"));
    assert_eq!(verdict(&panels[0]).verdict, "REGRESSION");
    let new = panels[0].rows[0].points[1].as_ref().unwrap();
    assert!(
        (new.mean.unwrap() - 24.0).abs() < 0.01 && (new.secondary.unwrap() - 6.0).abs() < 0.01,
        "{new:?}"
    );
    assert!(panels[0].scalability.iter().all(Option::is_none));
    assert!(page.contains("99th percentile of latency, ms") && page.contains("lower is better"), "{page}");
    assert!(!page.contains("transactions per second"), "{page}");
    assert!(page.contains("latency.p99: REGRESSION"), "{page}");
}

#[test]
fn open_loops_with_equal_latencies_are_equivalent() {
    let bundles = open_loops([7_000.0, 7_010.0]);
    let equivalent = |metric: &str| (metric.to_owned(), vec!["EQUIVALENT"]);
    let same = compared(&bundles, &[], &[]);
    assert_eq!(verdicts(&same), [equivalent("latency.p99"), equivalent("latency.mean")]);
    assert_eq!(same.metrics[0].rows[0].cautions(), []);
}

#[test]
fn a_schedule_that_was_not_kept_is_said_next_to_the_verdict() {
    let mut bundles = open_loops([7_000.0, 7_000.0]);
    for _ in 0..3 {
        let mut behind = at_a_rate("18", 400_000.0);
        behind.trial.summary.as_mut().unwrap().tps = 71.0;
        bundles.write(behind);
    }
    let page = in_one_line(&compared(&bundles, &[], &[]));
    assert_eq!(page.matches("B: behind its schedule").count(), 1, "once for both metrics: {page}");
    assert!(page.contains("behind its schedule in 3 of 8 trials"), "{page}");
    let (panels, page) = panels(&bundles);
    assert_eq!(verdict(&panels[0]).cautions, ["behind its schedule in 3 of 8 trials"]);
    assert!(page.contains("behind its schedule in 3 of 8 trials"), "{page}");
}

fn custom(name: &str, server: &str, clients: u32, change: impl FnOnce(&mut Custom)) -> Cell {
    let mut custom = Custom::new(name, Vec::new());
    change(&mut custom);
    Cell { workload: Workload::Custom(Arc::new(custom)), ..cell(server, clients) }
}

#[test]
fn scans_are_shown_in_seconds_and_as_multiples_of_the_lone_one() {
    let mut bundles = Bundles::new();
    for (clients, tps) in [(1, 0.5), (8, 0.8)] {
        for (server, factor) in [("17", 1.0), ("18", 0.5)] {
            for run in RUNS {
                let scans = custom("scans", server, clients, |scans| scans.iterations = Some(1));
                bundles.write(record(scans, tps * run * factor));
            }
        }
    }
    let (panels, page) = panels(&bundles);
    assert_eq!((&*panels[0].figure.metric, panels[0].figure.unit), ("latency.mean", "s"));
    let points: Vec<_> = panels[0].rows.iter().flat_map(|row| row.points.iter().flatten()).collect();
    let shown: Vec<_> = points
        .iter()
        .map(|point| [point.mean.unwrap(), point.secondary.unwrap()].map(|x| x.round()))
        .collect();
    assert_eq!(shown, [[2.0, 1.0], [4.0, 1.0], [10.0, 5.0], [20.0, 5.0]]);
    assert_eq!(verdict(&panels[0]).verdict, "REGRESSION");
    assert!(page.contains("mean length of a transaction, s"), "{page}");
    assert!(!page.contains("transactions per second"), "{page}");
    let names: Vec<String> = verdicts(&compared(&bundles, &[], &[])).into_iter().map(|of| of.0).collect();
    assert_eq!(names, ["latency.mean"]);
}

#[test]
fn block_reads_are_shown_and_judged_as_blocks_per_second() {
    let mut bundles = Bundles::new();
    for (server, factor) in [("17", 1.0), ("18", 0.8)] {
        for run in RUNS {
            let cell = custom("blocks", server, 4, |blocks| blocks.figure = NamedFigure(Some(Merit::Blocks)));
            let mut record = record(cell, 368.0 * run * factor);
            let visited = 368.0 * run * factor * 4096.0 * 10.0;
            for (metric, value) in [
                ("pg.table.index_tuples_fetched", visited),
                ("pg.table.heap_blks_read", visited / 10.0),
                ("pg.table.index_blks_read", 0.0),
            ] {
                record = with_metric(record, metric, Some("b"), Kind::Counter, [Some(0.0), Some(value)]);
            }
            bundles.write(record);
        }
    }
    let (panels, page) = panels(&bundles);
    let point = panels[0].rows[0].points[0].as_ref().unwrap();
    assert_eq!((&*panels[0].figure.metric, panels[0].figure.unit), ("blocks.visited", "blocks/s"));
    assert!((point.mean.unwrap() / (368.0 * 4096.0) - 1.0).abs() < 1e-3, "{point:?}");
    assert!((point.secondary.unwrap() / (36.8 * 4096.0) - 1.0).abs() < 1e-3, "{point:?}");
    assert_eq!(verdict(&panels[0]).verdict, "REGRESSION");
    assert!(page.contains("blocks per second"), "{page}");
    let of = verdicts(&compared(&bundles, &[], &[]));
    assert_eq!(of[0], ("blocks.visited".to_owned(), vec!["REGRESSION"]));
    assert_eq!(of[1].0, "blocks.physical_reads");
}

#[test]
fn counted_cells_are_shown_and_judged_as_path_length() {
    let mut bundles = Bundles::new();
    for (kernel, factor) in [("6.1", 1.0), ("6.12", 0.9)] {
        for run in RUNS {
            bundles.write(emulated(on(kernel, Acceleration::Icount, 1), 1000.0 * run * factor));
        }
    }
    let (panels, page) = panels(&bundles);
    assert_eq!((&*panels[0].figure.metric, panels[0].figure.better), ("instructions", "lower"));
    let change = verdict(&panels[0]).change.unwrap();
    assert!((change - (1.0 / 0.9 - 1.0)).abs() < 1e-9, "{change}");
    assert!(page.contains("instructions per transaction") && page.contains("+11.1%"), "{page}");
    assert!(!page.contains("transactions per second"), "{page}");
}

/// Trials of 17 and 18, with these findings on each.
fn with_findings(findings: [&[(Status, &str)]; 2]) -> Bundles {
    let mut bundles = Bundles::new();
    for (server, findings) in ["17", "18"].into_iter().zip(findings) {
        for (nth, run) in RUNS.into_iter().chain([1.0; 2]).enumerate() {
            let record = record(cell(server, 4), 1000.0 * run * if server == "17" { 1.0 } else { 0.8 });
            bundles.write(match findings.get(nth) {
                Some((status, gate)) => with_validity(record, *status, gate),
                None => record,
            });
        }
    }
    bundles
}

#[test]
fn two_saturated_drivers_get_no_verdict_and_one_is_a_confound() {
    let saturated = [(Status::Suspect, "driver-saturated"); 5];
    let both = with_findings([&saturated, &saturated]);
    let found = compared(&both, &[], &["tps < -5%"]);
    assert_eq!(verdicts(&found), [("tps".to_owned(), vec!["NO VERDICT"])]);
    assert!(found.gates_state().undecided);
    let page = text(&found, Format::Table, None);
    assert!(page.contains("the driver was saturated on both sides"), "{page}");
    assert!(panels(&both).1.contains("NO VERDICT"));

    let one = with_findings([&[], &saturated]);
    let found = compared(&one, &[], &[]);
    assert_eq!(verdicts(&found), [("tps".to_owned(), vec!["REGRESSION"])]);
    let caution = "driver-saturated in 5 of 7 trials, and in none of the other side: a confound";
    assert_eq!(found.metrics[0].rows[0].cautions()[0].text, caution);
    let page = in_one_line(&found);
    assert!(page.contains(caution), "{page}");
}

#[test]
fn crashes_are_reported_next_to_the_verdict() {
    let crashed = with_findings([&[], &[(Status::Invalid, "server-exited"); 2]]);
    let page = in_one_line(&compared(&crashed, &[], &[]));
    assert!(page.contains("server-exited in 2 of 7 trials, which are not used"), "{page}");
    let (panels, page) = panels(&crashed);
    assert_eq!(verdict(&panels[0]).cautions, ["server-exited in 2 of 7 trials, which are not used"]);
    assert!(page.contains("server-exited in 2 of 7 trials, which are not used"), "{page}");
}

/// The change is of the figures next to it, however skewed the runs are: their medians fall, their means rise.
#[test]
fn a_row_has_one_statistic() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 4), &[2163.0, 2160.0, 1000.0]);
    bundles.runs(&cell("18", 4), &[1812.0, 1800.0, 1815.0]);
    let (panels, page) = panels(&bundles);
    let [a, b] = [0, 1].map(|at| panels[0].rows[0].points[at].as_ref().unwrap().mean.unwrap());
    assert!((b / a - 1.0 - verdict(&panels[0]).change.unwrap()).abs() < 1e-12);
    assert!(page.contains("1,672") && page.contains("1,809") && page.contains("+8.2%"), "{page}");
    let page = text(&compared(&bundles, &[], &[]), Format::Table, None);
    assert!(page.contains("1,672") && page.contains("1,809") && page.contains("+8.2%"), "{page}");
}

/// An undecided cell comes with what decides it: a command that runs, and its time.
#[test]
fn without_a_verdict_the_first_line_says_what_to_do() {
    let mut bundles = Bundles::new();
    for (server, runs) in [("17", [1000.0, 1120.0, 940.0]), ("18", [1060.0, 930.0, 1100.0])] {
        for clients in [1, 8] {
            for tps in runs {
                let mut record = record(cell(server, clients), tps);
                let started = record.trial.started.unwrap();
                record.trial.ended = Some(started + std::time::Duration::from_secs(30));
                bundles.write(record);
            }
        }
    }
    let view = overview::read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let [answer] = view.answers.as_slice() else { unreachable!("one comparison") };
    assert_eq!(answer.kind, AnswerKind::Open);
    assert_eq!(answer.sentence, "no verdict in 2 of 2 cells: too noisy (2 unstable)");
    assert_eq!(answer.confidence, None);
    let [next] = answer.next.as_slice() else { unreachable!("{answer:?}") };
    let sentence = next.to_string();
    let wanted: usize = sentence.split("repeats=").nth(1).unwrap().parse().unwrap();
    assert!((50..300).contains(&wanted), "{sentence}");
    // Four cells lack as many trials of half a minute.
    let more = plaintext::figures::duration(((wanted - 3) * 4 * 30) as f64);
    let told = format!(
        "{wanted} runs a side would decide whether it changed by 5%, about {more} more: pgdyno resume --run {}",
        bundles::RUN
    );
    assert!(sentence.contains(&told), "{sentence}");
    let page = in_one_line(&compared(&bundles, &[], &[]));
    assert!(page.contains(&told), "{page}");

    // A decided cell needs nothing.
    let mut decided = Bundles::new();
    decided.runs(&cell("17", 1), &RUNS.map(|run| 1000.0 * run));
    decided.runs(&cell("18", 1), &RUNS.map(|run| 500.0 * run));
    let page = in_one_line(&compared(&decided, &[], &[]));
    assert!(!page.contains("pgdyno resume"), "{page}");
}

/// Two servers whose mixes have the same throughput, and reads and writes that take so many times as long on the second.
fn mixes(read: f64, write: f64) -> Bundles {
    let mut bundles = Bundles::new();
    for (server, read, write) in [("17", 1.0, 1.0), ("18", read, write)] {
        for run in RUNS {
            let record = record(mix(cell(server, 4)), 1000.0 * run);
            bundles.write(with_scripts(record, [200.0 * run * read, 1000.0 * run * write]));
        }
    }
    bundles
}

#[test]
fn each_script_of_a_mix_is_judged_next_to_the_whole() {
    let bundles = mixes(1.0, 1.4);
    let found = compared(&bundles, &[], &[]);
    let expected = [
        ("tps", "EQUIVALENT"),
        ("script.latency.mean{read.sql}", "EQUIVALENT"),
        ("script.latency.mean{write.sql}", "REGRESSION"),
    ];
    assert_eq!(verdicts(&found), expected.map(|(metric, verdict)| (metric.to_owned(), vec![verdict])));
    // Both scripts are one family: the smaller p is doubled.
    let row = &found.metrics[2].rows[0];
    let p = row.judged.comparison.as_ref().unwrap().estimate.unwrap().p;
    assert!((row.judged.p_holm.unwrap() / p - 2.0).abs() < 1e-9);
    let p = found.metrics[0].rows[0].judged.comparison.as_ref().unwrap().estimate.unwrap().p;
    assert_eq!(found.metrics[0].rows[0].judged.p_holm, Some(p));
    // Throughputs by script are there if they are asked for.
    let found = compared(&bundles, &["script.tps{read.sql}"], &[]);
    assert_eq!(found.metrics[0].rows[0].a.values, [90.0; 5]);
}

#[test]
fn a_report_has_the_verdict_of_compare_on_each_script() {
    let bundles = mixes(1.0, 1.4);
    let found = compared(&bundles, &[], &[]);
    let view = overview::read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let point = view.panels[0].rows[0].points[1].as_ref().unwrap();
    assert_eq!(point.verdict.as_ref().unwrap().verdict, "EQUIVALENT");
    for (of, script) in found.metrics[1..].iter().zip(&point.scripts) {
        let (row, verdict) = (&of.rows[0], script.verdict.as_ref().unwrap());
        assert_eq!(script.metric, of.metric.to_string());
        assert_eq!(verdict.verdict, row.judged.outcome.name(of.metric.better()));
        assert_eq!(verdict.p_holm, row.judged.p_holm);
        assert_eq!(verdict.change, row.ratio().map(|ratio| ratio - 1.0));
    }
    // The script that changed is the first sentence, the other one is not mentioned.
    let sentence = &view.answers[0].sentence;
    assert!(sentence.starts_with("script.latency.mean{write.sql}: REGRESSION: +40.0%"), "{sentence}");
    assert!(sentence.ends_with(". tps: EQUIVALENT: 0.0% (-0.6% to +0.6%)"), "{sentence}");
    assert!(!sentence.contains("read.sql"), "{sentence}");
    // Each trial has the figures of its scripts.
    let scripts = &point.runs[0].scripts;
    assert_eq!(scripts.iter().map(|of| of.transactions).collect::<Vec<_>>(), [900, 100]);
    let mean = scripts[1].latency.as_ref().unwrap().mean_us.unwrap();
    assert!((mean - 1400.0).abs() < 2.0, "{mean}");
    let page = tables(&view, Format::Table, None);
    let line =
        page.lines().find(|line| line.starts_with("write.sql") && line.contains("PostgreSQL 18")).unwrap();
    assert!(line.contains("1.401") && line.contains("+40.0%") && line.ends_with("REGRESSION"), "{page}");
}

#[test]
fn a_report_does_not_mention_scripts_that_did_not_change() {
    let view = overview::read(&mixes(1.0, 1.0).reader(), &RunSelection::Latest).unwrap();
    let point = view.panels[0].rows[0].points[1].as_ref().unwrap();
    let verdicts = point.scripts.iter().map(|script| script.verdict.as_ref().unwrap().verdict);
    assert_eq!(verdicts.collect::<Vec<_>>(), ["EQUIVALENT"; 2]);
    let [answer] = view.answers.as_slice() else { unreachable!("one comparison") };
    assert!(answer.sentence.starts_with("EQUIVALENT"), "{answer:?}");
    assert!(!answer.sentence.contains("script"), "{answer:?}");
}

#[test]
fn show_has_the_scripts_of_cells_and_of_a_trial() {
    let bundles = mixes(1.0, 1.4);
    let shown = |what: &str, format| {
        let selector: Selector = what.parse().unwrap();
        show(&bundles.reader(), &selector, &RunSelection::Latest).unwrap().text(format, None)
    };
    let cells = shown("latest", Format::Table);
    let line = cells.lines().find(|line| line.starts_with("write.sql") && line.contains("18")).unwrap();
    assert!(line.contains("+40.0%") && line.ends_with("REGRESSION"), "{cells}");
    let csv = shown("latest", Format::Csv);
    let lines = csv.lines().filter(|line| line.contains("script.latency.mean{write.sql},µs,"));
    assert_eq!(lines.map(|line| line.ends_with(",REGRESSION")).collect::<Vec<_>>(), [false, true], "{csv}");
    assert!(
        csv.lines().all(|line| line.matches(',').count() == csv.lines().next().unwrap().matches(',').count())
    );
    let last = bundles.reader().trials().last().unwrap().id.clone();
    let trial = shown(&last, Format::Table);
    let line = trial.lines().find(|line| line.starts_with("write.sql")).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields[..4], ["write.sql", "10.0", "100", "0"], "{trial}");
    assert!(shown(&last, Format::Csv).contains("latency of write.sql,mean,"));
    assert!(!shown(&last, Format::Csv).contains("latency of write.sql,mean,\n"));
}
