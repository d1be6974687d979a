use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use trace::{Action, Call, Event, Outcome, TraceReader};

use super::*;

/// A log of two sessions, by lines of milliseconds, process and text.
fn log(lines: &[(u32, u32, &str)]) -> String {
    let mut text = String::new();
    for (at_ms, process, rest) in lines {
        let (severity, rest) = rest.split_once('|').unwrap_or(("LOG", rest));
        let rest = rest.replace('\n', "\n\t");
        let _ = writeln!(
            text,
            "2026-01-02 03:04:{:02}.{:03} UTC [{process}] {} <client backend> <psql> {severity}:  {rest}",
            at_ms / 1000,
            at_ms % 1000,
            if severity == "LOG" { "00000" } else { "22012" },
        );
    }
    text
}

struct Run {
    events: Vec<Event>,
    recorded: Recorded,
}

fn record_text(text: &str) -> Result<Run, ReplayError> {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("a.log"), directory.path().join("a.pgdt"));
    std::fs::write(&from, text).unwrap();
    let recorded = record(&[from], &[], None, &to, &mut |_| {})?;
    let trace = TraceReader::open(&to)?;
    let events: Result<Vec<Event>, trace::TraceError> = trace.events()?.collect();
    Ok(Run { events: events?, recorded })
}

/// Events as text: milliseconds, session, what; of statements protocol, duration and outcome.
fn shown(run: &Run) -> Vec<String> {
    let start_us = 1_767_323_040_000_000;
    let show = |event: &Event| {
        let what = match &event.action {
            Action::Begin(identity) => {
                let names = [&identity.user, &identity.database, &identity.application];
                format!("begin {}", names.map(|name| name.as_deref().unwrap_or("?")).join(" "))
            }
            Action::End => "end".to_owned(),
            Action::Execute(statement) => {
                let call = match &statement.call {
                    Call::Simple => String::new(),
                    Call::Extended { name, parameters } => {
                        let values = parameters.iter().map(|value| value.as_deref().unwrap_or("NULL"));
                        format!(" as {name:?}({})", values.collect::<Vec<_>>().join(", "))
                    }
                };
                let duration = statement.duration_us.map(|us| format!(" in {us}")).unwrap_or_default();
                let outcome = match statement.outcome {
                    Outcome::Success => String::new(),
                    other => format!(" {other:?}"),
                };
                format!("{}{call}{duration}{outcome}", statement.text)
            }
        };
        format!("{} {} {what}", (event.at_us - start_us) / 1000, event.session)
    };
    run.events.iter().map(show).collect()
}

fn left_out(run: &Run) -> Vec<(&str, u64, String)> {
    let tallies = run.recorded.summary.left_out.iter();
    tallies.map(|missing| (missing.name.as_str(), missing.count, format!("line {}", missing.line))).collect()
}

#[test]
fn statements_start_before_their_entries_by_their_durations() {
    let run = record_text(&log(&[
        (1000, 1, "connection received: host=[local]"),
        (1001, 1, "connection authorized: user=me database=app application_name=psql"),
        (1500, 1, "duration: 400.000 ms  statement: select 1"),
        (1510, 2, "duration: 0.250 ms  statement: select\n2"),
        (1600, 1, "duration: 50.5 ms  statement: commit"),
        (1700, 1, "disconnection: session time: 0:00:00.7 user=me database=app host=[local]"),
    ]))
    .unwrap();
    assert_eq!(
        shown(&run),
        [
            "1000 0 begin me app psql",
            "1100 0 select 1 in 400000",
            "1509 1 begin ? ? psql",
            "1509 1 select\n2 in 250",
            "1549 0 commit in 50500",
            "1700 0 end",
        ]
    );
    let summary = &run.recorded.summary;
    assert_eq!((summary.sessions, summary.statements, summary.shapes.len()), (2, 3, 2));
}

#[test]
fn log_statement_and_log_duration_give_the_same() {
    let run = record_text(&log(&[
        (1000, 1, "statement: select 1"),
        (1400, 1, "duration: 400.000 ms"),
        (1500, 1, "statement: select 2"),
        // Without log_duration: the next statement shows that it succeeded.
        (1600, 1, "statement: select 1 / 0"),
        (1610, 1, "ERROR|division by zero"),
        (1610, 1, "STATEMENT|select 1 / 0"),
        (1700, 1, "duration: 0.100 ms"),
        (1701, 1, "duration: 0.200 ms"),
        (1702, 1, "execute S_1: select $1"),
        (1702, 1, "DETAIL|parameters: $1 = 'x'"),
        (1709, 1, "duration: 7.000 ms"),
        (1800, 1, "statement: select 3"),
    ]))
    .unwrap();
    assert_eq!(
        shown(&run)[1..],
        [
            "1000 0 select 1 in 400000",
            "1500 0 select 2",
            "1600 0 select 1 / 0 in 10000 Failure(Some(22012))",
            "1699 0 select $1 as \"S_1\"(x) in 7300",
            "1800 0 select 3 Unknown",
        ]
    );
}

#[test]
fn the_steps_of_the_extended_protocol_are_one_statement() {
    let run = record_text(&log(&[
        (1000, 1, "duration: 5.000 ms  parse S_1: select $1"),
        // Long after its preparation.
        (2000, 1, "duration: 1.000 ms  bind S_1: select $1"),
        (2000, 1, "DETAIL|parameters: $1 = '7'"),
        (2003, 1, "duration: 3.000 ms  execute S_1: select $1"),
        (2003, 1, "DETAIL|parameters: $1 = '7'"),
        (3001, 1, "duration: 1.000 ms  parse <unnamed>: select 2"),
        (3002, 1, "duration: 1.000 ms  bind <unnamed>: select 2"),
        (3004, 1, "duration: 2.000 ms  execute <unnamed>: select 2"),
        (3005, 1, "duration: 2.000 ms  execute fetch from <unnamed>/C_1: select 2"),
    ]))
    .unwrap();
    assert_eq!(
        shown(&run)[1..],
        ["1999 0 select $1 as \"S_1\"(7) in 4000", "3000 0 select 2 as \"\"() in 4000"]
    );
    assert_eq!(left_out(&run), [("portal-fetch", 1, "line 9".to_owned())]);
}

#[test]
fn failures_have_their_sqlstate_and_parameters_if_the_log_has_them() {
    let run = record_text(&log(&[
        (1000, 1, "ERROR|division by zero"),
        (1000, 1, "STATEMENT|select 1 / 0"),
        (1100, 1, "ERROR|division by zero"),
        (1100, 1, "CONTEXT|unnamed portal with parameters: $1 = '0'"),
        (1100, 1, "STATEMENT|select 1 / $1"),
        (1200, 1, "ERROR|division by zero"),
        (1200, 1, "STATEMENT|select 2 / $1"),
        (1300, 1, "ERROR|something"),
        (1400, 1, "ERROR|syntax error"),
        (1400, 1, "STATEMENT|prepare p as selct $1"),
        (1500, 1, "FATAL|terminating connection due to administrator command"),
        // Of a session that never was one.
        (1600, 9, "FATAL|password authentication failed for user \"x\""),
    ]))
    .unwrap();
    assert_eq!(
        shown(&run)[1..],
        [
            "1000 0 select 1 / 0 Failure(Some(22012))",
            "1100 0 select 1 / $1 as \"\"(0) Failure(Some(22012))",
            "1400 0 prepare p as selct $1 Failure(Some(22012))",
            "1500 0 end",
        ]
    );
    assert_eq!(
        left_out(&run),
        [("no-parameters", 1, "line 6".to_owned()), ("failure-without-text", 1, "line 8".to_owned())]
    );
}

#[test]
fn what_a_log_does_not_have_is_counted() {
    let run = record_text(&log(&[
        (1000, 1, "duration: 5.0 ms  statement: COPY t FROM STDIN"),
        (1100, 1, "fastpath function call: \"lo_open\" (OID 952)"),
        (1100, 1, "duration: 0.1 ms"),
        (1200, 1, "duration: 0.1 ms  statement: prepare p as select $1"),
        (1300, 1, "duration: 0.1 ms  execute <unnamed>: select $1"),
        (1400, 1, "duration: 0.1 ms"),
        (1500, 1, "duration: 0.1 ms"),
    ]))
    .unwrap();
    assert_eq!(shown(&run)[1..], ["1199 0 prepare p as select $1 in 100"]);
    let names: Vec<_> = left_out(&run).into_iter().map(|(name, count, _)| (name, count)).collect();
    assert_eq!(
        names,
        [("copy-in", 1), ("function-call", 1), ("no-parameters", 1), ("duration-without-text", 1)]
    );
}

#[test]
fn a_process_id_that_is_used_again_is_another_session() {
    let run = record_text(&log(&[
        (1000, 1, "connection authorized: user=me database=app"),
        (1100, 1, "duration: 1.0 ms  statement: select 1"),
        (1200, 1, "connection received: host=[local]"),
        (1201, 1, "connection authorized: user=you database=app"),
        (1300, 1, "duration: 1.0 ms  statement: select 2"),
    ]))
    .unwrap();
    assert_eq!(
        shown(&run),
        [
            "1000 0 begin me app ?",
            "1099 0 select 1 in 1000",
            "1100 0 end",
            "1200 1 begin you app ?",
            "1299 1 select 2 in 1000",
        ]
    );
}

#[test]
fn the_order_within_a_session_is_that_of_the_log() {
    // Both ended in the same millisecond; rounded, the second began first.
    let run = record_text(&log(&[
        (1010, 1, "duration: 0.900 ms  statement: select 1"),
        (1010, 1, "duration: 1.200 ms  statement: select 2"),
    ]))
    .unwrap();
    assert_eq!(shown(&run)[1..], ["1009 0 select 1 in 900", "1009 0 select 2 in 1200"]);
}

#[test]
fn logs_are_read_in_the_order_of_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { directory.path().join(name) };
    std::fs::write(path("a.log"), log(&[(2000, 1, "duration: 1.0 ms  statement: select 2")])).unwrap();
    std::fs::write(path("b.log"), log(&[(1000, 1, "duration: 1.0 ms  statement: select 1")])).unwrap();
    let logs = ["a.log", "b.log", "a.log"].map(path);
    let recorded = record(&logs, &[], None, &path("c.pgdt"), &mut |_| {}).unwrap();
    assert_eq!((recorded.summary.statements, recorded.summary.sessions), (2, 1));
    assert_eq!(
        recorded.summary.sources.iter().map(|source| source.file.as_str()).collect::<Vec<_>>(),
        ["b.log", "a.log"]
    );
}

#[test]
fn a_log_without_statements_says_what_to_log() {
    let text = log(&[(1000, 1, "checkpoint starting: time"), (1001, 1, "checkpoint complete: wrote 1")]);
    let error = record_text(&text).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("in 2 entries; the server logs them with log_min_duration_statement = 0"),
        "{error}"
    );
    let text = log(&[(1000, 1, "duration: 1.0 ms"), (1100, 1, "duration: 1.0 ms")]);
    let error = record_text(&text).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("1 durations without their statement; log with") && error.contains("a.log:2"),
        "{error}"
    );
}

/// The statements that depend on others, with these.
fn dependencies(lines: &[(u32, u32, &str)]) -> Vec<(String, Vec<String>)> {
    let run = record_text(&log(lines)).unwrap();
    let mut texts: HashMap<(u32, u64), String> = HashMap::new();
    let mut counts: HashMap<u32, u64> = HashMap::new();
    let mut found = Vec::new();
    for event in &run.events {
        let Action::Execute(statement) = &event.action else { continue };
        let number = counts.entry(event.session).or_default();
        texts.insert((event.session, *number), format!("{}: {}", event.session, statement.text));
        *number += 1;
        if !statement.after.is_empty() {
            let on = statement.after.iter().map(|on| texts[&(on.session, on.number)].clone());
            found.push((statement.text.to_string(), on.collect()));
        }
    }
    assert_eq!(run.recorded.summary.dependent, found.len() as u64);
    found
}

/// A statement of a millisecond, as the log has it at its end.
macro_rules! did {
    ($at_ms:expr, $session:expr, $text:expr) => {
        ($at_ms, $session, concat!("duration: 1.000 ms  statement: ", $text))
    };
}

#[test]
fn writes_depend_on_the_commits_of_the_rows_that_they_name() {
    let found = dependencies(&[
        did!(10, 1, "begin"),
        did!(20, 1, "insert into orders (id, status) values (4711, 'new')"),
        did!(30, 1, "commit"),
        // Another relation refers to it, a change, and a change of that.
        did!(40, 2, "insert into items (order_id, product) values (4711, 3)"),
        did!(50, 3, "update orders set status = 'paid' where id = 4711"),
        did!(60, 4, "update orders set status = 'sent' where id = 4711"),
        did!(70, 3, "delete from orders where id = 4711"),
        did!(80, 2, "insert into orders (id, status) values (4711, 'new')"),
        // Reading depends on no row.
        did!(90, 5, "select * from orders where id = 4711"),
        (100, 5, "ERROR|duplicate key"),
        (100, 5, "STATEMENT|insert into orders (id, status) values (4711, 'new')"),
        did!(110, 6, "create table other (id int)"),
        did!(120, 7, "select * from orders, other"),
    ]);
    let commit = "0: commit".to_owned();
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("insert into items (order_id, product) values (4711, 3)".to_owned(), vec![commit.clone()]),
            ("update orders set status = 'paid' where id = 4711".to_owned(), {
                let mut all = vec![commit.clone()];
                all.extend(texts(&["1: insert into items (order_id, product) values (4711, 3)"]));
                all
            }),
            (
                "update orders set status = 'sent' where id = 4711".to_owned(),
                texts(&[
                    "0: commit",
                    "1: insert into items (order_id, product) values (4711, 3)",
                    "2: update orders set status = 'paid' where id = 4711",
                ])
            ),
            (
                "delete from orders where id = 4711".to_owned(),
                texts(&[
                    "0: commit",
                    "1: insert into items (order_id, product) values (4711, 3)",
                    "3: update orders set status = 'sent' where id = 4711",
                ])
            ),
            (
                "insert into orders (id, status) values (4711, 'new')".to_owned(),
                texts(&["2: delete from orders where id = 4711"])
            ),
            (
                "insert into orders (id, status) values (4711, 'new')".to_owned(),
                texts(&[
                    "1: insert into orders (id, status) values (4711, 'new')",
                    "1: insert into items (order_id, product) values (4711, 3)",
                    "2: delete from orders where id = 4711",
                ])
            ),
            ("select * from orders, other".to_owned(), texts(&["5: create table other (id int)"])),
        ]
    );
}

#[test]
fn what_names_no_row_is_depended_on_by_nothing() {
    let found = dependencies(&[
        // Not committed, failed, of an unknown end, and only just ended.
        did!(10, 1, "begin"),
        did!(20, 1, "insert into t values (1111)"),
        did!(30, 1, "rollback"),
        did!(40, 2, "update t set a = 1 where id = 1111"),
        (50, 3, "ERROR|division by zero"),
        (50, 3, "STATEMENT|insert into t values (2222)"),
        did!(60, 2, "update t set a = 1 where id = 2222"),
        (70, 3, "statement: insert into t values (3333)"),
        did!(80, 2, "update t set a = 1 where id = 3333"),
        did!(90, 4, "insert into t values (4444)"),
        did!(91, 2, "update t set a = 1 where id = 4444"),
        // The session's own, and small numbers of other columns.
        did!(100, 5, "insert into u (id) values (5555), (7)"),
        did!(110, 5, "update u set a = 1 where id = 5555"),
        did!(120, 6, "update v set a = 1 where id = 7"),
        // After the first write of a transaction, which holds locks.
        did!(130, 6, "begin"),
        did!(140, 6, "insert into w (a) values (8888)"),
        did!(150, 6, "update u set a = 1 where id = 5555"),
        did!(160, 6, "commit"),
        did!(170, 6, "begin"),
        did!(180, 6, "update w set a = a + 1"),
        did!(190, 6, "update u set a = 1 where id = 5555"),
        did!(200, 6, "rollback"),
    ]);
    assert_eq!(found, []);
    // What is inserted again without an error is no key.
    let lines: Vec<(u32, u32, &str)> =
        (1..20).map(|n| did!(n * 10, n, "insert into t (status) values ('waiting')")).collect();
    assert_eq!(dependencies(&lines), []);
}
