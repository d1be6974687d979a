//! Creates the logs that `collect`'s tests read: with `cargo run -p server --example server_logs -- DIRECTORY
//! [MAJOR]…`, a server of each major does everything that pgdyno reads from logs, and its log is saved there as
//! `<major>.log`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a tool for developers")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use rustix::process::{Pid, Signal, kill_process};
use server::{Cluster, Server, StopMode};
use wire::ConnectParams;
use wire::blocking::{Session, SessionError};

const MAJORS: [&str; 10] = ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"];
/// Settings under which little work triggers a checkpoint, an autovacuum, a temporary file, a lock wait.
const SETTINGS: [(&str, &str); 7] = [
    ("max_wal_size", "32MB"),
    ("autovacuum_naptime", "1s"),
    ("autovacuum_vacuum_threshold", "500"),
    ("autovacuum_analyze_threshold", "500"),
    ("work_mem", "64kB"),
    ("deadlock_timeout", "50ms"),
    ("track_io_timing", "on"),
];
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() {
    let mut args = std::env::args().skip(1);
    let directory = PathBuf::from(args.next().expect("a directory"));
    let mut majors: Vec<String> = args.collect();
    if majors.is_empty() {
        majors = MAJORS.map(str::to_owned).to_vec();
    }
    let cache = Cache::open().unwrap();
    for major in majors {
        let log = log_of(&cache, &major);
        // Its location is private.
        let log = log.replace(&cache.directory().display().to_string(), "/cache");
        fs::write(directory.join(format!("{major}.log")), log).unwrap();
        eprintln!("{major}");
    }
}

fn log_of(cache: &Cache, major: &str) -> String {
    let installation = server::install(cache, major, &NoProgress).unwrap();
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let cluster = Cluster::empty(cache, &installation, &[]).unwrap();
    let server = cluster.start(&BTreeMap::from(settings)).unwrap();
    let log = server.data_directory().parent().unwrap().join("server.log");

    let mut client = connect(&server, "postgres").unwrap();
    client
        .execute(
            "create table t (id int primary key, v text);
             create table \"odd: \"\"one\"\", 7 removed\" (id int);
             insert into \"odd: \"\"one\"\", 7 removed\" select generate_series(1, 2000);
             insert into t select n, repeat('x', 100) from generate_series(1, 5000) n;
             delete from t where id % 2 = 0",
        )
        .unwrap();
    // A session reports its statistics immediately when it ends.
    drop(client);
    wait_for(
        &log,
        &[
            "automatic vacuum of table \"postgres.public.t\"",
            "automatic analyze of table \"postgres.public.odd",
        ],
    );
    autovacuum_is_cancelled(&server, &log);
    let mut client = connect(&server, "postgres").unwrap();
    client.execute("create table wal (v text)").unwrap();
    for _ in 0..4 {
        client.execute("insert into wal select repeat('w', 1000) from generate_series(1, 20000)").unwrap();
    }
    wait_for(&log, &["too frequently"]);
    client
        .execute("select count(*) from (select generate_series(1, 20000) n order by 1 desc) all_of_them")
        .unwrap();
    client.execute("do $$ begin raise warning E'in two\\nlines'; end $$").unwrap();
    client.execute("select 1 / 0\n -- in\n -- lines").unwrap_err();
    assert!(connect(&server, "missing").is_err());
    row_lock(&server, &log);
    deadlock(&server);
    server.checkpoint().unwrap();
    crash(&server, &log);

    let cluster = server.stop(StopMode::Fast).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    drop(cluster);
    text
}

fn connect(server: &Server, database: &str) -> Result<Session, SessionError> {
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { unreachable!() };
    let mut params = ConnectParams::new(directory, port, server::USER, database, None);
    params.application_name = Some("pgdyno".to_owned());
    Session::connect(&params)
}

/// Waits until the log contains all of these.
fn wait_for(log: &Path, texts: &[&str]) {
    let end = Instant::now() + TIMEOUT;
    loop {
        let text = fs::read_to_string(log).unwrap();
        if texts.iter().all(|wanted| text.contains(wanted)) {
            return;
        }
        assert!(Instant::now() < end, "timed out waiting for {texts:?} in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A slow autovacuum blocks a lock.
fn autovacuum_is_cancelled(server: &Server, log: &Path) {
    let mut client = connect(server, "postgres").unwrap();
    client
        .execute(
            "create table slow (v text) with (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1);
             insert into slow select repeat('s', 500) from generate_series(1, 5000);
             delete from slow",
        )
        .unwrap();
    drop(client);
    let mut client = connect(server, "postgres").unwrap();
    let running = "select count(*) from pg_stat_activity where query like 'autovacuum: VACUUM%public.slow%'";
    let end = Instant::now() + TIMEOUT;
    while client.query_one::<i64>(running).unwrap() == 0 {
        assert!(Instant::now() < end, "timed out waiting for an autovacuum");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.execute("drop table slow").unwrap();
    wait_for(log, &["canceling autovacuum task"]);
}

fn row_lock(server: &Server, log: &Path) {
    let mut holder = connect(server, "postgres").unwrap();
    holder.execute("begin; update t set v = 'held' where id = 1").unwrap();
    let mut waiter = connect(server, "postgres").unwrap();
    let waits = std::thread::spawn(move || waiter.execute("update t set v = 'mine' where id = 1"));
    wait_for(log, &["still waiting for ShareLock"]);
    holder.execute("commit").unwrap();
    waits.join().unwrap().unwrap();
    wait_for(log, &["acquired ShareLock"]);
}

fn deadlock(server: &Server) {
    let mut clients = [connect(server, "postgres").unwrap(), connect(server, "postgres").unwrap()];
    for (id, client) in ["1", "3"].into_iter().zip(&mut clients) {
        client.execute(&format!("begin; update t set v = 'mine' where id = {id}")).unwrap();
    }
    let [mut one, mut other] = clients;
    let waits = std::thread::spawn(move || one.execute("update t set v = 'his' where id = 3"));
    let outcome = other.execute("update t set v = 'his' where id = 1");
    // The surviving one waits until the other has ended.
    drop(other);
    assert!(waits.join().unwrap().is_err() || outcome.is_err());
}

/// A backend is killed: the server restarts.
fn crash(server: &Server, log: &Path) {
    let mut victim = connect(server, "postgres").unwrap();
    let _other = connect(server, "postgres").unwrap();
    let pid: i32 = victim.query_one("select pg_backend_pid()").unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let again =
        |text: &str| text.split("reinitializing").nth(1).is_some_and(|rest| rest.contains("ready to accept"));
    let end = Instant::now() + TIMEOUT;
    while !again(&fs::read_to_string(log).unwrap()) {
        assert!(Instant::now() < end, "timed out waiting for the server to be back");
        std::thread::sleep(Duration::from_millis(20));
    }
}
