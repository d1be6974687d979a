//! The report of a run with an invalid trial, a suspect one and a gap.

#![allow(clippy::unwrap_used)]

#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use analysis::context::TrialContext;
use analysis::overview;
use analysis::overview::view::{Point, View};
use analysis::overview::{read, read_run};
use analysis::profile::Frame;
use analysis::select::RunSelection;
use diagnose::KernelOptions;
use model::cell::Level;
use model::environment::VirtualMachine;
use model::factor::Factor;
use model::factor::settings::SettingsVariant;
use model::record::{Imported, Status, Trial};
use plaintext::table::Format;
use report::{json, tables};
use store::Store;

/// The point of a panel's row at a column.
fn point<'a>(view: &'a View, workload: &str, clients: u32, column: usize) -> Option<&'a Point> {
    let panel = view.panels.iter().find(|panel| panel.workload.as_deref() == Some(workload)).unwrap();
    let row = panel.rows.iter().find(|row| row.clients == Some(clients)).unwrap();
    row.points[column].as_ref()
}

#[test]
fn scans_one_by_one_are_a_table_and_charts() {
    insta::assert_snapshot!(tables(&fixture::scans(), Format::Markdown, None));
}

#[test]
fn columns_and_panels_are_in_the_order_of_the_campaign() {
    let view = fixture::view();
    let labels: Vec<&str> = view.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels, ["PostgreSQL 13.23", "PostgreSQL 18.1"]);
    let panels: Vec<&str> = view.panels.iter().map(|panel| panel.workload.as_deref().unwrap()).collect();
    assert_eq!(panels, ["select-only", "tpcb-like"]);
    let clients: Vec<u32> = view.panels[0].rows.iter().filter_map(|row| row.clients).collect();
    assert_eq!(clients, [1, 2, 4, 8, 16]);
}

#[test]
fn without_a_campaign_that_can_be_read_versions_are_in_their_own_order() {
    let (mut trials, _) = fixture::trials();
    for trial in &mut trials {
        trial.run.campaign_toml = "written by a later release".to_owned();
        if trial.cell.server == "13" {
            trial.cell.set(Factor::Server, "9.6").unwrap();
            trial.server_version = None;
        }
    }
    let view = overview(&trials, &BTreeMap::new());
    let labels: Vec<&str> = view.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels, ["PostgreSQL 9.6", "PostgreSQL 18.1"]);
    assert_eq!(view.runs[0].plan, None);
    assert_eq!(view.environment, analysis::overview::view::Environment::default());
}

#[test]
fn invalid_trials_are_shown_but_in_no_figure() {
    let view = fixture::view();
    let point = point(&view, "tpcb-like", 8, 0).unwrap();
    let invalid = point.runs.iter().find(|trial| trial.validity == "invalid").unwrap();
    assert_eq!((point.n, point.runs.len()), (2, 3));
    assert!(invalid.tps.unwrap() < point.min.unwrap());
    let used: Vec<f64> = point
        .runs
        .iter()
        .filter(|trial| trial.validity != "invalid")
        .map(|trial| trial.tps.unwrap())
        .collect();
    let mean = (used[0] * used[1]).sqrt();
    assert!((point.mean.unwrap() / mean - 1.0).abs() < 1e-12);
}

#[test]
fn the_memory_of_a_panel_is_the_machine_s_or_the_limit_and_none_where_trials_differ() {
    let (mut trials, mut contexts) = fixture::trials();
    for known in contexts.values_mut() {
        known.environment.memory_bytes = Some(16 << 30);
    }
    let memory = |trials: &[Trial], contexts: &BTreeMap<String, TrialContext>| {
        overview(trials, contexts).panels[0].memory_bytes
    };
    assert_eq!(memory(&trials, &contexts), Some(16 << 30));
    let limits = model::limits::LimitsInForce { memory_bytes: Some(1 << 30), ..Default::default() };
    trials.iter_mut().for_each(|trial| trial.limits = Some(limits.clone()));
    assert_eq!(memory(&trials, &contexts), Some(1 << 30));
    let workload = trials[0].cell.workload.clone();
    trials.retain(|trial| trial.cell.workload == workload);
    trials[0].limits = None;
    assert_eq!(memory(&trials, &contexts), None);
    assert_eq!(memory(&trials, &BTreeMap::new()), None);
}

#[test]
fn facts_are_reported_by_column_and_columns_by_their_factors() {
    let (mut trials, mut contexts) = fixture::trials();
    for trial in &mut trials {
        let kernel = if trial.cell.server == "18" { "6.12" } else { "6.1" };
        trial.cell.set(Factor::Kernel, kernel).unwrap();
        let known = contexts.get_mut(&trial.id).unwrap();
        known.environment.kernel = Factor::Kernel.known_level(&trial.cell);
    }
    let view = overview(&trials, &contexts);
    let kernels: Vec<&str> = view.columns.iter().map(|column| column.levels["kernel"].as_str()).collect();
    assert_eq!(kernels, ["6.1", "6.12"]);
    let kernel = view.environment.facts.iter().find(|fact| fact.name == "kernel").unwrap();
    for (column, level) in kernels.iter().enumerate() {
        let fact = kernel.values.iter().find(|fact| fact.value.as_deref() == Some(level)).unwrap();
        let other = 1 - column;
        assert_eq!((fact.columns[column], fact.columns[other]), (fact.trials, 0));
    }
}

#[test]
fn machine_facts_of_guests_are_those_of_their_kernels() {
    let (trials, mut contexts) = fixture::trials();
    let (first, rest) = trials.split_first().unwrap();
    for (trial, memory_bytes) in std::iter::once((first, 1)).chain(rest.iter().map(|trial| (trial, 2))) {
        let environment = &mut contexts.get_mut(&trial.id).unwrap().environment;
        environment.sysctl.insert("fs.file-max".to_owned(), memory_bytes.to_string());
        environment.virtual_machine = Some(VirtualMachine { memory_bytes, ..VirtualMachine::default() });
    }
    let of_kernel = |contexts: &BTreeMap<String, TrialContext>| {
        let facts = overview(&trials, contexts).environment.facts;
        ["kernel", "fs.file-max", "memory", "kernel command line", "virtual_machine.memory_bytes"]
            .map(|name| facts.iter().find(|fact| fact.name == name).unwrap().of_kernel)
    };
    assert_eq!(of_kernel(&contexts), [true, true, true, false, false]);
    let machine = &mut contexts.get_mut(&first.id).unwrap().environment;
    machine.virtual_machine = None;
    assert_eq!(of_kernel(&contexts)[..4], [true, false, false, false]);
}

fn imported() -> Imported {
    let at = "2026-11-20T08:00:00Z".parse().unwrap();
    Imported { format: "csv".to_owned(), files: Vec::new(), line: None, at, trials: 1 }
}

#[test]
fn kernels_are_in_the_order_of_their_versions_after_the_baseline() {
    let (mut trials, mut contexts) = fixture::trials();
    trials.retain(|trial| trial.cell.server == "18");
    // In the order of the import: `6.12` comes first, and is the baseline.
    let asked = ["6.12", "./bzImage", "6.2", "linux-image-6.1.*-amd64", "./older", "6.1"];
    for (at, trial) in trials.iter_mut().enumerate() {
        trial.cell.set(Factor::Kernel, asked[at % asked.len()]).unwrap();
        trial.run.campaign_toml = String::new();
        trial.imported = Some(imported());
        let release = match asked[at % asked.len()] {
            "./bzImage" => "Linux 6.18.1",
            "./older" => "Linux 5.4.0",
            label => label,
        };
        contexts.get_mut(&trial.id).unwrap().environment.kernel = Some(release.to_owned());
    }
    let view = overview(&trials, &contexts);
    let kernels: Vec<&str> = view.columns.iter().map(|column| column.levels["kernel"].as_str()).collect();
    assert_eq!(kernels, ["6.12", "6.1", "linux-image-6.1.*-amd64", "6.2", "./older", "./bzImage"]);
    let page = tables(&view, Format::Table, None);
    assert!(page.contains("kernel ./older: Linux 5.4.0"), "{page}");
}

#[test]
fn the_kernels_of_2016_are_columns_in_natural_order() {
    let csv = include_str!("../../stats/tests/data/kernels-2016-read-only.csv");
    let mut kernels: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    kernels.retain(|kernel| !kernel.ends_with("-stats"));
    kernels.dedup();
    let (trials, _) = fixture::trials();
    let trials: Vec<Trial> = kernels
        .into_iter()
        .enumerate()
        .map(|(at, kernel)| {
            let mut trial = Trial { position: at as u32, ..trials[0].clone() };
            trial.cell.set(Factor::Kernel, kernel).unwrap();
            trial.imported = Some(imported());
            trial
        })
        .collect();
    let view = overview(&trials, &BTreeMap::new());
    let columns: Vec<&str> = view.columns.iter().map(|column| column.levels["kernel"].as_str()).collect();
    assert_eq!(
        columns.join(" "),
        "2.6.39 3.0.101 3.1.10 3.2.79 3.3.8 3.4.111 3.5.7 3.6.11 3.7.10 3.8.13 3.9.11 3.10.101 3.11.10 3.12.58 \
         3.13.11 3.14.66 3.15.10 3.16.7 3.17.8 3.18.30 3.19.8 4.0.9 4.1.21 4.2.8 4.3.6 4.4.7 4.5.1 4.6-rc3 4.6.0"
    );
}

#[test]
fn options_of_kernels_are_reported_by_column_where_they_differ() {
    let (mut trials, mut contexts) = fixture::trials();
    let [old, new] = ["CONFIG_A=y\nCONFIG_HZ=250\nCONFIG_SAME=y\n", "CONFIG_HZ=1000\nCONFIG_SAME=y\n"]
        .map(|text| Arc::new(KernelOptions::parse(text)));
    for trial in &mut trials {
        let known = contexts.get_mut(&trial.id).unwrap();
        known.kernel_options = Some(Arc::clone(if trial.cell.server == "18" { &new } else { &old }));
    }
    let shown = |contexts: &BTreeMap<String, TrialContext>| {
        let options = overview(&trials, contexts).environment.kernel_options;
        let line = |option: &analysis::overview::view::KernelOption| {
            let values: Vec<&str> =
                option.values.iter().map(|value| value.as_deref().unwrap_or("?")).collect();
            format!("{} {} {}", option.name, option.matters, values.join(" "))
        };
        options.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(shown(&contexts), ["HZ true 250 1000", "A false y n"]);
    let first = trials.iter().find(|trial| trial.cell.server == "18").unwrap();
    contexts.get_mut(&first.id).unwrap().kernel_options = Some(Arc::clone(&old));
    let mut both = shown(&contexts);
    both.iter_mut().for_each(|option| *option = option.replace("1000, 250", "250, 1000"));
    assert_eq!(both[0], "HZ true 250 250, 1000", "one level of a factor, two kernels");
    for known in contexts.values_mut() {
        known.kernel_options = Some(Arc::clone(&old));
    }
    assert_eq!(shown(&contexts), [""; 0]);
}

#[test]
fn a_suspect_trial_is_used() {
    let view = fixture::view();
    assert_eq!(point(&view, "select-only", 4, 1).unwrap().n, 3);
}

#[test]
fn a_sweep_has_its_knee_its_steepest_step_and_a_law_only_where_that_fits() {
    let view = fixture::view();
    let [reads, writes] = view.panels.as_slice() else { panic!("two panels") };
    let reading = reads.scalability[1].as_ref().unwrap();
    assert_eq!((reading.knee, reading.peak_clients), (8, 16));
    assert_eq!(Some(reading.peak), point(&view, "select-only", 16, 1).unwrap().mean);
    assert!(reading.usl.as_ref().unwrap().rms <= 0.05);
    let writing = writes.scalability[0].as_ref().unwrap();
    assert_eq!((writing.knee, &writing.unstable[..]), (8, &[16][..]), "sixteen clients are unsteady");
    let step = writing.steepest.as_ref().unwrap();
    let mean = |clients| point(&view, "tpcb-like", clients, 0).unwrap().mean.unwrap();
    assert_eq!((step.from, step.to, step.change), (8, 16, mean(16) / mean(8) - 1.0));
}

#[test]
fn a_sweep_that_follows_no_law_has_none() {
    let (mut trials, _) = fixture::trials();
    for trial in trials.iter_mut().filter(|trial| trial.cell.clients == 4) {
        trial.summary.as_mut().unwrap().tps /= 3.0;
    }
    let view = overview(&trials, &BTreeMap::new());
    let sweep = view.panels[0].scalability[0].as_ref().unwrap();
    assert_eq!(sweep.usl, None);
    assert_eq!(sweep.steepest.as_ref().map(|step| (step.from, step.to)), Some((2, 4)));
}

#[test]
fn two_numbers_of_clients_or_a_rate_are_no_sweep() {
    let (mut trials, _) = fixture::trials();
    trials.retain(|trial| trial.cell.clients <= Level::Known(4));
    let sweeps = |trials: &[Trial]| overview(trials, &BTreeMap::new()).panels[0].scalability.clone();
    assert!(sweeps(&trials).iter().all(Option::is_some));
    let mut with_rate = trials.clone();
    with_rate.iter_mut().for_each(|trial| trial.cell.set(Factor::Rate, "100").unwrap());
    assert_eq!(sweeps(&with_rate), [None, None]);
    trials.retain(|trial| trial.cell.clients <= Level::Known(2));
    assert_eq!(sweeps(&trials), [None, None]);
}

#[test]
fn a_verdict_needs_both_sides() {
    let view = fixture::view();
    let (old, new) = (point(&view, "select-only", 1, 0).unwrap(), point(&view, "select-only", 1, 1).unwrap());
    assert_eq!(old.verdict, None);
    let verdict = new.verdict.as_ref().unwrap();
    let tps = |point: &Point| point.runs.iter().map(|run| run.tps.unwrap().ln()).sum::<f64>() / 3.0;
    assert!((verdict.change.unwrap() - ((tps(new) - tps(old)).exp() - 1.0)).abs() < 1e-12, "{verdict:?}");
    assert!(verdict.ci95_low < verdict.change && verdict.change < verdict.ci95_high);
    assert_eq!(point(&view, "tpcb-like", 16, 1), None);
    assert_eq!(view.answers.iter().map(|answer| answer.column).collect::<Vec<_>>(), [Some(1)]);
    let unshared = "1 cell not on both sides, and not compared";
    assert!(view.answers[0].risks.iter().any(|risk| risk == unshared), "{:?}", view.answers);

    let (mut trials, _) = fixture::trials();
    let baseline = |trial: &&mut Trial| trial.cell.server == "13" && trial.cell.clients == 1;
    trials.iter_mut().filter(baseline).for_each(|trial| trial.validity.status = Status::Invalid);
    let view = overview(&trials, &BTreeMap::new());
    let (old, new) = (point(&view, "select-only", 1, 0).unwrap(), point(&view, "select-only", 1, 1).unwrap());
    assert_eq!((old.n, old.mean, old.min, old.max), (0, None, None, None));
    let verdict = new.verdict.as_ref().unwrap();
    assert_eq!((new.n, verdict.change, verdict.verdict), (3, None, "INVALID"));
}

#[test]
fn an_unusual_first_run_is_reported_with_its_cell() {
    let (mut trials, _) = fixture::trials();
    let mut more = Vec::new();
    for trial in trials.iter_mut().filter(|t| t.cell.server == "18" && t.cell.clients == 8) {
        let steady = 1000.0 + f64::from(trial.repeat);
        trial.summary.as_mut().unwrap().tps = if trial.repeat == 1 { 900.0 } else { steady };
        let mut again = trial.clone();
        (again.repeat, again.id) = (trial.repeat + 3, format!("{}X", &trial.id[..25]));
        again.summary.as_mut().unwrap().tps = steady;
        more.push(again);
    }
    trials.extend(more);
    let view = overview(&trials, &BTreeMap::new());
    let apart = point(&view, "select-only", 8, 1).unwrap().first_run_apart.unwrap();
    assert!((apart + 0.1017).abs() < 0.001, "{apart}");
    assert_eq!(point(&view, "select-only", 8, 0).unwrap().first_run_apart, None);
    let printed = tables(&view, Format::Table, None);
    let line =
        "the first run differs from the others, as after a cold start: 8 clients, PostgreSQL 18.1 (-10.2%)";
    assert!(printed.contains(line), "{printed}");
}

#[test]
fn settings_name_the_columns_only_where_they_vary() {
    let (mut trials, _) = fixture::trials();
    for trial in trials.iter_mut().filter(|trial| trial.cell.server == "18") {
        trial.cell.set(Factor::Server, "13").unwrap();
        trial.server_version = Some("13.23".to_owned());
        trial.cell.settings = Level::Known(SettingsVariant {
            name: "big".to_owned(),
            values: [("shared_buffers".to_owned(), "1GB".to_owned())].into(),
        });
    }
    let view = overview(&trials, &BTreeMap::new());
    let labels: Vec<&str> = view.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels, ["PostgreSQL 13.23 default", "PostgreSQL 13.23 big"]);
}

#[test]
fn servers_that_turn_out_to_be_the_same_are_distinguished() {
    let (mut trials, _) = fixture::trials();
    for trial in trials.iter_mut().filter(|trial| trial.cell.server == "13") {
        trial.cell.set(Factor::Server, "18.1").unwrap();
        trial.server_version = Some("18.1".to_owned());
    }
    let view = overview(&trials, &BTreeMap::new());
    let labels: Vec<&str> = view.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels, ["PostgreSQL 18.1", "PostgreSQL 18.1 (as 18.1)"]);
}

#[test]
fn the_settings_shown_were_set_or_differ() {
    let view = fixture::view();
    let names: Vec<&str> = view.environment.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert!(names.contains(&"shared_buffers") && names.contains(&"data_checksums"), "{names:?}");
    assert!(!names.contains(&"work_mem") && !names.contains(&"port"), "{names:?}");
}

#[test]
fn a_fact_that_changed_between_trials_shows_each_value() {
    let (trials, mut contexts) = fixture::trials();
    contexts.values_mut().take(7).for_each(|s| s.environment.kernel = Some("Linux 6.12.1".to_owned()));
    let environment = overview(&trials, &contexts).environment;
    assert_eq!(environment.machine, None);
    let kernel = environment.facts.iter().find(|fact| fact.name == "kernel").unwrap();
    assert_eq!(kernel.values.iter().map(|value| value.trials).collect::<Vec<_>>(), [50, 7]);
}

#[test]
fn other_facts_are_shown_only_if_they_differ() {
    let (trials, mut contexts) = fixture::trials();
    for context in contexts.values_mut() {
        context.environment.cpu.smt = Some("on".to_owned());
        context.environment.cpu.turbo = Some(true);
        context.environment.sysctl.insert("fs.file-max".to_owned(), "1".to_owned());
    }
    contexts.values_mut().take(7).for_each(|s| s.environment.cpu.turbo = Some(false));
    contexts.values_mut().take(7).for_each(|s| s.environment.os = Some("other".to_owned()));
    let facts = overview(&trials, &contexts).environment.facts;
    let names =
        |group| facts.iter().filter(|fact| fact.group == group).map(|fact| fact.name.as_str()).collect();
    let (other, sysctl): (Vec<&str>, Vec<&str>) = (names("other"), names("sysctl"));
    assert_eq!(other, ["cpu.turbo"], "the operating system has its place");
    assert!(sysctl.contains(&"vm.swappiness") && !sysctl.contains(&"fs.file-max"), "{sysctl:?}");
}

#[test]
fn every_trial_is_a_row_of_the_csv() {
    let (trials, _) = fixture::trials();
    let csv = tables(&fixture::view(), Format::Csv, None);
    assert_eq!(csv.lines().count(), 1 + trials.len());
    for trial in &trials {
        let tps = trial.summary.as_ref().unwrap().tps.to_string();
        assert!(csv.lines().any(|line| line.contains(&trial.id) && line.contains(&tps)), "{}", trial.id);
    }
}

#[test]
fn missing_is_null() {
    let (mut trials, _) = fixture::trials();
    trials.truncate(1);
    trials[0].summary = None;
    trials[0].database_bytes = None;
    let json = json(&overview(&trials, &BTreeMap::new()));
    for missing in ["\"tps\":null", "\"mean\":null", "\"database_bytes\":null", "\"machine\":null"] {
        assert!(json.contains(missing), "{missing} in {json}");
    }
}

#[test]
fn cells_that_were_profiled_have_a_tree_for_each_role() {
    let view = fixture::view();
    let cells: Vec<(usize, Option<u32>, usize)> =
        view.profiles.iter().map(|profile| (profile.panel, profile.clients, profile.column)).collect();
    assert_eq!(
        cells,
        [(0, Some(8), 0), (0, Some(8), 1), (0, Some(8), 1), (0, Some(16), 0), (0, Some(16), 1)]
    );
    let kinds: Vec<&str> = view.profiles.iter().map(|profile| profile.kind).collect();
    assert_eq!(kinds, ["on-cpu", "on-cpu", "off-cpu", "on-cpu", "on-cpu"]);
    assert_eq!(view.profiles[2].roles[0].total, 3 * 7_600_000);
    let profile = &view.profiles[1];
    assert_eq!(profile.trials.len(), 3);
    let transactions = point(&view, "select-only", 8, 1).unwrap().runs.iter().map(|run| run.transactions);
    assert_eq!(profile.transactions, transactions.sum::<Option<u64>>().map(|sum| sum as f64));
    assert!(profile.taken.starts_with("of the whole machine, cycles at 99 Hz"), "{}", profile.taken);
    let [load, driver] = profile.roles.as_slice() else { panic!("{:?}", profile.roles) };
    assert_eq!((load.name.as_str(), driver.name.as_str(), driver.total), ("load", "driver", 3 * 301));
    fn own(frame: &Frame) -> u64 {
        frame.own + frame.children.iter().map(own).sum::<u64>()
    }
    assert_eq!(own(load), load.total, "nothing is lost where small functions are taken together");
}

#[test]
fn stored_trials_make_the_same_view() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    for record in fixture::records() {
        store.write(&record).unwrap();
    }
    let run = &fixture::trials().0[0].run.id;
    assert_eq!(read(&store.reader().unwrap(), &RunSelection::Latest).unwrap(), fixture::view());
    assert_eq!(read_run(&store.reader().unwrap(), run).unwrap(), Some(fixture::view()));
    assert_eq!(read_run(&store.reader().unwrap(), "01KAK3W8XQ5T2M9HC4ZP7VRB0F").unwrap(), None);
}

#[test]
fn an_empty_store_has_a_view() {
    let view = overview(&[], &BTreeMap::new());
    assert_eq!(tables(&view, Format::Table, None), "");
    assert!(view.panels.is_empty() && view.columns.is_empty());
}

#[test]
fn as_a_table() {
    insta::assert_snapshot!(tables(&fixture::view(), Format::Table, None));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(tables(&fixture::view(), Format::Markdown, None));
}

#[test]
fn as_csv() {
    let csv = tables(&fixture::view(), Format::Csv, None);
    insta::assert_snapshot!(csv.lines().take(4).collect::<Vec<_>>().join("\n"));
}
