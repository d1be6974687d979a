//! `pgdyno replay` on the logs of a real server: what its clients did is in the trace, whatever the format of the log.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use support::application::{Application, DATABASE};

/// Shapes of the mixed load, the two of a transaction block not counted.
const SHAPES: usize = 54;
/// Sessions, and how often each runs every statement.
const CLIENTS: u64 = 5;
const ROUNDS: u64 = 4;
/// Protocols, one after the other.
const PROTOCOLS: [&str; 3] = ["simple", "extended", "prepared"];

/// The mixed load: each statement `CLIENTS` × `ROUNDS` times by each protocol.
fn work(application: &Application) {
    let mut setup = String::new();
    for table in 0..4 {
        let columns: String = (0..5).map(|column| format!(", v{column} int default 0")).collect();
        let _ = writeln!(setup, "create table t{table} (id int primary key{columns});");
        let _ = writeln!(setup, "insert into t{table} (id) select generate_series(1, 100);");
    }
    setup.push_str("create table notes (id int, note text);\ncreate table once (id int primary key);\n");
    setup.push_str("insert into once values (1);\n");
    fs::write(application.path("setup.sql"), setup).unwrap();
    fs::write(application.path("mix.sql"), mix()).unwrap();
    application.succeed(&["bench", "setup.sql", "-c", "1", "-t", "1", "-M", "simple"]);
    let (clients, rounds) = (CLIENTS.to_string(), ROUNDS.to_string());
    for protocol in PROTOCOLS {
        let args =
            ["bench", "mix.sql", "-c", &clients, "-t", &rounds, "-M", protocol, "--on-error", "*=count"];
        application.pgdyno(&args);
        let args = ["bench", "failing.sql", "-c", "1", "-t", "3", "-M", protocol, "--on-error", "*=count"];
        fs::write(application.path("failing.sql"), "insert into once values (1);\n").unwrap();
        application.pgdyno(&args);
    }
}

/// A transaction of 54 statements, ten of them in a block.
fn mix() -> String {
    let mut mix = "\\set id random(1, 100)\n".to_owned();
    for shape in 0..34 {
        let limit = if shape < 20 { "" } else { " limit 1" };
        let _ =
            writeln!(mix, "select v0 from t{} where id = :id order by v{}{limit};", shape % 4, shape / 4 % 5);
    }
    mix.push_str("begin;\n");
    for shape in 0..10 {
        let _ = writeln!(
            mix,
            "update t0 set v{} = v{0} + 1 where id + {shape} = :id and v1 < {};",
            shape % 5,
            "1 + ".repeat(shape) + "9"
        );
    }
    mix.push_str("commit;\n");
    for shape in 0..10 {
        let _ = writeln!(
            mix,
            "insert into notes (id, note) values (:id, 'it''s{}' || '{shape}');",
            "' || '".repeat(shape)
        );
    }
    mix
}

/// The statements of each session in a trace that was in this database, with their parameters, in their order; the sessions
/// sorted.
fn sequences(trace: &str, database: &str) -> Vec<Vec<String>> {
    let content = String::from_utf8(zstd::decode_all(&uncompressed(trace)[..]).unwrap()).unwrap();
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    let mut sessions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in content.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(text) = line["text"].as_str() {
            texts.insert(line["x"].as_u64().unwrap(), text.to_owned());
        } else if let Some(identity) = line.get("begin") {
            if identity["database"] == database {
                sessions.insert(line["s"].as_u64().unwrap(), Vec::new());
            }
        } else if let Some(statements) = line["s"].as_u64().and_then(|session| sessions.get_mut(&session))
            && let Some(text) = line["x"].as_u64()
        {
            statements.push(format!("{} {} {}", line["n"], line["p"], texts[&text]));
        }
    }
    let mut sequences: Vec<Vec<String>> =
        sessions.into_values().filter(|session| !session.is_empty()).collect();
    sequences.sort();
    sequences
}

/// Calls and failures by fingerprint, for those of the load.
fn calls(inspection: &Value) -> BTreeMap<String, (u64, u64)> {
    let statements = inspection["statements"].as_array().unwrap();
    let figures = |statement: &Value| {
        let number = |key: &str| statement[key].as_u64().unwrap();
        (statement["fingerprint"].as_str().unwrap().to_owned(), (number("calls"), number("failures")))
    };
    statements.iter().map(figures).collect()
}

fn uncompressed(path: &str) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn all_formats_of_a_real_log_give_the_statements_that_were_executed() {
    let application = Application::new();
    work(&application);
    let prefix = ["--prefix", "%m [%p] %q%e %u@%d/%a "];
    let csv = application.read("csv", &[]);
    let expected = CLIENTS * ROUNDS * PROTOCOLS.len() as u64;
    let found = calls(&csv);
    let of_load = found.values().filter(|(calls, failures)| (*calls, *failures) == (expected, 0)).count();
    assert_eq!(of_load, SHAPES + 2, "{csv:#}");
    assert_eq!(csv["failures"], serde_json::json!({ "23505": 9 }), "{csv:#}");
    assert_eq!(csv["extended"], (SHAPES as u64 + 2) * CLIENTS * ROUNDS * 2, "{csv:#}");
    assert_eq!(csv["blocks"], expected);
    assert!(csv["sessions"].as_u64().unwrap() >= (CLIENTS + 1) * 3);
    assert_eq!((&csv["left_out"], &csv["problems"]), (&serde_json::json!([]), &serde_json::json!([])));

    for (extension, more) in [("json", &[][..]), ("log", &prefix[..])] {
        let other = application.read(extension, more);
        assert_eq!(calls(&other), found, "{extension}");
        for key in ["sessions", "executions", "extended", "failures", "left_out", "problems", "peak_sessions"]
        {
            assert_eq!(other[key], csv[key], "{extension}: {key}");
        }
        assert_eq!(other["names"]["users"], csv["names"]["users"], "{extension}");
    }

    // Without --prefix, the message says what to do.
    let log = application.log("log");
    let output = application.pgdyno(&["replay", "read", &log, "-o", "x.pgdt"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains("--prefix '%m [%p] '"), "{message}");

    // Compressed, cut off in the middle of an entry, and with noise.
    let text = uncompressed(&application.log("csv"));
    let cut = &text[..text.len() - 20];
    fs::write(application.log("csv"), zstd::encode_all(&[b"noise\n", cut].concat()[..], 1).unwrap()).unwrap();
    let damaged = application.read("csv", &[]);
    let problems: Vec<(&str, u64)> = damaged["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["name"].as_str().unwrap(), problem["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(problems, [("not-an-entry", 1), ("truncated", 1)]);
    assert_eq!(damaged["executions"], csv["executions"]);

    // The figures of the trace, later, and without its values.
    let trace = application.trace("json");
    let inspected: Value =
        serde_json::from_str(&application.succeed(&["replay", "inspect", &trace, "--format", "json"]))
            .unwrap();
    assert_eq!(calls(&inspected), found);
    let anonymous = application.read("json", &["--anonymize"]);
    assert_eq!(calls(&anonymous), found);
    let content = zstd::decode_all(&uncompressed(&trace)[..]).unwrap();
    let content = String::from_utf8(content).unwrap();
    assert!(content.contains("insert into notes (id, note)") && !content.contains("it''s"), "{content}");
    assert_eq!(fs::metadata(Path::new(&trace)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_played_trace_does_what_was_recorded_in_the_same_order() {
    let application = Application::new();
    work(&application);
    application.read("csv", &[]);
    let recorded = application.trace("csv");
    let expected = sequences(&recorded, DATABASE);
    assert!(expected.len() >= (CLIENTS as usize + 1) * 3, "{expected:#?}");

    // The trace has the set-up, too.
    fs::write(application.path("create.sql"), "create database copy template template0;\n").unwrap();
    application.succeed(&["bench", "create.sql", "-c", "1", "-t", "1", "-M", "simple"]);
    let play = |more: &[&str]| -> Value {
        let mut args = vec!["replay", "play", &recorded, "--format", "json", "-d", "copy"];
        args.extend(more);
        serde_json::from_str(&application.succeed(&args)).unwrap()
    };
    let report = play(&[]);
    let statements = &report["statements"];
    let all: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(statements["executed"], all, "{report:#}");
    assert_eq!(
        (&statements["as_recorded"], &statements["different"]),
        (&all.into(), &0.into()),
        "{report:#}"
    );
    assert_eq!((&statements["failed"], &statements["not_executed"]), (&9.into(), &0.into()));
    assert_eq!(report["differences"], serde_json::json!([]));
    assert_eq!(report["sessions"]["connected"], report["sessions"]["chosen"]);
    assert!(
        report["schedule"]["lag"]["p99_us"].as_f64().unwrap()
            >= report["schedule"]["driver_lag"]["p99_us"].as_f64().unwrap()
    );

    // The server's log has the same statements in each session, by the same protocol, in the same order.
    application.read("json", &[]);
    assert_eq!(sequences(&application.trace("json"), "copy"), expected);

    // Played again, what exists can't be made again: differences, not silence.
    let report = play(&["--closed", "--sessions", "application=pgdyno"]);
    assert_eq!(report["schedule"], Value::Null);
    let differences = report["differences"].as_array().unwrap();
    let made_again = |difference: &&Value| {
        (difference["recorded"].as_str(), difference["played"].as_str()) == (Some("success"), Some("42P07"))
            && difference["text"].as_str().unwrap().starts_with("create table")
    };
    assert_eq!(differences.iter().filter(made_again).count(), 6, "{report:#}");

    for (more, code, message) in [
        (&["--sessions", "user=nobody"][..], 1, "no such session"),
        (&["--sessions", "role=x"], 2, "expected user=NAME"),
        (&["--speed", "0"], 2, "at least 0.001x"),
        (&["-U", "nobody"], 1, "role \"nobody\" does not exist"),
    ] {
        let mut args = vec!["replay", "play", &recorded, "-d", "copy"];
        args.extend(more);
        let output = application.pgdyno(&args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(message), "{text}");
    }
}

/// An entry of a stderr log, some time after its start.
fn entry(ms: u64, process: u64, text: &str) -> String {
    format!("2026-01-02 03:04:{:02}.{:03} UTC [{process}] LOG:  {text}\n", ms / 1000, ms % 1000)
}

#[test]
fn a_slow_statement_delays_its_own_session_and_the_lag_says_so() {
    let application = Application::new();
    // When it was recorded, the first statement took a millisecond.
    let log: String = [
        entry(0, 1, "connection authorized: user=a database=b"),
        entry(1, 2, "connection authorized: user=a database=b"),
        entry(2001, 1, "duration: 1.000 ms  statement: select 1 from pg_sleep(0.8)"),
        entry(2100, 2, "duration: 0.100 ms  statement: select 2"),
        entry(2200, 1, "duration: 0.100 ms  statement: select 3"),
        entry(2300, 1, "disconnection: session time: 0:00:02.3 user=a database=b host=[local]"),
    ]
    .concat();
    fs::write(application.path("slow.log"), log).unwrap();
    application.succeed(&["replay", "read", "slow.log", "-o", "slow.pgdt"]);
    let report: Value = serde_json::from_str(&application.succeed(&[
        "replay",
        "play",
        "slow.pgdt",
        "--speed",
        "2x",
        "--format",
        "json",
    ]))
    .unwrap();
    assert_eq!(report["statements"]["as_recorded"], 3, "{report:#}");
    assert!(report["played_s"].as_f64().unwrap() >= 1.0 + 0.8, "{report:#}");
    // It was to begin 0.1 s after the first, and began when that had ended.
    let figure = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap();
    assert!(figure("/schedule/lag/max_us") >= 690_000.0, "{report:#}");
    assert!(figure("/latency/max_us") >= 800_000.0, "{report:#}");
    assert!(figure("/recorded_duration/max_us") < 1_100.0, "{report:#}");
    // Entries are written when statements end.
    let log = application.log_until(|log| log.contains("statement: select 3\""));
    let ended = ["statement: select 2\"", "statement: select 1 from", "statement: select 3\""]
        .map(|text| log.find(text).unwrap());
    assert!(ended.is_sorted(), "{log}");
}

#[test]
fn sessions_are_played_several_times_or_in_part_as_the_rate_scale_says() {
    const SESSIONS: u64 = 40;
    let application = Application::new();
    // A session every 20 ms, with three statements in 0.2 s.
    let mut entries: Vec<(u64, String)> = Vec::new();
    for session in 1..=SESSIONS {
        let from_ms = session * 20;
        entries.push((from_ms, entry(from_ms, session, "connection authorized: user=a database=b")));
        for statement in 1..=3 {
            let at_ms = from_ms + statement * 50;
            let text = format!("duration: 0.100 ms  statement: select 'planted', {session}, {statement}");
            entries.push((at_ms, entry(at_ms, session, &text)));
        }
        let end = "disconnection: session time: 0:00:00.2 user=a database=b host=[local]";
        entries.push((from_ms + 200, entry(from_ms + 200, session, end)));
    }
    entries.sort();
    let log: String = entries.into_iter().map(|(_, line)| line).collect();
    fs::write(application.path("app.log"), log).unwrap();
    application.succeed(&["replay", "read", "app.log", "-o", "app.pgdt"]);
    // The report, and how often the server executed each statement.
    let mut seen = 0;
    let mut play = |more: &[&str]| {
        let args = [&["replay", "play", "app.pgdt", "--format", "json"], more].concat();
        let report: Value = serde_json::from_str(&application.succeed(&args)).unwrap();
        let executed = report["statements"]["executed"].as_u64().unwrap() as usize;
        let log = application.log_until(|log| log[seen..].matches("select 'planted', ").count() >= executed);
        let mut order: HashMap<String, Vec<String>> = HashMap::new();
        let mut executed: BTreeMap<String, u64> = BTreeMap::new();
        for line in log[seen..].lines().filter(|line| line.contains("select 'planted'")) {
            // The session is the sixth column of a csvlog; none before it has a comma.
            let session = line.split(',').nth(5).unwrap().to_owned();
            let statement = line.split("'planted', ").nth(1).unwrap();
            let statement = statement.split('"').next().unwrap().to_owned();
            *executed.entry(statement.clone()).or_default() += 1;
            order.entry(session).or_default().push(statement);
        }
        seen = log.len();
        // Each copy is a session of its own, and has the statements of one in their order.
        for statements in order.values() {
            let of = statements[0].split(',').next().unwrap();
            let expected: Vec<String> = (1..=3).map(|number| format!("{of}, {number}")).collect();
            assert_eq!(*statements, expected);
        }
        assert_eq!(report["sessions"]["connected"], order.len(), "{report:#}");
        assert_eq!(report["sessions"]["chosen"], order.len(), "{report:#}");
        assert_eq!(report["statements"]["as_recorded"], 3 * order.len(), "{report:#}");
        (report, executed)
    };
    let (report, executed) = play(&["--rate-scale", "3x"]);
    assert_eq!(executed.len() as u64, 3 * SESSIONS);
    assert!(executed.values().all(|count| *count == 3), "{executed:?}");
    assert_eq!(report["rate_scale"], 3.0);
    // Copies come up to a second later.
    let (recorded_s, played_s) =
        (report["recorded_s"].as_f64().unwrap(), report["played_s"].as_f64().unwrap());
    assert!((recorded_s + 0.5..recorded_s + 3.0).contains(&played_s), "{report:#}");

    let (_, half) = play(&["--rate-scale", "0.5"]);
    assert!((3 * SESSIONS / 4..3 * SESSIONS * 3 / 4).contains(&(half.len() as u64)), "{half:?}");
    assert!(half.values().all(|count| *count == 1), "{half:?}");
    let (_, again) = play(&["--rate-scale", "0.5", "--closed"]);
    assert_eq!(half, again);
    let (_, mixed) = play(&["--rate-scale", "1.5x", "--speed", "2x"]);
    assert_eq!(mixed.len() as u64, 3 * SESSIONS);
    for (statement, count) in &mixed {
        assert_eq!(*count, 1 + half.get(statement).copied().unwrap_or_default(), "{statement}");
    }
}

/// Makes the trace `NAME.pgdt` of one session with these statements, one every `period_ms`.
fn make_trace(application: &Application, name: &str, period_ms: u64, statements: &[String]) -> String {
    let mut log = entry(0, 1, "connection authorized: user=a database=b");
    for (number, statement) in (1..).zip(statements) {
        log += &entry(number * period_ms, 1, &format!("duration: 0.001 ms  statement: {statement}"));
    }
    let (log_file, trace) = (format!("{name}.log"), format!("{name}.pgdt"));
    fs::write(application.path(&log_file), log).unwrap();
    application.succeed(&["replay", "read", &log_file, "-o", &trace]);
    trace
}

#[test]
fn alone_the_highest_speed_is_what_the_server_can_keep_up_with() {
    let application = Application::new();
    // A statement of 20 ms every 100 ms: five times as fast, the next begins when the one before ends.
    let statements = vec!["select pg_sleep(0.020)".to_owned(); 30];
    let trace = make_trace(&application, "sleep", 100, &statements);
    let search = |objective: &str| {
        let output =
            application.pgdyno(&["replay", "play", &trace, "--format", "json", "--find-max", objective]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report)
    };
    let (code, report) = search("p90 < 50ms");
    assert!(matches!(code, Some(0 | 5)), "{report:#}");
    let found = &report["find_max"];
    let speed = found["speed"].as_f64().unwrap();
    assert!((1.0..5.6).contains(&speed), "{report:#}");
    // On a busy machine a sleep takes longer than its 20 ms: at the speed found, statements follow each other closely.
    let busy = speed * report["latency"]["mean_us"].as_f64().unwrap() / 100_000.0;
    assert!((0.75..1.12).contains(&busy), "{busy} {report:#}");
    assert_eq!(found["objectives"], serde_json::json!(["p90 < 50ms", "errors < 0.1%"]));
    let steps = found["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["kind"], &steps[0]["speed"]), (&"closed".into(), &Value::Null));
    // What can't be met any more is not played to its end: of 30 statements at this speed, at most the first seven are in time.
    let too_fast = |step: &&Value| step["speed"].as_f64().is_some_and(|speed| speed > 6.5);
    let fails = |step: &Value| step["reason"].as_str().is_some_and(|reason| reason.starts_with("p90 "));
    assert!(steps.iter().filter(too_fast).all(fails), "{report:#}");
    // What a step that ended early did not execute is no error.
    let errors = |step: &Value| step["values"][1].as_f64();
    assert!(steps.iter().all(|step| errors(step) == Some(0.0)), "{report:#}");
    let failed = |step: &&Value| step["holds"] == false;
    assert!(steps.iter().filter(failed).all(fails) && steps.iter().any(|step| step["holds"] == false));
    // The others' latency includes the time for which they waited for the one before.
    assert!(report["intended_latency"]["mean_us"].as_f64() >= report["latency"]["mean_us"].as_f64());

    let (code, report) = search("max < 5ms");
    assert_eq!((code, &report["find_max"]["speed"]), (Some(1), &Value::Null), "{report:#}");
    let text = application.pgdyno(&["replay", "play", &trace, "--find-max", "max < 5ms"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("no speed found that meets max < 5ms and errors < 0.1%"), "{text}");
}

#[test]
fn each_playback_begins_with_a_copy_of_the_template() {
    let application = Application::new();
    let run_sql = |database: &str, sql: &str| {
        fs::write(application.path("run.sql"), sql).unwrap();
        application.succeed(&["bench", "run.sql", "-c", "1", "-t", "1", "-M", "simple", "-d", database]);
    };
    run_sql("postgres", "create database shop;\n");
    run_sql("shop", "create table once (id int primary key);\ninsert into once values (0);\n");
    let statements: Vec<String> = (1..=20).map(|id| format!("insert into once values ({id})")).collect();
    let trace = make_trace(&application, "insert", 10, &statements);

    // Otherwise the second playback of a search would find the rows of the first.
    let output = application.pgdyno(&["replay", "play", &trace, "--find-max", "p90 < 1s"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("--template"), "{message}");

    let play = |more: &[&str]| -> Value {
        let mut args = vec!["replay", "play", &trace, "--template", "shop", "--format", "json"];
        args.extend(more);
        serde_json::from_str(&application.succeed(&args)).unwrap()
    };
    for _ in 0..2 {
        let report = play(&[]);
        assert_eq!(report["statements"]["as_recorded"], 20, "{report:#}");
    }
    let found = play(&["--find-max", "errors < 1%", "--find-max", "max < 10s"]);
    // These hold at any speed: the search ends where a higher one makes no difference.
    assert!(found["find_max"]["speed"].as_f64().is_some_and(|speed| speed > 1.0), "{found:#}");
    assert_eq!(found["find_max"]["high"], Value::Null, "{found:#}");
    assert_eq!(found["statements"]["as_recorded"], 20, "{found:#}");
    let databases = |expected: &str| {
        // Fails unless it is true.
        let check =
            "select 1 / (count(*) = {expected})::int from pg_database where datname like 'pgdyno_replay%';\n";
        run_sql("postgres", &check.replace("{expected}", expected));
    };
    databases("0");
    run_sql("shop", "select 1 / (count(*) = 1)::int from once;\n");

    // A killed playback leaves its copy, which the next one drops.
    let slow = make_trace(&application, "slow", 10, &["select pg_sleep(60)".to_owned()]);
    let mut killed = application.spawn(&["replay", "play", &slow, "--template", "shop"]);
    let sleeping =
        "select 1 / (count(*) = 1)::int from pg_stat_activity where query = 'select pg_sleep(60)';\n";
    fs::write(application.path("sleeping.sql"), sleeping).unwrap();
    let is_sleeping = ["bench", "sleeping.sql", "-c", "1", "-t", "1", "-M", "simple"];
    while !application.pgdyno(&is_sleeping).status.success() {
        assert!(killed.try_wait().unwrap().is_none());
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    run_sql(
        "postgres",
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid();\n",
    );
    databases("1");
    play(&[]);
    databases("0");

    let output = application.pgdyno(&["replay", "play", &trace, "--template", "nothing"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot copy the database \"nothing\""), "{message}");
}

#[test]
fn a_write_waits_for_the_commit_of_the_row_that_it_names() {
    let application = Application::new();
    let run_sql = |sql: &str| {
        fs::write(application.path("run.sql"), sql).unwrap();
        application.succeed(&["bench", "run.sql", "-c", "1", "-t", "1", "-M", "simple"]);
    };
    run_sql(
        "create table orders (id int primary key, status text);\n\
         create table items (id int primary key, order_id int references orders);\n",
    );
    // Transactions that insert an order took 3 ms when they were recorded, and now three seconds. Other sessions use the order.
    let statement = |at_ms: u64, process: u64, text: &str| {
        (at_ms, entry(at_ms, process, &format!("duration: 1.000 ms  statement: {text}")))
    };
    let mut entries = Vec::new();
    for order in 0..5 {
        let (id, at_ms, process) = (4711 + order, 100 * order, 10 * order);
        for session in 1..=4 {
            let authorized = "connection authorized: user=a database=b";
            entries.push((at_ms, entry(at_ms, process + session, authorized)));
        }
        entries.extend([
            statement(at_ms + 10, process + 1, "begin"),
            statement(
                at_ms + 12,
                process + 1,
                &format!("insert into orders (id, status) values ({id}, 'new')"),
            ),
            statement(at_ms + 14, process + 1, "select pg_sleep(3)"),
            statement(at_ms + 16, process + 1, "commit"),
            statement(
                at_ms + 30,
                process + 2,
                &format!("insert into items (id, order_id) values ({order}, {id})"),
            ),
            statement(at_ms + 35, process + 3, &format!("update orders set status = 'sent' where id = {id}")),
            statement(at_ms + 40, process + 4, &format!("select count(*) from orders where id = {id}")),
            statement(
                at_ms + 45,
                process + 4,
                &format!("insert into orders (id, status) values ({}, 'new')", 100 + order),
            ),
        ]);
    }
    entries.sort();
    let log: String = entries.into_iter().map(|(_, line)| line).collect();
    fs::write(application.path("app.log"), log).unwrap();
    let read = application.succeed(&["replay", "read", "app.log", "-o", "app.pgdt", "--format", "json"]);
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["dependent"], 10, "{read:#}");
    for more in [&[][..], &["--closed"], &["--speed", "10x"]] {
        run_sql("truncate orders, items;\n");
        let seen = fs::read_to_string(application.log("csv")).unwrap().len();
        let args = [&["replay", "play", "app.pgdt", "--format", "json"], more].concat();
        let report: Value = serde_json::from_str(&application.succeed(&args)).unwrap();
        let statements = &report["statements"];
        assert_eq!(statements["as_recorded"], 40, "{more:?} {report:#}");
        assert_eq!((&statements["held"], &statements["overtaking"]), (&10.into(), &0.into()), "{report:#}");
        // What waits delays neither those who read nor those who insert other rows: they end before the first order is committed.
        let log = application.log_until(|log| log[seen..].matches("duration: ").count() >= 40);
        let at = |text: &str| log[seen..].find(text).unwrap();
        assert!(at("values (100, 'new')") < at("statement: commit"), "{more:?}");
        assert!(at("select count(*) from orders where id = 4711") < at("statement: commit"), "{more:?}");
        // All orders are sent: each was updated after it was there.
        run_sql("select 1 / (count(*) = 5)::int from orders where status = 'sent';\n");
    }

    // Sessions that are not played are not waited for.
    run_sql("truncate orders, items;\ninsert into orders select 4711 + n from generate_series(0, 4) n;\n");
    fs::write(
        application.path("filtered.log"),
        fs::read_to_string(application.path("app.log"))
            .unwrap()
            .replace("[1] LOG:  connection authorized: user=a", "[1] LOG:  connection authorized: user=b"),
    )
    .unwrap();
    application.succeed(&["replay", "read", "filtered.log", "-o", "filtered.pgdt"]);
    let args = ["replay", "play", "filtered.pgdt", "--format", "json", "--sessions", "user=b"];
    let report: Value = serde_json::from_str(&application.succeed(&args)).unwrap();
    assert_eq!(report["sessions"]["connected"], 1, "{report:#}");
    let args = ["replay", "play", "app.pgdt", "--format", "json", "--sessions", "user=nobody"];
    assert_eq!(application.pgdyno(&args).status.code(), Some(1));
}
