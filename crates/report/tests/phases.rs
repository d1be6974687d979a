//! Phases of workloads in comparisons, tables and pages.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;
#[path = "../../analysis/tests/fixture/phases.rs"]
mod phases;

use analysis::compare::{Compared, Request, compare};
use analysis::judgement::Outcome;
use analysis::metric::Metric;
use analysis::overview::read;
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, cell, record};
use plaintext::table::Format;
use report::export_tables::{Table, Value};
use report::show::show_phase;
use report::tables;

/// Trials on two servers, of which the second is 20% slower in the phase `load` only.
fn bundles() -> Bundles {
    let mut bundles = Bundles::new();
    for (server, load) in [("17", 100.0), ("18", 80.0)] {
        for run in [1.0, 1.005, 0.995, 1.002, 0.998] {
            let record = record(phases::ingest(cell(server, 4)), 1000.0 * run);
            bundles.write(phases::with_phases(record, load * run));
        }
    }
    bundles
}

fn compared(bundles: &Bundles, metrics: &[&str]) -> Compared {
    let request = Request {
        selectors: ["server=17", "server=18"].map(|text| text.parse().unwrap()).to_vec(),
        run: RunSelection::Latest,
        metrics: metrics.iter().map(|metric| metric.parse().unwrap()).collect(),
        gates: Vec::new(),
        margins: Vec::new(),
    };
    compare(&bundles.reader(), &request).unwrap()
}

#[test]
fn each_phase_is_judged_next_to_the_whole() {
    let compared = compared(&bundles(), &[]);
    let outcomes: Vec<(String, Outcome)> =
        compared.metrics.iter().map(|of| (of.metric.to_string(), of.rows[0].judged.outcome)).collect();
    let names: Vec<&str> = outcomes.iter().map(|(metric, _)| metric.as_str()).collect();
    assert_eq!(names, ["tps", "phase.tps{load}", "phase.tps{overload}"]);
    assert!(matches!(outcomes[1].1, Outcome::Change { .. }), "{outcomes:?}");
    for other in [0, 2] {
        assert!(!matches!(outcomes[other].1, Outcome::Change { .. }), "{outcomes:?}");
    }
}

#[test]
fn the_page_has_the_verdicts_of_the_comparison() {
    let bundles = bundles();
    let view = read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let point = view.panels[0].rows[0].points[1].as_ref().unwrap();
    let verdict = |number: usize| point.phases[number].verdict.as_ref().unwrap();
    let names: Vec<&str> = point.phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, ["load", "overload"]);
    assert_eq!(verdict(0).verdict, "REGRESSION");
    assert!((verdict(0).change.unwrap() + 0.2).abs() < 1e-9 && point.phases[0].n == 5);
    assert_ne!(verdict(1).verdict, "REGRESSION");
    let compared = compared(&bundles, &[]);
    assert_eq!(verdict(0).p_holm, compared.metrics[1].rows[0].judged.p_holm);
}

#[test]
fn any_figure_of_a_phase_can_be_compared() {
    let bundles = bundles();
    let metrics = ["phase.rows{load}", "phase.longest_stall{overload}", "phase.beside.tps{overload/inserts}"];
    let compared = compared(&bundles, &metrics);
    let mean = |at: usize| {
        let values = &compared.metrics[at].rows[0].a.values;
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert!((mean(0) / 5000.0 - 1.0).abs() < 0.01, "50 rows each: {}", mean(0));
    assert_eq!((mean(1).round(), (mean(2) * 10.0).round()), (2_510_000.0, 123.0));
    let trial = bundles.reader().trials()[0].clone();
    let value = |metric: &str| metric.parse::<Metric>().unwrap().head_value(&trial);
    assert_eq!(value("phase.worst_second{read}"), value("worst_second"));
    assert_eq!((value("phase.tps{lode}"), value("phase.rows{overload}")), (None, None));
}

#[test]
fn tables_show_what_each_phase_did_and_which_rates_were_missed() {
    let bundles = bundles();
    let view = read(&bundles.reader(), &RunSelection::Latest).unwrap();
    let text = tables(&view, Format::Table, None);
    let line = |name: &str| {
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{text}"))
    };
    assert!(line("overload").ends_with("2.51  SLA missed"), "{text}");
    assert!(line("inserts").ends_with("of 20.0, 77 never begun"), "{text}");
    assert!(line("read").ends_with("0.0200  judged"), "{text}");

    let reader = bundles.reader();
    let id = &reader.trials()[0].id;
    let one: Selector = id.parse().unwrap();
    let phase = show_phase(&reader, &one, &RunSelection::Latest, "load").unwrap().text(Format::Table, None);
    assert!(phase.contains("100 transactions per second"), "{phase}");
    let error = show_phase(&reader, &one, &RunSelection::Latest, "lode").unwrap_err().to_string();
    assert_eq!(error, format!("trial {id} has no phase \"lode\"; it has load, read, overload"));
    let several = show_phase(&reader, &Selector::default(), &RunSelection::Latest, "load").unwrap_err();
    assert!(several.to_string().starts_with("10 trials are selected"), "{several}");
}

#[test]
fn exported_phases_have_their_own_figures_and_findings() {
    let bundles = bundles();
    let trial = bundles.store.trials().unwrap().remove(0);
    let record = bundles.store.load(&trial.id).unwrap();
    let names: Vec<&str> = Table::Phases.columns().iter().map(|column| column.name).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |row: &[Value<'_>]| -> Result<(), ()> {
        let shown = [
            "phase",
            "position",
            "judged",
            "clients",
            "tps",
            "worst_second_tps",
            "longest_stall_us",
            "findings",
        ];
        let value = |name: &&str| match &row[names.iter().position(|column| column == name).unwrap()] {
            Value::Null => String::new(),
            Value::Integer(value) => value.to_string(),
            Value::Real(value) => value.to_string(),
            Value::Text(text) => text.to_string(),
            Value::Time(time) => time.to_string(),
        };
        rows.push(shown.iter().map(value).collect());
        Ok(())
    };
    Table::Phases.rows_of_trial(&record, &mut add).unwrap();
    let missed = "[{\"gate\":\"background-rate\",\"status\":\"valid\",\"evidence\":\"SLA missed: inserts ran 12.30 of 20 \
                  transactions per second, and 77 that were due (38%) never began\"}]";
    assert_eq!(
        rows,
        [
            ["load", "1", "false", "1", "100", "900", "20000", "[]"],
            ["read", "2", "true", "4", "1000", "900", "20000", "[]"],
            ["overload", "3", "false", "4", "1000", "0", "2510000", missed],
        ]
    );
    // A trial without phases has no rows.
    let mut plain = Bundles::new();
    plain.write(self::record(cell("17", 4), 1000.0));
    let trial = plain.store.trials().unwrap().remove(0);
    let record = plain.store.load(&trial.id).unwrap();
    Table::Phases.rows_of_trial(&record, &mut |_| Err("a row")).unwrap();
}
