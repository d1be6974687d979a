//! Servers that do not keep to the protocol: a session ends with an error, and neither panics nor waits for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use mutate::Mutator;
use wire::blocking::{Session, SessionError};
use wire::{ConnectParams, Given};

/// Answers of a server: to the request for TLS, to the startup message, and to a query. It closes the connection after
/// the last one.
type Answers = Vec<Vec<u8>>;

/// Time that a server which expects more waits for a client which does, too.
const SHORT: Duration = Duration::from_millis(300);

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind], length.to_be_bytes().as_slice(), body].concat()
}

/// A message that claims another length than it has.
fn claimed(kind: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&[kind], length.to_be_bytes().as_slice(), body].concat()
}

/// `AuthenticationRequest`.
fn auth(code: u32, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[code.to_be_bytes().as_slice(), rest].concat())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn login() -> Vec<u8> {
    let version = message(b'S', b"server_version\x0018.1\0");
    let encoding = message(b'S', b"client_encoding\0UTF8\0");
    [auth(0, &[]), version, encoding, message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]), ready()].concat()
}

/// One column, `a`, of type `text`.
fn row_description() -> Vec<u8> {
    message(
        b'T',
        &[&[0, 1], b"a\0".as_slice(), &[0; 6], &[0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]]
            .concat(),
    )
}

fn row(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    message(b'D', &[&[0, 1], length.to_be_bytes().as_slice(), text].concat())
}

fn result() -> Vec<u8> {
    [row_description(), row(b"one"), message(b'C', b"SELECT 1\0"), ready()].concat()
}

/// What a session tolerates, as it has no rows that would be misread.
const TOLERATED: [&str; 3] = [
    "describes 65535 columns and sends none",
    "has a command without an end",
    "sends what was not asked for",
];

/// What is wrong, and the answers.
fn misbehaviours() -> Vec<(&'static str, Answers)> {
    let no_tls = || b"N".to_vec();
    let to_startup = |answer: Vec<u8>| vec![no_tls(), answer];
    let to_query = |answer: Vec<u8>| vec![no_tls(), login(), answer];
    let sasl = |first: &[u8]| [auth(10, b"SCRAM-SHA-256\0\0"), auth(11, first)].concat();
    vec![
        ("closes at once", vec![Vec::new()]),
        ("answers a request for TLS with another letter", vec![b"X".to_vec()]),
        ("speaks HTTP", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]),
        ("accepts TLS and closes", vec![b"S".to_vec()]),
        ("accepts TLS and speaks garbage", vec![b"S".to_vec(), vec![0x5a; 400]]),
        ("accepts TLS and sends a half record", vec![b"S".to_vec(), vec![22, 3, 3, 0xff, 0xff, 2]]),
        ("closes after the startup message", to_startup(Vec::new())),
        ("asks for unknown authentication", to_startup(auth(4711, &[]))),
        ("asks for Kerberos", to_startup(auth(7, &[]))),
        ("has a message of no length", to_startup(claimed(b'R', 0, &[]))),
        ("has a message of negative length", to_startup(claimed(b'R', u32::MAX, &[0; 8]))),
        ("has a message of 2 GiB", to_startup(claimed(b'E', 0x7fff_ffff, b"SERROR\0"))),
        ("has a truncated message", to_startup(claimed(b'R', 100, &[0, 0, 0, 0]))),
        ("has an authentication request without a code", to_startup(message(b'R', &[0]))),
        ("asks for MD5 without salt", to_startup(auth(5, &[1]))),
        ("offers no SASL mechanism", to_startup(auth(10, b"\0"))),
        ("offers unknown SASL mechanisms", to_startup(auth(10, b"SECRET-1\0OTHER\0\0"))),
        ("offers SASL mechanisms without an end", to_startup(auth(10, b"SCRAM-SHA-256"))),
        ("continues SASL that was not begun", to_startup(auth(11, b"r=x,s=AAAA,i=1"))),
        ("continues SCRAM with garbage", to_startup(sasl(b"\xff\xfe=,,"))),
        ("continues SCRAM with another nonce", to_startup(sasl(b"r=abc,s=AAAA,i=4096"))),
        ("asks for too many iterations", to_startup(sasl(b"r=abc,s=AAAA,i=4294967295"))),
        ("ends SCRAM before its proof", to_startup([sasl(b""), auth(12, b"v=AAAA"), auth(0, &[])].concat())),
        ("closes after authentication", to_startup(auth(0, &[]))),
        ("is ready without authentication", to_startup(ready())),
        ("has an error without fields", to_startup(message(b'E', &[]))),
        ("has an error without an end", to_startup(message(b'E', b"SFATAL\0Mno"))),
        (
            "has a parameter without a value",
            to_startup([auth(0, &[]), message(b'S', b"name"), ready()].concat()),
        ),
        ("has a key without bytes", to_startup([auth(0, &[]), message(b'K', &[]), ready()].concat())),
        ("is ready in no state", to_startup([auth(0, &[]), message(b'Z', b"?")].concat())),
        ("is ready without a state", to_startup([auth(0, &[]), message(b'Z', &[])].concat())),
        ("sends rows instead of a login", to_startup(result())),
        ("closes at a query", to_query(Vec::new())),
        ("answers a query with garbage", to_query(vec![0xa5; 300])),
        ("answers a query with a login", to_query(login())),
        ("has a row without columns described", to_query([row(b"one"), ready()].concat())),
        (
            "describes 65535 columns and sends none",
            to_query([message(b'T', &[0xff, 0xff]), ready()].concat()),
        ),
        (
            "has a value longer than its row",
            to_query([row_description(), message(b'D', &[0, 1, 0, 0, 0xff, 0xff, b'a']), ready()].concat()),
        ),
        (
            "has a value of negative length",
            to_query([row_description(), message(b'D', &[0, 1, 0x80, 0, 0, 0]), ready()].concat()),
        ),
        ("has a row of 4 GiB", to_query([row_description(), claimed(b'D', u32::MAX - 1, &[0, 1])].concat())),
        (
            "has more values than columns",
            to_query([row_description(), message(b'D', &[0, 9]), ready()].concat()),
        ),
        ("has a command without an end", to_query([message(b'C', b"SELECT"), ready()].concat())),
        (
            "sends what was not asked for",
            to_query([message(b'1', &[]), message(b'2', &[]), ready()].concat()),
        ),
        ("begins to copy both ways", to_query(message(b'W', &[0, 0, 0]))),
        (
            "closes in the middle of a row",
            to_query([row_description(), claimed(b'D', 100, b"\0\x01")].concat()),
        ),
        ("has an unknown message", to_query([message(b'!', b"?"), ready()].concat())),
    ]
}

/// Gives the answers to the client's connections, piece by piece, each to whatever the client sends. Closes a connection
/// on which nothing comes any more.
fn serve(listener: &TcpListener, answers: &[Vec<u8>], piece: usize, patience: Duration) {
    // The client may try again without TLS.
    for stream in listener.incoming().take(2) {
        let Ok(mut stream) = stream else { return };
        stream.set_read_timeout(Some(patience)).unwrap();
        let mut request = vec![0; 1 << 16];
        for answer in answers {
            if !stream.read(&mut request).is_ok_and(|length| length > 0)
                || answer.chunks(piece).any(|part| stream.write_all(part).is_err())
            {
                break;
            }
        }
        // What the client sends now, such as a proof, is read, so that it gets the answers before the end.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
}

/// The result of a session with such a server.
fn outcome(
    name: &str,
    answers: Answers,
    piece: usize,
    patience: Duration,
) -> Result<Vec<String>, SessionError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve(&listener, &answers, piece, patience));
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut given = Given::new();
        given.set("dbname", format!("host=127.0.0.1 port={port} user=me password=secret sslmode=prefer"));
        let params = ConnectParams::resolve(&given, &|_| None).unwrap().params;
        let result = Session::connect(&params).and_then(|mut session| {
            session.set_timeout(Duration::from_secs(20))?;
            session.query::<String>("SELECT 'one'")
        });
        let _ = sender.send(result);
    });
    receiver.recv_timeout(Duration::from_secs(40)).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => panic!("a server that {name}: the session waits for ever"),
        RecvTimeoutError::Disconnected => panic!("a server that {name}: the session panicked"),
    })
}

#[test]
fn a_server_that_keeps_to_the_protocol_is_understood() {
    for piece in [1, 7, 1 << 20] {
        let rows = outcome("behaves", vec![b"N".to_vec(), login(), result()], piece, Duration::from_secs(30))
            .unwrap();
        assert_eq!(rows, ["one"]);
    }
}

#[test]
fn a_server_that_does_not_gives_an_error_or_no_rows() {
    for (name, answers) in misbehaviours() {
        for piece in [3, 1 << 20] {
            let result = outcome(name, answers.clone(), piece, SHORT);
            match result {
                Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
                Ok(rows) => {
                    assert!(rows.is_empty() && TOLERATED.contains(&name), "a server that {name}: {rows:?}")
                }
            }
        }
    }
}

#[test]
fn no_damaged_conversation_makes_a_session_panic_or_wait() {
    let mut mutator = Mutator::new(17);
    for number in 0..50 {
        let mut answers = vec![b"N".to_vec(), login(), result()];
        let damaged = 1 + mutator.below(2);
        answers[damaged] = mutator.bytes(&answers[damaged]);
        let piece = *mutator.pick(&[1, 5, 1 << 20]);
        // Any end will do: what is damaged may be a parameter's value.
        let _ = outcome(&format!("has damaged conversation {number}"), answers, piece, SHORT);
    }
}
