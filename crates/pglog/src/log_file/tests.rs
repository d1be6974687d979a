use std::io::Cursor;

use super::*;
use crate::message::{Message, Step};

const TIME: &str = "2026-01-02 03:04:05.678 UTC";

fn open(text: &[u8], prefixes: &[&str]) -> Result<LogFile, LogError> {
    let prefixes: Vec<Prefix> = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
    LogFile::from_reader(Cursor::new(text.to_vec()), Path::new("server.log"), &prefixes)
}

/// The entries' statements or messages, and the problems as counts with the lines of the first.
fn read(text: impl AsRef<[u8]>) -> (Vec<String>, Vec<(Problem, u64, u64)>) {
    let mut log = open(text.as_ref(), &[]).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = log.next().unwrap() {
        found.push(match Message::of(&entry) {
            Message::Statement { text, .. } => text.to_owned(),
            _ => entry.message.into_owned(),
        });
    }
    let problems =
        log.problems().iter().map(|(problem, tally)| (problem, tally.count, tally.first.line)).collect();
    (found, problems)
}

fn stderr(rest: &str) -> String {
    format!("{TIME} [42] me@app LOG:  {rest}\n")
}

fn csv(message: &str) -> String {
    let message = message.replace('"', "\"\"");
    format!(
        "{TIME},\"me\",\"app\",42,\"[local]\",65926f54.2a,7,\"SELECT\",{TIME},3/14,0,LOG,00000,\"{message}\",,,,,,,,,\"psql\"\n"
    )
}

fn json(message: &str) -> String {
    let line = serde_json::json!({
        "timestamp": TIME, "pid": 42, "session_id": "65926f54.2a", "error_severity": "LOG", "message": message,
    });
    format!("{line}\n")
}

#[test]
fn an_entry_has_all_of_its_lines() {
    let text = format!(
        "{TIME} [42] me@app ERROR:  division by zero\n{TIME} [42] me@app DETAIL:  more\n\tand more\n\
         {TIME} [42] me@app CONTEXT:  somewhere\n{TIME} [42] me@app STATEMENT:  select 1\n\t\t/ 0\n\t\n\tend\n{}",
        stderr("statement: select 2")
    );
    let mut log = open(text.as_bytes(), &[]).unwrap();
    assert_eq!(
        (log.format(), log.prefix().unwrap().to_string().as_str()),
        (LogFormat::Stderr, "%m [%p] %q%u@%d ")
    );
    let entry = log.next().unwrap().unwrap();
    assert_eq!(entry.severity, Severity::Error);
    assert_eq!(
        (entry.detail.as_deref(), entry.context.as_deref()),
        (Some("more\nand more"), Some("somewhere"))
    );
    assert_eq!(entry.statement.as_deref(), Some("select 1\n\t/ 0\n\nend"));
    assert_eq!((entry.user.as_deref(), entry.database.as_deref()), (Some("me"), Some("app")));
    let entry = log.next().unwrap().unwrap();
    assert!(matches!(Message::of(&entry), Message::Statement { step: Step::Simple, text: "select 2", .. }));
    assert_eq!(log.place().to_string(), "server.log:9");
    assert!(log.next().unwrap().is_none());
    assert_eq!(log.problems(), &Problems::default());
}

#[test]
fn all_formats_give_the_same_statements() {
    let statements = ["select 'a\"b'", "select\n1,\n2", "select '\u{e4}'", "", "select 3 -- \\ \t x"];
    let message = |statement: &&str| format!("duration: 0.100 ms  statement: {statement}");
    let stderr: String =
        statements.iter().map(|statement| stderr(&message(statement).replace('\n', "\n\t"))).collect();
    let csv: String = statements.iter().map(|statement| csv(&message(statement))).collect();
    let json: String = statements.iter().map(|statement| json(&message(statement))).collect();
    let cloud: String = stderr
        .replace("\n\t", "\u{1}")
        .lines()
        .map(|line| format!("{}\n", serde_json::json!({ "textPayload": line.replace('\u{1}', "\n") })))
        .collect();
    for (format, text) in [
        (LogFormat::Stderr, stderr),
        (LogFormat::Csvlog, csv),
        (LogFormat::Jsonlog, json),
        (LogFormat::Cloud, cloud),
    ] {
        assert_eq!(open(text.as_bytes(), &[]).unwrap().format(), format);
        let (found, problems) = read(&text);
        assert_eq!((found, problems), (statements.map(str::to_owned).to_vec(), vec![]), "{format:?}");
    }
}

#[test]
fn what_is_broken_is_counted_with_its_first_place_and_the_rest_is_used() {
    let text = format!(
        "\tthe end of an entry\n{}cp: no space left\nmore noise\n{}{TIME} [42] me@app STATEME",
        stderr("statement: select 1"),
        stderr("statement: select 2"),
    );
    let (found, problems) = read(text);
    assert_eq!(found, ["select 1", "select 2"]);
    assert_eq!(problems, [(Problem::NotAnEntry, 3, 1), (Problem::Truncated, 1, 6)]);

    let first = csv("statement: select 1");
    // A server that crashed while it wrote, and its successor.
    let text = format!(
        "{first}{}\n{first}noise\n{}",
        &first[..first.find("select 1").unwrap()],
        &csv("statement: select\n2")[..150]
    );
    let (found, problems) = read(text);
    assert_eq!(found, ["select 1", "select 1"]);
    assert_eq!(problems, [(Problem::NotAnEntry, 1, 4), (Problem::Truncated, 2, 2)]);

    let first = json("statement: select 1");
    let text = format!("{first}{}\n{first}{}", &first[..40], &first[..40]);
    let (found, problems) = read(text);
    assert_eq!(found, ["select 1", "select 1"]);
    assert_eq!(problems, [(Problem::NotAnEntry, 1, 2), (Problem::Truncated, 1, 4)]);
}

#[test]
fn entries_in_another_encoding_or_language_are_counted() {
    let mut text = stderr("statement: select 1").into_bytes();
    for rest in [&b"select '\xe4'"[..], b"select 2,\n\t'\xe4'", b"select 3"] {
        text.extend_from_slice(format!("{TIME} [42] me@app LOG:  statement: ").as_bytes());
        text.extend_from_slice(rest);
        text.push(b'\n');
    }
    let (found, problems) = read(&text);
    assert_eq!(
        (found, problems),
        (vec!["select 1".into(), "select 3".into()], vec![(Problem::NotUtf8, 2, 2)])
    );

    let text = stderr("statement: select 1")
        + &stderr("x").replace("LOG:  x", "FEHLER:  Division durch Null")
        + &stderr("x").replace("LOG:  x", "ANWEISUNG:  select 1\n\t/ 0")
        + &stderr("statement: select 2");
    let (found, problems) = read(text);
    assert_eq!(
        (found, problems),
        (vec!["select 1".into(), "select 2".into()], vec![(Problem::NotEnglish, 2, 2)])
    );
}

#[test]
fn a_prefix_that_changes_is_followed() {
    let other = |rest: &str| format!("{TIME} [42]: [1-1] db=app,user=me LOG:  {rest}\n");
    let text = stderr("statement: select 1").repeat(3)
        + &other("statement: select 2")
        + &other("statement: select\n\t3")
        + &stderr("statement: select 4");
    let (found, problems) = read(text);
    assert_eq!(found[2..], ["select 1", "select 2", "select\n3", "select 4"]);
    assert_eq!(problems, [(Problem::OtherPrefix, 2, 4)]);
}

#[test]
fn an_unusable_log_says_why() {
    let message =
        |text: &str, prefixes: &[&str]| open(text.as_bytes(), prefixes).map(drop).unwrap_err().to_string();
    let unknown = message("hello\nworld\n", &[]);
    assert!(unknown.contains("A line of it is\n  hello"), "{unknown}");
    // Only lines of processes without a session look like a known prefix.
    let like = |rest: &str| format!("{TIME} [42] 00000 me@app/psql LOG:  {rest}\n");
    let mixed =
        message(&(format!("{TIME} [1] LOG:  starting\n") + &like("statement: select 1").repeat(9)), &[]);
    assert!(mixed.contains("[42] 00000 me@app/psql LOG:"), "{mixed}");
    let seconds = message("2026-01-02 03:04:05 UTC:10.0.0.1(5):me@app:[42]:LOG:  x\n", &[]);
    assert!(seconds.contains("no milliseconds (%t)") && seconds.contains("%m"), "{seconds}");
    let other = message(&stderr("x"), &["%m {%p} "]);
    assert!(other.contains("'%m {%p} '"), "{other}");
    let lacking = message(&format!("{TIME} LOG:  x\n"), &["%m "]);
    assert!(lacking.contains("neither the session (%c) nor the process (%p)"), "{lacking}");
    // An empty log is no error: rotation leaves such files.
    assert!(open(b"", &[]).unwrap().next().unwrap().is_none());
}

#[test]
fn a_statement_of_ten_megabytes_is_one_entry() {
    let long = format!("select '{}'", format!("{}\n", "x".repeat(99)).repeat(100_000));
    for text in [
        stderr(&format!("statement: {}", long.replace('\n', "\n\t"))),
        csv(&format!("statement: {long}")),
        json(&format!("statement: {long}")),
    ] {
        let (found, problems) = read(&text);
        assert!(found == [long.clone()] && problems.is_empty());
    }
}

#[test]
fn verbose_entries_and_entries_of_windows_are_read_alike() {
    let text = stderr("x").replace("LOG:  x", "ERROR:  22012: division by zero").replace('\n', "\r\n")
        + &stderr("x").replace("LOG:  x", "LOCATION:  int4div, int.c:846")
        + &stderr("00000: duration: 1 ms  statement: select 1");
    let mut log = open(text.as_bytes(), &[]).unwrap();
    let entry = log.next().unwrap().unwrap();
    assert_eq!((entry.sqlstate.as_deref(), entry.message.as_ref()), (Some("22012"), "division by zero"));
    let entry = log.next().unwrap().unwrap();
    assert!(matches!(Message::of(&entry), Message::Statement { text: "select 1", .. }));
}

#[test]
fn damaged_logs_never_panic_and_give_no_more_entries_than_lines() {
    let statements =
        ["statement: select 1", "duration: 0.1 ms  execute S_1: select $1", "statement: select\n2"];
    let logs = [
        statements.map(|text| stderr(&text.replace('\n', "\n\t"))).concat(),
        statements.map(csv).concat(),
        statements.map(json).concat(),
    ];
    let mut mutator = mutate::Mutator::new(7);
    for log in &logs {
        for round in 0..300 {
            let damaged = match round % 3 {
                0 => mutator.bytes(log.as_bytes()),
                _ => mutator.text(log).into_bytes(),
            };
            let Ok(mut file) = open(&damaged, &[]) else { continue };
            let mut count = 0;
            while let Some(entry) = file.next().unwrap() {
                let _ = Message::of(&entry);
                count += 1;
            }
            assert!(count <= damaged.split(|byte| *byte == b'\n').count());
        }
    }
}
