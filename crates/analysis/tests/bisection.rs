//! Bisections as values: what was found, what is known of each level, and the answer of the report.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod fixture;

use analysis::bisection::{Bisection, BisectionState};
use analysis::overview::read_run;
use analysis::overview::view::{AnswerKind, View};
use fixture::bisection::{RELEASES, commit, commits, kernels, open, records, releases, shown, view};
use fixture::paired::{Planted, loss};
use model::record::TrialRecord;
use store::Store;

fn only(view: &View) -> &Bisection {
    assert_eq!(view.bisections.len(), 1);
    &view.bisections[0]
}

/// From this release on, a share is lost.
fn step(at: usize, share: f64) -> impl Fn(usize) -> Planted {
    move |level| loss(if level >= at { share } else { 0.0 })
}

fn bisected(run: &str, planted: impl Fn(usize) -> Planted, fails: impl Fn(usize) -> bool) -> View {
    shown(records(&releases(run), 1000, planted, fails))
}

#[test]
fn a_commit_is_found_with_its_subject_author_and_files() {
    let view = view();
    let found = only(&view);
    assert_eq!(found.state, BisectionState::Found);
    assert_eq!((found.what, found.levels.len(), found.figure), ("commit", 65, "throughput"));
    assert_eq!(found.searched, format!("64 commits of /src/postgres, from {} to {}", commit(0), commit(64)));
    let [change] = found.changes.as_slice() else { unreachable!("one change: {:?}", found.changes) };
    assert_eq!((change.first, change.last), (41, 41));
    assert!(change.probability >= 0.95, "{change:?}");
    assert!(change.ci95_low < change.change && change.change < change.ci95_high, "{change:?}");
    assert!(change.ci95_low < Some(-0.07) && Some(-0.07) < change.ci95_high, "{change:?}");
    let level = &found.levels[41];
    assert_eq!(level.name, format!("postgres@{}", commit(41)));
    assert_eq!(level.short, commit(41));
    assert_eq!(level.title.as_deref(), Some("Check portals before each execution"));
    assert_eq!(level.author.as_deref(), Some("Ada Lovelace, 2026-02-14"));
    assert_eq!(level.files, [" src/backend/executor/execMain.c | 43 +++--", " 1 file changed"]);
    let sentence =
        format!("The change is at {}, \"Check portals before each execution\" (probability ", commit(41));
    assert!(found.sentence.starts_with(&sentence), "{}", found.sentence);
    // Also of commits that were never built.
    assert!(found.levels.iter().all(|level| level.title.is_some()));
    assert!(found.candidates.contains(&41) && found.candidates.contains(&40), "{:?}", found.candidates);
}

#[test]
fn a_commit_of_linux_is_found_with_its_subject_author_and_files() {
    let view = shown(kernels(7));
    let found = only(&view);
    assert_eq!((found.state, found.what), (BisectionState::Found, "commit"), "{}", found.sentence);
    let [first, last] = [0, RELEASES].map(commit);
    assert_eq!(found.searched, format!("12 commits of /src/linux under 18, from {first} to {last}"));
    let [change] = found.changes.as_slice() else { unreachable!("one change: {:?}", found.changes) };
    assert_eq!((change.first, change.last), (7, 7));
    let level = &found.levels[7];
    assert_eq!((level.name.as_str(), &level.short), (&*format!("/src/linux@{}", commit(7)), &commit(7)));
    assert_eq!(
        level.title.as_deref(),
        Some("Improve the estimate of distinct values for lateral subqueries over partitioned tables (7)")
    );
    assert_eq!(level.author.as_deref(), Some("Grace Hopper, 2026-03-08"));
    assert_eq!(level.files, [" mm/memory.c | 2 +-"]);
    assert!(
        found.sentence.starts_with(&format!("The change is at {}, \"Improve", commit(7))),
        "{}",
        found.sentence
    );
    assert!(found.levels.iter().all(|level| level.title.is_some()), "also of commits that were never built");
}

#[test]
fn each_measured_level_has_the_interval_of_its_own_sessions() {
    let view = view();
    let found = only(&view);
    assert_eq!(found.sessions, found.levels.iter().map(|level| level.sessions.len()).sum::<usize>());
    assert_eq!(found.measured, 1 + found.levels.iter().filter(|level| !level.sessions.is_empty()).count());
    for level in &found.levels {
        let logs: Vec<f64> = level.sessions.iter().map(|change| change.ln_1p()).collect();
        assert_eq!(level.change.is_some(), !logs.is_empty(), "{}", level.name);
        assert_eq!(level.ci95_low.is_some(), logs.len() > 1, "{}", level.name);
        let (Some(change), Some(low)) = (level.change, level.ci95_low) else { continue };
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let half = stats::mean_half_width(&logs, 0.95).unwrap();
        assert!((change - mean.exp_m1()).abs() < 1e-12 && (low - (mean - half).exp_m1()).abs() < 1e-12);
    }
    let baseline = &found.levels[0];
    assert_eq!((baseline.probability, baseline.change, baseline.sessions.len()), (None, None, 0));
    let expected_steps: f64 = found.levels.iter().filter_map(|level| level.probability).sum();
    assert!((expected_steps - 1.0 - found.two_changes.unwrap()).abs() < 1e-9, "{expected_steps}");
}

/// What was compared on the way is no answer: 64 commits would have many.
#[test]
fn the_answer_is_that_of_the_bisection_against_the_level_before() {
    let view = view();
    let found = only(&view);
    let [answer] = view.answers.as_slice() else { unreachable!("one answer: {:?}", view.answers) };
    assert_eq!(
        (answer.kind, &answer.subject, &answer.sentence),
        (AnswerKind::Worse, &found.searched, &found.sentence)
    );
    let server = |column: usize| view.columns[column].server.clone().unwrap();
    assert_eq!(server(answer.column.unwrap()), found.levels[41].name);
    assert_eq!(server(answer.against), found.levels[found.changes[0].before].name);
    assert!(found.changes[0].before < 41 && found.changes[0].after == 41);
    let confidence = answer.confidence.as_ref().unwrap();
    assert!(confidence.starts_with("a commit is named at a probability of 95%; "), "{confidence}");
    let missing = found.levels.iter().filter(|level| level.unavailable.is_some()).count();
    assert!(missing > 0 && answer.risks[0].starts_with(&format!("{missing} commit")), "{:?}", answer.risks);
    assert!(view.paired.len() > 4, "the comparisons are still there");
}

#[test]
fn levels_without_a_server_keep_their_probability_and_are_named_with_their_neighbours() {
    let view = bisected("", step(6, 0.1), |level| (5..=6).contains(&level));
    let found = only(&view);
    let [change] = found.changes.as_slice() else { unreachable!("{:?}", found.changes) };
    assert_eq!((change.first, change.last, change.before, change.after), (5, 7, 4, 7));
    let missing: Vec<usize> = (0..=RELEASES).filter(|at| found.levels[*at].unavailable.is_some()).collect();
    assert_eq!(missing, [5, 6]);
    assert!(found.levels[6].unavailable.as_ref().unwrap().starts_with("could not compile"));
    assert!(
        found.sentence.contains("one of 16.5, 16.6, 16.7, which can't be told apart"),
        "{}",
        found.sentence
    );
    // The trial that shows that it does not build is in a cell of its own.
    assert!(found.levels[6].place.is_some() && found.levels[1..].iter().any(|level| level.place.is_none()));
}

#[test]
fn equivalent_ends_are_nothing_to_find() {
    let view = bisected("effect = '6%'", step(99, 0.0), |_| false);
    let bisection = only(&view);
    assert_eq!((bisection.state, bisection.two_changes), (BisectionState::NothingToFind, None));
    assert!(bisection.levels.iter().all(|level| level.probability.is_none()) && bisection.changes.is_empty());
    assert!(bisection.sentence.starts_with("Nothing to find: 16.12 is equivalent to 16.0, throughput "));
    let answer = &view.answers[0];
    assert_eq!((answer.kind, answer.column), (AnswerKind::Same, None));
    assert!(answer.confidence.as_ref().unwrap().ends_with("equivalent is within ±6%"), "{answer:?}");
}

#[test]
fn an_open_search_says_how_to_go_on() {
    let view = open();
    let bisection = only(&view);
    assert_eq!(bisection.state, BisectionState::Searching, "{}", bisection.sentence);
    assert!(
        bisection.sentence.starts_with("Not known yet: throughput changed by -"),
        "{}",
        bisection.sentence
    );
    assert!(bisection.levels[1..].iter().all(|level| level.probability.is_some()));
    let answer = &view.answers[0];
    assert_eq!((answer.kind, &answer.confidence), (AnswerKind::Open, &None));
    assert_eq!(answer.next[0].commands, [format!("pgdyno resume --run {}", bisection.run)]);
    let with_limit = shown(records(&releases("max_time = '40s'"), 5, step(5, 0.08), |_| false));
    let bisection = only(&with_limit);
    assert_eq!(bisection.state, BisectionState::EndsOpen, "{}", bisection.sentence);
    let command = &with_limit.answers[0].next[0].commands[0];
    assert!(command.ends_with("--set max_time=80s"), "{command}");
}

#[test]
fn an_improvement_is_found_as_well() {
    let view =
        bisected("", |level| Planted { speed: if level >= 3 { 1.1 } else { 1.0 }, cpu: 1.0 }, |_| false);
    let found = only(&view);
    assert_eq!((found.changes[0].first, view.answers[0].kind), (3, AnswerKind::Better));
    assert!(found.sentence.ends_with("16.12 is better than 16.0."), "{}", found.sentence);
}

/// Without the repository, from the bundles alone; and old bundles have no logs of commits.
#[test]
fn commits_are_read_from_the_bundles() {
    let stored = |records: &[TrialRecord]| {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join(".pgdyno")).unwrap();
        records.iter().for_each(|record| drop(store.write(record).unwrap()));
        read_run(&store.reader().unwrap(), &records[0].trial.run.id).unwrap().unwrap()
    };
    let mut records = commits();
    assert_eq!(stored(&records).bisections, view().bisections);
    records.iter_mut().for_each(|record| record.logs.clear());
    let old = stored(&records);
    assert!(only(&old).levels.iter().all(|level| level.title.is_none() && level.author.is_none()));
    assert!(only(&old).sentence.starts_with(&format!("The change is at {} (probability ", commit(41))));
}
