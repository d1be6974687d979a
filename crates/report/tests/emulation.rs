//! Cells of emulated kernels: their notes, and the cells that they are never compared with.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use analysis::compare::{Request, compare};
use analysis::history::{HistoryAxis, Tested, history};
use analysis::metric::Metric;
use analysis::overview::{read, view::View};
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, cell, emulated, on, virtual_machines};
use model::machine::Acceleration;
use model::record::TrialRecord;
use plaintext::table::Format;
use report::compare::text;
use report::tables;
use strum::VariantArray;

const STEADY: [f64; 5] = [1000.0, 1001.0, 999.0, 1000.5, 999.5];
const PATH_LENGTH: &str = "time is virtual: one instruction takes one nanosecond";
const NO_VERDICT: &str = "emulated in real time: no verdict";

/// Throughputs of two kernels by each acceleration, and the host's own; the newer one takes 5.3% more instructions.
fn kernels() -> Bundles {
    let mut bundles = Bundles::new();
    bundles.runs(&on("host", Acceleration::None, 4), &STEADY);
    for (kernel, factor) in [("6.1", 1.0), ("6.12", 0.95)] {
        for &acceleration in Acceleration::VARIANTS {
            for tps in STEADY {
                bundles.write(trial(kernel, acceleration, tps * factor));
            }
        }
    }
    bundles
}

fn trial(kernel: &str, acceleration: Acceleration, tps: f64) -> TrialRecord {
    emulated(on(kernel, acceleration, 4), tps)
}

/// The page before it is wrapped.
fn in_one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn request(selectors: &[&str], metric: &str, gates: &[&str]) -> Request {
    Request {
        selectors: selectors.iter().map(|text| text.parse::<Selector>().unwrap()).collect(),
        run: RunSelection::Latest,
        metrics: vec![metric.parse().unwrap()],
        gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
        margins: Vec::new(),
    }
}

fn view() -> View {
    read(&kernels().reader(), &RunSelection::Latest).unwrap()
}

#[test]
fn a_report_holds_cells_of_one_acceleration_against_each_other_and_no_others() {
    let view = view();
    let conditions: Vec<&str> = view
        .panels
        .iter()
        .map(|panel| {
            panel.conditions.iter().find(|one| one.starts_with("acceleration")).map_or("", String::as_str)
        })
        .collect();
    assert_eq!(
        conditions,
        ["acceleration none", "acceleration kvm", "acceleration tcg", "acceleration icount"]
    );
    let labels: Vec<&str> = view.columns.iter().map(|column| column.label.as_str()).collect();
    assert!(labels[0].ends_with("kernel host") && labels[2].ends_with("kernel 6.12"), "{labels:?}");
    let counts = |panel: usize| -> Vec<usize> {
        view.panels[panel].rows[0].points.iter().flatten().map(|point| point.n).collect()
    };
    assert_eq!(counts(0), [5, 5, 5]);
    // The host's own kernel is compared only with kernels that ran on the machine itself.
    assert!((1..4).all(|panel| counts(panel) == [5, 5]));
    assert!(view.panels[1..].iter().all(|panel| panel.rows[0].points[0].is_none()));
}

#[test]
fn a_report_gives_no_verdict_on_what_was_emulated_in_real_time_and_says_why() {
    let view = read(&virtual_machines().reader(), &RunSelection::Latest).unwrap();
    let verdicts: Vec<_> = view
        .panels
        .iter()
        .map(|panel| panel.rows[0].points[1].as_ref().unwrap().verdict.clone().unwrap())
        .collect();
    let names: Vec<&str> = verdicts.iter().map(|verdict| verdict.verdict).collect();
    assert_eq!(names, ["REGRESSION", "NO VERDICT", "REGRESSION"]);
    assert_eq!((verdicts[1].change, verdicts[1].ci95_low, verdicts[1].p_holm), (None, None, None));
    let sentence = &view.answers[0].sentence;
    assert!(sentence.starts_with("tps: 2 of 4 cells regressed, 2 no verdict"), "{sentence}");

    let tables = tables(&view, Format::Table, None);
    let page = in_one_line(&tables);
    assert_eq!(page.matches(NO_VERDICT).count(), 1, "{page}");
    assert_eq!(page.matches(PATH_LENGTH).count(), 1, "{page}");
    assert!(page.contains("1,000,000") && page.contains("1,111,111"), "{page}");
    assert_eq!(
        tables.lines().filter(|line| line.ends_with("· instructions per transaction")).count(),
        1,
        "one table of three\n{page}"
    );
}

#[test]
fn two_percent_of_the_path_length_are_a_change_and_of_throughput_they_are_not() {
    let mut bundles = Bundles::new();
    for acceleration in [Acceleration::Kvm, Acceleration::Icount] {
        for (kernel, factor) in [("6.1", 1.0), ("6.12", 0.98)] {
            for tps in &STEADY[..3] {
                bundles.write(trial(kernel, acceleration, tps * factor));
            }
        }
    }
    let view = read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let verdict = |panel: &analysis::overview::view::Panel| {
        panel.rows[0].points[1].as_ref().unwrap().verdict.as_ref().unwrap().verdict
    };
    let names: Vec<&str> = view.panels.iter().map(verdict).collect();
    assert_eq!(names, ["EQUIVALENT", "REGRESSION"]);
}

#[test]
fn nothing_is_noted_where_nothing_was_emulated() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 4), &STEADY);
    bundles.runs(&on("6.1", Acceleration::Kvm, 4), &STEADY);
    let view = read(&bundles.reader(), &RunSelection::Latest).unwrap();
    assert!(view.notes.is_empty());
    assert!(!tables(&view, Format::Table, None).contains("instructions"));
}

#[test]
fn compare_gives_no_verdict_on_what_was_emulated_in_real_time() {
    let bundles = kernels();
    let sides = ["kernel=6.1,acceleration=tcg", "kernel=6.12,acceleration=tcg"];
    let compared = compare(&bundles.reader(), &request(&sides, "tps", &["tps < -1%"])).unwrap();
    let row = &compared.metrics[0].rows[0];
    assert_eq!(row.judged.outcome.name(Metric::Tps.better()), "NO VERDICT");
    assert_eq!((row.ratio(), row.judged.p_holm), (None, None));
    assert!(!compared.gates_state().hit);
    assert_eq!(compared.gates[0].undecided, [0], "a gate is not passed by what has no verdict");
    let page = text(&compared, Format::Table, None);
    assert!(page.contains(NO_VERDICT), "{page}");
}

#[test]
fn instructions_are_compared_and_fewer_are_better() {
    let bundles = kernels();
    let sides = ["kernel=6.1,acceleration=icount", "kernel=6.12,acceleration=icount"];
    let compared = compare(&bundles.reader(), &request(&sides, "instructions", &[])).unwrap();
    let row = &compared.metrics[0].rows[0];
    assert_eq!(row.judged.outcome.name(Metric::Instructions.better()), "REGRESSION");
    assert!((row.ratio().unwrap() - 1.0 / 0.95).abs() < 1e-9);
    let page = in_one_line(&text(&compared, Format::Table, None));
    assert!(page.contains("instructions per transaction") && page.contains(PATH_LENGTH), "{page}");
    let sides = ["kernel=6.1,acceleration=kvm", "kernel=6.12,acceleration=kvm"];
    let error = compare(&bundles.reader(), &request(&sides, "instructions", &[])).unwrap_err().to_string();
    assert!(error.contains("no compared trial has the metric instructions"), "{error}");
}

#[test]
fn cells_of_two_accelerations_are_never_compared_however_they_are_selected() {
    let bundles = kernels();
    let trials = bundles.store.trials().unwrap();
    let ids = |acceleration: Acceleration| {
        let selected = trials.iter().filter(|trial| {
            trial.cell.acceleration == acceleration && trial.cell.kernel == Some("6.12".to_owned())
        });
        selected.map(|trial| trial.id.clone()).collect::<Vec<_>>().join(",")
    };
    for [a, b] in [
        ["kernel=6.1,acceleration=icount", "kernel=6.1,acceleration=kvm"],
        ["kernel=6.12,acceleration=none", "kernel=6.12,acceleration=icount"],
        ["kernel=host", "kernel=6.12,acceleration=icount"],
        [&ids(Acceleration::Tcg), &ids(Acceleration::Kvm)],
    ] {
        let error = compare(&bundles.reader(), &request(&[a, b], "tps", &[])).unwrap_err().to_string();
        assert!(
            error.contains("share no cell") && error.contains("select cells of one acceleration"),
            "{error}"
        );
    }
    // If only kernels are selected, each acceleration is a separate cell.
    let compared = compare(&bundles.reader(), &request(&["kernel=6.1", "kernel=6.12"], "tps", &[])).unwrap();
    let rows = &compared.metrics[0].rows;
    assert_eq!(
        rows.iter().map(|row| (row.a.values.len(), row.b.values.len())).collect::<Vec<_>>(),
        [(5, 5); 4]
    );
    let without = rows.iter().filter(|row| row.judged.comparison.is_none()).count();
    assert_eq!(without, 1);
}

#[test]
fn a_history_has_a_series_for_each_acceleration_and_searches_no_emulated_time() {
    let mut bundles = Bundles::new();
    for minor in 1..=12 {
        for acceleration in [Acceleration::Tcg, Acceleration::Icount] {
            let level = if minor < 7 { 1.0 } else { 0.8 };
            STEADY[..3]
                .iter()
                .for_each(|tps| drop(bundles.write(trial(&format!("6.{minor}"), acceleration, tps * level))));
        }
    }
    let asked = |control: Option<&str>| analysis::history::Request {
        metric: Metric::Tps,
        over: HistoryAxis::Kernel,
        selectors: Vec::new(),
        control: control.map(|text| text.parse().unwrap()),
        without: Vec::new(),
        gates: Vec::new(),
        newest: None,
        only_own: false,
        repository: None,
    };
    let found = history(&bundles.reader(), &asked(None)).unwrap();
    let tested: Vec<Tested> = found.series.iter().map(|series| series.tested).collect();
    assert_eq!(tested, [Tested::Emulated, Tested::Yes]);
    assert_eq!(found.shifts.len(), 1);
    let page = in_one_line(&report::history::text(&found, Format::Table, None));
    assert!(page.contains("been emulated in real time: no verdict"), "{page}");
    assert!(page.contains(PATH_LENGTH), "{page}");
}
