//! Comparisons of trials that were measured in pairs, by their sessions.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;
#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use std::collections::BTreeMap;

use analysis::compare::{Compared, Gates, Request, compare};
use analysis::judgement::Row;
use analysis::overview;
use analysis::overview::view::{Answer, AnswerKind, PairedComparison, View};
use analysis::power::expected_sessions;
use analysis::select::RunSelection;
use bundles::{Bundles, with_validity};
use fixture::paired::{AT_A_RATE, Planted, SAME, THREE, TWO, loss, records};
use model::cell::Cell;
use model::paired::Side;
use model::plan::Plan;
use model::record::{Status, Trial, TrialRecord};
use model::spec::Campaign;
use plaintext::table::Format;

/// A cell of 18 has lost this share.
fn lost_by_18(share: f64) -> impl Fn(&Cell) -> Planted {
    move |cell: &Cell| if cell.server == "18" { loss(share) } else { SAME }
}

fn view(records: &[TrialRecord]) -> View {
    let trials: Vec<_> = records.iter().map(|record| record.trial.clone()).collect();
    overview(&trials, &BTreeMap::new())
}

fn stored(records: Vec<TrialRecord>) -> Bundles {
    let mut bundles = Bundles::new();
    for record in records {
        bundles.write(record);
    }
    bundles
}

fn compared(bundles: &Bundles, selectors: [&str; 2], metrics: &[&str], gates: &[&str]) -> Compared {
    let request = Request {
        selectors: selectors.iter().map(|text| text.parse().unwrap()).collect(),
        run: RunSelection::Latest,
        metrics: metrics.iter().map(|text| text.parse().unwrap()).collect(),
        gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
        margins: Vec::new(),
    };
    compare(&bundles.reader(), &request).unwrap()
}

/// The answer on a column.
fn on_column(view: &View, column: usize) -> &Answer {
    view.answers.iter().find(|answer| answer.column == Some(column)).unwrap()
}

/// The verdict by each figure.
fn verdicts(comparison: &PairedComparison) -> Vec<(&str, &'static str)> {
    comparison.figures.iter().map(|figure| (figure.metric.as_str(), figure.verdict)).collect()
}

fn names(compared: &Compared) -> Vec<(String, Vec<&'static str>)> {
    let of = |row: &Row, metric: &analysis::metric::Metric| row.judged.outcome.name(metric.better());
    let names = compared
        .metrics
        .iter()
        .map(|rows| (rows.metric.to_string(), rows.rows.iter().map(|row| of(row, &rows.metric)).collect()));
    names.collect()
}

/// Sessions spread by 4 % and what 15 pairs of slices that differ by 8 % add, 4.6 %: equivalence within 5 % takes some 25 of each of
/// two comparisons, of 2.5 s each.
#[test]
fn the_time_of_a_campaign_follows_from_earlier_sessions() {
    let trials: Vec<Trial> = records(TWO, 60, |_| SAME).into_iter().map(|record| record.trial).collect();
    let trials: Vec<&Trial> = trials.iter().collect();
    let expected = |campaign: &str| {
        let plan = Plan::new(&Campaign::parse(campaign).unwrap(), 1).unwrap();
        expected_sessions(&plan, &trials).map(|expected| expected.in_words())
    };
    let words = expected(TWO).unwrap();
    let number = |before: &str| {
        let rest = words.split(before).nth(1).unwrap();
        rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap().parse::<f64>().unwrap()
    };
    assert!((3.5..6.0).contains(&number("spread by ")), "{words}");
    assert!((15.0..45.0).contains(&number("after some ")), "{words}");
    assert_eq!(
        expected(AT_A_RATE.replace("clients = [4]", "clients = [16]").as_str()),
        None,
        "none is like it"
    );
    assert_eq!(expected(&TWO.replace("order = 'paired'", "repeats = 5")), None);
}

#[test]
fn a_planted_loss_is_found_and_none_is_equivalence() {
    let planted = |cell: &Cell| if cell.server == "18" && cell.clients == 4 { loss(0.05) } else { SAME };
    let view = view(&records(TWO, 60, planted));
    let [one, four] = view.paired.as_slice() else { unreachable!("two comparisons") };
    assert_eq!(verdicts(one), [("tps", "EQUIVALENT"), ("cpu_per_transaction", "EQUIVALENT")]);
    assert_eq!(verdicts(four), [("tps", "REGRESSION"), ("cpu_per_transaction", "REGRESSION")]);
    assert_eq!((four.baseline.as_str(), four.variant.as_str()), ("PostgreSQL 17.1", "PostgreSQL 18.1"));
    assert_eq!(four.cell, ["select-only", "scale 10", "clients 4"]);
    let tps = &four.figures[0];
    let interval = (tps.ci99_low.unwrap(), tps.ci99_high.unwrap());
    assert!(interval.0 < -0.05 && -0.05 < interval.1 && interval.1 < 0.0, "{interval:?}");
    assert_eq!((tps.sessions.len(), tps.sessions_left, four.comparisons), (60, Some(0), 2));
    assert_eq!(
        (four.session_seconds, four.paused_cpu.map(|share| share.map(|share| (share * 1e4).round()))),
        (Some(2.5), [Some(100.0); 2])
    );
    assert_eq!(four.disagreement, None);
    // The table of clients has the same verdict; the spread of trials says nothing.
    let point = view.panels[0].rows[1].points[1].as_ref().unwrap();
    let verdict = point.verdict.as_ref().unwrap();
    assert_eq!((verdict.verdict, verdict.change, verdict.ci99_low), ("REGRESSION", tps.change, tps.ci99_low));
    assert_eq!(
        (verdict.ci95_low, verdict.p_holm, verdict.sessions, &point.class),
        (None, None, Some(60), &None)
    );
}

/// Where others use the CPUs, throughput hardly shows what CPU time does.
#[test]
fn cpu_time_decides_next_to_throughput_where_the_campaign_says_so() {
    let campaign = THREE.to_owned() + "cpu_decides = true\n";
    let planted = |cell: &Cell| match cell.server.as_str() {
        "18" => Planted { speed: 0.99, cpu: 1.05 },
        _ => SAME,
    };
    let records = records(&campaign, 60, planted);
    let of_view = view(&records);
    let [same, more] = of_view.paired.as_slice() else { unreachable!("two comparisons") };
    assert_eq!(verdicts(same), [("tps", "EQUIVALENT"), ("cpu_per_transaction", "EQUIVALENT")]);
    let both = "EQUIVALENT by transactions per second and server CPU time per transaction: ";
    assert!(same.sentence.starts_with(both), "{}", same.sentence);
    assert_eq!(verdicts(more), [("cpu_per_transaction", "REGRESSION"), ("tps", "EQUIVALENT")]);
    assert!(more.figures.iter().all(|figure| figure.decides) && more.comparisons == 4, "{more:?}");
    let sentence = "REGRESSION by server CPU time per transaction: +";
    assert!(more.sentence.starts_with(sentence), "{}", more.sentence);
    assert!(more.disagreement.as_ref().is_some_and(|text| text.contains("but EQUIVALENT by")), "{more:?}");
    // The table of clients shows throughput; its verdict names the figure that it is by.
    let of_point = |column: usize| of_view.panels[0].rows[0].points[column].as_ref().unwrap();
    let verdict = of_point(2).verdict.as_ref().unwrap();
    assert_eq!((verdict.verdict, verdict.ci99_low), ("REGRESSION", more.figures[0].ci99_low));
    assert_eq!(verdict.by.as_deref(), Some("server CPU time per transaction"));
    let caution =
        "the verdict is by server CPU time per transaction; EQUIVALENT by transactions per second: ";
    assert!(verdict.cautions.iter().any(|of| of.starts_with(caution)), "{:?}", verdict.cautions);
    assert_eq!(of_point(1).verdict.as_ref().unwrap().by, None);
    let answer = on_column(&of_view, 2);
    assert_eq!(answer.kind, AnswerKind::Worse);
    assert!(answer.sentence.starts_with("cpu_per_transaction: REGRESSION: +"), "{answer:?}");
    assert!(!answer.sentence.contains("tps"), "it does not decide: {answer:?}");
    assert_eq!(on_column(&of_view, 1).kind, AnswerKind::Same);

    let outcomes = |bundles: &Bundles| {
        let all = compared(bundles, ["server=16", "server=18"], &[], &[]);
        all.outcomes().map(|outcome| outcome.name(model::metrics::Better::Lower)).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&stored(records.clone())), ["REGRESSION"]);
    // Without it, throughput decides alone, and CPU time is next to it.
    let alone = fixture::paired::records(THREE, 60, planted);
    let figures = verdicts(&view(&alone).paired[1]).len();
    assert_eq!(
        view(&alone).paired[1].figures.iter().map(|figure| figure.decides).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!((figures, outcomes(&stored(alone))), (2, vec!["EQUIVALENT"]));
}

#[test]
fn few_sessions_do_not_decide_and_say_how_many_would() {
    let two = view(&records(THREE, 2, lost_by_18(0.05)));
    assert_eq!(verdicts(&two.paired[0])[0], ("tps", "INSUFFICIENT"));
    let open = view(&records(THREE, 8, lost_by_18(0.05)));
    let (comparison, figure) = (&open.paired[1], &open.paired[1].figures[0]);
    assert_eq!(figure.verdict, "INCONCLUSIVE");
    let left = figure.sessions_left.unwrap();
    assert!((2..200).contains(&left) && figure.seconds_left == Some(left as f64 * 2.5), "{left}");
    assert!(
        comparison.sentence.starts_with("INCONCLUSIVE by transactions per second: -"),
        "{}",
        comparison.sentence
    );
    let more = format!("8 sessions; about {left} more would decide it, ");
    assert!(comparison.sentence.contains(&more), "{}", comparison.sentence);
    let answer = on_column(&open, 2);
    let run = &open.runs[0].id;
    assert_eq!(answer.kind, AnswerKind::Open);
    let [next] = answer.next.as_slice() else { unreachable!("{answer:?}") };
    assert!(next.text.starts_with(&format!("About {left} more sessions (")), "{next}");
    assert!(next.text.ends_with(") would decide"), "{next}");
    assert_eq!(next.commands, [format!("pgdyno resume --run {run}")]);
}

#[test]
fn limits_that_are_reached_are_raised_by_the_advice() {
    let limited = THREE.to_owned() + "repeats = 8\nmax_time = '40s'\n";
    let view = view(&records(&limited, 8, lost_by_18(0.05)));
    let left = view.paired[1].figures[0].sessions_left.unwrap();
    let longer = 40 + (left as f64 * 2.5).ceil() as usize + 1;
    let command = format!("--set repeats={} --set max_time={longer}s", 8 + left);
    let answer = on_column(&view, 2);
    assert!(answer.next[0].commands[0].ends_with(&command), "{answer:?}");
}

#[test]
fn sessions_with_an_invalid_side_do_not_count() {
    let mut all = records(THREE, 30, SAME_ALL);
    // Wrong by a lot, and noticed.
    for record in all.iter_mut().filter(|record| record.trial.repeat % 8 == 1) {
        if record.trial.cell.server.known().is_some_and(|server| server == "17") {
            record
                .trial
                .paired
                .as_mut()
                .unwrap()
                .slices
                .iter_mut()
                .for_each(|slice| slice.load.transactions /= 2);
            // One that failed before its load has no slices.
            record.trial.paired.take_if(|_| record.trial.repeat == 1);
            *record = with_validity(record.clone(), Status::Invalid, "server-exited");
        }
    }
    let view = view(&all);
    let of_17 = &view.paired[0];
    let invalid = all.iter().filter(|record| record.trial.validity.status == Status::Invalid).count();
    assert!(invalid > 5 && of_17.invalid == invalid, "{invalid}");
    assert_eq!(of_17.figures[0].sessions.len(), 30 - invalid);
    assert!(of_17.figures[0].change.unwrap().abs() < 0.05, "{:?}", of_17.figures[0].change);
    let verdict = view.panels[0].rows[0].points[1].as_ref().unwrap().verdict.clone().unwrap();
    let caution = format!("server-exited in {invalid} of 30 trials, which are not used");
    assert_eq!((verdict.sessions, verdict.cautions), (Some(30 - invalid), vec![caution]));
    // A session that was repeated counts once.
    let mut again: Vec<TrialRecord> = all.clone();
    for record in records(THREE, 30, SAME_ALL).into_iter().filter(|record| record.trial.repeat % 8 == 1) {
        let mut record = record;
        record.trial.attempt = 2;
        record.trial.id.replace_range(20..22, "ZZ");
        again.push(record);
    }
    let again = self::view(&again);
    assert_eq!((again.paired[0].invalid, again.paired[0].figures[0].sessions.len()), (0, 30));
}

const SAME_ALL: fn(&Cell) -> Planted = |_| SAME;

/// Waits of the driver hide what the servers differ by.
#[test]
fn sessions_whose_drivers_wait_for_others_get_no_verdict() {
    let found = |waits: fn(&Trial) -> bool| {
        let with_finding = |record: TrialRecord| match waits(&record.trial) {
            true => with_validity(record, Status::Suspect, "foreign-cpu"),
            false => record,
        };
        let records: Vec<_> = records(THREE, 60, lost_by_18(0.08)).into_iter().map(with_finding).collect();
        let view = view(&records);
        (verdicts(&view.paired[1])[0].1, view.paired[1].sentence.clone())
    };
    let (refused, sentence) = found(|_| true);
    assert_eq!(refused, "NO VERDICT");
    assert!(sentence.contains("other processes took the driver's CPUs"), "{sentence}");
    assert_eq!(found(|trial| trial.repeat % 3 == 0).0, "REGRESSION", "a third of the sessions");
    let is_variant = |trial: &Trial| trial.paired.as_ref().is_some_and(|paired| paired.side == Side::B);
    assert_eq!(found(is_variant).0, "REGRESSION", "one side, which is a confound");
}

/// The baseline of three levels has sessions with both others: each comparison counts its own.
#[test]
fn three_levels_are_compared_by_their_own_sessions() {
    let planted = |cell: &Cell| match cell.server.as_str() {
        "16" => SAME,
        "17" => loss(0.1),
        _ => loss(-0.1),
    };
    let all = records(THREE, 40, planted);
    let bundles = stored(all.clone());
    let view = view(&all);
    let tps: Vec<_> = view.paired.iter().map(|of| (of.variant.as_str(), verdicts(of)[0].1)).collect();
    assert_eq!(tps, [("PostgreSQL 17.1", "REGRESSION"), ("PostgreSQL 18.1", "IMPROVEMENT")]);
    let both = compared(&bundles, ["server=16", "server=18"], &[], &[]);
    assert_eq!(
        names(&both),
        [("tps".to_owned(), vec!["IMPROVEMENT"]), ("cpu_per_transaction".to_owned(), vec!["IMPROVEMENT"])]
    );
    let row = &both.metrics[0].rows[0];
    assert_eq!((row.a.trials.len(), row.b.trials.len(), row.judged.p_holm), (40, 40, None));
    // The other way round: the session's baseline is what is compared.
    let reversed = compared(&bundles, ["server=18", "server=16"], &["tps"], &[]);
    let product = reversed.metrics[0].rows[0].ratio().unwrap() * row.ratio().unwrap();
    assert!((product - 1.0).abs() < 1e-9, "{product}");
    assert_eq!(reversed.metrics[0].rows[0].judged.outcome.name(model::metrics::Better::Higher), "REGRESSION");
    // These have no session in common.
    let apart = compared(&bundles, ["server=17", "server=18"], &["tps"], &[]);
    assert!(apart.metrics[0].rows[0].judged.paired.is_none());
    assert_eq!(apart.metrics[0].rows[0].a.trials.len(), 40);
}

#[test]
fn open_loops_are_judged_by_their_mean_latency() {
    let all = records(AT_A_RATE, 60, lost_by_18(0.08));
    let view = view(&all);
    assert_eq!(
        verdicts(&view.paired[0]),
        [("latency.mean", "REGRESSION"), ("cpu_per_transaction", "REGRESSION")]
    );
    assert!(view.paired[0].figures[0].change.unwrap() > 0.05, "more latency is worse");
    let point = view.panels[0].rows[0].points[1].as_ref().unwrap();
    assert_eq!(point.verdict.as_ref().unwrap().verdict, "REGRESSION");
    let compared = compared(&stored(all), ["server=17", "server=18"], &[], &[]);
    assert_eq!(names(&compared)[0], ("latency.mean".to_owned(), vec!["REGRESSION"]));
}

#[test]
fn figures_that_disagree_are_shown_as_such() {
    let waits = |cell: &Cell| match cell.server.as_str() {
        "18" => Planted { speed: 0.9, cpu: 1.0 },
        _ => SAME,
    };
    let view = view(&records(TWO, 60, waits));
    assert_eq!(
        view.paired[1].disagreement.as_deref(),
        Some("REGRESSION by transactions per second, but EQUIVALENT by server CPU time per transaction")
    );
}

#[test]
fn gates_use_the_interval_of_the_sessions() {
    let state = |sessions, share, gate| {
        let compared = compared(
            &stored(records(TWO, sessions, lost_by_18(share))),
            ["server=17", "server=18"],
            &[],
            &[gate],
        );
        compared.gates_state()
    };
    assert_eq!(state(40, 0.1, "tps < -5%"), Gates { hit: true, undecided: false });
    assert_eq!(state(60, 0.0, "tps < -5%"), Gates::default());
    assert_eq!(state(4, 0.05, "tps < -5%"), Gates { hit: false, undecided: true });
}

/// Slices do not measure it: the ratio of a session is that of its two trials.
#[test]
fn other_metrics_are_compared_by_sessions_as_well() {
    let bundles = stored(records(TWO, 40, lost_by_18(0.1)));
    let compared = compared(&bundles, ["server=17", "server=18"], &["latency.p99"], &[]);
    let row = &compared.metrics[0].rows[0];
    let paired = row.judged.paired.as_ref().unwrap();
    assert_eq!((paired.sequence.sessions(), paired.decides), (40, false));
    assert_eq!(names(&compared)[0].1, ["REGRESSION", "REGRESSION"]);
}

#[test]
fn tables_show_sessions_intervals_and_what_is_left() {
    let planted = |cell: &Cell| if cell.server == "18" && cell.clients == 4 { loss(0.05) } else { SAME };
    let bundles = stored(records(TWO, 30, planted));
    let view = overview::read(&bundles.reader(), &RunSelection::Latest).unwrap();
    insta::assert_snapshot!("report", report::tables(&view, Format::Table, None));
    let compared = compared(&bundles, ["server=17", "server=18"], &[], &["tps < -3%"]);
    insta::assert_snapshot!("compare", report::compare::text(&compared, Format::Table, None));
    let terminal = report::Terminal { width: 110, colours: false };
    let shown = report::show::show(&bundles.reader(), &"clients=4".parse().unwrap(), &RunSelection::Latest);
    insta::assert_snapshot!("show", shown.unwrap().text(Format::Table, Some(terminal)));
    let document = serde_json::to_value(report::compare::Document::new(&compared)).unwrap();
    let cell = &document["metrics"][0]["cells"][1];
    assert_eq!((cell["paired"]["sessions"].as_array().unwrap().len(), &cell["ci95_low"]), (30, &().into()));
    assert!(cell["ci99_low"].as_f64() < cell["ratio"].as_f64() && cell["a"]["median"].is_number(), "{cell}");
}
