//! Numbers of runs needed at the noise of a store's trials.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use analysis::power::{CellNoise, PowerCheck, Question, noise_of, noise_on, power_check};
use bundles::{Bundles, RUN, cell, emulated, record, run, with_validity};
use model::plan::Plan;
use model::record::Status;
use model::spec::Campaign;
use plaintext::table::Format;
use report::power::text;

/// Five runs that spread by 2%.
const NOISY: [f64; 5] = [1000.0, 1010.0, 975.0, 1025.0, 990.0];
/// Five runs that spread by 0.5%.
const QUIET: [f64; 5] = [1000.0, 1002.5, 994.0, 1006.0, 997.5];
/// Five runs in two modes.
const MODES: [f64; 5] = [1000.0, 1001.0, 999.0, 1500.0, 1501.0];

fn on_host(bundles: &mut Bundles, host: &str, run_id: &str, clients: u32, tps: &[f64]) {
    for tps in tps {
        let mut record = record(cell("18", clients), *tps);
        record.environment.hostname = Some(host.to_owned());
        record.trial.run = run(run_id, "sweep");
        bundles.write(record);
    }
}

fn known(bundles: &Bundles) -> Vec<CellNoise> {
    noise_of(&bundles.store.trials().unwrap().iter().collect::<Vec<_>>())
}

fn question() -> Question {
    Question { effects: vec![0.02, 0.05], power: 0.95, alpha: 0.01 }
}

#[test]
fn noise_is_of_this_host_and_of_the_latest_run_with_three_usable_trials() {
    let mut bundles = Bundles::new();
    on_host(&mut bundles, "here", RUN, 8, &NOISY);
    on_host(&mut bundles, "there", "01KAK3W8XQ5T2M9HC4ZP7VRB0F", 8, &MODES);
    on_host(&mut bundles, "here", "01KAK3W8XQ5T2M9HC4ZP7VRB0G", 8, &QUIET);
    on_host(&mut bundles, "here", "01KAK3W8XQ5T2M9HC4ZP7VRB0H", 8, &[1.0, 2.0]);
    on_host(&mut bundles, "here", RUN, 1, &[1.0, 2.0]);
    let noise = noise_on(&bundles.reader(), "here");
    assert_eq!(noise.len(), 1, "two runs of a cell tell nothing of its noise");
    assert_eq!(noise[0].run, "01KAK3W8XQ5T2M9HC4ZP7VRB0G");
    assert!((0.004..0.005).contains(&noise[0].log_sd), "{}", noise[0].log_sd);
    assert!(noise_on(&bundles.reader(), "elsewhere").is_empty());
}

#[test]
fn an_invalid_trial_is_no_noise() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 8), &QUIET);
    bundles.write(with_validity(record(cell("18", 8), 1.0), Status::Invalid, "server-exited"));
    assert!(known(&bundles)[0].log_sd < 0.006);
}

#[test]
fn runs_are_reported_for_the_median_and_the_worst_cell_and_unstable_ones_are_named() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 1), &QUIET);
    bundles.runs(&cell("18", 4), &QUIET);
    bundles.runs(&cell("18", 8), &NOISY);
    bundles.runs(&cell("18", 16), &MODES);
    let answer = question().of_cells("these".to_owned(), &known(&bundles));
    let json = serde_json::to_value(&answer).unwrap();
    let noises = json["noises"].as_array().unwrap();
    assert_eq!([&noises[0]["of"], &noises[1]["of"]], ["median", "worst"]);
    // docs/statistics.md: at 2% noise, 5 runs a side find 7%, and at 0.5% noise 1.8%.
    assert!(noises[0]["detectable"][1]["effect"].as_f64().unwrap() < 0.02);
    let worst = noises[1]["detectable"][1]["effect"].as_f64().unwrap();
    assert!((0.06..0.09).contains(&worst), "{worst}");
    assert!(noises[1]["effects"][1]["runs"].as_u64() > noises[0]["effects"][1]["runs"].as_u64());
    let modes = json["cells"].as_array().unwrap().last().unwrap();
    assert_eq!(modes["effects"], serde_json::Value::Null, "no number of runs helps");
    let text = text(&answer, Format::Table, None);
    let named = "no number of runs helps: 18 default select-only scale 10 clients 16 prepared unix 10s: two modes, 50";
    assert!(text.contains(named), "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("1 of 4 cells left out of the runs and changes below"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_noise_of_latency_is_not_mixed_with_that_of_throughput() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 1), &QUIET);
    let rate = model::units::Rate::per_second(500.0).unwrap();
    bundles.runs(&model::cell::Cell { rate, ..cell("18", 1) }, &NOISY);
    let answer = question().of_cells("these".to_owned(), &known(&bundles));
    let noises: Vec<(&str, bool)> =
        answer.noises.iter().map(|noise| (noise.of.as_str(), noise.noise > 0.01)).collect();
    let expected = [
        ("median, tps", false),
        ("worst, tps", false),
        ("median, latency.p99", true),
        ("worst, latency.p99", true),
    ];
    assert_eq!(noises, expected);
    assert_eq!(answer.cells.iter().filter(|cell| cell.metric == "latency.p99").count(), 1);
}

#[test]
fn where_every_cell_is_unstable_no_runs_are_reported() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 16), &MODES);
    let answer = question().of_cells("these".to_owned(), &known(&bundles));
    assert!(!answer.has_figures());
    let csv = text(&answer, Format::Csv, None);
    assert_eq!(csv.lines().count(), 2, "the cell itself is there: {csv}");
}

#[test]
fn given_noise_needs_no_store() {
    let answer = question().at(0.02);
    let csv = text(&answer, Format::Csv, None);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2][..7], ["given", "0.02", "", "0.01", "0.95", "0.05", "9"]);
}

fn foreseen(bundles: &Bundles, run: &str) -> Option<PowerCheck> {
    let text = format!(
        "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [4, 8]\n[run]\n{run}\n"
    );
    let plan = Plan::new(&Campaign::parse(&text).unwrap(), 1).unwrap();
    power_check(&plan, &known(bundles))
}

#[test]
fn a_campaign_with_too_few_repeats_for_its_effect_causes_a_warning() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("16", 8), &NOISY);
    bundles.runs(&cell("16", 4), &QUIET);
    let three = foreseen(&bundles, "repeats = 3").unwrap();
    assert_eq!((three.effect, three.runs, three.cells, three.short), (0.05, 3, 4, 2));
    let warning = three.warning().unwrap();
    assert!(warning.starts_with("with 3 runs a side and 1.9% noise, only changes above 18"), "{warning}");
    assert!(warning.ends_with("5% needs 9 (in the noisiest cell; 2 of 4 fall short)"), "{warning}");
    assert_eq!(foreseen(&bundles, "repeats = 9").unwrap().warning(), None);
    assert_eq!(foreseen(&bundles, "repeats = 3\neffect = '30%'").unwrap().warning(), None);
    let adaptive = foreseen(&bundles, "repeats = { min = 5, max = 20 }").unwrap();
    assert!(adaptive.is_adaptive && adaptive.warning().is_none(), "{adaptive:?}");
    let two = foreseen(&bundles, "repeats = 2").unwrap();
    assert!(two.warning().unwrap().contains("there is no verdict; 5% needs 9"), "{two:?}");
}

#[test]
fn a_cell_without_its_like_is_taken_for_the_median_and_one_that_was_unstable_is_named() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("16", 32), &QUIET);
    let median = foreseen(&bundles, "repeats = 5").unwrap();
    assert!(median.noise.unwrap() < 0.006 && median.warning().is_none(), "{median:?}");
    bundles.runs(&cell("16", 8), &MODES);
    let unstable = foreseen(&bundles, "repeats = 5").unwrap();
    assert_eq!(unstable.unstable.len(), 2, "both servers");
    let warning = unstable.warning().unwrap();
    assert!(
        warning.starts_with(
            "unstable when last measured, so that no number of runs shows a change within the noise: 17 "
        ),
        "{warning}"
    );
}

#[test]
fn without_noise_or_a_comparison_nothing_is_reported() {
    let mut bundles = Bundles::new();
    assert_eq!(foreseen(&bundles, "repeats = 3"), None);
    bundles.runs(&cell("16", 8), &NOISY);
    let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4, 8]\n";
    let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
    assert_eq!(power_check(&plan, &known(&bundles)), None);
}

#[test]
fn the_effect_of_a_campaign_that_names_none_is_the_margin_of_verdicts() {
    let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4]\n";
    let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
    assert_eq!(1.0 + plan.run.effect, stats::MARGIN);
}

/// The host's noise is no news about instructions that are counted, nor the other way.
#[test]
fn counted_cells_are_not_judged_by_the_noise_of_timed_ones() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("16", 4), &MODES);
    bundles.runs(&cell("16", 8), &NOISY);
    let text = "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [4, 8]\n\
                kernel = ['6.1']\nacceleration = ['icount']\n";
    let plan = Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
    assert_eq!(power_check(&plan, &known(&bundles)), None, "nothing is known of counted cells");
    let counted = plan.cells.iter().find(|cell| cell.clients == 8).unwrap().clone();
    for tps in QUIET {
        bundles.write(emulated(counted.clone(), tps));
    }
    let check = power_check(&plan, &known(&bundles)).unwrap();
    assert!(check.unstable.is_empty() && check.noise.unwrap() < 0.006, "{check:?}");
    let timed = foreseen(&bundles, "repeats = 5").unwrap();
    assert_eq!(timed.unstable.len(), 2, "{timed:?}");
}
