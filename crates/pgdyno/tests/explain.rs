//! `pgdyno explain` on planted causes: each is reported with its share if it is present, and only then; and planted
//! amounts of time are found.
//!
//! With `PLANTED` only the cases whose names contain it are tried. With `WRITE_VALIDATION` in the environment, the shares are written to docs/validation.md.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
#[path = "explain/cases.rs"]
mod cases;
#[cfg(test)]
mod support;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cases::{Amount, CASES, Case, FOREIGN, OF_CPU, Planted, WITHOUT_LIMITS};
use host::{Cache, NoProgress};
use model::limits::{DiskLimit, Limits, MemoryLimit};
use model::units::Size;
use serde_json::Value;
use skip::skip;
use support::{Bench, text, until_exists, wait_until};
use wire::ConnectParams;
use wire::blocking::Session;

/// Whether a server's memory and disk can be limited here.
fn can_limit() -> bool {
    let limits = Limits {
        memory: MemoryLimit::new(Size::from_bytes(64 << 20)),
        disk: DiskLimit { name: "slow".to_owned(), read_iops: Some(1000), ..DiskLimit::none() },
    };
    let tried = server::check_limits(&Cache::open().unwrap(), &limits);
    tried.map_err(|why| skip(format!("reads from a limited disk, replaced by direct I/O: {why}"))).is_ok()
}

/// A trial with a planted cause.
struct Explained {
    explanation: Value,
    /// Gates with findings.
    gates: Vec<String>,
    /// The planted amount as the trial itself measured it, in microseconds per transaction.
    amount_us: Option<f64>,
}

impl Explained {
    fn causes(&self) -> &[Value] {
        self.explanation["causes"].as_array().unwrap()
    }

    fn cause(&self, name: &str) -> Option<&Value> {
        self.causes().iter().find(|cause| cause["name"] == name)
    }

    fn share(&self, name: &str) -> Option<f64> {
        self.cause(name).map(|cause| cause["share"].as_f64().unwrap())
    }

    fn found(&self, gates: &[&str]) -> bool {
        self.gates.iter().any(|gate| gates.contains(&gate.as_str()))
    }

    /// Time of the parts with such names.
    fn us(&self, parts: &[&str]) -> f64 {
        let parts_of = self.explanation["parts"].as_array().unwrap().iter();
        let name = |part: &Value| match part["of"].as_str() {
            Some(of) => format!("{} {of}", part["place"].as_str().unwrap()),
            None => part["place"].as_str().unwrap().to_owned(),
        };
        let is_meant = |part: &&Value| parts.iter().any(|beginning| name(part).starts_with(beginning));
        parts_of.filter(is_meant).map(|part| part["us"].as_f64().unwrap()).sum()
    }

    /// The share of the latency that is waiting for a CPU: of a busy machine, not of the planted cause.
    fn waiting_for_cpu(&self) -> f64 {
        self.us(&["server waits for a CPU", "driver waits for a CPU"]) / self.latency_us()
    }

    /// Number of samples, times the mean number of transactions in progress if that is below 1.
    fn samples_of_transactions(&self) -> f64 {
        let service_us = self.latency_us() - self.us(&["waiting for a free client"]);
        let in_progress = self.explanation["tps"].as_f64().unwrap() * service_us / 1e6;
        self.explanation["looks"].as_f64().unwrap() * in_progress.min(1.0)
    }

    fn latency_us(&self) -> f64 {
        self.explanation["latency_us"].as_f64().unwrap()
    }
}

/// The largest unexplained part of a latency in these trials, of which docs/explain.md says that more of it lowers the
/// confidence.
const MAX_UNEXPLAINED: f64 = 0.10;

/// The number of samples of transactions in progress from which on sampling alone does not exceed `MAX_UNEXPLAINED`: the 95 % interval
/// of a share of one half is then ± 10 points. In a rare open loop, most samples show idle sessions.
const MIN_SAMPLES: f64 = 96.0;

#[test]
fn alone_planted_causes_are_named_and_others_are_not() {
    let processors = thread::available_parallelism().unwrap().get();
    let only = std::env::var("PLANTED").unwrap_or_default();
    let mut rows = String::new();
    let mut wrong = Vec::new();
    for case in CASES.iter().filter(|case| case.what.contains(&only)) {
        let case = if case.campaign.contains("memory = ") && !can_limit() { &WITHOUT_LIMITS } else { case };
        if processors < 2 && case.campaign.contains("pin") {
            skip(format!("there is only one processor: {}", case.what));
            continue;
        }
        if case.campaign.contains("pgbouncer-")
            && Command::new("pgbouncer").arg("--version").output().is_err()
        {
            skip(format!("there is no pgbouncer: {}", case.what));
            continue;
        }
        let Some(explained) = explained(case) else { continue };
        // Other processes use the CPUs although none were planted, or so much that even the collectors were starved.
        let disturbed = explained.found(&["window-mismatch", "collectors"])
            || !matches!(case.planted, Planted::Busy { .. })
                && (explained.waiting_for_cpu() > 0.25
                    && case.expected.is_none_or(|(name, ..)| !OF_CPU.contains(&name))
                    || explained.share(FOREIGN).is_some()
                    || explained.found(&["foreign-cpu", "cpu-steal", "driver-starved"]));
        let mut judged = true;
        if let Some((name, least, most)) = case.expected {
            if disturbed && (OF_CPU.contains(&name) || explained.share(name).is_none()) {
                skip(format!("other processes use the CPUs, so that {name} is not judged: {}", case.what));
                judged = false;
            } else {
                // What other processes take is not of this latency.
                let of_latency = explained.cause(name).is_some_and(|cause| cause["of"] == "latency");
                let others =
                    if of_latency && !OF_CPU.contains(&name) { explained.waiting_for_cpu() } else { 0.0 };
                let share = explained.share(name);
                if !share.is_some_and(|share| share <= most + 0.1 && share / (1.0 - others) >= least) {
                    wrong.push(format!(
                        "{}: {name} should have {least} to {most}, and has {share:?}, {:?}: {:#}",
                        case.what, explained.gates, explained.explanation
                    ));
                }
            }
        }
        for cause in explained.causes() {
            let name = cause["name"].as_str().unwrap();
            let meant = case.expected.is_some_and(|(expected, ..)| expected == name);
            if !(meant || case.may_be_named.contains(&name) || disturbed && OF_CPU.contains(&name)) {
                wrong.push(format!(
                    "{}: {name} should not be named, {:?}: {:#}",
                    case.what, explained.gates, explained.explanation
                ));
            }
        }
        if let Some(amount) = &case.amount {
            wrong.extend(amount_error(case, amount, &explained));
        }
        add_up(&explained.explanation);
        let unexplained = explained.us(&["unexplained"]) / explained.latency_us();
        if unexplained.abs() > MAX_UNEXPLAINED {
            let samples = explained.samples_of_transactions();
            let text = format!("{}: {unexplained:.3} is unexplained, by {samples:.0} samples", case.what);
            if disturbed || samples < MIN_SAMPLES {
                skip(text);
            } else {
                wrong.push(format!("{text}: {:#}", explained.explanation));
            }
        }
        row(&mut rows, case, &explained, judged);
    }
    if std::env::var_os("WRITE_VALIDATION").is_some() {
        write(&rows);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with a planted amount: it must be found within a tenth of it, or of the latency. Measured by a clock, it
/// includes waiting for a CPU, which is another part.
fn amount_error(case: &Case, amount: &Amount, explained: &Explained) -> Option<String> {
    let (found_us, planted_us) = (explained.us(amount.parts), explained.amount_us.unwrap());
    let tolerance_us = 0.1 * planted_us.max(explained.latency_us());
    let queue_us = explained.us(&["server waits for a CPU"]);
    let is_right = planted_us >= amount.at_least_us
        && (found_us - tolerance_us..=found_us + queue_us + tolerance_us).contains(&planted_us);
    (!is_right).then(|| {
        format!(
            "{}: {:?} should be {planted_us:.0} us, and is {found_us:.0} (waiting for a CPU: {queue_us:.0}): {:#}",
            case.what, amount.parts, explained.explanation
        )
    })
}

/// Checks that the components add up to the measured latency.
fn add_up(explanation: &Value) {
    let parts = explanation["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["us"].as_f64().unwrap()).sum();
    let latency = explanation["latency_us"].as_f64().unwrap();
    assert!((sum / latency - 1.0).abs() < 1e-6, "{explanation:#}");
}

/// Writes the files of a workload, with their repeated lines.
fn write_files(bench: &Bench, case: &Case) {
    for (name, text) in case.files {
        let lines = text.lines().map(|line| match line.split_once("× ") {
            Some((times, line)) => format!("{line}\n").repeat(times.parse().unwrap()),
            None => format!("{line}\n"),
        });
        fs::write(bench.path().join(name), lines.collect::<String>()).unwrap();
    }
}

/// Programs of PostgreSQL 18 whose syncs of WAL take 5 ms longer; none without a C compiler.
fn slow_programs(directory: &Path) -> Option<PathBuf> {
    const SOURCE: &str = "#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        int fdatasync(int fd) {
            char link[64], path[4096];
            snprintf(link, sizeof link, \"/proc/self/fd/%d\", fd);
            ssize_t length = readlink(link, path, sizeof path - 1);
            if (length > 0) { path[length] = 0; if (strstr(path, \"/pg_wal/\")) usleep(5000); }
            int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, \"fdatasync\");
            return real(fd);
        }
";
    let executable = fs::Permissions::from_mode(0o755);
    // The server's user loads it.
    fs::set_permissions(directory, executable.clone()).unwrap();
    let (source, library) = (directory.join("slow.c"), directory.join("slow.so"));
    fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    if !compiler.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let installed = server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap();
    for program in ["postgres", "initdb", "pg_ctl"] {
        let real = installed.directory().join("bin").join(program);
        let preload =
            if program == "postgres" { format!("LD_PRELOAD={} ", library.display()) } else { String::new() };
        let wrapper = directory.join(program);
        fs::write(&wrapper, format!("#!/bin/sh\n{preload}exec {} \"$@\"\n", real.display())).unwrap();
        fs::set_permissions(&wrapper, executable.clone()).unwrap();
    }
    Some(directory.to_owned())
}

/// Runs one trial with a planted cause, and explains it; none if it can't be planted here.
fn explained(case: &Case) -> Option<Explained> {
    let directory = tempfile::tempdir().unwrap();
    let mut slow = String::new();
    if case.server == "slow" {
        let Some(programs) = slow_programs(directory.path()) else {
            skip(format!("there is no C compiler (cc): {}", case.what));
            return None;
        };
        slow = format!("[servers.slow]\nbin = '{}'\n", programs.display());
    }
    // The hooks wait until the cause is planted, and until its amount is known.
    let bench = Bench::new(&format!(
        "name = 'planted'\n[run]\nduration = '6s'\nwarmup = '1s'\nrepeats = 1\nseed = 1\nretries = 0\n\
         [servers.small]\nversion = '18'\ninitdb = ['--wal-segsize=1']\n{slow}\
         [hooks]\nbefore_trial = 'env | grep ^PG > ready.part; mv ready.part ready; \
         {}'\nafter_trial = 'touch measured; {}'\n\
         [factors]\nserver = ['{}']\n{}\n",
        until_exists("planted"),
        until_exists("read"),
        case.server,
        case.campaign
    ));
    write_files(&bench, case);
    let over = AtomicBool::new(false);
    let mut amount_us = None;
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let output = bench.pgdyno(&["run", "campaign.toml"]);
            over.store(true, Ordering::Relaxed);
            output
        });
        let [ready, measured] = ["ready", "measured"].map(|name| bench.path().join(name));
        wait_until("the trial is about to begin", || ready.exists() || over.load(Ordering::Relaxed));
        assert!(ready.exists(), "{}: {}", case.what, text(&run.join().unwrap()));
        let has_ended = || over.load(Ordering::Relaxed) || measured.exists();
        let end_hook = |name: &str| fs::write(bench.path().join(name), "").unwrap();
        let mut busy = Vec::new();
        if let Planted::Busy { cpus, processes } = &case.planted {
            busy = (0..*processes).map(|_| Busy::start(cpus)).collect();
        }
        if let Planted::Sql(sql) = &case.planted {
            connect(&ready, "pgdyno").execute(sql).unwrap();
        }
        if let Planted::ReplicaSql(sql) = &case.planted {
            connect_to_replica(&ready, "pgdyno").execute(sql).unwrap();
        }
        if let Planted::MissingStandby = &case.planted {
            connect(&ready, "postgres").execute("alter database pgdyno set synchronous_commit = on").unwrap();
        }
        end_hook("planted");
        match &case.planted {
            Planted::HoldsBranch => hold_branch(&ready, &has_ended),
            Planted::MissingStandby => release_commits(&ready, &has_ended),
            Planted::Conflicts => conflict_with_replay(&ready, &has_ended),
            Planted::Nothing | Planted::Busy { .. } | Planted::Sql(_) | Planted::ReplicaSql(_) => {}
        }
        wait_until("the load has ended", has_ended);
        if let Some(amount) = case.amount.as_ref().filter(|_| measured.exists()) {
            amount_us = connect(&ready, "pgdyno").query_one(amount.measured).ok();
        }
        end_hook("read");
        let output = run.join().unwrap();
        drop(busy);
        assert_eq!(output.status.code(), Some(0), "{}: {}", case.what, text(&output));
    });
    let output = bench.pgdyno(&["explain", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}: {}", case.what, text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = bench.trials().into_iter().flat_map(|trial| trial.validity.findings);
    let gates = findings.map(|finding| finding.gate).collect();
    Some(Explained { explanation: document["explained"][0].clone(), gates, amount_us })
}

/// Holds the row of branch 1 for 750 of 1000 ms.
fn hold_branch(ready: &Path, has_ended: &impl Fn() -> bool) {
    wait_until("the load's sessions are there", || has_ended() || load_sessions(ready) == Some(4));
    let mut client = connect(ready, "pgdyno");
    while !has_ended() {
        let held =
            client.execute("begin; update pgbench_branches set bbalance = 0 where bid = 1").and_then(|()| {
                thread::sleep(Duration::from_millis(750));
                client.execute("rollback")
            });
        if held.is_err() {
            // The server has been stopped: the trial is over.
            break;
        }
        thread::sleep(Duration::from_millis(250));
    }
}

/// Lets replay on the standby wait for a snapshot half of the time: the standby ends its session after a second, which it waits in
/// steps of 1, 2, 4, … 512 ms.
fn conflict_with_replay(ready: &Path, has_ended: &impl Fn() -> bool) {
    const ROWS: &str = "insert into conflict select generate_series(1, 1000)";
    let mut server = connect(ready, "postgres");
    server.execute(&format!("create table conflict (i int); {ROWS}")).unwrap();
    let mut standby = connect_to_replica(ready, "postgres");
    wait_until("the standby has the table", || standby.execute("select count(*) from conflict").is_ok());
    while !has_ended() {
        let mut reader = connect_to_replica(ready, "postgres");
        reader.execute("begin isolation level repeatable read; select count(*) from conflict").unwrap();
        let cleaned = server
            .execute(&format!("delete from conflict; {ROWS}"))
            .and_then(|()| server.execute("vacuum conflict"));
        if cleaned.is_err() {
            // The server has been stopped: the trial is over.
            break;
        }
        let readers = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
        wait_until("the standby has ended the reader's session", || {
            has_ended() || standby.query_one::<i64>(readers).is_ok_and(|readers| readers == 0)
        });
        thread::sleep(Duration::from_millis(1023));
    }
}

/// Releases commits that wait for a standby, each once: a cancelled wait ends with a warning, and the commit stands.
fn release_commits(ready: &Path, has_ended: &impl Fn() -> bool) {
    const WAITING: &str = "select pid, query_start::text from pg_stat_activity where wait_event = 'SyncRep'";
    let mut client = connect(ready, "postgres");
    let mut released = HashSet::new();
    while !has_ended() {
        thread::sleep(Duration::from_millis(20));
        // The server stops with the trial.
        let Ok(waiting) = client.query::<(i32, String)>(WAITING) else { break };
        for (pid, since) in waiting {
            if released.insert((pid, since)) {
                let _ = client.execute(&format!("select pg_cancel_backend({pid})"));
            }
        }
    }
}

/// Number of the load's sessions; `None` if the server has stopped.
fn load_sessions(ready: &Path) -> Option<i64> {
    let statement =
        "select count(*) from pg_stat_activity where application_name = 'pgdyno' and datname = 'pgdyno'";
    try_connect(ready, "postgres")?.query_one(statement).ok()
}

fn connect(ready: &Path, database: &str) -> Session {
    try_connect(ready, database).unwrap()
}

fn try_connect(ready: &Path, database: &str) -> Option<Session> {
    try_connect_to(ready, "PG", database)
}

/// A session with the standby or subscriber.
fn connect_to_replica(ready: &Path, database: &str) -> Session {
    try_connect_to(ready, "PGDYNO_REPLICA_", database).unwrap()
}

/// A session with what the variables of the hook name.
fn try_connect_to(ready: &Path, prefix: &str, database: &str) -> Option<Session> {
    let environment = fs::read_to_string(ready).unwrap();
    let value = |name: &str| {
        let mut lines = environment.lines().filter_map(|line| line.split_once('='));
        Some(lines.find(|(found, _)| *found == name)?.1.to_owned())
    };
    let port = value(&format!("{prefix}PORT")).unwrap().parse().unwrap();
    let host = value(&format!("{prefix}HOST")).unwrap();
    let mut params = ConnectParams::new(host, port, "postgres", database, value("PGPASSWORD"));
    params.application_name = Some("planted".to_owned());
    Session::connect(&params).ok()
}

/// A process that burns CPU time until it is dropped.
struct Busy(Child);

impl Busy {
    fn start(cpus: &str) -> Self {
        let child = Command::new("taskset")
            .args(["-c", cpus, "sh", "-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn row(rows: &mut String, case: &Case, explained: &Explained, judged: bool) {
    let cause = |name: &str| {
        let of = explained.cause(name).unwrap()["of"].as_str().unwrap();
        format!("{:.0}% of {of}", 100.0 * explained.share(name).unwrap())
    };
    let right = match case.expected {
        _ if !judged => "not judged: other processes used the CPUs".to_owned(),
        Some((name, ..)) if explained.share(name).is_some() => format!("`{name}`: {}", cause(name)),
        Some((name, ..)) => format!("`{name}`: **not named**"),
        None => "nothing to be named".to_owned(),
    };
    let amount = case.amount.as_ref().zip(explained.amount_us).map(|(amount, planted_us)| {
        format!("{:.2} ms · {:.2} ms", planted_us / 1e3, explained.us(amount.parts) / 1e3)
    });
    let others: Vec<String> = explained
        .causes()
        .iter()
        .map(|cause| cause["name"].as_str().unwrap())
        .filter(|name| case.expected.is_none_or(|(expected, ..)| expected != *name))
        .map(|name| format!("`{name}` ({})", cause(name)))
        .collect();
    let _ = writeln!(
        rows,
        "| {} | {right} | {} | {} | {:.1}% | {} |",
        case.what,
        amount.as_deref().unwrap_or("–"),
        if others.is_empty() { "–".to_owned() } else { others.join(", ") },
        100.0 * explained.us(&["unexplained"]) / explained.latency_us(),
        explained.explanation["verdict"].as_str().unwrap()
    );
}

/// Replaces the rows of the table in docs/validation.md.
fn write(rows: &str) {
    const HEAD: &str = "|---|---|---|---|---|---|\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, old) = page.split_once(HEAD).unwrap();
    let after = old.find("\n\n").unwrap();
    fs::write(file, format!("{before}{HEAD}{}{}", rows.trim_end(), &old[after..])).unwrap();
}

#[test]
fn alone_cells_are_explained_and_compared() {
    let bench = Bench::new(
        "name = 'cells'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 4]\n\
         [run]\nduration = '2s'\nwarmup = '0s'\nrepeats = 2\n\
         [validity]\ndriver_busy_share = 0\n",
    );
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run));
    let busy = |trial: &model::record::Trial| {
        let finding = trial.validity.findings.iter().find(|finding| finding.gate == "driver-saturated");
        finding.is_some_and(|finding| finding.threshold.is_some() && finding.advice.is_some())
    };
    assert!(bench.trials().iter().all(busy), "the campaign's threshold is the gate's: {:?}", bench.trials());

    let json = |args: &[&str]| -> Value {
        let output = bench.pgdyno(&[&["explain", "--format", "json"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let cell = &json(&["clients=1"])["explained"][0];
    assert_eq!(cell["trials"].as_array().unwrap().len(), 2);
    add_up(cell);
    let both = json(&["clients=1", "clients=4"]);
    let latency = |place: usize| both["explained"][place]["latency_us"].as_f64().unwrap();
    let difference = &both["difference"];
    assert!((difference["more_us"].as_f64().unwrap() - (latency(1) - latency(0))).abs() < 1e-6, "{both:#}");
    let changes = difference["parts"].as_array().unwrap();
    let us = |change: &Value, name: &str| change[name].as_f64().unwrap();
    let sum: f64 = changes.iter().map(|change| us(change, "after_us") - us(change, "before_us")).sum();
    assert!((sum - (latency(1) - latency(0))).abs() < 1e-6, "{both:#}");
    // Two trials on each side have a spread, and either more or less than the difference.
    let margin = difference["margin_us"].as_f64().unwrap();
    let is_decided = difference["more_us"].as_f64().unwrap().abs() > margin;
    let verdict = difference["verdict"].as_str().unwrap();
    assert!(
        verdict.contains("a transaction takes ") && verdict.starts_with("not decided: ") != is_decided,
        "{both:#}"
    );

    for (args, code, message) in [
        (&["clients=7"][..], 1, "clients: 1, 4"),
        (&["server=18"], 1, "specify a level of"),
        (&["colour=red"], 2, "there is no factor \"colour\""),
        (&["00"], 1, "00"),
    ] {
        let output = bench.pgdyno(&[&["explain"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(message), "{args:?}: {}", text(&output));
    }
    let timeline = bench.pgdyno(&["explain", "--timeline", "--format", "csv"]);
    let lines = String::from_utf8(timeline.stdout).unwrap();
    assert!(lines.starts_with("s,phase,tps,"), "{lines}");
    assert!(lines.lines().count() >= 3, "{lines}");
}

#[test]
fn alone_a_trial_without_collected_data_cannot_be_explained() {
    let bench = Bench::new(
        "name = 'bare'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '1s'\nwarmup = '0s'\nrepeats = 1\n\
         [collect]\nmetrics_hz = 0\nwaits_hz = 0\nstatements = false\n",
    );
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run));
    let output = bench.pgdyno(&["explain"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("[collect]"), "{}", text(&output));
}
