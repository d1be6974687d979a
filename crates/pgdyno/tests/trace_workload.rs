//! Traces as workloads of campaigns: the statements of an application on two sides, with a verdict and the changed plan for each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use model::record::Status;
use serde_json::Value;
use support::application::Application;
use support::{Bench, text};

/// Rows of each table, of which most statements read one.
const ROWS: usize = 25_000;
/// Statements whose index a side lacks.
const DROPPED: usize = 8;
/// Statements that a cost setting gives another plan.
const COSTLY: usize = 2;
/// Statements that a statistics target gives another plan.
const MISESTIMATED: usize = 1;
/// Statements that read a row by its primary key.
const BY_KEY: usize = 29;
/// All statements of the load, the two of a transaction block not counted.
const SHAPES: usize = 50;
/// Clients of the recorded load, and transactions of each.
const CLIENTS: u64 = 4;
const TRANSACTIONS: u64 = 8;
/// Primes, so that each value is there once: the number of rows has other factors.
const PRIMES: [usize; 5] = [7919, 7927, 7933, 7937, 7949];
/// A value that must not be in a bundle.
const PRIVATE: &str = "private-value";

/// Two tables with an index on each column, one with a skewed column, and two that are written.
fn data() -> String {
    let mut sql = String::new();
    for table in 0..2 {
        let columns: String = (0..5).map(|column| format!(", v{column} int")).collect();
        let values: String = PRIMES.map(|prime| format!(", (id::bigint * {prime} % {ROWS})::int")).concat();
        let _ = writeln!(sql, "CREATE TABLE t{table} (id int PRIMARY KEY{columns});");
        let _ = writeln!(sql, "INSERT INTO t{table} SELECT id{values} FROM generate_series(1, {ROWS}) id;");
        for column in 0..5 {
            let _ = writeln!(sql, "CREATE INDEX t{table}_v{column} ON t{table} (v{column});");
        }
    }
    // Half of the rows have the same kind, the others one of their own: a sample of few rows has only some 300 kinds.
    sql.push_str("CREATE TABLE events (id int PRIMARY KEY, kind int);\n");
    let _ = writeln!(
        sql,
        "INSERT INTO events SELECT id, CASE WHEN id % 2 = 0 THEN 0 ELSE id END FROM generate_series(1, {ROWS}) id;"
    );
    sql.push_str("CREATE INDEX events_kind ON events (kind);\n");
    sql.push_str("CREATE TABLE notes (id int, a0 text, a1 text, a2 text, a3 text, a4 text, a5 text);\n");
    sql.push_str("CREATE TABLE counters (id int PRIMARY KEY, c0 int, c1 int, c2 int, c3 int);\n");
    sql.push_str("INSERT INTO counters SELECT id, 0, 0, 0, 0 FROM generate_series(1, 100) id;\nANALYZE;\n");
    sql
}

/// A transaction of 50 statements, four of them in a block.
fn mix() -> String {
    let mut mix = format!(
        "\\set id random(1, {ROWS})\n\\set x random(0, {})\n\\set rare 2 * random(1, {}) - 1\n\\set counter random(1, 100)\n",
        ROWS - 1,
        ROWS / 2
    );
    // First, so that new sessions know the tables afterwards.
    for shape in 0..BY_KEY {
        let (table, column) = (shape % 2, shape / 2 % 5);
        let _ = match shape / 10 {
            0 => writeln!(mix, "select v{column} from t{table} where id = :id;"),
            1 => writeln!(mix, "select v{column}, id from t{table} where id = :id limit 1;"),
            _ => writeln!(mix, "select v{column} + 1 from t{table} where id = :id and v{column} >= 0;"),
        };
    }
    for shape in 0..DROPPED {
        let _ = writeln!(mix, "select id from t{} where v{} = :x;", shape % 2, shape / 2);
    }
    for table in 0..COSTLY {
        let _ = writeln!(mix, "select sum(id) from t{table} where v4 between :x and :x + 19;");
    }
    mix.push_str("select id from events where kind = :rare order by id limit 1;\n");
    // What uses a CPU for long does not delay what follows.
    mix.push_str("\\sleep 20 ms\n");
    for shape in 0..6 {
        let _ = writeln!(mix, "insert into notes (id, a{shape}) values (:id, '{PRIVATE}');");
    }
    mix.push_str("begin;\n");
    for shape in 0..4 {
        let _ = writeln!(mix, "update counters set c{shape} = c{shape} + 1 where id = :counter;");
    }
    mix.push_str("commit;\n");
    mix
}

const CAMPAIGN: &str = "\
name = 'upgrade'
[factors]
server = ['18']
workload = ['app', 'same']
include = [{ server = '18', workload = 'dropped', settings = 'costly' }]
[run]
repeats = 5
seed = 1
effect = '50%'
[settings.costly]
random_page_cost = 40
[datasets.shop]
dump = 'shop.sql'
[workloads.app]
trace = 'csv.pgdt'
sessions = 'application=shop'
dataset = 'shop'
[workloads.same]
trace = 'csv.pgdt'
sessions = 'application=shop'
dataset = 'shop'
[workloads.dropped]
trace = 'csv.pgdt'
sessions = 'application=shop'
dataset = 'shop'
setup = 'drop.sql'
";

/// A campaign with the trace of a real load, and the data that it began with.
fn bench() -> Bench {
    let application = Application::new();
    fs::write(application.path("setup.sql"), data()).unwrap();
    fs::write(application.path("mix.sql"), mix()).unwrap();
    application.succeed(&["bench", "setup.sql", "-c", "1", "-t", "1", "-M", "simple"]);
    let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
    let connection = "dbname=postgres application_name=shop";
    // At a rate, so that the sides are not busy.
    application.succeed(&[
        "bench",
        "mix.sql",
        "-d",
        connection,
        "-c",
        &clients,
        "-t",
        &transactions,
        "-M",
        "prepared",
        "--rate",
        "16",
    ]);
    application.read("csv", &[]);
    let bench = Bench::new(CAMPAIGN);
    fs::copy(application.trace("csv"), bench.path().join("csv.pgdt")).unwrap();
    let dump = format!(
        "--\n-- PostgreSQL database dump\n--\n\n{}\n--\n-- PostgreSQL database dump complete\n--\n",
        data()
    );
    fs::write(bench.path().join("shop.sql"), dump).unwrap();
    let mut drop: String = (0..DROPPED).map(|of| format!("drop index t{}_v{};\n", of % 2, of / 2)).collect();
    // The largest target of a table's columns is that of its sample.
    drop.push_str(
        "alter table events alter column id set statistics 1, alter column kind set statistics 1;\n",
    );
    drop.push_str("analyze events;\n");
    fs::write(bench.path().join("drop.sql"), drop).unwrap();
    bench
}

/// The statements of a comparison.
fn compared(bench: &Bench, a: &str, b: &str) -> Value {
    let output = bench.pgdyno(&["compare", a, b, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["statements"][0].clone()
}

/// The baseline.
const APP: &str = "workload=app,settings=default";
/// The side without indexes, where rows at random cost more, and with a sample of few rows.
const PLANTED: &str = "workload=dropped,settings=costly";

/// The changed statements with the first change of their plans.
fn changed(statements: &Value) -> BTreeSet<(String, String)> {
    let changed = with_verdict(statements, &["REGRESSION", "IMPROVEMENT"]).into_iter();
    let with_plan = |statement: &Value| {
        let change = &statement["plan_changes"][0];
        let node = |key: &str| change[key].as_str().unwrap_or_default();
        (statement["text"].as_str().unwrap().to_owned(), format!("{} → {}", node("before"), node("after")))
    };
    changed.map(with_plan).collect()
}

fn with_verdict<'a>(statements: &'a Value, verdicts: &[&str]) -> Vec<&'a Value> {
    let all = statements["statements"].as_array().unwrap().iter();
    all.filter(|statement| verdicts.contains(&statement["verdict"].as_str().unwrap())).collect()
}

#[test]
fn alone_statements_with_another_plan_are_named_with_the_changed_node_and_no_others() {
    let bench = bench();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3 * 5);
    let expected_calls = CLIENTS * TRANSACTIONS;
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:?}", trial.cell, trial.validity, record.events);
        assert_ne!(trial.validity.status, Status::Invalid, "{context}");
        assert_eq!(trial.accounting.surplus(), Some(0), "{context}");
        let executed = (SHAPES as u64 + 2) * expected_calls;
        assert_eq!(trial.summary.as_ref().unwrap().transactions, Some(executed), "{context}");
        let by_second: u64 = record.intervals.iter().map(|interval| interval.scripts[0].transactions).sum();
        assert_eq!(by_second, executed, "{context}");
        assert_eq!(record.played.len(), SHAPES + 2, "{context}");
        for statement in &record.played {
            assert_eq!(
                (statement.calls, statement.different, statement.not_executed),
                (expected_calls, 0, 0)
            );
            assert!(!statement.text.contains(PRIVATE), "{statement:?}");
            let has_plan = !["begin", "commit"].contains(&statement.text.as_str());
            assert_eq!(statement.plan.is_some(), has_plan, "{statement:?}");
        }
        let workload = trial.cell.workload.known().unwrap();
        assert!(workload.writes() && workload.trace().unwrap().sha256.len() == 64, "{context}");
        let directory = bench.path().join(".pgdyno/trials").join(&trial.id);
        assert!(!fs::read_to_string(directory.join("trial.json")).unwrap().contains(PRIVATE));
    }

    let planted = compared(&bench, APP, PLANTED);
    let shown = format!("{planted:#}");
    assert_eq!(planted["statements"].as_array().unwrap().len(), SHAPES + 2, "{shown}");
    let dropped = (0..DROPPED).map(|of| {
        let (table, column) = (of % 2, of / 2);
        (
            format!("select id from t{table} where v{column} = $1"),
            format!("Index Scan using t{table}_v{column} on t{table} → Seq Scan on t{table}"),
        )
    });
    let costly = (0..COSTLY).map(|table| {
        (
            format!("select sum(id) from t{table} where v4 between $1 and $2 + $3"),
            format!(
                "Bitmap Heap Scan on t{table} > Bitmap Index Scan using t{table}_v4 → Seq Scan on t{table}"
            ),
        )
    });
    // By the primary key, it expects to find one of many rows soon.
    let misestimated = (
        "select id from events where kind = $1 order by id limit $2".to_owned(),
        "Sort by id > Index Scan using events_kind on events → Index Scan using events_pkey on events"
            .to_owned(),
    );
    let expected: BTreeSet<(String, String)> = dropped.chain(costly).chain([misestimated]).collect();
    assert_eq!(expected.len(), DROPPED + COSTLY + MISESTIMATED);
    let with_plans = planted["statements"].as_array().unwrap().iter();
    let with_plans = with_plans.filter(|statement| statement["plan_changes"] != serde_json::json!([]));
    assert_eq!(with_plans.count(), expected.len(), "{shown}");
    assert_eq!(changed(&planted), expected, "{shown}");
    let regressions = with_verdict(&planted, &["REGRESSION"]);
    assert_eq!(regressions.len(), expected.len(), "{shown}");
    let share: f64 = regressions.iter().filter_map(|statement| statement["share"].as_f64()).sum();
    assert!(share > 0.5, "{shown}");

    let same = compared(&bench, APP, "workload=same");
    assert!(with_verdict(&same, &["REGRESSION", "IMPROVEMENT"]).is_empty(), "{same:#}");
    let plans = same["statements"].as_array().unwrap().iter().flat_map(|one| one["plan_changes"].as_array());
    assert_eq!(plans.flatten().count(), 0, "{same:#}");

    let shown = |more: &[&str]| {
        let mut args = vec!["compare", APP, PLANTED];
        args.extend(more);
        let output = bench.pgdyno(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        text(&output)
    };
    // Lines are broken where the figures are long.
    let table = shown(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains(&format!("REGRESSION ({}) are ", expected.len())), "{table}");
    assert!(table.contains("Index Scan using t1_v3 on t1 → Seq Scan on t1"), "{table}");
    let csv = shown(&["--statements", "--format", "csv"]);
    assert_eq!(csv.lines().filter(|line| line.contains(",REGRESSION,")).count(), expected.len(), "{csv}");
    assert!(shown(&["--format", "markdown"]).contains("**52 statements: "));
    let only = shown(&["--statements"]);
    assert!(
        only.starts_with("B against A: statements of the trace ") && only.contains("new failures"),
        "{only}"
    );
    let id = &bench.trials()[0].id;
    let output = bench.pgdyno(&["show", id]);
    assert!(
        text(&output).contains("\n32 more statements: --format json and csv have all.\n"),
        "{}",
        text(&output)
    );
    let one: serde_json::Value =
        serde_json::from_slice(&bench.pgdyno(&["show", id, "--format", "json"]).stdout).unwrap();
    let statements = one["trial"]["statements"].as_array().unwrap();
    assert_eq!(statements.len(), 52, "{one:#}");
    let share: f64 = statements.iter().filter_map(|statement| statement["share"].as_f64()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    assert!(
        statements.iter().all(|of| of["p99_us"].as_f64() >= of["mean_us"].as_f64().map(|us| us * 0.1)),
        "{one:#}"
    );
}

#[test]
fn a_trace_needs_the_data_that_it_begins_with() {
    let bench = bench();
    let rejected = |campaign: &str| {
        fs::write(bench.path().join("other.toml"), campaign).unwrap();
        let output = bench.pgdyno(&["plan", "other.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    let with = |workloads: &str, more: &str| {
        let level = if workloads.is_empty() { "replay:csv.pgdt" } else { "app" };
        format!("name = 'n'\n[factors]\nserver = ['18']\nworkload = ['{level}']\n{more}{workloads}")
    };
    let message = rejected(&with("", ""));
    assert!(
        message.contains("the trace csv.pgdt writes, but nothing says what data it begins with"),
        "{message}"
    );
    let message = rejected(&with("[workloads.app]\ntrace = 'csv.pgdt'\nscript = 'mix.sql'\n", ""));
    assert!(message.contains("must have exactly one definition"), "{message}");
    let message = rejected(&with("[workloads.app]\ntrace = 'shop.sql'\n", ""));
    assert!(message.contains("is not a whole trace"), "{message}");
    let message =
        rejected(&with("[workloads.app]\ntrace = 'csv.pgdt'\nsessions = 'role=x'\nwrites = false\n", ""));
    assert!(message.contains("expected user=NAME"), "{message}");
    let message =
        rejected(&with("[workloads.app]\ntrace = 'csv.pgdt'\niterations = 3\nwrites = false\n", ""));
    assert!(message.contains("a workload that plays a trace has no `iterations`"), "{message}");

    // Other factors that a trace has no use for are left out; a trace that takes too long is refused before it begins.
    let campaign = "name = 'short'\n[factors]\nserver = ['18']\nworkload = ['app']\nclients = [1, 2]\n[run]\nrepeats = 1\n\
                    [datasets.shop]\ndump = 'shop.sql'\n[workloads.app]\ntrace = 'csv.pgdt'\ndataset = 'shop'\nspeed = '0.01x'\n\
                    duration = '1s'\n";
    fs::write(bench.path().join("short.toml"), campaign).unwrap();
    let output = bench.pgdyno(&["run", "short.toml"]);
    let trials = bench.trials();
    assert!(!trials.is_empty(), "{}", text(&output));
    let evidence = &trials[0].validity.findings[0].evidence;
    assert!(evidence.contains("but a trial of this workload ends after 1 s"), "{evidence}");
}

/// Recorded time of a trace with planted waits, in milliseconds.
const PERIOD_MS: u64 = 5_000;

/// Their normal forms, by what they do.
const SLEEPING: &str = "select pg_sleep($1)";
const BUSY: &str = "select count(*) from generate_series($1, $2)";
const HOLDING: &str = "select pg_advisory_xact_lock($1), pg_sleep($2)";
const WAITING: &str = "select pg_sleep($1) from (select pg_advisory_xact_lock($2) offset $3) held";

/// Statements by what they wait for, each of a session of its own, with its start and duration in the log in milliseconds. No period is
/// a divisor of the sampler's, which would then find it always in the same state.
fn planted_waits() -> Vec<(u32, u64, u64, String)> {
    let every = |step: usize| (0..PERIOD_MS - 200).step_by(step);
    let is_late = |at: u64| at >= PERIOD_MS / 2;
    let mut all = Vec::new();
    all.extend(every(13).map(|at| {
        let sleep_ms = if is_late(at) { 9 } else { 2 };
        (1, at, sleep_ms, format!("select pg_sleep(0.00{sleep_ms})"))
    }));
    all.extend(every(17).map(|at| (2, at, 5, "select count(*) from generate_series(1, 50000)".to_owned())));
    // When all are connected.
    for at in every(230).skip(1) {
        all.push((3, at, 100, "select pg_advisory_xact_lock(7), pg_sleep(0.1)".to_owned()));
        // It waits for the other for 80 ms, and sleeps as long.
        let waiting = "select pg_sleep(0.08) from (select pg_advisory_xact_lock(7) offset 0) held";
        all.push((4, at + 20, 160, waiting.to_owned()));
    }
    all
}

/// A log with these statements.
fn log(statements: &[(u32, u64, u64, String)]) -> String {
    let mut entries: Vec<(u64, u32, String)> =
        (1..=4).map(|process| (0, process, "connection authorized: user=a database=b".to_owned())).collect();
    entries.extend(statements.iter().map(|(process, at, took, text)| {
        (at + took, *process, format!("duration: {took}.000 ms  statement: {text}"))
    }));
    entries.extend((1..=4).map(|process| {
        (PERIOD_MS, process, "disconnection: session time: 0:00:05 user=a database=b host=[local]".to_owned())
    }));
    entries.sort_by_key(|entry| entry.0);
    let line = |(ms, process, text): &(u64, u32, String)| {
        format!("2026-01-02 03:04:{:02}.{:03} UTC [{process}] LOG:  {text}\n", ms / 1000, ms % 1000)
    };
    entries.iter().map(line).collect()
}

#[test]
fn alone_statements_have_their_own_waits_and_times_and_not_those_of_others() {
    let bench = Bench::new(
        "name = 'waits'\n[factors]\nserver = ['13', '18']\nworkload = ['app', 'fast']\n[run]\nrepeats = 1\n\
         [workloads.app]\ntrace = 'app.pgdt'\nwrites = false\n\
         [workloads.fast]\ntrace = 'app.pgdt'\nspeed = '2x'\nwrites = false\n",
    );
    let planted = planted_waits();
    fs::write(bench.path().join("app.log"), log(&planted)).unwrap();
    let output = bench.pgdyno(&["replay", "read", "app.log", "-o", "app.pgdt"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let record = bench.store().load(&trial.id).unwrap();
        let context = format!("{}: {:?} {:#?}", trial.cell, record.events, record.played);
        let [sleeping, busy, holding, waiting] = [SLEEPING, BUSY, HOLDING, WAITING]
            .map(|text| record.played.iter().find(|one| one.text == text).unwrap());
        let is_fast = trial.cell.workload.known().unwrap().name() == "fast";
        let share = |of: &model::trace::PlayedStatement, wait: &str| {
            let waits = of.waits.as_ref().unwrap();
            let all: u64 = waits.values().sum();
            // At 20 samples a second. How long a statement takes depends on the machine, and so does the number of its samples.
            let expected = of.total_ns as f64 / 50e6;
            let least = if is_fast { 0.4 } else { 0.5 };
            assert!(
                expected >= 10.0 && (least..=1.6).contains(&(all as f64 / expected)),
                "{}: {all} samples, expected {expected:.0}: {context}",
                of.text
            );
            waits.get(wait).copied().unwrap_or(0) as f64 / all as f64
        };
        for (of, expected) in [(sleeping, "Timeout:PgSleep"), (busy, "CPU"), (holding, "Timeout:PgSleep")] {
            // Of twice the speed, it has to wait, too, and at any speed if it begins late.
            if is_fast && of == holding {
                continue;
            }
            assert!(share(of, expected) >= 0.85, "{}: {context}", of.text);
            assert!(of == holding || share(of, "Lock:advisory") == 0.0, "{}: {context}", of.text);
        }
        assert_eq!(share(busy, "Timeout:PgSleep"), 0.0, "{context}");
        // At the recorded speed, it waits for the lock half of the time.
        if !is_fast {
            for wait in ["Lock:advisory", "Timeout:PgSleep"] {
                let part = share(waiting, wait);
                assert!((0.3..=0.7).contains(&part), "{wait} {part}: {context}");
            }
        }
        // By recorded time, at any speed.
        for statement in [sleeping, busy, holding, waiting] {
            let of = statement.over_time.as_ref().unwrap();
            assert_eq!(of.slice_us, PERIOD_MS * 1_000 / 100 + 1, "{context}");
            let mut expected = vec![0_u64; 100];
            let of_it = planted.iter().filter(|(process, ..)| match process {
                1 => statement == sleeping,
                2 => statement == busy,
                3 => statement == holding,
                _ => statement == waiting,
            });
            for (_, at, ..) in of_it {
                expected[(at * 1_000 / of.slice_us) as usize] += 1;
            }
            let mut found = vec![0; 100];
            for slice in &of.slices {
                found[slice.number as usize] = slice.calls;
            }
            assert_eq!(found, expected, "{}: {context}", statement.text);
            assert_eq!(of.slices.iter().map(|slice| slice.total_ns).sum::<u64>(), statement.total_ns);
        }
        let of = sleeping.over_time.as_ref().unwrap();
        let median_us = |late: bool| {
            let slices = of.slices.iter().filter(|slice| (slice.number >= 50) == late);
            let mut means: Vec<u64> = slices.map(|slice| slice.total_ns / 1_000 / slice.calls).collect();
            means.sort_unstable();
            means[means.len() / 2]
        };
        assert!((2_000..9_000).contains(&median_us(false)), "{context}");
        assert!(median_us(true) >= 9_000, "{context}");
    }

    let compared = compared(&bench, "server=13,workload=app", "server=18,workload=app");
    let statement = |text: &str| {
        let all = compared["statements"].as_array().unwrap().iter();
        all.into_iter().find(|one| one["text"] == text).unwrap()
    };
    for side in ["a", "b"] {
        let sleeping = &statement(SLEEPING)[side];
        assert_eq!(sleeping["waits"][0]["wait"], "Timeout:PgSleep", "{compared:#}");
        assert_eq!(sleeping["over_time"]["mean_us"].as_array().unwrap().len(), 100, "{compared:#}");
        assert_eq!(statement(BUSY)[side]["waits"][0]["wait"], "CPU", "{compared:#}");
    }
    let shown = text(&bench.pgdyno(&["show", &trials[0].id]));
    assert!(shown.contains("Timeout:PgSleep 100%") || shown.contains("Timeout:PgSleep 9"), "{shown}");
}
