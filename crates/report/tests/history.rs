//! Results of `pgdyno history`, and its errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;

use std::path::Path;

use analysis::history::{Decision, History, HistoryAxis, Order, Request, Shift, Tested, history};
use analysis::levels::Levels;
use analysis::metric::Metric;
use bundles::{Bundles, cell, record, run, with_validity};
use model::cell::{Cell, Level};
use model::record::{Commit, Imported, ImportedFile, Status, TrialRecord};
use plaintext::table::Format;
use report::history::{Document, text};

fn request(over: HistoryAxis) -> Request<'static> {
    Request {
        metric: Metric::Tps,
        over,
        selectors: Vec::new(),
        control: None,
        without: Vec::new(),
        gates: Vec::new(),
        newest: None,
        only_own: false,
        repository: None,
    }
}

fn history_over(bundles: &Bundles, over: HistoryAxis) -> History {
    history(&bundles.reader(), &request(over)).unwrap()
}

fn refused(bundles: &Bundles, request: &Request<'_>) -> String {
    history(&bundles.reader(), request).unwrap_err().to_string()
}

/// The steps before and after each shift, with the scale and clients of its cells.
fn shifts(history: &History) -> Vec<(&str, &str, Vec<String>)> {
    let level = |levels: &Levels, name: &str| {
        levels.iter().find(|(factor, _)| factor.name() == name).unwrap().1.clone()
    };
    let cells = |shift: &Shift| {
        let cell = |at: usize| {
            let levels = &history.series[at].cell;
            format!("{}/{}", level(levels, "scale"), level(levels, "clients"))
        };
        shift.event.changes.iter().map(|(at, _)| cell(*at)).collect::<Vec<_>>()
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

/// The four kernels that are second builds of others.
const SECOND_BUILDS: [&str; 4] = ["3.10.101-stats", "3.11.10-stats", "3.12.58-stats", "4.6.0-stats"];

#[test]
fn the_kernels_of_2016_shift_where_expected() {
    let bundles = kernels();
    let without = SECOND_BUILDS.map(str::to_owned).into();
    let found = history(&bundles.reader(), &Request { without, ..request(HistoryAxis::Kernel) }).unwrap();
    assert_eq!((found.steps.len(), found.series.len(), found.order), (29, 9, Order::Version));
    let cells = |all: &[&str]| all.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    // docs/validation.md justifies the last of these and the first.
    assert_eq!(
        shifts(&found),
        [
            ("3.3.8", "3.4.111", cells(&["1500/16"])),
            ("3.7.10", "3.8.13", cells(&["30/1", "30/4", "300/1", "300/4", "300/16", "1500/1"])),
            ("3.10.101", "3.11.10", cells(&["30/16", "300/16"])),
            ("3.11.10", "3.12.58", cells(&["1500/1", "1500/4", "1500/16"])),
            ("4.4.7", "4.5.1", cells(&["1500/1"])),
        ]
    );
    let page = text(&found, Format::Table, None);
    for part in [
        "B  between 3.7.10 and 3.8.13: REGRESSION -10.7% in 6 of 9 cells (-11.9% to -9.3%)\n",
        "C  between 3.10.101 and 3.11.10: IMPROVEMENT +9.8% in 2 of 9 cells (+2.4% to +17.7%)\n",
        "D  between 3.11.10 and 3.12.58: IMPROVEMENT +72.7% in 3 of 9 cells (+21.8% to +148%)\n",
        "5 shifts in 9 cells: 1 regression, 4 improvements\n",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!(page);
}

/// A cell's run of one night.
fn night(number: usize, cell: Cell, tps: f64) -> TrialRecord {
    let mut record = record(cell, tps);
    record.trial.run = run(&format!("01KAK3W8XQ5T2M9HC4ZP7VR{number:03}"), "nightly");
    let day = jiff::SignedDuration::from_hours(24);
    record.trial.started = record.trial.started.map(|started| started + day * number as i32);
    record
}

/// Reproducible noise within half a per cent.
fn wobble(at: usize) -> f64 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    1.0 + ((mixed ^ mixed >> 27) % 101) as f64 / 10_000.0
}

/// Thirty nights of three runs of the servers `old` and `new`, which is slower by 10% from night 20 on; the machine is
/// slower by 8% from night 10 on.
fn nights() -> Bundles {
    let mut bundles = Bundles::new();
    for number in 0..30 {
        let machine = if number < 10 { 1.0 } else { 0.92 };
        let change = if number < 20 { 1.0 } else { 0.9 };
        for repeat in 0..3 {
            let noise = [wobble(number * 7 + repeat), wobble(number * 5 + repeat + 50)];
            bundles.write(night(number, cell("old", 8), 1000.0 * machine * noise[0]));
            bundles.write(night(number, cell("new", 8), 1100.0 * machine * change * noise[1]));
        }
    }
    bundles
}

fn changes(history: &History) -> Vec<(&str, &str)> {
    shifts(history).into_iter().map(|(before, after, _)| (before, after)).collect()
}

#[test]
fn a_control_cancels_drift_of_the_machine() {
    let bundles = nights();
    let raw = history_over(&bundles, HistoryAxis::Date);
    assert_eq!(changes(&raw), [("2026-11-30", "2026-12-01"), ("2026-12-10", "2026-12-11")]);
    assert_eq!(raw.shifts[0].event.changes.len(), 2);
    let control = Some("server=old".parse().unwrap());
    let relative = history(&bundles.reader(), &Request { control, ..request(HistoryAxis::Date) }).unwrap();
    assert_eq!(changes(&relative), [("2026-12-10", "2026-12-11")]);
    assert_eq!(relative.series.len(), 1, "the control has no series");
    let ratio = relative.shifts[0].event.ratio;
    assert!((ratio - 0.9).abs() < 0.002, "{ratio}");
    let page = text(&relative, Format::Table, None);
    assert!(page.starts_with(
        "transactions per second, relative to server=old\nover date: 30 steps, 2026-11-21 to 2026-12-20, "
    ));
}

#[test]
fn a_night_without_its_control_has_no_point() {
    let mut bundles = nights();
    bundles.write(night(30, cell("new", 8), 1000.0));
    let control = Some("server=old".parse().unwrap());
    let found = history(&bundles.reader(), &Request { control, ..request(HistoryAxis::Date) }).unwrap();
    assert_eq!((found.trials.without_control, found.series[0].medians[30]), (1, None));
    assert!(text(&found, Format::Table, None).contains("1 without a control in their run, not used\n"));
}

fn accept(history: &mut History, bundles: &Bundles, at: &str) -> Result<(), String> {
    let decision =
        Decision::Accept { at: at.to_owned(), note: "known".to_owned(), by: Some("ann".to_owned()) };
    history.decide(&bundles.store, decision).map_err(|error| error.to_string())
}

#[test]
fn accepted_shifts_hit_no_gate_and_have_author_and_reason() {
    let bundles = nights();
    let selectors = || vec!["server=new".parse().unwrap()];
    let gates = vec!["tps < -5%".parse().unwrap()];
    let asked = || Request { selectors: selectors(), gates: gates.clone(), ..request(HistoryAxis::Date) };
    let mut found = history(&bundles.reader(), &asked()).unwrap();
    assert_eq!(found.gates[0].hit, [(0, 0), (0, 1)]);
    accept(&mut found, &bundles, "2026-12-11").unwrap();
    assert_eq!(found.gates[0].hit, [(0, 0)]);
    accept(&mut found, &bundles, "2026-12-01").unwrap();
    assert!(!found.gates_state().hit);

    // It is in the store, and the shifts are still shown.
    let mut again = history(&bundles.reader(), &asked()).unwrap();
    assert!(!again.gates_state().hit);
    assert_eq!((again.shifts.len(), again.accepted.len()), (2, 2));
    let page = text(&again, Format::Table, None);
    assert!(page.contains("; 2 accepted\n") && page.contains(" by ann: known\n"), "{page}");
    // Accepted only for the selected cells.
    let all = history(&bundles.reader(), &Request { selectors: Vec::new(), ..asked() }).unwrap();
    assert_eq!(all.gates[0].hit.len(), 1);
    assert!(text(&all, Format::Table, None).contains("accepted for 1 of 2 cells on "));
    // Not accepted for another history.
    let control = Some("server=old".parse().unwrap());
    assert!(history(&bundles.reader(), &Request { control, ..asked() }).unwrap().gates_state().hit);

    again.decide(&bundles.store, Decision::Withdraw { at: "2026-12-11".to_owned() }).unwrap();
    assert_eq!(again.gates[0].hit, [(0, 1)]);
    let error = again.decide(&bundles.store, Decision::Withdraw { at: "2026-12-11".to_owned() }).unwrap_err();
    assert_eq!(error.to_string(), "the shift at 2026-12-11 is not accepted");
    let error = accept(&mut again, &bundles, "2026-12-05").unwrap_err();
    assert_eq!(error, "there is no shift at 2026-12-05: shifts are at 2026-12-01, 2026-12-11");
    assert!(accept(&mut again, &bundles, "yesterday").unwrap_err().contains("no step \"yesterday\""));
}

/// Later runs may locate a shift more exactly: it stays accepted.
#[test]
fn accepted_shifts_stay_accepted_when_steps_are_inserted() {
    let mut bundles = Bundles::new();
    let write = |bundles: &mut Bundles, minor: usize, tps: f64| {
        let mut trial = record(cell("18", 8), tps * wobble(minor * 11));
        trial.trial.server_version = Some(format!("18.{minor}"));
        bundles.write(trial);
    };
    for minor in (0..40).step_by(2) {
        write(&mut bundles, minor, if minor < 20 { 1000.0 } else { 900.0 });
    }
    let mut found = history_over(&bundles, HistoryAxis::Version);
    assert_eq!(changes(&found), [("18.18", "18.20")]);
    accept(&mut found, &bundles, "18.20").unwrap();
    write(&mut bundles, 19, 900.0);
    let found = history_over(&bundles, HistoryAxis::Version);
    assert_eq!(changes(&found), [("18.18", "18.19")]);
    assert_eq!(found.series[0].accepted, [Some(0)]);
}

#[test]
fn gates_can_be_limited_to_the_newest_steps() {
    let bundles = nights();
    let hit = |gate: &str, newest: usize| {
        let gates = vec![gate.parse().unwrap()];
        let asked = Request { gates, newest: Some(newest), ..request(HistoryAxis::Date) };
        history(&bundles.reader(), &asked).unwrap().gates_state().hit
    };
    assert!(hit("tps < -5%", 10));
    assert!(!hit("tps < -5%", 9));
    assert!(!hit("tps < -20%", 30));
    assert!(!hit("tps > 5%", 30));
    let gates = vec!["latency.p99 > 5%".parse().unwrap()];
    let error = history(&bundles.reader(), &Request { gates, ..request(HistoryAxis::Date) }).unwrap_err();
    assert!(error.is_usage());
    assert!(error.to_string().contains("is for latency.p99, but the history is of tps"), "{error}");
}

#[test]
fn higher_latency_is_a_regression() {
    let bundles = nights();
    let asked = Request { metric: "latency.p99".parse().unwrap(), ..request(HistoryAxis::Date) };
    let found = history(&bundles.reader(), &asked).unwrap();
    let page = text(&found, Format::Table, None);
    assert!(page.contains("between 2026-12-10 and 2026-12-11: REGRESSION +11.2%"), "{page}");
}

/// A kernel is the machine's if no campaign names it.
#[test]
fn the_kernel_is_the_machines_unless_the_factor_names_it() {
    let mut bundles = Bundles::new();
    for minor in (0..12).rev() {
        let mut trial = record(cell("18", 8), if minor < 6 { 1000.0 } else { 1300.0 } * wobble(minor));
        trial.environment.kernel = Some(format!("Linux 6.{minor}.0-7-amd64"));
        bundles.write(trial);
    }
    bundles.write(record(cell("18", 8), 1000.0));
    let found = history_over(&bundles, HistoryAxis::Kernel);
    assert_eq!(changes(&found), [("Linux 6.5.0-7-amd64", "Linux 6.6.0-7-amd64")]);
    assert_eq!(found.trials.without_step, 1);
}

/// A label stands for a kernel; one kernel is one step, however it was requested.
#[test]
fn trials_under_one_kernel_are_one_step_with_its_label_if_there_is_one() {
    let mut bundles = Bundles::new();
    let mut write = |kernel: Option<&str>, release: Option<&str>| {
        let mut trial = record(cell("18", 8), 1000.0);
        trial.trial.cell.kernel = Level::Known(kernel.map(str::to_owned));
        trial.environment.kernel = release.map(|release| format!("Linux {release}"));
        bundles.write(trial);
    };
    write(Some("6.12"), Some("6.12.48-cloud"));
    write(Some("6.2"), Some("6.2.16"));
    write(None, Some("6.18.44"));
    write(Some("linux-image-6.18.*"), Some("6.18.44"));
    write(Some("6.1"), Some("6.1.140-cloud"));
    write(Some("6.1"), Some("6.1.147-cloud"));
    write(Some("./bzImage"), Some("6.5.0"));
    // It never booted: only its label is known.
    write(Some("6.6"), None);
    let found = history_over(&bundles, HistoryAxis::Kernel);
    let labels: Vec<&str> = found.steps.iter().map(|step| step.label.as_str()).collect();
    let expected =
        ["Linux 6.1.140-cloud", "Linux 6.1.147-cloud", "6.2", "Linux 6.5.0", "6.6", "6.12", "Linux 6.18.44"];
    assert_eq!((labels, found.order), (expected.to_vec(), Order::Version));
    assert_eq!((found.series.len(), found.series[0].points[6].trials.len()), (1, 2));
}

/// Versions are the server's own; a server by another name is not mixed in.
#[test]
fn versions_are_in_their_order_and_of_one_server() {
    let mut bundles = Bundles::new();
    let versions =
        ["9.6.24", "10.23", "11.22", "12.22", "13.23", "14.20", "15.15", "16.11", "17.7", "18beta1", "18.1"];
    for (at, version) in versions.into_iter().enumerate().rev() {
        let mut trial = record(cell(version.split('.').next().unwrap(), 8), 1000.0 * wobble(at * 3));
        trial.trial.server_version = Some(version.to_owned());
        bundles.write(trial);
    }
    let found = history_over(&bundles, HistoryAxis::Version);
    let labels: Vec<&str> = found.steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!((labels, found.order, found.series.len()), (versions.into(), Order::Version, 1));
    assert_eq!((found.series[0].tested, changes(&found)), (Tested::Yes, vec![]));
    assert!(text(&found, Format::Table, None).contains("\nno shift in 1 cell\n"));

    // It never answered: the trial is counted with the others of its run.
    bundles.write(with_validity(record(cell("12", 8), 1.0), Status::Invalid, "server-exited"));
    let found = history_over(&bundles, HistoryAxis::Version);
    assert_eq!((found.steps.len(), found.series[0].points[3].invalid), (11, 1));

    let mut patched = record(cell("patched", 8), 500.0);
    patched.trial.server_version = Some("18.1".to_owned());
    bundles.write(patched);
    let error = refused(&bundles, &request(HistoryAxis::Version));
    assert!(error.starts_with("18.1 has several servers (18, patched) for one cell (select-only"), "{error}");
}

/// Nightly builds of branches `a0` to `a11`, one run each; measured in the order of `measured`.
fn commits(measured: &[usize], is_recorded: bool) -> Bundles {
    let mut bundles = Bundles::new();
    for (number, commit) in measured.iter().enumerate() {
        let tps = if *commit < 6 { 1000.0 } else { 900.0 };
        let mut trial = night(number, cell("head", 8), tps * wobble(*commit));
        trial.trial.run.campaign_toml = format!(
            "name = 'nightly'\n[servers.head]\nsource = '/src'\nref = 'a{commit}'\n\
             [factors]\nserver = ['head']\nworkload = ['select-only']\nclients = [8]\n"
        );
        trial.trial.server_commit =
            is_recorded.then(|| Commit { id: format!("{commit:040x}"), position: 70_000 + *commit as u64 });
        bundles.write(trial);
    }
    bundles
}

#[test]
fn commits_are_in_the_recorded_order_else_of_their_measurement() {
    let measured = [11, 3, 7, 0, 5, 9, 1, 10, 2, 8, 4, 6];
    let found = history_over(&commits(&measured, true), HistoryAxis::Commit);
    assert_eq!((found.order, changes(&found)), (Order::Git, vec![("a5", "a6")]));
    let bundles = commits(&measured, false);
    let unknown = history_over(&bundles, HistoryAxis::Commit);
    assert_eq!((unknown.order, unknown.steps[0].label.as_str()), (Order::FirstSeen, "a11"));
    let elsewhere =
        Request { repository: Some(Path::new("/no-such-repository")), ..request(HistoryAxis::Commit) };
    let error = refused(&bundles, &elsewhere);
    assert!(
        error.starts_with("git could not order a11, a3, a7") && error.contains("/no-such-repository"),
        "{error}"
    );
    assert!(
        refused(&nights(), &request(HistoryAxis::Commit))
            .starts_with("none of 180 trials has a commit: a commit is")
    );
}

#[test]
fn cells_that_cannot_be_searched_have_reasons() {
    let mut bundles = Bundles::new();
    for number in 0..12 {
        let mut stopped = night(number, cell("18", 1), 100.0);
        if number == 3 {
            let summary = stopped.trial.summary.as_mut().unwrap();
            (summary.tps, summary.latency) = (0.0, None);
        }
        bundles.write(stopped);
        bundles.write(with_validity(night(number, cell("18", 2), 100.0), Status::Invalid, "server-exited"));
        if number < 9 {
            bundles.write(night(number, cell("18", 4), 100.0));
        }
    }
    let gates = vec!["tps < -5%".parse().unwrap()];
    let found = history(&bundles.reader(), &Request { gates, ..request(HistoryAxis::Date) }).unwrap();
    let tested: Vec<Tested> = found.series.iter().map(|series| series.tested).collect();
    assert_eq!(tested, [Tested::NoRatio, Tested::Invalid, Tested::FewPoints]);
    assert!(found.is_invalid());
    assert_eq!(found.gates[0].undecided, [0, 1, 2]);
    let page = text(&found, Format::Table, None);
    for part in [
        "12 invalid, not used: server-exited 12\n",
        "clients 4 has fewer than 10 steps: too few to find a change\n",
        "clients 1 has a figure of zero or less: no ratio\n",
        "clients 2 has no trial that may be used",
        "gate tps < -5%: not decided for clients 1; clients 2; clients 4\n",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
}

#[test]
fn ambiguous_requests_are_reported() {
    let bundles = nights();
    let control = |text: &str| {
        let control = Some(text.parse().unwrap());
        history(&bundles.reader(), &Request { control, ..request(HistoryAxis::Date) }).unwrap_err()
    };
    assert!(control("latest").is_usage() && control("latest").to_string().contains("is not a control"));
    assert!(control("clients=8").to_string().starts_with("all trials are of the control clients=8"));
    assert!(
        control("server=older").to_string().starts_with("no trial has a control server=older in its run")
    );
    let without = vec!["2027-01-01".to_owned()];
    assert!(
        refused(&bundles, &Request { without, ..request(HistoryAxis::Date) })
            .starts_with("there is no step \"2027-01-01\"; there are 2026-11-21, ")
    );
    let selectors = vec!["server=oldest".parse().unwrap()];
    assert!(
        refused(&bundles, &Request { selectors, ..request(HistoryAxis::Date) })
            .starts_with("no trial of the store has server=oldest; there are\n  server: new, old")
    );
    let metric = "pg.wal.bytes".parse().unwrap();
    assert!(
        refused(&bundles, &Request { metric, ..request(HistoryAxis::Date) })
            .starts_with("no trial of this history has the metric pg.wal.bytes: no metrics were collected")
    );
    let empty = Bundles::new();
    assert!(refused(&empty, &request(HistoryAxis::Date)).starts_with("the store has no trials yet"));
}

/// An import may span many years: then a day is a step, and the measurements of a day are a session.
#[test]
fn time_steps_of_imported_trials_are_days() {
    let mut bundles = Bundles::new();
    for number in 0..30 {
        let machine = if number < 10 { 1.0 } else { 0.92 };
        for (server, at) in [("old", number), ("new", number + 50)] {
            let mut trial = night(number, cell(server, 8), 1000.0 * machine * wobble(at));
            trial.trial.run = run("01KAK3W8XQ5T2M9HC4ZP7VR000", "years");
            trial.trial.imported = Some(Imported {
                format: "csv".to_owned(),
                files: vec![ImportedFile { name: "years.csv".to_owned(), sha256: "0".repeat(64) }],
                line: Some(number as u64),
                at: "2026-12-24T00:00:00Z".parse().unwrap(),
                trials: 60,
            });
            bundles.write(trial);
        }
    }
    let found = history_over(&bundles, HistoryAxis::Date);
    assert_eq!((found.steps.len(), found.steps[3].key.as_str()), (30, "2026-11-24"));
    assert_eq!(changes(&found), [("2026-11-30", "2026-12-01")]);
    let control = Some("server=old".parse().unwrap());
    assert_eq!(
        changes(&history(&bundles.reader(), &Request { control, ..request(HistoryAxis::Date) }).unwrap()),
        []
    );
}

/// A campaign's history includes all of its runs.
#[test]
fn a_campaign_means_all_its_runs() {
    let mut bundles = nights();
    bundles.write(record(cell("new", 8), 1.0));
    let selectors = vec!["campaign:nightly".parse().unwrap()];
    let found = history(&bundles.reader(), &Request { selectors, ..request(HistoryAxis::Date) }).unwrap();
    assert_eq!((found.trials.runs, found.trials.trials), (30, 180));
    let selectors = vec!["latest".parse().unwrap()];
    let found = history(&bundles.reader(), &Request { selectors, ..request(HistoryAxis::Date) }).unwrap();
    assert_eq!(found.trials.runs, 1);
    let selectors = ["server=new,clients=8", "latest"].map(|text| text.parse().unwrap()).into();
    let found = history(&bundles.reader(), &Request { selectors, ..request(HistoryAxis::Date) }).unwrap();
    assert_eq!(found.selector, "server=new,clients=8 latest", "the trials of any of them");
    assert!(found.trials.runs > 1);
}

#[test]
fn json_and_csv_are_complete() {
    let bundles = nights();
    let found = history_over(&bundles, HistoryAxis::Date);
    let json = serde_json::to_value(Document::new(&found)).unwrap();
    assert_eq!((&json["schema"], json["steps"].as_array().unwrap().len()), (&1.into(), 30));
    assert_eq!(json["shifts"][1]["cells"], serde_json::json!([0]));
    let change = &json["cells"][0]["changes"][1];
    assert_eq!((&change["after"], &change["verdict"]), (&20.into(), &"REGRESSION".into()));
    assert_eq!(json["cells"][0]["points"][0]["trials"].as_array().unwrap().len(), 3);

    let csv = text(&found, Format::Csv, None);
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert!(lines.clone().all(|line| line.split(',').count() == heads.len()));
    let verdict = heads.iter().position(|head| *head == "verdict").unwrap();
    let changed: Vec<&str> = lines.filter(|line| !line.split(',').nth(verdict).unwrap().is_empty()).collect();
    assert_eq!(changed.len(), 3);
    assert!(changed[0].starts_with("tps,,date,2026-12-01,11,new,"), "{}", changed[0]);
}

#[test]
fn markdown_says_what_shifted_first() {
    let bundles = nights();
    let page = text(&history_over(&bundles, HistoryAxis::Date), Format::Markdown, None);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in\n{page}"));
    let shift = place("- **between 2026-11-30 and 2026-12-01: REGRESSION -7.9% in 2 of 2 cells");
    assert!(place("2 shifts in 2 cells") < shift && shift < place("<summary>2 cells</summary>"));
}
