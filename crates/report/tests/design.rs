//! Comparisons by the design of their campaigns: in blocks, with as many runs as needed, and between sessions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use std::collections::BTreeMap;

use analysis::compare::{Compared, Request, compare};
use analysis::select::RunSelection;
use bundles::{Bundles, cell, record, run};
use model::metrics::Better;
use model::record::Run;
use plaintext::table::Format;
use report::compare::{Document, text};

/// Own noise of the runs of both sides, the same in all tests.
const OWN: [f64; 8] = [0.0, 0.6, -0.6, 0.3, -0.3, 0.5, -0.5, 0.1];
/// What the runs of a block have in common: much more.
const BLOCKS: [f64; 8] = [0.0, 12.0, -9.0, 15.0, -14.0, 7.0, -11.0, 4.0];

fn compared(bundles: &Bundles, selectors: [&str; 2]) -> Compared {
    gated(bundles, selectors, &[])
}

fn gated(bundles: &Bundles, selectors: [&str; 2], gates: &[&str]) -> Compared {
    let request = Request {
        selectors: selectors.iter().map(|text| text.parse().unwrap()).collect(),
        run: RunSelection::Latest,
        metrics: vec!["tps".parse().unwrap()],
        gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
        margins: Vec::new(),
    };
    compare(&bundles.reader(), &request).unwrap()
}

fn verdict(compared: &Compared) -> &'static str {
    compared.metrics[0].rows[0].judged.outcome.name(Better::Higher)
}

fn p(compared: &Compared) -> f64 {
    compared.metrics[0].rows[0].judged.p_holm.unwrap()
}

fn page(compared: &Compared) -> String {
    text(compared, Format::Table, None).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two servers in `blocks` blocks, the second slower by this share; `settings` are those of the campaign's `[run]`.
fn campaign(settings: &str, blocks: usize, loss: f64) -> Bundles {
    resumed(settings, settings, blocks, loss)
}

/// As [`campaign`], resumed with other settings before its last block.
fn resumed(settings: &str, last: &str, blocks: usize, loss: f64) -> Bundles {
    let mut bundles = Bundles::new();
    for (server, shift) in [("17", 0), ("18", 3)] {
        for block in 0..blocks {
            let own = OWN[(block + shift) % OWN.len()];
            let level = 100.0 + BLOCKS[block] + own;
            let level = if server == "18" { level * (1.0 - loss) } else { level };
            let mut record = record(cell(server, 1), level);
            record.trial.repeat = block as u32 + 1;
            let settings = if block + 1 == blocks { last } else { settings };
            record.trial.run.campaign_toml =
                format!("name = 'm'\n[factors]\nserver = ['17', '18']\n[run]\n{settings}\n");
            bundles.write(record);
        }
    }
    bundles
}

const SIDES: [&str; 2] = ["server=17", "server=18"];

#[test]
fn blocks_cancel_what_their_runs_have_in_common() {
    let lost = compared(&campaign("repeats = 8", 8, 0.06), SIDES);
    assert_eq!((verdict(&lost), p(&lost) < 1e-4), ("REGRESSION", true), "{}", p(&lost));
    assert_eq!(verdict(&compared(&campaign("repeats = 8", 8, 0.0), SIDES)), "EQUIVALENT");
    let page = page(&lost);
    assert!(page.contains("1 cell compared within blocks, which have a spread of 11.0% in common"), "{page}");
    let document = serde_json::to_value(Document::new(&lost)).unwrap();
    let of_cell = &document["metrics"][0]["cells"][0];
    assert_eq!(
        (&of_cell["blocks"], &of_cell["sequential"], &of_cell["sessions"]),
        (&8.into(), &false.into(), &().into())
    );
    // As two samples, nothing can be said: the order is that of the cells, or there are too few blocks.
    let in_order = compared(&campaign("repeats = 8\norder = 'sequential'", 8, 0.06), SIDES);
    assert!(verdict(&in_order).starts_with("UNSTABLE") && p(&in_order) > 0.1, "{}", p(&in_order));
    let few = compared(&campaign("repeats = 5", 5, 0.06), SIDES);
    assert!(few.metrics[0].rows[0].judged.comparison.as_ref().unwrap().blocks.is_none());
}

#[test]
fn the_report_compares_in_blocks_as_well() {
    let bundles = campaign("repeats = 8", 8, 0.06);
    let view = analysis::overview(&bundles.store.trials().unwrap(), &BTreeMap::new());
    let of_report = view.panels[0].rows[0].points[1].as_ref().unwrap().verdict.clone().unwrap();
    let compared = compared(&bundles, SIDES);
    assert_eq!((of_report.verdict, of_report.p_holm), (verdict(&compared), Some(p(&compared))));
}

#[test]
fn a_number_of_runs_that_results_decided_needs_more_evidence() {
    let (fixed, adaptive) = ("repeats = 8", "repeats = { min = 3, max = 20 }");
    let [fixed, adaptive] = [fixed, adaptive].map(|repeats| compared(&campaign(repeats, 8, 0.06), SIDES));
    assert!(p(&adaptive) > 2.0 * p(&fixed) && verdict(&adaptive) == "REGRESSION", "{}", p(&adaptive));
    let note = "the number of runs depends on their results: p and intervals allow for that";
    assert!(page(&adaptive).contains(note) && !page(&fixed).contains(note), "{}", page(&adaptive));
    // Three runs a side can't decide.
    let three = compared(&campaign("repeats = { min = 3, max = 20 }", 3, 0.5), SIDES);
    assert!(!verdict(&three).starts_with("REGRESSION"), "{}", verdict(&three));
    assert_eq!(verdict(&compared(&campaign("repeats = { min = 8, max = 8 }", 8, 0.06), SIDES)), "REGRESSION");
}

/// Whether more repeats were asked for because of the results is not known: they may have been.
#[test]
fn a_number_of_runs_that_was_changed_on_the_way_is_not_fixed() {
    let fixed = compared(&campaign("repeats = 8", 8, 0.06), SIDES);
    let raised = compared(&resumed("repeats = 7", "repeats = 8", 8, 0.06), SIDES);
    assert!(p(&raised) > 2.0 * p(&fixed) && verdict(&raised) == "REGRESSION", "{}", p(&raised));
    assert!(page(&raised).contains("the number of runs depends on their results"), "{}", page(&raised));
    let annotated = compared(&resumed("repeats = 8", "repeats = 8\nretries = 3", 8, 0.06), SIDES);
    assert_eq!(p(&annotated), p(&fixed));
}

/// Sessions of one cell: each a run with five trials about its own level.
fn sessions(levels: &[f64]) -> Bundles {
    let mut bundles = Bundles::new();
    for (at, level) in levels.iter().enumerate() {
        let id = format!("01KAK3W8XQ5T2M9HC4ZP7VS{at:03}");
        for (repeat, own) in OWN[..5].iter().enumerate() {
            let mut record = record(cell("18", 1), level + own / 5.0);
            record.trial.run = Run { id: id.clone(), ..run(&id, "nightly") };
            record.trial.repeat = repeat as u32 + 1;
            bundles.write(record);
        }
    }
    bundles
}

const TWO_RUNS: [&str; 2] = ["run:01KAK3W8XQ5T2M9HC4ZP7VS000", "run:01KAK3W8XQ5T2M9HC4ZP7VS001"];

/// Both sides are of the same server: their difference of 6% is that of their sessions.
#[test]
fn sides_that_are_sessions_differ_by_their_sessions() {
    let alone = compared(&sessions(&[100.0, 94.0]), TWO_RUNS);
    assert!(verdict(&alone) == "REGRESSION" && p(&alone) < 1e-6, "{}", p(&alone));
    let note =
        "each side is one session: its runs share the machine's state. How much sessions differ is unknown";
    assert!(page(&alone).contains(note), "{}", page(&alone));
    assert!(page(&alone).contains("1×5/1×5"), "{}", page(&alone));
    let apart = "the sides were not measured next to each other, and how much sessions differ is unknown: `pgdyno ab`";
    let gate = |levels: &[f64]| gated(&sessions(levels), TWO_RUNS, &["tps < -5%"]).gates_in_words().join(" ");
    assert!(gate(&[100.0, 94.0]).contains(apart) && !gate(&[100.0, 94.0, 98.0, 103.0]).contains(apart));
    let known = compared(&sessions(&[100.0, 94.0, 98.0, 103.0, 95.0, 101.0, 97.0]), TWO_RUNS);
    assert!(verdict(&known) == "INCONCLUSIVE" && p(&known) > 0.1, "{}", p(&known));
    // More runs of the same sessions would not decide it.
    assert!(!page(&known).contains("would decide"), "{}", page(&known));
    assert!(
        page(&known).contains("Sessions differ by up to 3.2%, which p and intervals contain"),
        "{}",
        page(&known)
    );
    let document = serde_json::to_value(Document::new(&known)).unwrap();
    assert_eq!(document["metrics"][0]["cells"][0]["sessions"], serde_json::json!([1, 1]));
    // A change that no session explains.
    let halved = compared(&sessions(&[100.0, 50.0, 98.0, 103.0, 95.0, 101.0, 97.0]), TWO_RUNS);
    assert!(verdict(&halved) == "REGRESSION" && p(&halved) < 0.01, "{}", p(&halved));
}
