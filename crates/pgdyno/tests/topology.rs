//! Topologies on real servers: what runs next to the server under test, its lag, and what it limits.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::record::{Status, Trial, TrialRecord};
use model::topology::{Companion, Topology};
use skip::skip;
use support::{Bench, bundle, signal, text, until_exists, wait_until, wait_until_gone};
use wire::ConnectParams;
use wire::blocking::Session;

const RUN: &str = "[run]\nduration = '1500ms'\nwarmup = '300ms'\nrepeats = 1\nseed = 1\nretries = 0\n\
                   [settings.default]\nautovacuum = false\n";

/// Whether PgBouncer is there; reported as skipped otherwise.
fn has_pgbouncer() -> bool {
    let found = Command::new("pgbouncer").arg("--version").output().is_ok()
        || Path::new("/usr/sbin/pgbouncer").exists();
    if !found {
        skip("there is no pgbouncer");
    }
    found
}

fn topology(trial: &Trial) -> Topology {
    *trial.cell.topology.known().unwrap()
}

/// Readings of a metric in the load.
fn values(record: &TrialRecord, metric: &str, label: Option<&str>) -> Vec<f64> {
    let series = record.metrics.get(metric, label);
    series.into_iter().flat_map(|series| &series.points).filter_map(|point| point.value).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn replicas_receive_what_the_load_writes() {
    // The hook waits until sums on both servers are equal, which fails the trial if they never are.
    let bench = Bench::new(&format!(
        "name = 'replicas'\n[factors]\nserver = ['13', '18']\nworkload = ['tpcb-like']\nclients = [2]\n\
         topology = ['single', 'standby-async', 'standby-sync', 'standby-remote-apply', 'logical']\n\
         exclude = [{{ server = '13', topology = 'single' }}, {{ server = '13', topology = 'standby-async' }}]\n\
         {RUN}[hooks]\nafter_trial = 'printenv PGHOST PGPORT PGDYNO_REPLICA_HOST PGDYNO_REPLICA_PORT > ready.part || exit 0; \
         mv ready.part ready; {}; rm compared'\n",
        until_exists("compared")
    ));
    let over = AtomicBool::new(false);
    let trials = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let output = bench.pgdyno(&["run", "campaign.toml"]);
            over.store(true, Ordering::Relaxed);
            output
        });
        let ready = bench.path().join("ready");
        let mut compared = 0;
        while !over.load(Ordering::Relaxed) {
            wait_until("a load has ended", || ready.exists() || over.load(Ordering::Relaxed));
            let Ok(place) = fs::read_to_string(&ready) else { continue };
            fs::remove_file(&ready).unwrap();
            let place: Vec<&str> = place.lines().collect();
            let connect = |at: usize| {
                let params =
                    ConnectParams::new(place[at], place[at + 1].parse().unwrap(), "postgres", "pgdyno", None);
                Session::connect(&params).unwrap()
            };
            let sums = |session: &mut Session| -> (i64, i64, i64) {
                let sql = "select (select sum(abalance) from pgbench_accounts)::bigint, \
                           (select sum(tbalance) from pgbench_tellers)::bigint, (select count(*) from pgbench_history)";
                session.query_one(sql).unwrap()
            };
            let (mut server, mut replica) = (connect(0), connect(2));
            let expected = sums(&mut server);
            assert!(expected.2 > 0);
            wait_until("the replica has what the server has", || sums(&mut replica) == expected);
            compared += 1;
            fs::write(bench.path().join("compared"), "").unwrap();
        }
        let output = run.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert_eq!(compared, 7);
        bench.trials()
    });
    assert_eq!(trials.len(), 8);
    for trial in &trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        assert_eq!(trial.accounting.surplus(), Some(0), "{}: {:?}", trial.cell, trial.accounting);
        let record = bench.store().load(&trial.id).unwrap();
        let stored = fs::read_to_string(bundle(&bench, &trial.id).join("trial.json")).unwrap();
        let topology = topology(trial);
        assert_eq!(stored.contains("\"topology\""), topology != Topology::Single, "{stored}");
        let setting =
            |name: &str| record.settings.iter().find(|setting| setting.name == name).unwrap().value.clone();
        for (name, value) in topology.server_settings() {
            assert_eq!(setting(name), *value, "{}", trial.cell);
        }
        assert_eq!(
            record.logs.iter().any(|log| log.name == "standby"),
            topology.companion() == Some(Companion::Standby)
        );
        if topology == Topology::Single {
            assert!(record.metrics.0.iter().all(|series| !series.metric.starts_with("replica.")));
            continue;
        }
        let label = topology.companion().unwrap().as_str();
        assert!(
            !values(&record, "pg.replication.replay_lag_bytes", Some(label)).is_empty(),
            "{}",
            trial.cell
        );
        assert!(!values(&record, "replica.lag_us", None).is_empty(), "{}", trial.cell);
        assert!(!values(&record, "replica.lag_bytes", None).is_empty(), "{}", trial.cell);
        assert_eq!(
            values(&record, "role.processes", Some("replica replay")).last(),
            Some(&1.0),
            "{}",
            trial.cell
        );
        let replayed: f64 = ["busy", "idle", "conflict", "delay"]
            .iter()
            .filter_map(|state| values(&record, "replica.replay_us", Some(state)).last().copied())
            .sum();
        assert!(replayed > 1e6, "{}: {replayed}", trial.cell);
    }
}

/// A session with the server or its replica, as hooks name them.
#[test]
fn background_reads_are_sent_to_the_replica_and_are_no_commits_of_the_server() {
    // It succeeds on a standby only.
    let bench = Bench::new(&format!(
        "name = 'reads'\n[factors]\nserver = ['18']\nworkload = ['writes']\nclients = [2]\n\
         topology = ['single', 'standby-async', 'logical']\n{RUN}\
         [workloads.writes]\nscript = 'write.sql'\nbackground = [{{ workload = 'where', replica = true, clients = 2 }}]\n\
         [workloads.where]\nscript = 'where.sql'\n"
    ));
    let write =
        "\\set tid random(1, 10)\nupdate pgbench_tellers set tbalance = tbalance + 1 where tid = :tid;\n";
    fs::write(bench.path().join("write.sql"), write).unwrap();
    fs::write(bench.path().join("where.sql"), "select 1 / pg_is_in_recovery()::int;\n").unwrap();
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        if topology(trial) != Topology::StandbyAsync {
            assert_eq!(trial.validity.status, Status::Invalid, "{}", trial.cell);
            let evidence = format!("{:?}", trial.validity.findings);
            assert!(evidence.contains("division by zero"), "{}: {evidence}", trial.cell);
            continue;
        }
        assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        assert_eq!(trial.accounting.surplus(), Some(0), "{:?}", trial.accounting);
        let summary = trial.summary.as_ref().unwrap();
        let [reads] = summary.background.as_slice() else { panic!("{:?}", summary.background) };
        assert!(reads.transactions > 100 && reads.failed == 0, "{reads:?}");
    }
}

fn connect(ready: &str, at: usize, database: &str) -> Session {
    let place: Vec<&str> = ready.lines().collect();
    let port = place[at + 1].parse().unwrap();
    Session::connect(&ConnectParams::new(place[at], port, "postgres", database, None)).unwrap()
}

/// Writes a row every few ms for some seconds, and measures when it can be read on the replica: in ms.
fn rows_lag(ready: &str, database: &str, replica: &mut Session) -> Vec<f64> {
    let mut server = connect(ready, 0, database);
    let mut lags = Vec::new();
    let begun = Instant::now();
    for number in 1_i64.. {
        if begun.elapsed() > Duration::from_millis(2500) {
            break;
        }
        server.execute(&format!("update pgdyno.marker set number = {number} where id = 2")).unwrap();
        let at = Instant::now();
        while replica.query_one::<i64>("select number from pgdyno.marker where id = 2").unwrap() < number {
            thread::sleep(Duration::from_millis(1));
        }
        lags.push(at.elapsed().as_secs_f64() * 1e3);
        thread::sleep(Duration::from_millis(20));
    }
    lags
}

/// The lag of a second marker row, measured here during the trial, and that of the trial's own.
fn lags(server: &str, topology: &str, settings: &str, planted: &str) -> Lags {
    let bench = Bench::new(&format!(
        "name = 'lag'\n[factors]\nserver = ['{server}']\nworkload = ['simple-update']\nclients = [1]\nrate = [50]\n\
         topology = ['{topology}']\nsettings = ['delayed']\n\
         [run]\nduration = '4s'\nwarmup = '500ms'\nrepeats = 1\nseed = 1\nretries = 0\n\
         [settings.delayed]\nautovacuum = false\n{settings}\n[collect]\nmetrics_hz = 5\n\
         [hooks]\nbefore_trial = 'printenv PGHOST PGPORT PGDYNO_REPLICA_HOST PGDYNO_REPLICA_PORT > ready.part; \
         mv ready.part ready; {}'\n",
        until_exists("planted")
    ));
    let database = if topology == "logical" { "pgdyno" } else { "postgres" };
    let over = AtomicBool::new(false);
    let lags = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let output = bench.pgdyno(&["run", "campaign.toml"]);
            over.store(true, Ordering::Relaxed);
            output
        });
        let ready = bench.path().join("ready");
        wait_until("the trial is about to begin", || ready.exists() || over.load(Ordering::Relaxed));
        assert!(ready.exists(), "{}", text(&run.join().unwrap()));
        let place = fs::read_to_string(&ready).unwrap();
        let mut other = connect(&place, 2, database);
        connect(&place, 0, database).execute("insert into pgdyno.marker values (2, 0)").unwrap();
        wait_until("the row has arrived", || {
            let row = other.query_opt::<i64>("select number from pgdyno.marker where id = 2");
            row.is_ok_and(|row| row.is_some())
        });
        if !planted.is_empty() {
            other.execute(planted).unwrap();
        }
        fs::write(bench.path().join("planted"), "").unwrap();
        // No other session may use the tested database before the load.
        let mut control = connect(&place, 0, "postgres");
        let loaded = "select count(*) from pg_stat_activity where datname = 'pgdyno' and backend_type = 'client backend' \
                      and application_name not like 'pgdyno %'";
        wait_until("the load has begun", || {
            over.load(Ordering::Relaxed)
                || control.query_one::<i64>(loaded).is_ok_and(|sessions| sessions > 0)
        });
        let lags =
            if over.load(Ordering::Relaxed) { Vec::new() } else { rows_lag(&place, database, &mut other) };
        let output = run.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        lags
    });
    let trial = bench.trials().pop().unwrap();
    assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
    let record = bench.store().load(&trial.id).unwrap();
    let own = values(&record, "replica.lag_us", None);
    eprintln!("{server} {topology}: {} rows here, {} in the trial", lags.len(), own.len());
    assert!(lags.len() > 10 && own.len() > 10, "{} {}", lags.len(), own.len());
    let is_disturbed =
        |gate: &str| ["foreign-cpu", "cpu-steal", "driver-starved", "collectors"].contains(&gate);
    let is_disturbed = trial.validity.findings.iter().any(|finding| is_disturbed(&finding.gate));
    Lags { here_ms: median(lags), own_ms: median(own) / 1e3, is_disturbed }
}

/// Medians of lags.
struct Lags {
    here_ms: f64,
    own_ms: f64,
    /// Whether other processes used the CPUs.
    is_disturbed: bool,
}

#[test]
fn alone_the_lag_agrees_with_a_row_written_on_one_server_and_read_on_the_other() {
    let nap = "create function pgdyno.nap() returns trigger language plpgsql as \
               $$ begin perform pg_sleep(0.04); return new; end $$; \
               create trigger nap before update on pgdyno.marker for each row execute procedure pgdyno.nap(); \
               alter table pgdyno.marker enable always trigger nap";
    for (server, topology, settings, planted, least_ms) in [
        ("18", "standby-async", "'standby.recovery_min_apply_delay' = '60ms'", "", 60.0),
        ("13", "standby-async", "'standby.recovery_min_apply_delay' = '60ms'", "", 60.0),
        ("18", "standby-async", "", "", 0.0),
        ("18", "logical", "", nap, 40.0),
        ("13", "logical", "", "", 0.0),
    ] {
        let Lags { here_ms, own_ms, is_disturbed } = lags(server, topology, settings, planted);
        let found = format!("{server} {topology}: {here_ms:.2} ms here, {own_ms:.2} ms in the trial");
        eprintln!("{found}");
        assert!(own_ms >= least_ms - 5.0, "{found}");
        let agrees = (here_ms - own_ms).abs() <= 5.0 && own_ms <= least_ms + 30.0;
        if is_disturbed && !agrees {
            skip(format!("other processes use the CPUs: {found}"));
        } else {
            assert!(agrees, "{found}");
        }
    }
}

/// PgBouncer's version, as far as it decides about prepared statements.
fn knows_prepared_statements() -> bool {
    let output = Command::new("pgbouncer").arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1).unwrap().to_owned();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (1, 21)
}

#[test]
fn clients_connect_through_a_pooler_with_a_password_that_nobody_else_can_read() {
    if !has_pgbouncer() {
        return;
    }
    // Directories of other tests may disappear while `find` reads them.
    let bench = Bench::new(&format!(
        "name = 'pooled'\n[factors]\nserver = ['18']\nworkload = ['tpcb-like']\nclients = [3]\nprotocol = ['extended']\n\
         transport = ['unix', 'tcp']\ntopology = ['pgbouncer-transaction', 'pgbouncer-session']\n{RUN}\
         'pgbouncer.server_idle_timeout' = 100\n\
         [hooks]\nbefore_trial = 'find \"$PGDYNO_CACHE_DIRECTORY\" -name users.txt -printf \"%m %f\\n\" >> modes.txt || true'\n"
    ));
    let cache = host::Cache::open().unwrap().clusters();
    let output =
        bench.command(&["run", "campaign.toml"]).env("PGDYNO_CACHE_DIRECTORY", &cache).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let modes = fs::read_to_string(bench.path().join("modes.txt")).unwrap();
    assert!(!modes.is_empty() && modes.lines().all(|line| line == "600 users.txt"), "{modes}");
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        // The pooler's own: the start of a connection, and settings of clients.
        let surplus = trial.accounting.surplus().unwrap();
        assert!((1..=40).contains(&surplus), "{}: {surplus}", trial.cell);
        let record = bench.store().load(&trial.id).unwrap();
        let transactions = values(&record, "pgbouncer.transactions", None);
        let driven = trial.accounting.driver_transactions.unwrap() as f64;
        let counted = transactions.last().unwrap() - transactions.first().unwrap();
        assert!((counted - driven).abs() <= 20.0, "{}: {counted} of {driven}", trial.cell);
        assert!(!values(&record, "role.run_us", Some("pgbouncer")).is_empty());
        let log = record.logs.iter().find(|log| log.name == "pgbouncer").unwrap();
        assert!(log.text.contains("process up"), "{}", log.text);
    }
    // Prepared statements of clients that share connections.
    let toml = fs::read_to_string(bench.path().join("campaign.toml")).unwrap();
    let toml = toml.replace("['extended']", "['prepared']").replace("'pgbouncer-transaction', ", "");
    fs::write(bench.path().join("campaign.toml"), &toml).unwrap();
    let plan = bench.pgdyno(&["plan", "campaign.toml"]);
    assert!(!text(&plan).contains("This can't run here"), "{}", text(&plan));
    let toml = toml.replace("'pgbouncer-session'", "'pgbouncer-transaction'");
    fs::write(bench.path().join("campaign.toml"), toml).unwrap();
    for (command, code) in [("plan", 0), ("run", 1)] {
        let output = bench.pgdyno(&[command, "campaign.toml"]);
        let refused = text(&output).contains("does not know prepared statements");
        assert_eq!(refused, !knows_prepared_statements(), "{}", text(&output));
        assert_eq!(output.status.code(), Some(if refused { code } else { 0 }), "{}", text(&output));
    }
}

#[test]
fn without_pgbouncer_its_package_is_named() {
    if Path::new("/usr/sbin/pgbouncer").exists() {
        return skip("pgbouncer is installed in /usr/sbin");
    }
    let bench = Bench::new(&format!(
        "name = 'missing'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         protocol = ['simple']\ntopology = ['pgbouncer-session']\n{RUN}"
    ));
    for (command, code) in [("plan", 0), ("run", 1)] {
        let output =
            bench.command(&[command, "campaign.toml"]).env("PATH", "/usr/bin:/bin").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains("apt-get install pgbouncer"), "{}", text(&output));
    }
}

#[test]
fn a_pgdyno_that_is_killed_leaves_no_replica_and_no_pooler() {
    for topology in ["standby-sync", "pgbouncer-transaction"] {
        if topology.starts_with("pgbouncer") && !has_pgbouncer() {
            continue;
        }
        let bench = Bench::new(&format!(
            "name = 'killed'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
             protocol = ['extended']\ntopology = ['{topology}']\n[run]\nduration = '60s'\nwarmup = '0s'\nrepeats = 1\n"
        ));
        let running = bench.start();
        let mut process_tree = Vec::new();
        wait_until("a client is connected", || {
            process_tree = running.process_tree();
            process_tree.iter().any(|process| process.command.contains("postgres pgdyno [local]"))
        });
        let wanted = if topology == "standby-sync" { "startup recovering" } else { "pgbouncer.ini" };
        assert!(process_tree.iter().any(|process| process.command.contains(wanted)), "{process_tree:#?}");
        signal(running.pid(), libc::SIGKILL);
        let _ = running.end();
        wait_until_gone(&process_tree);
        assert_eq!(bench.pgdyno(&["server", "list"]).status.code(), Some(0));
    }
}

#[test]
fn a_standby_that_ends_makes_the_trial_invalid() {
    let bench = Bench::new(&format!(
        "name = 'ended'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         topology = ['standby-async']\n{RUN}[hooks]\nbefore_trial = 'echo $PGDYNO_REPLICA_PORT > port'\n"
    ));
    let running = bench.start();
    // After the preparation, which needs the standby.
    wait_until("the driver is there", || {
        running.process_tree().iter().any(|process| process.command.ends_with("pgdyno driver "))
    });
    let port = fs::read_to_string(bench.path().join("port")).unwrap();
    signal(running.process(&format!("port={} ", port.trim())).pid, libc::SIGQUIT);
    let (code, output) = running.end();
    assert_eq!(code, Some(4), "{output}");
    let trial = bench.trials().pop().unwrap();
    let found = trial.validity.findings.iter().find(|finding| finding.gate == "topology");
    assert!(
        found.is_some_and(|finding| finding.evidence.contains("the standby has ended")),
        "{:?}",
        trial.validity
    );
}
