//! Played sessions of which a server accepts the connection, and does not let them in.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod peer;

use std::convert::Infallible;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use driver::{Cue, CueAction, Engine, Execution, Playback, PlaybackEvent, PlayedEnd, play};
use peer::{ANSWER, log_in, read_startup};
use tempfile::TempDir;
use wire::{ConnectParams, Given};

const ENGINES: [Engine; 2] = [Engine::Epoll, Engine::Uring];

const NOT_READY: &[u8] = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";

/// What a server does with a connection.
#[derive(Clone, Copy, Debug)]
enum Does {
    Nothing,
    /// Reports that it is starting up, to all but those from this number on.
    NotReady {
        until: usize,
    },
}

/// A server in a directory of its own, for the rest of the test.
struct Fake {
    directory: TempDir,
    /// Connections so far.
    accepted: Arc<AtomicUsize>,
}

impl Fake {
    fn start(does: Does) -> Self {
        let (directory, listener) = peer::listen();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        thread::spawn(move || {
            // As long as the test runs, nobody closes a connection without an answer.
            let silent = Mutex::new(Vec::new());
            for client in listener.incoming() {
                let (mut client, number) = (client.unwrap(), counter.fetch_add(1, Ordering::Relaxed));
                match does {
                    Does::Nothing => silent.lock().unwrap().push(client),
                    Does::NotReady { until } if number < until => {
                        read_startup(&mut client);
                        let length = (NOT_READY.len() as u32 + 4).to_be_bytes();
                        client.write_all(&[b"E", &length[..], NOT_READY].concat()).unwrap();
                    }
                    Does::NotReady { .. } => {
                        thread::spawn(move || answer(client));
                    }
                }
            }
        });
        Self { directory, accepted }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Lets a client in, and answers its statements.
fn answer(mut client: UnixStream) {
    log_in(&mut client);
    let mut buffer = [0; 1024];
    while client.read(&mut buffer).is_ok_and(|read| read > 0 && buffer[0] == b'Q') {
        client.write_all(ANSWER).unwrap();
    }
}

/// What became of three sessions with a statement each.
#[derive(Debug, Default)]
struct Outcome {
    connected: usize,
    succeeded: usize,
    not_executed: usize,
    reasons: Vec<String>,
    took: Duration,
}

fn play_sessions(engine: Engine, servers: &[&Fake]) -> Outcome {
    let hosts: Vec<_> = servers.iter().map(|server| server.path().to_str().unwrap()).collect();
    let conninfo = format!("host={} user=a dbname=b connect_timeout=1", hosts.join(","));
    let given: Given = [("dbname", conninfo.as_str())].into_iter().collect();
    let connection = ConnectParams::resolve(&given, &|_: &str| None).unwrap().params;
    let playback = Playback { connection, threads: 1, sessions: 3, closed: true, engine };
    let statement = |session: u32| Execution {
        tag: session.into(),
        text: "select 1".into(),
        prepared: None,
        after: Vec::new(),
    };
    let actions = |session: u32| {
        [CueAction::Begin { application: None }, CueAction::Execute(statement(session)), CueAction::End]
            .map(|action| Ok::<_, Infallible>(Cue { at_ns: 0, session, action }))
    };
    let (mut outcome, from) = (Outcome::default(), Instant::now());
    let mut on_event = |event: PlaybackEvent| match event {
        PlaybackEvent::Connected { .. } => outcome.connected += 1,
        PlaybackEvent::Broken { reason, .. } => outcome.reasons.push(reason),
        PlaybackEvent::Played(played) if played.end == PlayedEnd::Success => outcome.succeeded += 1,
        PlaybackEvent::Played(played) => {
            assert_eq!(played.end, PlayedEnd::NotExecuted);
            outcome.not_executed += 1;
        }
        PlaybackEvent::Starts { .. } | PlaybackEvent::Idle => {}
    };
    let cues = (0..3).flat_map(actions);
    play(&playback, cues, &AtomicBool::new(false), &mut on_event).unwrap();
    outcome.took = from.elapsed();
    outcome
}

#[test]
fn a_server_that_does_not_respond_is_given_up_after_connect_timeout() {
    for engine in ENGINES {
        let silent = Fake::start(Does::Nothing);
        let outcome = play_sessions(engine, &[&silent]);
        assert_eq!((outcome.connected, outcome.not_executed), (0, 3), "{outcome:?}");
        let expected = format!(
            "connection to server on socket \"{}/.s.PGSQL.5432\" failed: timeout expired",
            silent.path().display()
        );
        assert_eq!(outcome.reasons, [expected.as_str(); 3]);
        assert!(outcome.took >= Duration::from_secs(1), "{outcome:?}");
        assert_eq!(silent.accepted(), 3);

        let good = Fake::start(Does::NotReady { until: 0 });
        let outcome = play_sessions(engine, &[&silent, &good]);
        assert_eq!((outcome.connected, outcome.succeeded), (3, 3), "{engine:?} {outcome:?}");
    }
}

#[test]
fn a_server_that_starts_up_is_waited_for_until_connect_timeout() {
    for engine in ENGINES {
        let starting = Fake::start(Does::NotReady { until: 20 });
        let outcome = play_sessions(engine, &[&starting]);
        assert_eq!((outcome.connected, outcome.succeeded, starting.accepted()), (3, 3, 23), "{outcome:?}");

        let starting = Fake::start(Does::NotReady { until: usize::MAX });
        let outcome = play_sessions(engine, &[&starting]);
        assert_eq!((outcome.connected, outcome.not_executed), (0, 3), "{outcome:?}");
        for reason in &outcome.reasons {
            assert!(reason.ends_with("failed: FATAL:  the database system is starting up"), "{reason}");
        }
        assert_eq!(outcome.reasons.len(), 3);
        assert!(outcome.took >= Duration::from_secs(1) && starting.accepted() > 10, "{outcome:?}");
    }
}
