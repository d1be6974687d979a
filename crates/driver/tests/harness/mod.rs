//! Shared by the tests of loads: a server with the pgbench tables, and a driver whose replies are recorded.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use driver::{Process, ProcessEvent};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use host::{Cache, Progress};
use model::message::{
    ClientDeath, Connection, Endpoint, Interval, Load, Outcome, Phase, Reply, Request, Slice, VERSION,
};
use model::outage::Outage;
use model::units::Rate;
use model::workload::{Protocol, Transport, Workload};
use rustix::process::{Pid, Signal, kill_process};
use server::{Cluster, Server, StopMode};
use wire::blocking::Session;

/// Time without a reply after which a driver is considered hung.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Major versions for tests that depend on the server's: 13 counts transactions by datagrams to a collector process, 18
/// in shared memory.
pub(crate) const MAJORS: [&str; 2] = ["13", NEWEST];

/// Major version for tests that work with any server.
const NEWEST: &str = "18";

/// The superuser and the socket are trusted; other users authenticate by the method that their name states.
const HBA: &str = "local all all trust
host all postgres all trust
host all scram all scram-sha-256
host all md5 all md5
host all clear all password
";

/// A separate database with the pgbench tables of scale 1, to which only drivers connect.
pub(crate) struct Bench {
    server: Arc<Server>,
    database: String,
    /// Commits of the server's count that are accounted for.
    counted: Cell<u64>,
}

impl Bench {
    /// On the server that tests of this process share while any of them needs it.
    pub(crate) fn shared() -> Self {
        Self::shared_of(NEWEST)
    }

    pub(crate) fn shared_of(major: &'static str) -> Self {
        static SERVERS: Mutex<BTreeMap<&str, Weak<Server>>> = Mutex::new(BTreeMap::new());
        let mut servers = SERVERS.lock().unwrap();
        let server = servers.get(major).and_then(Weak::upgrade).unwrap_or_else(|| {
            let server = Arc::new(start(cluster(major), &[]));
            servers.insert(major, Arc::downgrade(&server));
            server
        });
        drop(servers);
        Self::on(server)
    }

    /// On a separate server with these settings.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::on(Arc::new(start(cluster(NEWEST), settings)))
    }

    /// On a separate server, whose cluster `into_cluster` returns.
    pub(crate) fn with_cluster(cluster: Cluster) -> Self {
        Self::on(Arc::new(start(cluster, &[])))
    }

    fn on(server: Arc<Server>) -> Self {
        let database = copy_of(&server, server::DATABASE);
        Self { server, database, counted: Cell::new(0) }
    }

    pub(crate) fn unix(&self) -> Connection {
        self.connection(self.server.endpoint(Transport::Unix))
    }

    /// Over TCP, by a name that must be resolved.
    pub(crate) fn tcp(&self) -> Connection {
        self.connection(Endpoint::Tcp { host: "localhost".to_owned(), port: self.port() })
    }

    fn connection(&self, endpoint: Endpoint) -> Connection {
        Connection { database: self.database.clone(), ..connection(endpoint) }
    }

    /// Over TCP, with every byte from the server in a segment of its own.
    pub(crate) fn byte_by_byte(&self) -> Connection {
        self.connection(byte_by_byte(self.port()))
    }

    fn port(&self) -> u16 {
        match self.server.endpoint(Transport::Tcp) {
            Endpoint::Tcp { port, .. } => port,
            other => panic!("not TCP: {other:?}"),
        }
    }

    /// Runs statements in the database, and replaces it by a copy, whose count of commits begins anew.
    pub(crate) fn sql(&mut self, sql: &str) {
        self.client().execute(sql).unwrap();
        self.database = copy_of(&self.server, &self.database);
        self.counted.set(0);
    }

    /// Asserts that the server has counted that many commits in the database since the last call.
    pub(crate) fn assert_commits(&self, expected: u64, what: &str) {
        let mut client = self.server.session("postgres").unwrap();
        let count = format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{}'", self.database);
        let mut counted = 0;
        // Before version 15, counts become visible with a delay.
        let met = poll_until(Duration::from_secs(5), || {
            let all = client.query_one::<u64>(&count).unwrap();
            counted = all - self.counted.get();
            counted == expected
        });
        assert!(met, "{what}: the server counts {counted} commits, the driver {expected}");
        self.counted.set(self.counted.get() + counted);
    }

    pub(crate) fn wait_for_sessions_to_end(&self) {
        let mut client = self.server.session("postgres").unwrap();
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", self.database);
        let none = || client.query_one::<u64>(&count).unwrap() == 0;
        assert!(poll_until(TIMEOUT, none));
    }

    /// A session in the database in addition to the drivers'. Its commits count.
    pub(crate) fn client(&self) -> Session {
        self.server.session(&self.database).unwrap()
    }

    /// Sends a signal to the postmaster.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.server.pid() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The cluster of a separate server, which is stopped as by a crash.
    pub(crate) fn into_cluster(self) -> Cluster {
        Arc::into_inner(self.server).unwrap().stop(StopMode::Immediate).unwrap()
    }
}

/// A copy of the template, which is created if this machine has none yet.
pub(crate) fn cluster(major: &str) -> Cluster {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, major, &NoProgress).unwrap();
    server::template(&cache, &installation, &[], &1.into(), None, &NoProgress)
        .unwrap()
        .clone_cluster(&cache, &NoProgress)
        .unwrap()
}

fn start(cluster: Cluster, settings: &[(&str, &str)]) -> Server {
    let cluster = cluster.with_rules(HBA);
    // Only the drivers' sessions may use the database.
    let settings = [("autovacuum", "off"), ("fsync", "off")].iter().chain(settings);
    cluster.start(&settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()).unwrap()
}

/// A new database that no session has used, so that its count of commits is 0.
fn copy_of(server: &Server, database: &str) -> String {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let copy = format!("bench_{}", COPIES.fetch_add(1, Ordering::Relaxed));
    let create = format!("CREATE DATABASE {copy} TEMPLATE {database}");
    server.session("postgres").unwrap().execute(&create).unwrap();
    copy
}

struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}
}

fn connection(endpoint: Endpoint) -> Connection {
    Connection {
        endpoint,
        user: server::USER.to_owned(),
        database: server::DATABASE.to_owned(),
        password: None,
    }
}

/// Polls until `condition` holds; returns false after `timeout`.
fn poll_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > timeout {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// A short load by four clients in two threads.
pub(crate) fn load(connection: Connection) -> Load {
    Load {
        connection,
        workload: Workload::SelectOnly,
        scale: 1,
        trace: None,
        replica: None,
        protocol: Protocol::Prepared,
        clients: 4,
        threads: 2,
        rate: Rate::MAX,
        cpus: None,
        seed: 42,
        warmup_us: 100_000,
        duration_us: 300_000,
        interval_us: 100_000,
        slices: None,
        part: None,
    }
}

/// A load that does not end by itself within a test.
pub(crate) fn unlimited(connection: Connection) -> Load {
    Load { duration_us: 60_000_000, ..load(connection) }
}

/// A driver process, and its replies so far.
pub(crate) struct Driver {
    process: Process,
    replies: Vec<Reply>,
}

/// Everything that a driver reports about a load.
pub(crate) struct Recorded {
    pub(crate) intervals: Vec<Interval>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) deaths: Vec<ClientDeath>,
    pub(crate) outcome: Outcome,
    pub(crate) stderr: String,
}

impl Driver {
    pub(crate) fn spawn() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_driver-child"));
        Self { process: Process::spawn(program, &[]).unwrap(), replies: Vec::new() }
    }

    pub(crate) fn send(&mut self, request: &Request) {
        self.process.send(request).unwrap();
    }

    /// Runs a load to its outcome.
    pub(crate) fn run(load: &Load) -> Recorded {
        let mut driver = Self::spawn();
        driver.send(&Request::Run(Box::new(load.clone())));
        driver.recorded()
    }

    /// The reason why a load cannot be run.
    pub(crate) fn failure(load: &Load) -> String {
        Self::failure_and_outage(load).0
    }

    /// The same, with the outage that is the reason, if it is one.
    pub(crate) fn failure_and_outage(load: &Load) -> (String, Option<Outage>) {
        let mut driver = Self::spawn();
        driver.send(&Request::Run(Box::new(load.clone())));
        driver.receive_to_the_end();
        match driver.replies.pop() {
            Some(Reply::Failed { message, outage }) => (message, outage),
            last => panic!("the load should fail, but the last reply is {last:?}"),
        }
    }

    /// The outcome of a load that never began.
    pub(crate) fn outcome_without_load(mut self) -> Outcome {
        self.receive_to_the_end();
        match self.replies.as_slice() {
            [Reply::Hello { .. }, Reply::Finished(outcome)] => (**outcome).clone(),
            replies => panic!("{replies:?}"),
        }
    }

    /// The reason why a load that has started ends.
    pub(crate) fn failed(mut self) -> String {
        self.receive_to_the_end();
        match self.replies.pop() {
            Some(Reply::Failed { message, .. }) => message,
            last => panic!("the load should fail, but the last reply is {last:?}"),
        }
    }

    /// Receives replies until one matches.
    pub(crate) fn wait_for(&mut self, matches: impl Fn(&Reply) -> bool) {
        while !self.replies.last().is_some_and(&matches) {
            match self.process.next(TIMEOUT).unwrap() {
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                other => panic!("{other:?} after {:?}", self.replies),
            }
        }
    }

    /// Its replies so far.
    pub(crate) fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// Reads its clock, in microseconds.
    pub(crate) fn clock_us(&mut self) -> i64 {
        let number = self.replies.len() as u32;
        self.send(&Request::ReadClock { number });
        loop {
            match self.process.next(TIMEOUT).unwrap() {
                ProcessEvent::Reply(Reply::Clock { number: read, received_us, sent_us }) => {
                    assert_eq!(read, number);
                    assert!(received_us <= sent_us, "{received_us} {sent_us}");
                    return sent_us;
                }
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                other => panic!("{other:?} after {:?}", self.replies),
            }
        }
    }

    /// Receives replies to the end of a part of a load, whose process waits for the end of its input.
    pub(crate) fn recorded_part(mut self) -> Recorded {
        self.wait_for(|reply| matches!(reply, Reply::Finished(_)));
        self.process.kill().unwrap();
        self.recorded()
    }

    /// Begins a slice of a load in slices.
    pub(crate) fn resume(&mut self) {
        self.process.resume().unwrap();
    }

    /// Ends the slice, and returns its figures.
    pub(crate) fn pause(&mut self) -> Slice {
        self.process.pause().unwrap();
        loop {
            match self.process.next(TIMEOUT).unwrap() {
                ProcessEvent::Reply(Reply::Paused(slice)) => {
                    self.replies.push(Reply::Paused(slice));
                    return slice;
                }
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                other => panic!("{other:?} after {:?}", self.replies),
            }
        }
    }

    /// Receives replies for this long.
    pub(crate) fn receive_for(&mut self, length: Duration) {
        let end = Instant::now() + length;
        loop {
            match self.process.next(end.saturating_duration_since(Instant::now())).unwrap() {
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                ProcessEvent::TimedOut => return,
                other => panic!("{other:?} after {:?}", self.replies),
            }
        }
    }

    /// Runs a slice.
    pub(crate) fn slice(&mut self, length: Duration) -> Slice {
        self.resume();
        self.receive_for(length);
        self.pause()
    }

    /// The start of its load, CLOCK_MONOTONIC in microseconds.
    pub(crate) fn origin_us(&self) -> i64 {
        let started = self.replies.iter().find_map(|reply| match reply {
            Reply::Started { at, .. } => Some(at.monotonic_us),
            _ => None,
        });
        started.expect("a start")
    }

    /// Number of context switches and CPU time in nanoseconds of each thread, once all of them sleep.
    pub(crate) fn activity(&self) -> Vec<(u64, u64)> {
        // The threads are read one after the other: one that sends its last message may still wake one read before.
        let mut activity = None;
        poll_until(TIMEOUT, || {
            let before = mem::replace(&mut activity, activity_if_asleep(self.process.pid()));
            activity.is_some() && activity == before
        });
        activity.expect("all threads sleep")
    }

    fn receive_to_the_end(&mut self) -> String {
        loop {
            match self.process.next(TIMEOUT).unwrap() {
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                ProcessEvent::TimedOut => panic!("no reply after {:?}", self.replies),
                ProcessEvent::Exited { stderr, .. } => return stderr,
            }
        }
    }

    /// Receives replies to the end of a load, and checks that they are in order and add up.
    pub(crate) fn recorded(mut self) -> Recorded {
        let stderr = self.receive_to_the_end();
        let mut replies = self.replies.into_iter();
        assert_eq!(replies.next(), Some(Reply::Hello { version: VERSION }));
        assert!(matches!(replies.next(), Some(Reply::Connected { .. })));
        assert!(matches!(replies.next(), Some(Reply::Started { .. })));
        let (mut intervals, mut slices, mut deaths) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcome = None;
        for reply in replies {
            match reply {
                _ if outcome.is_some() => panic!("{reply:?} after the end"),
                Reply::Interval(interval) => intervals.push(interval),
                Reply::Paused(slice) => slices.push(slice),
                Reply::ClientDied(death) => deaths.push(death),
                Reply::Finished(last) => outcome = Some(last),
                reply => panic!("{reply:?} during a load"),
            }
        }
        let outcome = *outcome.expect("an outcome");
        let recorded = Recorded { intervals, slices, deaths, outcome, stderr };
        recorded.check();
        recorded
    }
}

impl Recorded {
    /// Transactions that succeeded, in any phase.
    pub(crate) fn transactions(&self) -> u64 {
        let Outcome { warmup_transactions, window_transactions, drain_transactions, .. } = self.outcome;
        warmup_transactions + window_transactions + drain_transactions
    }

    pub(crate) fn check(&self) {
        let sum = |phase: Phase| -> u64 {
            let of_phase = self.intervals.iter().filter(|interval| interval.phase == phase);
            of_phase.flat_map(|interval| &interval.scripts).map(|script| script.transactions).sum()
        };
        let Outcome { warmup_transactions, window_transactions, drain_transactions, .. } = self.outcome;
        assert_eq!(sum(Phase::Warmup), warmup_transactions);
        assert_eq!(sum(Phase::Measure), window_transactions);
        assert_eq!(sum(Phase::Drain), drain_transactions);
        let failed: u64 = self
            .intervals
            .iter()
            .flat_map(|interval| &interval.scripts)
            .filter_map(|script| script.failed)
            .sum();
        assert_eq!(failed, self.outcome.failed_transactions);
        for pair in self.intervals.windows(2) {
            assert_eq!(pair[0].start_us + pair[0].width_us, pair[1].start_us, "{pair:?}");
        }
        for interval in &self.intervals {
            let phases = [Phase::Warmup, Phase::Measure, Phase::Drain];
            let counted: u64 = phases.iter().map(|phase| latencies([interval], *phase).len()).sum();
            let script = &interval.scripts[0];
            assert_eq!(counted, script.transactions + script.unfinished.unwrap_or(0));
        }
    }

    /// Transactions of the window of an open loop that did not end.
    pub(crate) fn unfinished(&self) -> Option<u64> {
        self.intervals.iter().flat_map(|interval| &interval.scripts).map(|script| script.unfinished).sum()
    }
}

/// The latencies in intervals that count in a phase, in nanoseconds.
pub(crate) fn latencies<'a>(
    intervals: impl IntoIterator<Item = &'a Interval>,
    phase: Phase,
) -> Histogram<u64> {
    let mut sum = Histogram::new(3).unwrap();
    let all =
        intervals.into_iter().flat_map(|interval| &interval.scripts).flat_map(|script| &script.latencies);
    for of_phase in all.filter(|of_phase| of_phase.phase == phase) {
        let bytes = STANDARD.decode(&of_phase.latency_ns).unwrap();
        let latency: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        sum.add(latency).unwrap();
    }
    sum
}

/// Number of context switches and CPU time in nanoseconds of each thread of a process; None if one of them does not
/// sleep.
fn activity_if_asleep(pid: u32) -> Option<Vec<(u64, u64)>> {
    let mut activity = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = thread.unwrap().path();
        // Unlike the state in `status`, this shows a thread as sleeping only once it has been switched out, and counted.
        if fs::read_to_string(path.join("syscall")).unwrap().starts_with("running") {
            return None;
        }
        let status = fs::read_to_string(path.join("status")).unwrap();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let switches = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        let switches = switches.map(|name| value(name).parse::<u64>().unwrap()).iter().sum();
        let times = fs::read_to_string(path.join("schedstat")).unwrap();
        activity.push((switches, times.split(' ').next().unwrap().parse().unwrap()));
    }
    Some(activity)
}

/// Whether a driver process with a load ends when its standard input does, after a reply of this kind.
pub(crate) fn exits_with_its_input(request: &Request, kind: &str) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_driver-child"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut replies = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "{}", serde_json::to_string(request).unwrap()).unwrap();
    assert!(replies.any(|reply| reply.unwrap().contains(kind)));
    drop(input);
    replies.for_each(drop);
    poll_until(TIMEOUT, || child.try_wait().unwrap().is_some())
}

/// Number of allocations of a driver process, from its standard error.
pub(crate) fn allocations(stderr: &str) -> u64 {
    let count = stderr.trim().strip_prefix("allocations ");
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in {stderr:?}"))
}

/// A proxy to a local server that sends every byte from it in a segment of its own.
fn byte_by_byte(port: u16) -> Endpoint {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let own_port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let (client_in, server_out) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || forward(client_in, server_out, 8192));
            thread::spawn(move || forward(server, client, 1));
        }
    });
    Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: own_port }
}

fn forward(mut from: TcpStream, mut to: TcpStream, piece: usize) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if buffer[..read].chunks(piece).any(|bytes| to.write_all(bytes).is_err()) {
            break;
        }
    }
    // The other side may be gone already.
    let _ = to.shutdown(Shutdown::Write);
}

/// A server that accepts connections and sends nothing.
pub(crate) fn silent_server() -> Connection {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    connection(Endpoint::Tcp { host: "127.0.0.1".to_owned(), port })
}

/// A server that sends these bytes to every client, and closes.
pub(crate) fn server_that_sends(bytes: &'static [u8]) -> Connection {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            // It reads the start-up message first, so that its bytes are not lost in a reset.
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(bytes);
        }
    });
    connection(Endpoint::Tcp { host: "127.0.0.1".to_owned(), port })
}
