//! Servers that answer before they read: each client's bytes arrive exactly, on each event loop.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod peer;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use driver::{Control, DriverMessage, Engine, Group, Load, Observer, Outcome, Record, WeightedScript};
use model::record::ClockReading;
use peer::{ANSWER, log_in};
use script::{Names, RandomState, Script, Seeds, Variables};
use tempfile::TempDir;
use wire::ConnectParams;

const ENGINES: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// Times that a statement has its number: it is then larger than what a socket takes at once.
const REPETITIONS: usize = 20_000;

/// The first number, so that all have the same length.
const FIRST: u64 = 1_000_000;

/// The end of a session.
const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// What the server does with a connection after the login.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Answers that are sent at once, in one segment, each time.
    burst: u64,
    /// Answers that are sent before anything is read.
    early: u64,
    /// Answers after which it closes the connection without reading the rest, at least 1; None: it answers all.
    closes_after: Option<u64>,
}

/// Clients that number their statements, each for this many transactions.
fn load(directory: &Path, clients: u32, transactions: u64) -> Load {
    let mut names = Names::default();
    let text = format!("\\set n :n + 1\nselect {}1;\n", ":n ".repeat(REPETITIONS));
    let script = Script::parse("numbers", &text, &mut names).unwrap();
    let mut variables = Variables::new(&names);
    variables.set_text(names.find("n").unwrap(), (FIRST - 1).to_string()).unwrap();
    let connection = ConnectParams::new(directory.to_str().unwrap(), 5432, "user", "database", None);
    let group = Group {
        transactions: Some(transactions),
        ..Group::new(clients, vec![WeightedScript { script, weight: 1 }], variables)
    };
    Load::new(connection, group, Seeds::draw(7, clients as usize, 1, false))
}

/// A server with one connection after another of `peers`, each in a thread that returns the statements it has received.
fn serve(peers: Vec<Peer>, transactions: u64) -> (TempDir, thread::JoinHandle<Vec<Vec<u8>>>) {
    // A Unix socket takes a few hundred kilobytes that are not read.
    let (directory, listener) = peer::listen();
    let server = thread::spawn(move || {
        let sessions = peers.into_iter().map(|peer| {
            let client = listener.accept().unwrap().0;
            thread::spawn(move || session(client, peer, transactions))
        });
        let sessions: Vec<_> = sessions.collect();
        sessions.into_iter().map(|session| session.join().unwrap()).collect()
    });
    (directory, server)
}

/// Answers `transactions` statements as `peer` says, and returns all bytes received after the login.
fn session(mut client: UnixStream, peer: Peer, transactions: u64) -> Vec<u8> {
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    log_in(&mut client);
    let mut received = Vec::new();
    let mut answered = 0;
    let limit = peer.closes_after.unwrap_or(transactions);
    while answered < limit {
        let burst = peer.burst.min(limit - answered);
        // The first statement is on its way, so that its answer is not unexpected.
        if answered == 0 {
            let mut first = [0; 1];
            client.read_exact(&mut first).unwrap();
            received.push(first[0]);
        }
        if answered >= peer.early {
            // Those that were answered early, and the one that the next answer is for.
            let enough = received.len().max((answered + 1) as usize * statement(FIRST).len());
            receive(&mut client, &mut received, enough);
        }
        let answers = ANSWER.repeat(burst as usize);
        if client.write_all(&answers).is_err() {
            break;
        }
        answered += burst;
    }
    if peer.closes_after.is_some() {
        let _ = client.shutdown(Shutdown::Both);
        return received;
    }
    // To the end of the session, at which a server closes the connection.
    receive(&mut client, &mut received, transactions as usize * statement(FIRST).len() + TERMINATE.len());
    received
}

/// Receives until there are `enough` bytes, or until the end.
fn receive(client: &mut UnixStream, received: &mut Vec<u8>, enough: usize) {
    let mut buffer = [0; 32 * 1024];
    while received.len() < enough {
        match client.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => received.extend_from_slice(&buffer[..read]),
        }
    }
}

/// The bytes of the statement with a number.
fn statement(number: u64) -> Vec<u8> {
    let text = format!("select {}1;\0", format!("{number} ").repeat(REPETITIONS));
    let mut bytes = vec![b'Q'];
    bytes.extend_from_slice(&(text.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Asserts that `received` is the beginning of what a client sends, and all of it if it has ended in order.
fn assert_exact(received: &[u8], transactions: u64, complete: bool, what: &str) {
    let mut left = received;
    for number in FIRST..FIRST + transactions {
        let expected = statement(number);
        let common = left.len().min(expected.len());
        if left[..common] != expected[..common] {
            let at = left.iter().zip(&expected).position(|(one, other)| one != other).unwrap();
            let found = String::from_utf8_lossy(&left[at..(at + 40).min(left.len())]).into_owned();
            panic!("{what}: statement {number} is wrong from byte {at} of {} on: {found:?}", expected.len());
        }
        left = &left[common..];
    }
    if complete {
        assert_eq!(left, TERMINATE, "{what}: the end");
    }
}

/// Ignores everything.
struct Nobody;

impl Observer for Nobody {
    fn connected(&mut self, _took: Duration, _background: &[i32]) {}
    fn started(&mut self, _: ClockReading, _: Duration) {}
    fn interval(&mut self, _: &Record) {}
    fn on_message(&mut self, _: &DriverMessage) {}
}

/// Runs a client for each peer, and checks what the peers have received.
fn run(engine: Engine, peers: &[Peer], transactions: u64) -> Outcome {
    let (directory, server) = serve(peers.to_vec(), transactions);
    let load = Load { engine, ..load(directory.path(), peers.len() as u32, transactions) };
    let outcome = driver::run(load, Control::default(), &mut Nobody).unwrap();
    for (peer, received) in peers.iter().zip(server.join().unwrap()) {
        let what = format!("{engine:?}, {peer:?}");
        assert_exact(&received, transactions, peer.closes_after.is_none(), &what);
    }
    outcome
}

#[test]
fn statements_arrive_exactly_although_their_answers_are_early() {
    for engine in ENGINES {
        // One answer at a time, in pairs, all at once; before anything is read, and afterwards.
        for (burst, early) in [(1, 0), (1, 6), (2, 6), (6, 6), (6, 0)] {
            let peer = Peer { burst, early, closes_after: None };
            let outcome = run(engine, &[peer, peer], 6);
            assert_eq!(outcome.aborted, 0, "{engine:?}, {peer:?}");
        }
    }
}

/// Sockets that are closed while the kernel still sends, next to others.
#[test]
fn peers_that_close_early_do_not_affect_others() {
    let seed = std::env::var("PGDYNO_MUTATION_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("PGDYNO_MUTATION_SEED={seed}");
    let mut random = RandomState::from_seed(seed);
    let mut below = |bound: i64| random.range_i64(0, bound) as u64;
    for _ in 0..4 {
        let peers: Vec<Peer> = (0..6)
            .map(|_| Peer {
                burst: 1 + below(3),
                early: below(4),
                closes_after: (below(1) == 1).then(|| 1 + below(3)),
            })
            .collect();
        for engine in ENGINES {
            let outcome = run(engine, &peers, 4);
            let closing = peers.iter().filter(|peer| peer.closes_after.is_some()).count();
            assert!(outcome.aborted as usize <= closing, "{engine:?}, {peers:?}: {outcome:?}");
        }
    }
}

#[test]
fn a_connection_that_closes_after_the_login_keeps_the_load_from_beginning() {
    for engine in ENGINES {
        let (directory, listener) = peer::listen();
        let server = thread::spawn(move || {
            // The second client's login does not end before the first connection is closed.
            let mut first = listener.accept().unwrap().0;
            log_in(&mut first);
            drop(first);
            let mut second = listener.accept().unwrap().0;
            let _ = second.read(&mut [0; 1024]);
            second.read(&mut [0; 1024]).is_ok()
        });
        let load = Load { engine, ..load(directory.path(), 2, 1) };
        let error = driver::run(load, Control::default(), &mut Nobody).unwrap_err().to_string();
        assert!(
            error.contains("could not connect client 0") && error.contains("closed"),
            "{engine:?}: {error}"
        );
        assert!(server.join().unwrap(), "{engine:?}");
    }
}
