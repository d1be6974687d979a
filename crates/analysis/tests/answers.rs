//! The answers of a report: decided ones with their confidence, reason and risks, and what open ones take.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "fixture/bundles.rs"]
mod bundles;
mod fixture;

use analysis::explain::PARTS;
use analysis::overview::read;
use analysis::overview::view::{Answer, AnswerCell, AnswerKind, View};
use analysis::select::RunSelection;
use bundles::{Bundles, RUN, cell, record, with_validity};
use fixture::paired::{Planted, SAME, records};
use fixture::profiles;
use model::record::{Finding, Status, TrialRecord};
use model::waits::{SessionKind, Waits};

/// Runs without noise to speak of.
const STEADY: [f64; 5] = [1000.0, 1005.0, 995.0, 1002.0, 998.0];
const NOISY: [f64; 5] = [1000.0, 1220.0, 840.0, 1110.0, 930.0];

fn view(bundles: &Bundles) -> View {
    read(&bundles.reader(), &RunSelection::Latest).unwrap()
}

fn only(bundles: &Bundles) -> Answer {
    let answers = view(bundles).answers;
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.into_iter().next().unwrap()
}

/// Both servers with 1 and 8 clients, of which 18 changes those of 8 by this factor.
fn sweep(runs: [f64; 5], factor: f64) -> Bundles {
    let mut bundles = Bundles::new();
    for (server, factor) in [("17", 1.0), ("18", factor)] {
        bundles.runs(&cell(server, 1), &runs);
        bundles.runs(&cell(server, 8), &runs.map(|tps| 4.0 * tps * factor));
    }
    bundles
}

fn foreign(record: TrialRecord, status: Status, share: u32) -> TrialRecord {
    let mut record = with_validity(record, status, "foreign-cpu");
    record.trial.validity.findings = vec![Finding {
        gate: "foreign-cpu".to_owned(),
        status,
        evidence: format!("other processes used {share}% of the CPU"),
        threshold: None,
        advice: Some("stop other programs".to_owned()),
        processes: Vec::new(),
    }];
    record
}

#[test]
fn a_change_is_answered_by_how_much_and_with_what_confidence() {
    let worse = only(&sweep(STEADY, 0.9));
    assert_eq!((worse.kind, worse.column), (AnswerKind::Worse, Some(1)));
    assert_eq!(worse.subject, "PostgreSQL 18 against PostgreSQL 17");
    let sentence = "1 of 2 cells regressed, 1 equivalent; worst: clients 8, -10.0% (-10.";
    assert!(worse.sentence.starts_with(sentence), "{worse:?}");
    let confidence = "95% intervals, p adjusted over 2 comparisons; 5 runs a side; equivalent is within ±5%";
    assert_eq!(worse.confidence.as_deref(), Some(confidence));
    assert_eq!(worse.cell, Some(AnswerCell { panel: 0, row: 1 }));
    assert!(worse.why.is_empty() && worse.risks.is_empty() && worse.next.is_empty(), "{worse:?}");

    let better = only(&sweep(STEADY, 1.1));
    assert_eq!((better.kind, better.cell), (AnswerKind::Better, worse.cell));
    assert!(better.sentence.contains("; best: clients 8, +10.0% (+9."), "{better:?}");
    let same = only(&sweep(STEADY, 1.0));
    assert_eq!((same.kind, same.cell), (AnswerKind::Same, None));
    assert_eq!(same.sentence, "none of 2 cells regressed, 2 equivalent");
}

/// Of several columns, the one that lost most comes first, and what is not decided last, however much it differs.
#[test]
fn answers_are_in_the_order_of_their_importance() {
    let mut bundles = sweep(STEADY, 1.0);
    for (server, factor) in [("14", 0.9), ("15", 1.3), ("16", 0.8)] {
        bundles.runs(&cell(server, 1), &STEADY.map(|tps| tps * factor));
    }
    bundles.runs(&cell("13", 1), &NOISY);
    bundles.runs(&cell("12", 1), &STEADY);
    let view = view(&bundles);
    let order: Vec<(AnswerKind, &str)> =
        view.answers.iter().map(|answer| (answer.kind, &answer.subject[..13])).collect();
    let kinds = [AnswerKind::Worse, AnswerKind::Worse, AnswerKind::Better];
    let first: Vec<(AnswerKind, &str)> =
        kinds.into_iter().zip(["PostgreSQL 16", "PostgreSQL 14", "PostgreSQL 15"]).collect();
    assert_eq!(order[..3], first, "{order:?}");
    assert_eq!(order.last(), Some(&(AnswerKind::Open, "PostgreSQL 13")), "{order:?}");
}

#[test]
fn an_open_answer_has_its_reason_and_the_command_that_would_decide_it() {
    let mut bundles = sweep(NOISY, 1.03);
    for share in [46, 10, 83] {
        bundles.write(foreign(record(cell("18", 1), 1000.0), Status::Suspect, share));
    }
    let open = only(&bundles);
    assert_eq!((open.kind, open.confidence.clone(), open.cell), (AnswerKind::Open, None, None));
    assert_eq!(open.sentence, "no verdict in 2 of 2 cells: too noisy (2 unstable)");
    let why = "foreign-cpu in 3 of 23 trials: other processes used 10–83% of the CPU";
    assert_eq!(open.why, [why]);
    let [next] = open.next.as_slice() else { unreachable!("{open:?}") };
    let (text, rest) = next.text.split_once(" runs a side would decide whether it changed by 5%").unwrap();
    let runs: usize = text.parse().unwrap();
    assert!(runs > 5 && rest.is_empty(), "the duration of these trials is unknown: {next}");
    assert_eq!(next.commands, [format!("pgdyno resume --run {RUN} --set repeats={runs}")]);
}

#[test]
fn findings_and_what_only_one_side_has_are_risks_of_a_decided_answer() {
    let mut bundles = sweep(STEADY, 0.9);
    bundles.write(foreign(record(cell("18", 8), 3600.0), Status::Suspect, 12));
    bundles.write(with_validity(record(cell("18", 1), 1.0), Status::Invalid, "server-exited"));
    bundles.runs(&cell("18", 32), &STEADY);
    let answer = only(&bundles);
    assert_eq!(answer.kind, AnswerKind::Worse);
    let has = |text: &str| answer.risks.iter().any(|risk| risk.contains(text));
    assert!(has("foreign-cpu in 1 of 22 trials: other processes used 12% of the CPU"), "{answer:?}");
    assert!(has("server-exited in 1 of 22 trials, not used: "), "{answer:?}");
    assert!(has("clients 1: server-exited in 1 of 6 trials, which are not used"), "{answer:?}");
    assert!(has("1 cell not on both sides, and not compared"), "{answer:?}");
}

#[test]
fn a_side_without_usable_trials_is_answered_by_what_to_do() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("17", 1), &STEADY);
    bundles.write(foreign(record(cell("18", 1), 1000.0), Status::Invalid, 99));
    let answer = only(&bundles);
    assert_eq!((answer.kind, answer.sentence.as_str()), (AnswerKind::Open, "INVALID"));
    assert_eq!(answer.why, ["foreign-cpu in 1 of 6 trials, not used: other processes used 99% of the CPU"]);
    assert_eq!(answer.next[0].to_string(), "foreign-cpu: stop other programs");
}

#[test]
fn one_server_is_described_and_servers_without_a_common_cell_are_open() {
    let mut bundles = Bundles::new();
    bundles.runs(&cell("18", 1), &STEADY);
    let alone = only(&bundles);
    assert_eq!((alone.kind, alone.subject.as_str()), (AnswerKind::Alone, "PostgreSQL 18"));
    assert_eq!(alone.sentence, "5 runs: STABLE");
    bundles.runs(&cell("17", 8), &STEADY);
    let open = only(&bundles);
    assert_eq!(open.kind, AnswerKind::Open);
    assert_eq!(open.sentence, "no other column has a cell in common with it");
    assert_eq!(analysis::overview(&[], &std::collections::BTreeMap::new()).answers, []);
}

/// The cell that changed most is explained, by its trials of both sides.
#[test]
fn a_change_is_explained_by_what_takes_longer() {
    let seen = |record: &mut TrialRecord, event: Option<&str>, seen: u32| {
        record.waits.push(Waits {
            at_us: 0,
            width_us: 10_000_000,
            samples: 100,
            session: SessionKind::Load,
            state: Some("active".to_owned()),
            event_type: event.map(|_| "Lock".to_owned()),
            event: event.map(str::to_owned),
            seen,
        });
    };
    let mut bundles = Bundles::new();
    for (server, factor, locked) in [("17", 1.0, 0), ("18", 0.5, 400)] {
        for tps in STEADY {
            let mut record = record(cell(server, 8), tps * factor);
            seen(&mut record, None, 800 - locked);
            seen(&mut record, Some("transactionid"), locked);
            bundles.write(record);
        }
    }
    let answer = only(&bundles);
    assert_eq!(answer.kind, AnswerKind::Worse);
    let [difference, ..] = answer.why.as_slice() else { unreachable!("{answer:?}") };
    let longer = "a transaction takes 8.000 ms longer (8.000 → 16.000 ms, +100.0%)";
    assert!(difference.starts_with(longer), "{answer:?}");
    assert!(difference.contains("lock"), "{answer:?}");
}

/// Sessions in which 18 takes a tenth more CPU time per transaction, and no time else.
fn costlier(edit: impl Fn(&mut TrialRecord)) -> Answer {
    const CAMPAIGN: &str = "name = 'pairs'\n[factors]\nserver = ['13', '18']\nworkload = ['select-only']\nscale = [10]\n\
                            clients = [8]\n[run]\norder = 'paired'\ncpu_decides = true\n";
    let mut bundles = Bundles::new();
    let planted = |cell: &model::cell::Cell| match cell.server.as_str() {
        "18" => Planted { speed: 1.0, cpu: 1.1 },
        _ => SAME,
    };
    for mut record in records(CAMPAIGN, 40, planted) {
        edit(&mut record);
        bundles.write(record);
    }
    let answer = only(&bundles);
    assert_eq!(answer.kind, AnswerKind::Worse, "{answer:?}");
    assert!(answer.sentence.starts_with("cpu_per_transaction: REGRESSION: +"), "{answer:?}");
    answer
}

fn is_new(record: &TrialRecord) -> bool {
    record.trial.server_version.as_deref() == Some("18.1")
}

#[test]
fn a_change_of_cpu_time_alone_is_explained_by_what_is_known() {
    const HINT: &str = "pgdyno ab --profile, or [profile] in a campaign, shows the functions";
    let unknown = costlier(|_| ());
    assert_eq!(unknown.why, [format!("what the CPU time went to is not known: {HINT}")]);

    let counted = |new: u64| {
        costlier(|record| {
            let per_transaction = if is_new(record) { new } else { 100_000 };
            for slice in &mut record.trial.paired.as_mut().unwrap().slices {
                slice.server_instructions = Some(per_transaction * slice.all_transactions());
            }
        })
    };
    let work = format!("the server executes other work: instructions per transaction +9.0%; {HINT}");
    assert_eq!(counted(109_000).why, [work]);
    let [slower] = &counted(101_000).why[..] else { unreachable!("one sentence") };
    assert!(slower.starts_with("instructions per transaction +1.0% do not account for it"), "{slower}");
}

#[test]
fn a_change_of_cpu_time_alone_is_explained_by_the_functions_of_a_profile() {
    let profiled = costlier(|record| {
        let cell = cell(if is_new(record) { "18" } else { "13" }, 8);
        record.trial.profile = profiles::profiled(&cell);
        record.stacks = profiles::stacks(&cell);
        record.intervals = vec![profiles::interval(1_000)];
    });
    let [functions] = &profiled.why[..] else { unreachable!("{profiled:?}") };
    let beginning = "CPU time per transaction by function: hash_search_with_hash_value 353.54 → 646.46 µs";
    assert!(functions.starts_with(beginning), "{functions}");
    assert!(!functions.contains("LockAcquireExtended"), "it takes less: {functions}");
}

/// A trial with everything that a bundle has.
#[test]
fn an_explanation_needs_only_some_parts_of_a_bundle() {
    let mut bundles = Bundles::new();
    let id = bundles.write(fixture::detailed::trials().pop().unwrap());
    let reader = bundles.reader();
    let (whole, parts) = (reader.load(&id).unwrap(), reader.load_parts(&id, &PARTS).unwrap());
    assert!(!whole.statements.is_empty() && parts.statements.is_empty(), "they differ in what is not needed");
    let explained = diagnose::explain(&whole).unwrap();
    assert!(!explained.causes.is_empty(), "{explained:?}");
    assert_eq!(diagnose::explain(&parts).unwrap(), explained);
}
