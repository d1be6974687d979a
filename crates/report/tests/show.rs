//! Output of `pgdyno show` for a trial and for cells, on terminals and in files.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use std::collections::BTreeSet;

use analysis::explain::explain_cell;
use analysis::select::{RunSelection, Selector};
use bundles::{Bundles, RUN, cell, record, ten_minutes, with_validity};
use model::record::Status;
use plaintext::table::Format;
use report::Terminal;
use report::explain::text;
use report::show::{Shown, show};

fn shown(bundles: &Bundles, selector: &str) -> Shown {
    let selector = if selector.is_empty() { Selector::default() } else { selector.parse().unwrap() };
    show(&bundles.reader(), &selector, &RunSelection::Latest).unwrap()
}

fn on(shown: &Shown, width: usize) -> String {
    shown.text(Format::Table, Some(Terminal { width, colours: false }))
}

fn of_one_trial() -> (Bundles, Shown) {
    let mut bundles = Bundles::new();
    bundles.write(with_validity(ten_minutes(), Status::Suspect, "steal"));
    let shown = shown(&bundles, "");
    (bundles, shown)
}

/// A spike and a gap of one second in 600 are both visible at their places, in few columns.
#[test]
fn a_trial_on_a_terminal() {
    let (_bundles, shown) = of_one_trial();
    insta::assert_snapshot!(on(&shown, 80));
}

#[test]
fn a_trial_in_a_file() {
    let (_bundles, shown) = of_one_trial();
    insta::assert_snapshot!(shown.text(Format::Table, None));
}

/// Two servers, 18 slower by 10% with 8 clients; one trial is invalid.
fn sweep() -> Bundles {
    let mut bundles = Bundles::new();
    for (server, factor) in [("17", 1.0), ("18", 0.9)] {
        bundles.runs(&cell(server, 1), &[1000.0, 1005.0, 995.0, 1002.0, 998.0]);
        bundles.runs(&cell(server, 8), &[4000.0, 4300.0, 3900.0, 4100.0, 3990.0].map(|tps| tps * factor));
    }
    bundles.write(with_validity(record(cell("18", 8), 9000.0), Status::Invalid, "clients"));
    bundles
}

#[test]
fn cells_on_a_terminal() {
    insta::assert_snapshot!(on(&shown(&sweep(), ""), 80));
}

/// Without an answer, the reason and the command that would decide it come first; the command can be copied.
#[test]
fn an_open_answer_says_so_and_what_to_do() {
    let mut bundles = Bundles::new();
    for server in ["17", "18"] {
        bundles.runs(&cell(server, 1), &[1000.0, 1220.0, 840.0, 1110.0, 930.0]);
    }
    let shown = shown(&bundles, "");
    let page = on(&shown, 80);
    let lines: Vec<&str> = page.lines().collect();
    let answer =
        lines.iter().position(|line| line.starts_with("No answer on PostgreSQL 18 against ")).unwrap();
    let next = lines.iter().position(|line| line.starts_with("  next: ")).unwrap();
    let table = lines.iter().position(|line| line.starts_with("clients ")).unwrap();
    assert!(answer < next && next < table, "{page}");
    let command = lines.iter().find(|line| line.contains("pgdyno resume")).unwrap();
    assert!(command.starts_with(&format!("    pgdyno resume --run {RUN} --set repeats=")), "{page}");
    let document = serde_json::to_value(shown.document()).unwrap();
    assert_eq!(document["answers"][0]["kind"], "open");
    assert_eq!(document["answers"][0]["next"][0]["commands"][0], command.trim());
}

#[test]
fn the_trials_of_one_cell_are_named() {
    let page = on(&shown(&sweep(), "server=18,clients=8"), 100);
    assert_eq!(page.matches("01KAK3W8XQ5T2M9HC4ZP7V0").count(), 6, "{page}");
    assert!(page.contains("invalid: clients"), "{page}");
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let (_bundles, trial) = of_one_trial();
    let cells = shown(&sweep(), "");
    for width in [60, 80, 120, 200] {
        for page in [on(&trial, width), on(&cells, width)] {
            for line in page.lines() {
                let columns = line.chars().count();
                // A table is never narrower than its figures.
                assert!(columns <= width.max(72), "{columns} columns of {width}: {line}");
            }
        }
    }
}

/// Every word with a digit in a file is on the terminal, too.
#[test]
fn a_terminal_and_a_file_have_the_same_figures() {
    let (_bundles, trial) = of_one_trial();
    let words = |page: String| -> BTreeSet<String> {
        let words = page.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        words.into_iter().filter(|word| word.contains(|c: char| c.is_ascii_digit())).collect()
    };
    for shown in [trial, shown(&sweep(), "")] {
        let (file, terminal) = (words(shown.text(Format::Table, None)), words(on(&shown, 120)));
        let missing: Vec<&String> = file.difference(&terminal).collect();
        assert!(missing.is_empty() && file.len() > 10, "{missing:?}");
    }
}

#[test]
fn csv_and_json_have_all_figures() {
    let (_bundles, shown) = of_one_trial();
    let document = serde_json::to_value(shown.document()).unwrap();
    assert_eq!(document["cells"], serde_json::Value::Null);
    let trial = &document["trial"];
    assert_eq!(trial["seconds"].as_array().unwrap().len(), 600);
    assert_eq!(trial["seconds"][400]["tps"], 2000.0);
    assert_eq!(trial["metrics"][1]["name"], "WAL");
    assert_eq!(trial["metrics"][1]["values"][300], 3.0);
    assert_eq!(trial["checkpoints"][0]["start_us"], 120_000_000);
    let shares: Vec<_> = trial["waits"].as_array().unwrap().iter().map(|wait| &wait["share"]).collect();
    assert_eq!(shares, [0.5, 0.25, 0.25]);
    assert_eq!(trial["waits"][0]["sessions"], 2.0);
    let csv = shown.text(Format::Csv, None);
    assert!(csv.contains("\nthroughput,mean,1000,/s\n"), "{csv}");
}

/// The bars of `explain` fit the width of the terminal; in a file they have a fixed length.
#[test]
fn shares_of_an_explanation_are_drawn_to_the_terminals_width() {
    let (bundles, _) = of_one_trial();
    let explained =
        explain_cell(&bundles.reader(), &RunSelection::Latest, &Selector::default(), None).unwrap();
    let longest = |width: Option<usize>| {
        let terminal = width.map(|width| Terminal { width, colours: false });
        let page = text(&explained, Format::Table, terminal);
        let too_wide = width.filter(|width| page.lines().any(|line| line.chars().count() > *width));
        assert_eq!(too_wide, None, "{page}");
        page.lines().map(|line| line.matches('█').count()).max().unwrap()
    };
    assert_eq!([None, Some(80), Some(120)].map(longest), [25, 43, 60]);
}
