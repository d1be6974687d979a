//! What `pgdyno history` finds, and what it says of what it can't tell.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "fixture/bundles.rs"]
mod bundles;

use std::path::Path;

use bundles::{Bundles, cell, judged, record, run};
use model::plan::Cell;
use model::record::{Status, TrialRecord};
use report::Selector;
use report::compare::Levels;
use report::history::{Decision, Document, History, Order, Over, Request, Shift, Tested, history, text};
use report::metric::Metric;
use report::table::Format;

fn no_git(_: &Path, _: &[String]) -> Option<Vec<String>> {
    None
}

fn request(over: Over) -> Request<'static> {
    Request {
        metric: Metric::Tps,
        over,
        selector: Selector::default(),
        control: None,
        without: Vec::new(),
        gates: Vec::new(),
        newest: None,
        git: &no_git,
    }
}

fn of(bundles: &Bundles, over: Over) -> History {
    history(&bundles.store, &request(over)).unwrap()
}

fn refused(bundles: &Bundles, request: &Request<'_>) -> String {
    history(&bundles.store, request).unwrap_err().to_string()
}

/// Between which steps each shift is, with the scale and clients of its cells.
fn shifts(history: &History) -> Vec<(&str, &str, Vec<String>)> {
    let level = |levels: &Levels, name: &str| {
        levels.iter().find(|(factor, _)| factor.name() == name).unwrap().1.clone()
    };
    let cells = |shift: &Shift| {
        let of = |at: usize| {
            let levels = &history.series[at].cell;
            format!("{}/{}", level(levels, "scale"), level(levels, "clients"))
        };
        shift.event.changes.iter().map(|(at, _)| of(*at)).collect::<Vec<_>>()
    };
    let label = |at: usize| history.steps[at].label.as_str();
    history
        .shifts
        .iter()
        .map(|shift| (label(shift.event.before), label(shift.event.after), cells(shift)))
        .collect()
}

/// The read-only history of 2016: 33 kernels, four of them second builds of others.
fn kernels() -> Bundles {
    let mut bundles = Bundles::new();
    for line in include_str!("../../stats/tests/data/kernels-2016-read-only.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kernel, scale, _, _, clients, tps] = fields[..] else { panic!("{line}") };
        let mut cell = cell("9.5", clients.parse().unwrap());
        cell.scale = scale.parse().unwrap();
        cell.kernel = Some(kernel.to_owned());
        bundles.write(record(cell, tps.parse().unwrap()));
    }
    bundles
}

#[test]
fn the_kernels_of_2016_shift_where_a_reader_sees_it() {
    let bundles = kernels();
    let all = of(&bundles, Over::Kernel);
    println!("{}", text(&all, Format::Table, false));
    let without =
        ["3.10.101-stats", "3.11.10-stats", "3.12.58-stats", "4.6.0-stats"].map(str::to_owned).into();
    let found = history(&bundles.store, &Request { without, ..request(Over::Kernel) }).unwrap();
    println!("{}", text(&found, Format::Table, false));
    println!("{}", text(&found, Format::Markdown, false));
    println!("{}", serde_json::to_string(&Document::of(&found)).unwrap().len());
    println!("{:?}", shifts(&found));
}
