//! `pgdyno explain` on planted causes: each is reported with its share if it is present, and only then.
//!
//! With `WRITE_VALIDATION` in the environment, the shares are written to docs/validation.md.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use host::Cache;
use model::limits::{DiskLimit, Limits, MemoryLimit};
use model::units::Size;
use serde_json::Value;
use skip::skip;
use support::{Bench, text, wait_until};
use wire::ConnectParams;
use wire::blocking::Session;

/// A cause planted in a trial, and the expected explanation.
struct Case {
    what: &'static str,
    /// The server: `18`, or `small` with WAL segments of 1 MB.
    server: &'static str,
    /// Part of the campaign that is specific to the case.
    campaign: &'static str,
    planted: Planted,
    /// The cause that must be reported, with its minimum share.
    expected: Option<(&'static str, f64)>,
    /// Causes that apply to this trial as well, and may be reported.
    may_be_named: &'static [&'static str],
}

enum Planted {
    /// Nothing beyond the campaign.
    Nothing,
    /// Processes that only burn CPU time, on these processors.
    Busy { cpus: &'static str, processes: usize },
    /// SQL in the tested database before the load.
    Sql(&'static str),
    /// A session that holds the row of branch 1 most of the time, idle in its transaction.
    HoldsBranch,
}

/// The cause that other users of the machine can add to any case: with it, CPU causes are not judged.
const FOREIGN: &str = "foreign-cpu";
const OF_CPU: [&str; 3] = ["driver", "server-cpu", FOREIGN];

const CASES: [Case; 11] = [
    Case {
        what: "nothing: one client, lookups by key",
        server: "18",
        campaign: "workload = ['select-only']\nclients = [1]",
        planted: Planted::Nothing,
        expected: None,
        may_be_named: &["round-trips", "server-cpu"],
    },
    Case {
        what: "the driver starved: kept to one processor, with four busy processes on it",
        server: "18",
        campaign: "workload = ['select-only']\nclients = [8]\npin = ['apart']\n[pins.apart]\ndriver = '0'\nserver = '1'",
        planted: Planted::Busy { cpus: "0", processes: 4 },
        expected: Some(("driver", 0.5)),
        may_be_named: &[FOREIGN],
    },
    Case {
        what: "server CPU: lookups by 16 clients on one processor",
        server: "18",
        campaign: "workload = ['select-only']\nclients = [16]\npin = ['apart']\n[pins.apart]\ndriver = '0'\nserver = '1'",
        planted: Planted::Nothing,
        expected: Some(("server-cpu", 0.33)),
        may_be_named: &[],
    },
    Case {
        what: "row locks: 16 clients update one row",
        server: "18",
        campaign: "workload = ['tpcb-like']\nclients = [16]\nsettings = ['async']\n[settings.async]\n\
                   synchronous_commit = false\nautovacuum = false",
        planted: Planted::Nothing,
        expected: Some(("row-locks", 0.3)),
        may_be_named: &["server-cpu", "internal-locks", "driver"],
    },
    Case {
        what: "WAL flush: commit_delay of 20 ms",
        server: "18",
        campaign: "workload = ['simple-update']\nclients = [4]\nsettings = ['delayed']\n[settings.delayed]\n\
                   commit_delay = 20000\ncommit_siblings = 0\nautovacuum = false",
        planted: Planted::Nothing,
        expected: Some(("wal-flush", 0.5)),
        may_be_named: &[],
    },
    Case {
        what: "reads from disk: 235 MB of data in 64 MB of memory, on a disk of 1000 reads a second",
        server: "18",
        campaign: "workload = ['select-only']\nclients = [2]\nscale = [15]\ncache = ['cold']\nsettings = ['small']\n\
                   memory = ['64MB']\ndisk = ['slow']\n\
                   [settings.small]\nio_method = 'sync'\nshared_buffers = '8MB'\n[disks.slow]\nread_iops = 1000",
        planted: Planted::Nothing,
        expected: Some(("disk-reads", 0.5)),
        may_be_named: &[],
    },
    Case {
        what: "a lock that an idle transaction holds three quarters of the time",
        server: "18",
        campaign: "workload = ['tpcb-like']\nclients = [4]\nsettings = ['plain']\n[settings.plain]\nautovacuum = false",
        planted: Planted::HoldsBranch,
        expected: Some(("idle-transaction", 0.2)),
        may_be_named: &["row-locks", "wal-flush", "server-cpu"],
    },
    Case {
        what: "a checkpoint storm: max_wal_size of 2 MB",
        server: "small",
        campaign: "workload = ['simple-update']\nclients = [8]\nscale = [10]\nsettings = ['tiny']\n[settings.tiny]\n\
                   max_wal_size = '2MB'\nmin_wal_size = '2MB'\nsynchronous_commit = false\nautovacuum = false",
        planted: Planted::Nothing,
        expected: Some(("checkpoints", 0.2)),
        may_be_named: &["server-cpu", "wal-flush", "internal-locks", "disk-reads", "driver"],
    },
    Case {
        what: "autovacuum on the tested tables, slowed down by its cost delay",
        server: "18",
        campaign: "workload = ['simple-update']\nclients = [4]\nscale = [5]\nsettings = ['eager']\n[settings.eager]\n\
                   autovacuum_naptime = '1s'\nautovacuum_vacuum_threshold = 50\nautovacuum_vacuum_scale_factor = 0\n\
                   autovacuum_vacuum_cost_delay = '20ms'\nautovacuum_vacuum_cost_limit = 100\nfsync = false",
        planted: Planted::Nothing,
        expected: Some(("autovacuum", 0.2)),
        may_be_named: &["server-cpu", "round-trips", "driver"],
    },
    Case {
        what: "CPU taken by others: eight busy processes",
        server: "18",
        campaign: "workload = ['select-only']\nclients = [4]",
        planted: Planted::Busy { cpus: "0,1", processes: 8 },
        expected: Some((FOREIGN, 0.3)),
        may_be_named: &["driver", "server-cpu"],
    },
    Case {
        what: "pg_sleep of 5 ms in a trigger",
        server: "18",
        campaign: "workload = ['simple-update']\nclients = [4]\nsettings = ['plain']\n[settings.plain]\n\
                   autovacuum = false\nfsync = false",
        planted: Planted::Sql(
            "create function nap() returns trigger language plpgsql as \
             'begin perform pg_sleep(0.005); return new; end';
             create trigger nap before insert on pgbench_history for each row execute procedure nap()",
        ),
        expected: Some(("sleep", 0.5)),
        may_be_named: &[],
    },
];

/// Replaces the case with limits if control groups are unavailable.
const WITHOUT_LIMITS: Case = Case {
    what: "reads from disk: direct I/O with next to no buffers",
    server: "18",
    campaign: "workload = ['select-only']\nclients = [2]\nscale = [10]\ncache = ['cold']\nsettings = ['direct']\n\
               [settings.direct]\ndebug_io_direct = 'data'\nio_method = 'sync'\nshared_buffers = '256kB'",
    planted: Planted::Nothing,
    expected: Some(("disk-reads", 0.15)),
    may_be_named: &["server-cpu", "internal-locks"],
};

/// Whether a server's memory and disk can be limited here.
fn can_limit() -> bool {
    let limits = Limits {
        memory: MemoryLimit::new(Size::from_bytes(64 << 20)),
        disk: DiskLimit { name: "slow".to_owned(), read_iops: Some(1000), ..DiskLimit::none() },
    };
    let tried = server::check_limits(&Cache::open().unwrap(), &limits);
    tried.map_err(|why| skip(format!("reads from a limited disk, replaced by direct I/O: {why}"))).is_ok()
}

#[test]
fn alone_planted_causes_are_named_and_others_are_not() {
    let processors = thread::available_parallelism().unwrap().get();
    let mut rows = String::new();
    let mut wrong = Vec::new();
    let limits = can_limit();
    for case in &CASES {
        let case = if case.campaign.contains("memory = ") && !limits { &WITHOUT_LIMITS } else { case };
        if processors < 2 && case.campaign.contains("pin") {
            skip(format!("there is only one processor: {}", case.what));
            continue;
        }
        let (explained, gates) = explained(case);
        let found = |any: &[&str]| gates.iter().any(|gate| any.contains(&gate.as_str()));
        let causes = explained["causes"].as_array().unwrap();
        let share = |name: &str| {
            causes.iter().find(|cause| cause["name"] == name).map(|cause| cause["share"].as_f64().unwrap())
        };
        // Other processes use the CPUs although none were planted, or so much that even the collectors were starved.
        let disturbed = found(&["window-mismatch", "collectors"])
            || !matches!(case.planted, Planted::Busy { .. })
                && (share(FOREIGN).is_some() || found(&["foreign-cpu", "cpu-steal", "driver-starved"]));
        if disturbed {
            eprintln!("the machine is in use by others: CPU is not judged in: {}", case.what);
        }
        if let Some((name, min)) = case.expected
            && !(disturbed && OF_CPU.contains(&name))
            && share(name).is_none_or(|share| share < min)
        {
            wrong.push(format!("{}: {name} should be at least {min}, {gates:?}: {explained:#}", case.what));
        }
        for cause in causes {
            let name = cause["name"].as_str().unwrap();
            let meant = case.expected.is_some_and(|(expected, _)| expected == name);
            if !(meant || case.may_be_named.contains(&name) || disturbed && OF_CPU.contains(&name)) {
                wrong.push(format!("{}: {name} should not be named, {gates:?}: {explained:#}", case.what));
            }
        }
        add_up(&explained);
        row(&mut rows, case, &explained, share);
    }
    if std::env::var_os("WRITE_VALIDATION").is_some() {
        write(&rows);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that the components add up to the measured latency.
fn add_up(explanation: &Value) {
    let parts = explanation["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["us"].as_f64().unwrap()).sum();
    let latency = explanation["latency_us"].as_f64().unwrap();
    assert!((sum / latency - 1.0).abs() < 1e-6, "{explanation:#}");
}

/// Runs one trial with a planted cause; returns its explanation, and the gates with findings.
fn explained(case: &Case) -> (Value, Vec<String>) {
    // The hook waits until the cause is planted.
    let bench = Bench::new(&format!(
        "name = 'planted'\n[run]\nduration = '6s'\nwarmup = '1s'\nrepeats = 1\nseed = 1\nretries = 0\n\
         [servers.small]\nversion = '18'\ninitdb = ['--wal-segsize=1']\n\
         [hooks]\nbefore_trial = 'printenv PGHOST PGPORT > ready.part; mv ready.part ready; \
         until [ -e planted ]; do sleep 0.05; done'\n\
         [factors]\nserver = ['{}']\n{}\n",
        case.server, case.campaign
    ));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let output = bench.pgdyno(&["run", "campaign.toml"]);
            over.store(true, Ordering::Relaxed);
            output
        });
        let ready = bench.path().join("ready");
        wait_until("the trial is about to begin", || ready.exists() || over.load(Ordering::Relaxed));
        assert!(ready.exists(), "{}: {}", case.what, text(&run.join().unwrap()));
        let planted = || fs::write(bench.path().join("planted"), "").unwrap();
        let mut busy = Vec::new();
        match &case.planted {
            Planted::Nothing => planted(),
            Planted::Busy { cpus, processes } => {
                busy = (0..*processes).map(|_| Busy::start(cpus)).collect();
                planted();
            }
            Planted::Sql(sql) => {
                connect(&ready, "pgdyno").execute(sql).unwrap();
                planted();
            }
            Planted::HoldsBranch => {
                planted();
                wait_until("the load's sessions are there", || {
                    over.load(Ordering::Relaxed) || load_sessions(&ready) == Some(4)
                });
                let mut client = connect(&ready, "pgdyno");
                while !over.load(Ordering::Relaxed) {
                    let held = client
                        .execute("begin; update pgbench_branches set bbalance = 0 where bid = 1")
                        .and_then(|()| {
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
        }
        let output = run.join().unwrap();
        drop(busy);
        assert_eq!(output.status.code(), Some(0), "{}: {}", case.what, text(&output));
    });
    let output = bench.pgdyno(&["explain", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}: {}", case.what, text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = bench.trials().into_iter().flat_map(|trial| trial.validity.findings);
    (document["explained"][0].clone(), findings.map(|finding| finding.gate).collect())
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
    let place = fs::read_to_string(ready).unwrap();
    let (host, port) = place.trim().split_once('\n').unwrap();
    let mut params = ConnectParams::new(host, port.parse().unwrap(), "postgres", database, None);
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

fn row(rows: &mut String, case: &Case, explanation: &Value, share: impl Fn(&str) -> Option<f64>) {
    let cause = |name: &str| {
        let cause =
            explanation["causes"].as_array().unwrap().iter().find(|cause| cause["name"] == name).unwrap();
        format!("{:.0}% of {}", 100.0 * share(name).unwrap(), cause["of"].as_str().unwrap())
    };
    let right = match case.expected {
        Some((name, _)) if share(name).is_some() => format!("`{name}`: {}", cause(name)),
        Some((name, _)) => format!("`{name}`: **not named**"),
        None => "nothing to be named".to_owned(),
    };
    let others: Vec<String> = explanation["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["name"].as_str().unwrap())
        .filter(|name| case.expected.is_none_or(|(expected, _)| expected != *name))
        .map(|name| format!("`{name}` ({})", cause(name)))
        .collect();
    let unexplained =
        explanation["parts"].as_array().unwrap().iter().find(|part| part["place"] == "unexplained").unwrap();
    let _ = writeln!(
        rows,
        "| {} | {right} | {} | {:.1}% | {} |",
        case.what,
        if others.is_empty() { "–".to_owned() } else { others.join(", ") },
        100.0 * unexplained["share"].as_f64().unwrap(),
        explanation["verdict"].as_str().unwrap()
    );
}

/// Replaces the rows of the table in docs/validation.md.
fn write(rows: &str) {
    const HEAD: &str = "|---|---|---|---|---|\n";
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
    assert!(difference["verdict"].as_str().unwrap().starts_with("a transaction takes "), "{both:#}");

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
