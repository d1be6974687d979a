//! Against real servers: each major with what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use model::message::Endpoint;
use model::metrics::Kind;
use model::waits::{Session as Who, Waits};
use model::workload::Transport;
use postgres::{Client, NoTls};
use target::{Cache, Progress, Server};

use super::*;
use crate::{Reading, Source, now};

const MAJORS: [&str; 10] = ["9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"];
const DOCUMENTED: &str = include_str!("../../../../docs/metrics-postgres.md");
const TIMEOUT: Duration = Duration::from_secs(20);

struct Quiet;

impl Progress for Quiet {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}
}

/// A server with the tables of `pgbench` at scale 1, everything timed, and no autovacuum.
fn server(version: &str, settings: &[(&str, &str)]) -> Server {
    let cache = Cache::open().unwrap();
    let installation = target::install(&cache, version, &Quiet).unwrap();
    let template = target::template(&cache, &installation, &[], 1, &Quiet).unwrap();
    let mut all =
        BTreeMap::from([("autovacuum", "off"), ("track_io_timing", "on"), ("max_connections", "100")]);
    if number(version) >= 14 {
        all.insert("track_wal_io_timing", "on");
    }
    all.extend(settings.iter().copied());
    let all = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    template.clone_cluster(&cache, &Quiet).unwrap().start(&all).unwrap()
}

/// 9 for 9.6.
fn number(version: &str) -> u32 {
    version.split('.').next().unwrap().parse().unwrap()
}

fn connect(server: &Server, database: &str, application_name: &str) -> Client {
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    postgres::Config::new()
        .host_path(directory)
        .port(port)
        .user(target::USER)
        .dbname(database)
        .application_name(application_name)
        .connect(NoTls)
        .unwrap()
}

fn session(server: &Server, database: &str, purpose: &str) -> Session {
    Session::open(connect(server, database, ""), purpose, TIMEOUT).unwrap()
}

fn statistics(server: &Server) -> Statistics {
    Statistics::new(session(server, "postgres", "statistics"), target::DATABASE)
}

fn tables(server: &Server) -> Tables {
    Tables::new(session(server, target::DATABASE, "tables")).unwrap()
}

fn sampler(server: &Server) -> WaitSampler {
    let load =
        LoadSessions { database: target::DATABASE.to_owned(), application_name: Some("pgdyno".to_owned()) };
    WaitSampler::new(session(server, "postgres", "waits"), &load).unwrap()
}

fn read(source: &mut dyn Source) -> Reading {
    let mut reading = Reading::default();
    source.read(&mut reading).unwrap();
    reading
}

fn value(reading: &Reading, metric: &str, of: Option<&str>) -> Option<f64> {
    let found = reading.values.iter().find(|value| value.metric == metric && value.of.as_deref() == of);
    found.map(|value| value.value)
}

/// Asks until something holds; fails after half a minute.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// What the document says of a major: every metric with its kind, and whether it is always there.
fn documented(major: u32) -> BTreeMap<String, (Kind, bool)> {
    let rows = DOCUMENTED.lines().filter(|line| line.starts_with("| `pg."));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let in_major = |range: &str| {
        let (first, last) = range.split_once('–').unwrap_or((range, range));
        (number(first)..=number(last)).contains(&major)
    };
    cells
        .filter(|cells| in_major(cells[4]))
        .map(|cells| {
            let always = cells[5].is_empty() || cells[5].starts_with('`');
            (cells[1].trim_matches('`').to_owned(), (Kind::by_name(cells[2]).unwrap(), always))
        })
        .collect()
}

#[test]
fn each_major_gives_what_the_document_says_and_nothing_else() {
    for version in MAJORS {
        let server = server(version, &[]);
        connect(&server, target::DATABASE, "").batch_execute("CREATE TABLE long (text text)").unwrap();
        let documented = documented(number(version));
        let mut seen = BTreeSet::new();
        for source in [&mut statistics(&server) as &mut dyn Source, &mut tables(&server)] {
            let reading = read(source);
            let mut once = BTreeSet::new();
            for value in reading.values {
                let Some((kind, _)) = documented.get(value.metric) else {
                    panic!("{version}: {} is not documented", value.metric)
                };
                assert_eq!(*kind, value.kind, "{version}: {}", value.metric);
                assert!(once.insert((value.metric, value.of.clone())), "{version}: twice: {}", value.metric);
                seen.insert(value.metric);
            }
        }
        for (metric, (_, always)) in &documented {
            assert!(!always || seen.contains(metric.as_str()), "{version}: {metric} is missing");
        }
    }
}
