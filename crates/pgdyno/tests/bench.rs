//! `pgdyno bench` on a real server: counts, pacing of loops, handling of errors, and stalls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, Weak};

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use serde_json::Value;
use server::Server;
use skip::skip;
use support::{merged, signal, wait_until};
use tempfile::TempDir;
use wire::blocking::Session;

/// A directory for scripts and files, and the server that the tests of this process share while any of them runs.
struct Bench {
    server: Arc<Server>,
    directory: TempDir,
}

/// Exit code and output of a command.
struct RunOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Bench {
    fn new() -> Self {
        static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SERVER.lock().unwrap();
        let server = shared.upgrade().unwrap_or_else(|| {
            let cache = Cache::open().unwrap();
            let installation = server::install(&cache, "18", &NoProgress).unwrap();
            let template =
                server::template(&cache, &installation, &[], &1.into(), None, &NoProgress).unwrap();
            let settings = [("fsync", "off"), ("autovacuum", "off")];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let cluster = template.clone_cluster(&cache, &NoProgress).unwrap();
            let server = Arc::new(cluster.start(&BTreeMap::from(settings)).unwrap());
            *shared = Arc::downgrade(&server);
            server
        });
        Self { server, directory: tempfile::tempdir().unwrap() }
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    fn command(&self, args: &str) -> Command {
        let Endpoint::Unix { directory, port } = self.server.endpoint(Transport::Unix) else {
            panic!("not a socket")
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command
            .arg("bench")
            .args(args.split_whitespace())
            .current_dir(self.directory.path())
            .env("PGHOST", directory)
            .env("PGPORT", port.to_string())
            .env("PGUSER", server::USER)
            .env("PGDATABASE", server::DATABASE)
            .env("PGDYNO_QUEUE", self.directory.path());
        command
    }

    fn run(&self, args: &str) -> RunOutput {
        RunOutput::new(self.command(args))
    }

    /// Runs a load with `--format json`; returns the exit code and the report.
    fn report(&self, args: &str) -> (Option<i32>, Value) {
        let ended = self.run(&format!("--quiet --format json {args}"));
        let report =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.all()));
        (ended.code, report)
    }

    fn client(&self) -> Session {
        self.server.session(server::DATABASE).unwrap()
    }

    /// Number of tables or sequences of this name.
    fn relations(&self, name: &str) -> i64 {
        self.client().query_one(&format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'")).unwrap()
    }
}

impl RunOutput {
    fn new(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn all(&self) -> String {
        format!("exit {:?}\n{}{}", self.code, self.stdout, self.stderr)
    }
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn us(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no time"))
}

fn warnings(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|warning| warning["kind"].as_str().unwrap()).collect()
}

/// Without that of a driver that waited for a CPU, as it may in a short load on a busy machine.
fn other_warnings(report: &Value) -> Vec<&str> {
    warnings(report).into_iter().filter(|kind| *kind != "driver-saturated").collect()
}

#[test]
fn counts_of_report_intervals_scripts_statements_and_log_are_the_same() {
    let bench = Bench::new();
    let (code, report) = bench.report(
        "select-only@3 simple-update@1 -c 4 -j 2 -T 900ms --warmup 100ms --interval 200ms -r --seed 7 --hlog out.hlog",
    );
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["schema"], "pgdyno.bench/1");
    assert_eq!(report["load"]["seed"], 7);
    assert_eq!(report["load"]["scale"], 1);
    assert!(report["server"]["version"].as_str().unwrap().starts_with("18."), "{report:#}");
    let totals = &report["totals"];
    let transactions = count(&totals["transactions"]);
    assert!(transactions > 0);
    assert_eq!(count(&totals["latency"]["count"]), transactions);
    assert_eq!((&totals["service"], &totals["never_begun"]), (&Value::Null, &Value::Null));

    let scripts = report["scripts"].as_array().unwrap();
    assert_eq!(scripts.iter().map(|script| count(&script["transactions"])).sum::<u64>(), transactions);
    let rows: u64 = scripts.iter().map(|script| count(&script["rows"])).sum();
    // Both scripts select one row.
    assert_eq!((rows, count(&totals["rows"])), (transactions, transactions));
    assert_eq!(scripts[1]["statements"].as_array().unwrap().len(), 9);
    assert_eq!(scripts[0]["statements"][1]["line"], 2);

    let intervals = report["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 5);
    assert_eq!(intervals.iter().map(|interval| count(&interval["transactions"])).sum::<u64>(), transactions);
    assert_eq!(us(&intervals[0]["start_us"]), 100_000.0);

    let log = bench.read("out.hlog");
    assert!(log.starts_with("#[Latency from the intended start"), "{log}");
    let in_log = |tag: &str| merged(&log, tag).len();
    assert_eq!(in_log("select-only"), count(&scripts[0]["transactions"]));
    assert_eq!(in_log("simple-update"), count(&scripts[1]["transactions"]));
    assert_eq!(
        in_log("select-only:warmup") + in_log("simple-update:warmup"),
        count(&report["before_window"])
    );
}

#[test]
fn a_number_of_transactions_is_kept_and_in_the_table() {
    let bench = Bench::new();
    bench.script("one.sql", "\\set n :x + 1\nSELECT :n;\n");
    let ended = bench.run("one.sql -c 3 -j 1 -t 50 -D x=1 -o report.txt");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.all());
    let report = bench.read("report.txt");
    for text in
        ["PostgreSQL 18", "3 clients · closed loop · prepared protocol", "150 transactions in", "p99.99"]
    {
        assert!(report.contains(text), "{text:?} is not in:\n{report}");
    }
    assert!(!report.contains("failed") && !report.contains('\x1b'), "{report}");
}

#[test]
fn without_a_script_the_builtin_tpcb_like_runs() {
    let bench = Bench::new();
    let ended = bench.run("-t 5 -c 2");
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    assert!(ended.stderr.contains("no script is named: running the built-in tpcb-like"), "{}", ended.stderr);
    assert!(ended.stdout.contains("10 transactions in"), "{}", ended.stdout);
}

#[test]
fn a_uniform_rate_starts_all_due_transactions() {
    let bench = Bench::new();
    let (code, report) =
        bench.report("select-only -c 4 --rate 100/s --arrivals uniform --warmup 500ms -T 2s --hlog out.hlog");
    assert_eq!(code, Some(0), "{report:#}");
    let totals = &report["totals"];
    let before = count(&report["before_window"]);
    let after = count(&report["after_window"]["transactions"]);
    let due = before + count(&totals["transactions"]) + after + count(&totals["never_begun"]);
    // The 250th is due at the very end, within rounding.
    assert!((249..=250).contains(&due), "{due}: {report:#}");
    let latencies = count(&totals["latency"]["count"]);
    assert!((199..=201).contains(&latencies), "{report:#}");
    assert_eq!(us(&report["window_us"]), 2e6);
    assert_eq!(count(&totals["service"]["count"]), latencies - count(&totals["unfinished"]));
    assert!(us(&totals["service"]["mean_us"]) <= us(&totals["latency"]["mean_us"]));
    assert_eq!(totals["corrected"], Value::Null);
    assert!(bench.read("out.hlog").contains("Tag=select-only:service,"));
}

#[test]
fn stages_pause_and_given_arrivals_are_kept() {
    let bench = Bench::new();
    let stages = "select-only --arrivals uniform --stage 500ms:100 --stage 300ms:0 --stage 200ms:200..400";
    let (code, report) = bench.report(&format!("{stages} --interval 100ms"));
    assert_eq!(code, Some(0), "{report:#}");
    // 50, none, and 200 ms at a mean of 300/s.
    let totals = &report["totals"];
    let ended = count(&totals["transactions"]) + count(&report["after_window"]["transactions"]);
    assert!((108..=110).contains(&(ended + count(&totals["never_begun"]))), "{report:#}");
    assert_eq!(us(&report["window_us"]), 1e6);
    assert_eq!(
        report["load"]["arrivals"],
        "100/s for 500 ms, 0/s for 300 ms, 200 to 400/s for 200 ms, uniform"
    );

    bench.script("arrivals", "# seconds\n0.01\n0.02\n0.02\n\n0.3\n");
    let (code, report) = bench.report("select-only --arrivals file:arrivals");
    assert_eq!((code, count(&report["totals"]["transactions"])), (Some(0), 4), "{report:#}");
    bench.script("arrivals", "0.5\n0.2\n");
    let ended = bench.run("select-only --arrivals file:arrivals");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("arrivals:2: `0.2` is before the previous arrival"), "{}", ended.stderr);
}

#[test]
fn a_schedule_that_the_server_cannot_keep_is_reported() {
    let bench = Bench::new();
    bench.script("slow.sql", "SELECT pg_sleep(0.2);\n");
    let (code, report) = bench.report("slow.sql -c 2 --rate 100/s --arrivals uniform -T 1s");
    assert_eq!(code, Some(0), "{report:#}");
    // Two clients can run 10 of the 100 transactions.
    let never = count(&report["totals"]["never_begun"]);
    let ended = count(&report["totals"]["transactions"]) + count(&report["after_window"]["transactions"]);
    assert!(ended <= 12 && (99..=100).contains(&(never + ended)), "{report:#}");
    assert!(warnings(&report).contains(&"schedule-not-kept"), "{report:#}");
    // The wait for the start is part of the latency, but not of the service time.
    let max_us = |name: &str| us(&report["totals"][name]["max_us"]);
    assert!(max_us("latency") > max_us("service") + 300_000.0, "{report:#}");
}

#[test]
fn clients_think() {
    let bench = Bench::new();
    let (code, report) = bench.report("select-only -c 2 --think 100ms..150ms -T 1s");
    assert_eq!(code, Some(0), "{report:#}");
    let transactions = count(&report["totals"]["transactions"]);
    assert!((1..=20).contains(&transactions), "{transactions}");
}

/// Fails at every other execution, in any session.
const EVERY_OTHER: &str = "DO $$ BEGIN IF nextval('SEQUENCE') % 2 = 1 THEN
    RAISE EXCEPTION 'not this time' USING ERRCODE = '40001'; END IF; END $$;\n";

#[test]
fn errors_are_handled_by_the_policy() {
    let bench = Bench::new();
    bench.client().execute("CREATE SEQUENCE of_errors").unwrap();
    bench.script("e.sql", &EVERY_OTHER.replace("SEQUENCE", "of_errors"));
    let outcome = |args: &str| {
        bench.client().execute("ALTER SEQUENCE of_errors RESTART").unwrap();
        let (code, report) = bench.report(&format!("e.sql -c 1 -t 20 {args}"));
        let totals = &report["totals"];
        let counts = ["transactions", "failed", "retried", "retries"].map(|name| count(&totals[name]));
        (code, counts, report)
    };
    for args in ["", "--on-error 40=retry --back-off 1ms", "-M simple"] {
        let (code, counts, report) = outcome(args);
        assert_eq!((code, counts), (Some(0), [20, 0, 20, 20]), "{args}: {report:#}");
        let error = &report["totals"]["errors"][0];
        assert_eq!((&error["sqlstate"], &error["text"]), (&"40001".into(), &"not this time".into()));
        assert_eq!((count(&error["failed"]), count(&error["retries"])), (0, 20));
    }
    let (code, counts, report) = outcome("--max-tries 1");
    assert_eq!((code, counts), (Some(0), [10, 10, 0, 0]), "{report:#}");
    let (code, counts, report) = outcome("--on-error 40001=count");
    assert_eq!((code, counts), (Some(0), [10, 10, 0, 0]), "{report:#}");
    assert_eq!(count(&report["totals"]["errors"][0]["failed"]), 10);
    let (code, counts, _) = outcome("--on-error 40001=reconnect");
    assert_eq!((code, counts), (Some(0), [10, 10, 0, 0]));

    let (code, counts, report) = outcome("--on-error 40=abort");
    assert_eq!((code, counts), (Some(1), [0, 1, 0, 0]), "{report:#}");
    assert_eq!(warnings(&report), ["clients-aborted"]);
    assert!(report["aborts"][0].as_str().unwrap().contains("not this time"), "{report:#}");
}

#[test]
fn a_shrinking_load_is_reported() {
    let bench = Bench::new();
    bench.script("one.sql", "\\if :client_id = 0\nSELECT 1 / 0;\n\\endif\nSELECT 1;\n");
    let (code, report) = bench.report("one.sql -c 3 -t 5 --on-error 22012=abort");
    assert_eq!((code, count(&report["clients_aborted"])), (Some(5), 1), "{report:#}");
    assert_eq!(count(&report["totals"]["transactions"]), 10);
    let ended = bench.run("one.sql -c 3 -t 5 --on-error 22012=abort");
    assert!(ended.stdout.contains("1 of 3 clients were aborted"), "{}", ended.stdout);
    assert!(ended.stderr.contains("division by zero"), "{}", ended.stderr);

    // A misspelt table is an error of the script, not one to count for ten seconds.
    bench.script("wrong.sql", "SELECT 1 FROM no_such_table;\n");
    let ended = bench.run("wrong.sql -c 2");
    assert_eq!(ended.code, Some(1), "{}", ended.all());
    assert!(ended.stdout.contains("all 2 clients were aborted"), "{}", ended.stdout);
    assert!(ended.stdout.contains("wrong.sql:1: ERROR: relation \"no_such_table\""), "{}", ended.stdout);
    assert!(ended.stdout.contains("42P01") && ended.stdout.contains("no_such_table"), "{}", ended.stdout);
}

#[test]
fn lost_connections_are_replaced_if_requested() {
    let bench = Bench::new();
    bench.script("die.sql", "SELECT pg_terminate_backend(pg_backend_pid());\n");
    let (code, report) = bench.report("die.sql -c 2 -t 3 --reconnect");
    assert_eq!((code, count(&report["totals"]["failed"])), (Some(0), 6), "{report:#}");
    let (code, report) = bench.report("die.sql -c 2 -t 3");
    assert_eq!((code, count(&report["clients_aborted"])), (Some(1), 2), "{report:#}");
}

#[test]
fn the_teardown_runs_after_every_outcome() {
    let bench = Bench::new();
    bench.script(
        "make.sql",
        "\\set rows 3 * :factor\nCREATE TABLE made AS SELECT generate_series(1, :rows) n;\n",
    );
    bench.script("drop.sql", "DROP TABLE made;\n");
    bench.script("sum.sql", "SELECT sum(n) AS s FROM made \\gset\nSELECT 1 / (:s = 21)::int;\n");
    bench.script("wrong.sql", "SELECT 1 FROM no_such_table;\n");
    let around = "--setup make.sql --teardown drop.sql -D factor=2";
    for (args, expected) in [("sum.sql -t 2 -c 2", 0), ("wrong.sql -t 2 -c 2", 1)] {
        let ended = bench.run(&format!("{args} {around}"));
        assert_eq!(ended.code, Some(expected), "{args}: {}", ended.all());
        assert_eq!(bench.relations("made"), 0, "{args}: {}", ended.all());
    }
    let ended = bench.run("select-only -t 1 --setup wrong.sql");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.all());
    assert!(
        ended.stderr.contains("the setup failed: line 1: ") && ended.stderr.contains("no_such_table"),
        "{}",
        ended.stderr
    );
}

#[test]
fn ctrl_c_ends_the_load_and_reports_what_ran() {
    let bench = Bench::new();
    bench.script("make.sql", "CREATE TABLE for_a_while ();\n");
    bench.script("drop.sql", "DROP TABLE for_a_while;\n");
    let mut command = bench.command("select-only -c 2 -T 1h --setup make.sql --teardown drop.sql");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("1.0 s") && line.contains(" tps ")), "no line a second");
    signal(child.id() as i32, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{out}");
    assert!(out.contains("interrupted") && out.contains("transactions in"), "{out}");
    assert_eq!(bench.relations("for_a_while"), 0);
}

/// Waits for a bench that was interrupted; its exit code and standard error.
fn interrupted(mut child: Child) -> (Option<i32>, String) {
    wait_until("the bench has ended", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_first_signal_ends_an_attempt_to_connect() {
    let bench = Bench::new();
    bench.script("drop.sql", "DROP TABLE never_made;\n");
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let mut command = bench.command("select-only -c 2 -T 1h --teardown drop.sql");
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", address.port().to_string())
            .env("PGSSLMODE", "disable");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _accepted = silent.accept().unwrap();
        signal(child.id() as i32, number);
        let (code, stderr) = interrupted(child);
        assert_eq!(code, Some(130), "{stderr}");
        let expected = format!("interrupted while connecting to the server at {address}: no load began");
        assert!(stderr.contains(&expected) && !stderr.contains("never_made"), "{stderr}");
    }
}

/// A server that answers one session and then no other. Sends a message for each connection that it leaves unanswered.
fn server_that_falls_silent(bench: &Bench) -> (u16, Receiver<TcpStream>) {
    let Endpoint::Unix { directory, port } = bench.server.endpoint(Transport::Unix) else {
        panic!("not a socket")
    };
    let socket = format!("{directory}/.s.PGSQL.{port}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, unanswered) = channel();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = UnixStream::connect(socket).unwrap();
        let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
        let _ = std::io::copy(&mut client, &mut server);
        while sender.send(listener.accept().unwrap().0).is_ok() {}
    });
    (port, unanswered)
}

#[test]
fn the_first_ctrl_c_ends_the_connecting_of_clients() {
    let bench = Bench::new();
    bench.script("one.sql", "SELECT 1;\n");
    for options in ["-T 1h", "--find-max p99<10ms"] {
        let (port, unanswered) = server_that_falls_silent(&bench);
        let mut command = bench.command(&format!("one.sql -c 30 -j 2 {options}"));
        command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string()).env("PGSSLMODE", "disable");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _connecting = unanswered.recv().unwrap();
        signal(child.id() as i32, libc::SIGINT);
        let (code, stderr) = interrupted(child);
        assert_eq!(code, Some(130), "{stderr}");
        let expected = format!("interrupted while connecting 30 clients to the server at 127.0.0.1:{port}");
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn two_benches_wait_for_each_other_or_both_warn() {
    let bench = Bench::new();
    let start = |options: &str| {
        let mut command = bench.command(&format!("select-only -c 2 -T 1h --format json {options}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = start("");
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("1.0 s") && line.contains(" tps ")), "no line a second");

    let mut waiting = start("");
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    let expected = format!("waiting for other measurements on this host: bench (process {} of ", first.id());
    assert!(lines.any(|line| line.starts_with(&expected)));
    signal(waiting.id() as i32, libc::SIGINT);
    assert!(lines.any(|line| line == "interrupted while waiting for other pgdynos"));
    assert_eq!(waiting.wait().unwrap().code(), Some(130));

    let (code, report) = bench.report("select-only -c 1 -t 10 --allow-concurrent");
    assert_eq!((code, other_warnings(&report)), (Some(0), vec!["other-pgdyno"]), "{report:#}");
    signal(first.id() as i32, libc::SIGINT);
    let output = first.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(warnings(&report).contains(&"other-pgdyno"), "{:#}", report["warnings"]);

    let (code, report) = bench.report("select-only -c 1 -t 10");
    assert_eq!(code, Some(0));
    assert!(!warnings(&report).contains(&"other-pgdyno"), "{:#}", report["warnings"]);
}

#[test]
fn an_invalid_command_line_starts_nothing_and_is_explained() {
    let bench = Bench::new();
    bench.script("bad.sql", "\\set x random(1)\n");
    for (args, expected) in [
        ("no-such-script", "use -d no-such-script for a database"),
        ("select-only -c 2 -j 3", "3 threads (-j) exceed 2 clients (-c)"),
        ("select-only --arrivals uniform", "--arrivals requires a rate: use --rate, --stage or --find-max"),
        ("select-only --rate 10 --arrivals often", "expected poisson, uniform or file:PATH"),
        ("select-only --rate 10 --stage 1s:5", "cannot be used with"),
        ("select-only --stage 1s:0", "the rate of every stage is 0"),
        ("select-only --on-error 40001=ignore", "ACTION is retry, count, reconnect or abort"),
        ("select-only --duration 5parsecs", "expected a value such as 30s, 500ms"),
        ("select-only --find-max p99", "\"p99 < 10ms\""),
        ("select-only@0", "every script has weight 0"),
        ("bad.sql", "bad.sql:1:"),
        ("select-only -d a=b", "invalid connection option \"a\""),
    ] {
        let ended = bench.run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args}: {}", ended.all());
        assert!(ended.stderr.contains(expected), "{args}: {}", ended.stderr);
    }
    let ended = bench.run("select-only -t 1 -o no/such/directory");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("can't be written to no/such/directory"), "{}", ended.stderr);
    let ended = bench.run("-d postgres -t 1");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("pgdyno pgbench -i postgres"), "{}", ended.stderr);
}

/// Runs a search.
fn find_max(bench: &Bench, args: &str, objectives: &[&str]) -> (RunOutput, Value) {
    let mut command = bench.command(&format!("{args} --format json"));
    let objectives = objectives.iter().flat_map(|objective| ["--find-max", objective]);
    command.args(objectives);
    let ended = RunOutput::new(command);
    let report =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.all()));
    (ended, report)
}

/// Ten clients that sleep for 100 ms per transaction: at most 100 transactions per second on any machine. The truth is
/// what they do in the search's own closed loop, which is less on a busy one.
#[test]
fn alone_the_highest_rate_is_found() {
    let bench = Bench::new();
    bench.script("sleep.sql", "SELECT pg_sleep(0.1);\n");
    let args = "sleep.sql -c 10 -T 2s --warmup 200ms --arrivals uniform";
    let (ended, report) = find_max(&bench, args, &["p50 < 150ms", "errors < 1%"]);
    let search = &report["find_max"];
    let rate_of = |name: &str| search[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", ended.all()));
    let (low, rate, high) = (rate_of("low_per_s"), rate_of("rate_per_s"), rate_of("high_per_s"));
    let steps = search["steps"].as_array().unwrap();
    assert_eq!(steps[0]["kind"], "closed");
    let truth = steps[0]["tps"].as_f64().unwrap();
    // Steps of 2 s bear a few percent more than their clients can do, until their queue is too long.
    assert!(truth <= 101.0 && (truth * 0.9..truth * 1.1).contains(&rate), "{truth}: {search:#}");
    assert!(low <= rate && rate <= high && high > truth * 0.95 && low < truth * 1.1, "{truth}: {search:#}");
    assert_eq!(search["objectives"], serde_json::json!(["p50 < 150ms", "errors < 1%"]));
    assert_eq!(steps.last().unwrap()["kind"], "confirm");
    let is_undisputed = search["contradictions"].as_array().unwrap().is_empty();
    assert!(!is_undisputed || search["confirmed"] == false || high <= low * 1.0501, "{search:#}");
    // Both ends of the bracket are run three times.
    let tries = |rate: f64| steps.iter().filter(|s| s["kind"] == "try" && s["rate_per_s"] == rate).count();
    assert!(!is_undisputed || tries(low) == 3 && tries(high) == 3, "{search:#}");
    assert_eq!(ended.code, Some(if search["confirmed"] == true { 0 } else { 5 }), "{}", ended.all());

    let mut command = bench.command("sleep.sql -c 2 -T 300ms --warmup 0");
    command.args(["--find-max", "max < 50ms"]);
    let ended = RunOutput::new(command);
    assert_eq!(ended.code, Some(1), "{}", ended.all());
    assert!(
        ended.stdout.contains("no rate found that meets max < 50ms and errors < 0.1%"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_rate_at_which_transactions_fail_is_not_found() {
    let bench = Bench::new();
    bench.script("half.sql", "select 1/(random()<0.5)::int;\n");
    let (ended, report) = find_max(&bench, "half.sql -c 4 -T 500ms --warmup 0", &["p99 < 10s"]);
    let search = &report["find_max"];
    assert_eq!((ended.code, &search["rate_per_s"]), (Some(1), &Value::Null), "{}", ended.all());
    assert_eq!(search["objectives"], serde_json::json!(["p99 < 10s", "errors < 0.1%"]));
    let reason = search["steps"][1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("errors "), "{reason}");

    // Allowed by name.
    let (ended, report) =
        find_max(&bench, "half.sql -c 4 -T 300ms --warmup 0", &["p99 < 10s", "errors < 90%"]);
    assert!(report["find_max"]["rate_per_s"].is_number(), "{}", ended.all());
}

/// Runs a load of 6 s, and locks the table after a second of it, for a number of seconds.
fn with_stall(bench: &Bench, after: &str, seconds: u32, args: &str) -> (Value, String) {
    let mut command = bench.command(&format!("select-only -c 8 -T 6s --format json {args}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(after) && line.contains(" tps ")), "no line a second");
    let mut client = bench.client();
    let lock = "BEGIN; LOCK TABLE stalled IN ACCESS EXCLUSIVE MODE";
    client.execute(&format!("{lock}; SELECT pg_sleep({seconds}); COMMIT")).unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    (serde_json::from_str(&out).unwrap(), lines.collect())
}

#[test]
fn an_open_loop_measures_a_stall_and_a_closed_loop_warns() {
    let bench = Bench::new();
    bench.client().execute("CREATE TABLE stalled AS SELECT 1 AS n").unwrap();
    bench.script("select-only", "SELECT n FROM stalled;\n");
    let p99_us = |figures: &Value| us(&figures["p99_us"]);

    let (report, _) = with_stall(&bench, "1.0 s", 2, "--rate 400/s");
    let totals = &report["totals"];
    assert!(p99_us(&totals["latency"]) >= 1.5e6, "{totals:#}");
    assert!(p99_us(&totals["service"]) < p99_us(&totals["latency"]), "{totals:#}");
    assert!(!warnings(&report).contains(&"coordinated-omission"), "{:#}", report["warnings"]);

    // To the end of the window and beyond: the clients' transactions end after it, and all others due meanwhile never begin.
    let (report, _) = with_stall(&bench, "4.0 s", 3, "--rate 400/s --hlog out.hlog");
    let totals = &report["totals"];
    assert!(p99_us(&totals["latency"]) >= 2e6 && us(&totals["latency"]["max_us"]) >= 2.9e6, "{totals:#}");
    assert_eq!(count(&report["after_window"]["transactions"]), 8);
    assert!(totals["unfinished"] == totals["never_begun"] && count(&totals["unfinished"]) > 8, "{totals:#}");
    let log = bench.read("out.hlog");
    for (tag, figures) in [("select-only", &totals["latency"]), ("select-only:service", &totals["service"])] {
        let window = merged(&log, tag);
        assert_eq!(window.len(), count(&figures["count"]), "{tag}");
        // A bucket may end above the largest value in it, which the report has exactly.
        let p99 = window.value_at_quantile(0.99) as f64 / 1e3 / p99_us(figures);
        assert!((1.0..1.002).contains(&p99), "{tag}: {p99}");
    }
    assert!(merged(&log, "select-only:drain").is_empty());

    let (report, _) = with_stall(&bench, "1.0 s", 2, "");
    let totals = &report["totals"];
    assert!(p99_us(&totals["latency"]) < 0.5e6, "{totals:#}");
    assert!(p99_us(&totals["corrected"]) >= 1.5e6, "{totals:#}");
    assert!(warnings(&report).contains(&"coordinated-omission"), "{:#}", report["warnings"]);
}

/// A script that keeps the driver busy: `\set` is executed by it alone.
fn busy_script() -> String {
    "\\set x random_zipfian(1, 1000000, 1.5)\n".repeat(200) + "SELECT 1;\n"
}

#[test]
fn alone_a_probe_finds_that_more_threads_give_more() {
    let processors = std::thread::available_parallelism().unwrap().get();
    if processors < 2 {
        skip("there is only one processor: a probe of threads that finds more");
        return;
    }
    let bench = Bench::new();
    bench.script("busy.sql", &busy_script());
    let (code, report) = bench.report("busy.sql -c 4 -j 1 -T 1s --probe-threads");
    assert_eq!(code, Some(0), "{report:#}");
    let probe = &report["threads_probe"];
    assert_eq!((&probe["clients"], &probe["threads"]), (&Value::from(4), &Value::from(1)), "{report:#}");
    let others = probe["alternatives"].as_array().unwrap();
    let found = others.iter().any(|other| us(&other["low"]) > 1.05);
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = load.split(' ').next().unwrap().parse().unwrap();
    let is_undecided = others.iter().any(|other| us(&other["high"]) > 1.05);
    if !found && is_undecided && load > 2.0 * processors as f64 {
        skip(format!("other processes use the CPUs: a probe of threads that finds more, {probe}"));
        return;
    }
    assert!(found, "{probe:#}");
    assert!(warnings(&report).contains(&"driver-threads"), "{report:#}");
}

#[test]
fn alone_a_probe_is_silent_if_the_server_is_the_limit() {
    let bench = Bench::new();
    bench.script("nap.sql", "SELECT pg_sleep(0.005);\n");
    let ended = bench.run("nap.sql -c 4 -j 1 -T 1s --probe-threads");
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    // Other processes can make the intervals too wide.
    let conclusions =
        ["4 clients: no other number of threads gives 5% more than 1\n", "4 clients: not decided"];
    assert!(conclusions.iter().any(|text| ended.stdout.contains(text)), "{}", ended.all());
    assert!(!ended.stdout.contains("warning: the driver"), "{}", ended.all());
    assert!(ended.stderr.contains("probing other numbers of threads with 4 clients"), "{}", ended.all());
}

#[test]
fn a_failed_probe_costs_only_the_probe() {
    let bench = Bench::new();
    bench.script("make.sql", "DROP TABLE IF EXISTS seen;\nCREATE TABLE seen (pid int PRIMARY KEY);\n");
    bench.script("drop.sql", "DROP TABLE seen;\n");
    // Fails in the sessions after those of the load.
    bench.script(
        "seen.sql",
        "INSERT INTO seen VALUES (pg_backend_pid()) ON CONFLICT DO NOTHING;\n\
         SELECT 1 / (CASE WHEN (SELECT count(*) FROM seen) > 2 THEN 0 ELSE 1 END);\n",
    );
    let (code, report) = bench.report(
        "seen.sql -c 2 -j 1 -T 300ms --probe-threads --on-error 22012=abort --setup make.sql --teardown drop.sql",
    );
    assert_eq!(code, Some(0), "{report:#}");
    assert!(count(&report["totals"]["transactions"]) > 0);
    assert_eq!((&report["threads_probe"], &report["clients_aborted"]), (&Value::Null, &Value::from(0)));
    assert_eq!(other_warnings(&report), ["driver-threads"], "{report:#}");
    let all = report["warnings"].as_array().unwrap();
    let probe = all.iter().find(|warning| warning["kind"] == "driver-threads").unwrap();
    let text = probe["text"].as_str().unwrap();
    assert!(text.starts_with("other numbers of threads could not be probed: a client was aborted"), "{text}");
    assert!(text.contains("division by zero"), "{text}");
    assert_eq!(bench.relations("seen"), 0, "the teardown runs after the probe");
}

#[test]
fn what_a_probe_can_not_be_used_with_is_refused() {
    let bench = Bench::new();
    for args in ["-t 5", "--rate 100/s", "--find-max mean<9ms"] {
        let ended = bench.run(&format!("select-only -c 2 --probe-threads {args}"));
        assert_eq!(ended.code, Some(2), "{}", ended.all());
    }
    let ended = bench.run("select-only -c 1 --probe-threads");
    assert_eq!(ended.code, Some(2), "{}", ended.all());
    assert!(ended.stderr.contains("--probe-threads needs at least two clients (-c)"), "{}", ended.all());
}
