//! Tests with real servers of each major.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::metrics::{Condition, GROUPS, Metric};
use model::waits::{SessionKind, Waits};
use model::workload::Transport;
use server::Server;
use wire::ConnectParams;
use wire::blocking::Session as Client;

use super::*;
use crate::{Reading, Source, Value, now};

const MAJORS: [&str; 10] = ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"];
const TIMEOUT: Duration = Duration::from_secs(20);

/// A server with the tables of `pgbench` at scale 1, everything timed, and no autovacuum.
fn server(version: &str, settings: &[(&str, &str)]) -> Server {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, version, &NoProgress).unwrap();
    let template = server::template(&cache, &installation, &[], &1.into(), None, &NoProgress).unwrap();
    let mut all =
        BTreeMap::from([("autovacuum", "off"), ("track_io_timing", "on"), ("max_connections", "100")]);
    if number(version) >= 14 {
        all.insert("track_wal_io_timing", "on");
    }
    all.extend(settings.iter().copied());
    let all = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // Roles created by the tests connect, too.
    let cluster = template.clone_cluster(&cache, &NoProgress).unwrap().with_rules("local all all trust\n");
    cluster.start(&all).unwrap()
}

/// 9 for 9.6.
fn number(version: &str) -> u32 {
    version.split('.').next().unwrap().parse().unwrap()
}

fn params(server: &Server, user: &str, database: &str) -> ConnectParams {
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    ConnectParams::new(directory, port, user, database, None)
}

fn connect(server: &Server, database: &str, application_name: &str) -> Client {
    let mut params = params(server, server::USER, database);
    params.application_name = Some(application_name.to_owned());
    Client::connect(&params).unwrap()
}

/// Cancels the statement of a client.
fn cancel(server: &Server, pid: i32) {
    connect(server, "postgres", "").execute(&format!("SELECT pg_cancel_backend({pid})")).unwrap();
}

fn session(server: &Server, database: &str, purpose: &str) -> Session {
    session_of(server, server::USER, database, purpose)
}

fn session_of(server: &Server, user: &str, database: &str, purpose: &str) -> Session {
    Session::open(&params(server, user, database), purpose, TIMEOUT).unwrap()
}

fn statistics(server: &Server) -> Statistics {
    Statistics::new(session(server, "postgres", "statistics"), server::DATABASE).unwrap()
}

fn tables(server: &Server) -> Tables {
    Tables::new(session(server, server::DATABASE, "tables")).unwrap()
}

fn sampler(server: &Server) -> WaitSampler {
    let load = LoadSessions {
        database: server::DATABASE.to_owned(),
        application_name: Some("pgdyno".to_owned()),
        background: Some("pgdyno-beside".to_owned()),
    };
    WaitSampler::new(session(server, "postgres", "waits"), &load, false).unwrap()
}

fn read(source: &mut dyn Source) -> Reading {
    let mut reading = Reading::default();
    source.read(&mut reading).unwrap();
    reading
}

fn value(reading: &Reading, metric: &str, label: Option<&str>) -> Option<f64> {
    let is = |value: &&Value| value.metric.name == metric && value.label.as_deref() == label;
    let found = reading.values().iter().find(is);
    found.map(|value| value.value)
}

/// Polls until a condition holds; fails after half a minute.
fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(result) = poll() {
            return result;
        }
        assert!(Instant::now() < end, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

/// Metrics that the catalogue promises of a server with everything timed, as [`server`] starts it.
fn expected_metrics(major: u32) -> impl Iterator<Item = &'static Metric> {
    let is_always = |metric: &&Metric| match metric.condition {
        None => true,
        Some(Condition::Setting(name)) => name != "data_checksums",
        Some(Condition::Linux(..) | Condition::If(_)) => false,
    };
    let metrics = GROUPS.into_iter().flat_map(|group| group.metrics);
    metrics
        .filter(|metric| metric.name.starts_with("pg."))
        .filter(move |metric| metric.majors.contains(major))
        .filter(is_always)
}

#[test]
fn rows_of_the_latest_second_are_part_of_all_rows() {
    let server = server("18", &[]);
    let mut sampler = sampler(&server);
    assert_eq!(sampler.latest(0), []);
    let first = until("there is a sample", || sampler.sample().ok().map(|_| sampler.latest(0)));
    let second = first[0].at_us;
    assert_eq!(first, sampler.rows(0));
    let later = until("another second has begun", || {
        sampler.sample().unwrap();
        Some(sampler.latest(0)).filter(|latest| latest[0].at_us > second)
    });
    let all = sampler.rows(0);
    let of_it: Vec<_> = all.iter().filter(|row| row.at_us == later[0].at_us).cloned().collect();
    assert_eq!(later, of_it);
    assert!(all.len() > later.len(), "{all:#?}");
}

#[test]
fn metrics_of_each_major_match_the_catalogue() {
    for version in MAJORS {
        let server = server(version, &[]);
        connect(&server, server::DATABASE, "").execute("CREATE TABLE long (text text)").unwrap();
        let mut seen = BTreeSet::new();
        for source in [&mut statistics(&server) as &mut dyn Source, &mut tables(&server)] {
            let reading = read(source);
            let mut once = BTreeSet::new();
            for Value { metric, label, .. } in reading.values() {
                assert!(metric.majors.contains(number(version)), "{version}: {}", metric.name);
                assert!(once.insert((metric.name, label.clone())), "{version}: twice: {}", metric.name);
                seen.insert(metric.name);
            }
        }
        for metric in expected_metrics(number(version)) {
            assert!(seen.contains(metric.name), "{version}: {} is missing", metric.name);
        }
    }
}

#[test]
fn work_of_clients_is_counted() {
    for version in ["9.6", "13", "18"] {
        let server = server(version, &[]);
        let (mut statistics, mut tables) = (statistics(&server), tables(&server));
        let (before, before_tables) = (read(&mut statistics), read(&mut tables));
        let mut client = connect(&server, server::DATABASE, "");
        client.execute("DELETE FROM pgbench_accounts WHERE aid <= 7").unwrap();
        client.execute("CHECKPOINT").unwrap();
        drop(client);
        let growth = |reading: &Reading, before: &Reading, metric, of| {
            value(reading, metric, of).unwrap() - value(before, metric, of).unwrap()
        };
        until("the deleted rows are counted", || {
            let reading = read(&mut tables);
            let label = Some("pgbench_accounts");
            let deleted = growth(&reading, &before_tables, "pg.table.tuples_deleted", label);
            assert!(deleted <= 7.0, "{version}: {deleted}");
            (deleted == 7.0).then_some(())
        });
        until("the checkpoint is counted", || {
            let reading = read(&mut statistics);
            let checkpoints = growth(&reading, &before, "pg.checkpoints_requested", None);
            assert!(checkpoints <= 1.0, "{version}: {checkpoints}");
            let buffers = growth(&reading, &before, "pg.checkpoint.buffers_written", None);
            (checkpoints == 1.0 && buffers > 0.0).then_some(())
        });
        assert!(growth(&read(&mut statistics), &before, "pg.wal.bytes", None) > 7.0 * 20.0);
    }
}

#[test]
fn times_are_reported_only_if_timing_is_on() {
    let timed = |value: &Value| {
        let name = value.metric.name;
        name.starts_with("pg.io.") && name.ends_with("_us")
            || ["pg.wal.write_us", "pg.wal.sync_us", "pg.database.blk_read_us"].contains(&name)
    };
    for version in ["14", "16", "18"] {
        for (setting, some) in [("on", true), ("off", false)] {
            let server = server(version, &[("track_io_timing", setting), ("track_wal_io_timing", setting)]);
            let reading = read(&mut statistics(&server));
            assert_eq!(reading.values().iter().any(timed), some, "{version} {setting}");
        }
    }
}

#[test]
fn reported_commits_match_the_tested_databases_count() {
    for version in ["9.6", "13", "18"] {
        let server = server(version, &[]);
        let before = server.commits(None).unwrap();
        let mut tables = tables(&server);
        let commits = tables.commits();
        for _ in 0..5 {
            read(&mut tables);
        }
        assert_eq!(commits.get(), 4 + 5);
        drop(tables);
        // A cancelled statement is no commit.
        let params = params(&server, server::USER, server::DATABASE);
        let mut impatient = Session::open(&params, "haste", Duration::from_millis(1)).unwrap();
        let Err(error) = impatient.query("SELECT pg_sleep(60)") else { panic!("{version}: it waited") };
        let is_permanent = error.is_permanent();
        assert!(!is_permanent && error.to_string().contains("statement timeout"), "{error}");
        let expected = before + commits.get() + impatient.commits().get();
        drop(impatient);
        assert_eq!(server.commits(Some(expected)).unwrap(), expected, "{version}");
        assert_eq!(server.commits(None).unwrap(), expected, "{version}");
    }
}

/// Number of times that sessions of the load were sampled in a state, waiting for an event.
fn seen(rows: &[Waits], state: &str, event: Option<(&str, Option<&str>)>) -> u32 {
    let is = |row: &&Waits| {
        row.session == SessionKind::Load
            && row.state.as_deref() == Some(state)
            && row.event_type.as_deref() == event.map(|(event_type, _)| event_type)
            && event.is_none_or(|(_, name)| name.is_none() || row.event.as_deref() == name)
    };
    rows.iter().filter(is).map(|row| row.seen).sum()
}

const TAKE_ROW: &str = "UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1";

#[test]
fn an_idle_transaction_that_holds_a_row_is_reported_as_holder() {
    for version in ["9.6", "10", "13", "17", "18"] {
        let server = server(version, &[]);
        let mut sampler = sampler(&server);
        let mut holder = connect(&server, server::DATABASE, "forgotten");
        holder.execute(&format!("BEGIN; {TAKE_ROW}")).unwrap();
        let pid = holder.info().process_id;
        let held = [(); 2].map(|()| {
            let mut client = connect(&server, server::DATABASE, "pgdyno");
            std::thread::spawn(move || client.execute(TAKE_ROW).unwrap())
        });
        let mut samples = 0;
        let found = until("both clients are blocked", || {
            sampler.sample().unwrap();
            samples += 1;
            sampler.holders().into_iter().find(|found| found.sessions_blocked / u64::from(found.samples) > 0)
        });
        assert_eq!((found.pid, found.application_name.as_str(), found.is_load), (pid, "forgotten", false));
        assert!(found.was_idle && found.xact_age_us.unwrap() > 0.0, "{version}: {found:?}");
        let events = sampler.events();
        assert_eq!((events.len(), events[0].kind.as_str()), (1, "lock-holder"));
        assert!(events[0].message.contains(&format!("session {pid} (forgotten, idle in transaction)")));
        let locks = until("the lock table has a waiter", || {
            let reading = read(&mut statistics(&server));
            value(&reading, "pg.locks", Some("ShareLock/waiting")).filter(|count| *count > 0.0)
        });
        assert_eq!(locks, 1.0, "one waits for the transaction, the other for the row's turn");

        holder.execute("ROLLBACK").unwrap();
        for client in held {
            client.join().unwrap();
        }
        let rows = sampler.rows(now().monotonic_us);
        assert!(seen(&rows, "active", Some(("Lock", Some("transactionid")))) > 0, "{version}: {rows:?}");
        let seconds: BTreeMap<i64, u32> = rows.iter().map(|row| (row.at_us, row.samples)).collect();
        assert_eq!(seconds.values().sum::<u32>(), samples, "{version}");
        assert!(seconds.keys().all(|at| *at < 0 && at % 1_000_000 == 0), "{seconds:?}");
        let has = |name: &str| rows.iter().any(|row| row.session == SessionKind::Server(name.to_owned()));
        assert_eq!(has("checkpointer"), version != "9.6", "{version}: {rows:?}");
        let other = rows.iter().filter(|row| row.session == SessionKind::Other);
        assert!(
            other.clone().all(|row| row.state.as_deref() == Some("idle in transaction")),
            "pgdyno's own sessions are among the others: {version}: {other:?}"
        );
    }
}

#[test]
fn waits_for_busy_clients_of_the_load_are_no_events() {
    for version in ["9.6", "18"] {
        let server = server(version, &[]);
        let mut sampler = sampler(&server);
        let mut busy = connect(&server, server::DATABASE, "pgdyno");
        let pid = busy.info().process_id;
        // One message, so that it is never idle in between.
        let sql = format!("{TAKE_ROW}; SELECT pg_advisory_lock(7); SELECT pg_sleep(60)");
        let busy = std::thread::spawn(move || busy.execute(&sql));
        let mut control = connect(&server, "postgres", "");
        until("it has the row", || {
            let sql = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted";
            control.query::<Vec<String>>(sql).unwrap().pop()
        });
        until("it sleeps", || {
            sampler.sample().unwrap();
            let rows = sampler.rows(0);
            let event = (version != "9.6").then_some(("Timeout", Some("PgSleep")));
            (seen(&rows, "active", event) > 0).then_some(())
        });
        let mut client = connect(&server, server::DATABASE, "pgdyno");
        let client = std::thread::spawn(move || client.execute(TAKE_ROW).unwrap());
        let holder = until("it holds the row", || {
            sampler.sample().unwrap();
            sampler.holders().first().cloned()
        });
        assert!(holder.is_load && !holder.was_idle, "{version}: {holder:?}");
        assert_eq!(sampler.events(), vec![], "{version}");
        cancel(&server, pid);
        assert!(busy.join().unwrap().is_err());
        client.join().unwrap();
    }
}

#[test]
fn sessions_of_a_trace_are_sampled_with_the_start_of_their_statement() {
    for version in ["9.6", "13", "18"] {
        let server = server(version, &[]);
        let load =
            LoadSessions { database: server::DATABASE.to_owned(), application_name: None, background: None };
        let control = session(&server, "postgres", "waits");
        let mut sampler = WaitSampler::new(control, &load, true).unwrap();
        let mut client = connect(&server, server::DATABASE, "web");
        let pid = client.info().process_id;
        let idle = connect(&server, server::DATABASE, "web");
        assert_eq!(sampler.sample().unwrap(), [], "{version}");
        let before_us = now().monotonic_us;
        let sleeping = std::thread::spawn(move || client.execute("SELECT pg_sleep(60)"));
        // 9.6 has no such wait event.
        let wait = if version == "9.6" { "CPU" } else { "Timeout:PgSleep" };
        let found = until("it sleeps", || {
            let sessions = sampler.sample().unwrap();
            sessions.into_iter().find(|session| session.wait == wait)
        });
        assert_eq!(found.pid, pid);
        // The server's clock is this machine's, and has the precision of this one.
        let possible_us = before_us - 1..=now().monotonic_us;
        assert!(possible_us.contains(&found.started_us), "{version}: {found:?} {possible_us:?}");
        let again = sampler.sample().unwrap();
        let started_us: Vec<i64> =
            again.iter().map(|session| session.started_us - found.started_us).collect();
        assert!(matches!(started_us.as_slice(), [-5..=5]), "{version}: {started_us:?}");
        let rows = sampler.rows(0);
        assert!(seen(&rows, "active", (version != "9.6").then_some(("Timeout", Some("PgSleep")))) >= 2);
        assert!(
            seen(&rows, "idle", Some(("Client", Some("ClientRead")))) > 0 || version == "9.6",
            "{rows:?}"
        );
        drop(idle);
        cancel(&server, pid);
        assert!(sleeping.join().unwrap().is_err());
    }
}

#[test]
fn statements_have_costs_and_pgdynos_own_are_excluded() {
    for version in ["9.6", "13", "18"] {
        let server = server(version, &[("shared_preload_libraries", "pg_stat_statements")]);
        let mut control = session(&server, "postgres", "statements");
        assert!(Statements::before(&mut control, server::DATABASE).unwrap().is_none());
        connect(&server, "postgres", "")
            .execute("CREATE SCHEMA \"a b\"; CREATE EXTENSION pg_stat_statements SCHEMA \"a b\"")
            .unwrap();
        let mut client = connect(&server, server::DATABASE, "pgdyno");
        let update = |aid| format!("UPDATE pgbench_accounts SET abalance = {aid} WHERE aid = {aid}");
        client.execute(&update(1)).unwrap();
        client.execute("CREATE ROLE anybody LOGIN").unwrap();
        let statements = Statements::before(&mut control, server::DATABASE).unwrap().unwrap();
        for aid in 2..7 {
            client.execute(&update(aid)).unwrap();
        }
        // Neither those of a role that may turn it off for itself, nor those of one that may not.
        let anybody = session_of(&server, "anybody", server::DATABASE, "tables");
        for tables in [&mut tables(&server), &mut Tables::new(anybody).unwrap()] {
            read(tables);
        }
        let uses = statements.since(&mut control).unwrap();
        let [one] = uses.as_slice() else { panic!("{version}: {uses:#?}") };
        assert!(one.query.starts_with("UPDATE pgbench_accounts SET abalance = "), "{version}: {one:?}");
        assert_eq!((one.calls, one.rows), (5, 5), "{version}");
        assert!(one.total_us > 0.0 && one.shared_hit_blocks > 0, "{version}: {one:?}");
        assert_eq!(one.wal_bytes.is_some_and(|bytes| bytes > 0.0), version != "9.6", "{version}: {one:?}");
    }
}

#[test]
fn buffers_are_reported_by_relation_with_the_extension() {
    for version in ["9.6", "18"] {
        let server = server(version, &[]);
        let mut control = session(&server, server::DATABASE, "buffers");
        assert_eq!(buffers(&mut control).unwrap(), None);
        let mut client = connect(&server, server::DATABASE, "");
        client
            .execute("CREATE EXTENSION pg_buffercache; SELECT sum(abalance) FROM pgbench_accounts")
            .unwrap();
        let blocks: u64 = client.query_one("SELECT pg_relation_size('pgbench_accounts') / 8192").unwrap();
        let found = buffers(&mut control).unwrap().unwrap();
        let (name, count) = &found[0];
        assert!(
            name == "pgbench_accounts" && *count >= blocks && *count < blocks + 10,
            "{version}: {found:?}"
        );
    }
}

#[test]
fn the_progress_of_a_vacuum_is_reported() {
    for version in ["9.6", "18"] {
        let server = server(version, &[]);
        let mut tables = tables(&server);
        let mut client = connect(&server, server::DATABASE, "");
        let pid = client.info().process_id;
        client.execute("SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1").unwrap();
        let vacuum =
            std::thread::spawn(move || client.execute("VACUUM (DISABLE_PAGE_SKIPPING) pgbench_accounts"));
        until("the vacuum reports its progress", || {
            let reading = read(&mut tables);
            value(&reading, "pg.progress.vacuum.heap_blks_total", Some("pgbench_accounts"))
                .filter(|blocks| *blocks > 1000.0)
        });
        cancel(&server, pid);
        assert!(vacuum.join().unwrap().is_err());
    }
}

#[test]
fn replication_lag_is_reported() {
    for version in ["10", "18"] {
        let server = server(version, &[("wal_level", "logical")]);
        let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!() };
        let mut publisher = connect(&server, server::DATABASE, "");
        publisher.execute("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t").unwrap();
        publisher.execute("SELECT pg_create_logical_replication_slot('follower', 'pgoutput')").unwrap();
        let mut follower = connect(&server, "postgres", "");
        follower.execute("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
        follower
            .execute(&format!(
                "CREATE SUBSCRIPTION follower CONNECTION 'host={directory} port={port} user={} dbname={}' \
                 PUBLICATION p WITH (create_slot = false, copy_data = false)",
                server::USER,
                server::DATABASE
            ))
            .unwrap();
        let mut statistics = statistics(&server);
        let mut lag = |what: &str| {
            until(what, || {
                let reading = read(&mut statistics);
                value(&reading, "pg.replication.flush_lag_bytes", Some("follower"))
                    .filter(|lag| (what == "it is behind") == (*lag > 1e6))
            })
        };
        lag("it follows");
        // The follower confirms what it has received, even of an open transaction, until it waits for a lock.
        follower.execute("BEGIN; LOCK TABLE t").unwrap();
        publisher.execute("INSERT INTO t VALUES (0)").unwrap();
        until("the follower waits", || {
            follower.query::<Vec<String>>("SELECT FROM pg_locks WHERE NOT granted").unwrap().pop()
        });
        publisher.execute("INSERT INTO t SELECT generate_series(1, 100000)").unwrap();
        lag("it is behind");
    }
}

#[test]
fn metrics_without_permission_are_omitted() {
    let server = server("18", &[]);
    connect(&server, "postgres", "")
        .execute("CREATE ROLE anybody LOGIN; REVOKE SELECT ON pg_stat_io FROM PUBLIC")
        .unwrap();
    let session = session_of(&server, "anybody", "postgres", "statistics");
    let mut statistics = Statistics::new(session, server::DATABASE).unwrap();
    for _ in 0..2 {
        let reading = read(&mut statistics);
        assert!(value(&reading, "pg.database.commits", None).is_some());
        assert!(!reading.values().iter().any(|value| value.metric.name.starts_with("pg.io.")));
    }
}

#[test]
fn each_reading_of_a_lost_session_fails() {
    let server = server("13", &[]);
    let (mut statistics, mut sampler) = (statistics(&server), sampler(&server));
    read(&mut statistics);
    connect(&server, "postgres", "")
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pgdyno %'",
        )
        .unwrap();
    for _ in 0..2 {
        let failed = statistics.read(&mut Reading::default());
        assert!(failed.is_err() && sampler.sample().is_err(), "{failed:?}");
    }
    assert_eq!(sampler.rows(0), vec![]);
}

/// PostgreSQL lists its wait events from 17 on.
#[test]
fn wait_events_have_the_names_of_the_latest_major() {
    for version in ["17", "18"] {
        let server = server(version, &[]);
        let mut client = connect(&server, "postgres", "names");
        let query = "SELECT DISTINCT type || ':' || name FROM pg_wait_events";
        let known: BTreeSet<String> = client.query::<String>(query).unwrap().into_iter().collect();
        assert!(known.len() > 200, "{version}: {known:?}");
        for ((old_kind, old), (kind, name)) in model::wait_events::renamed() {
            assert!(known.contains(&format!("{kind}:{name}")), "{version} has no {kind}:{name}");
            assert!(!known.contains(&format!("{old_kind}:{old}")), "{version} has {old_kind}:{old}");
        }
        for event in known {
            let (kind, name) = event.split_once(':').unwrap();
            assert_eq!(model::wait_events::canonical(kind, name), (kind, name), "{version}");
        }
    }
}
