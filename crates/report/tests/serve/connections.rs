//! Limits of connections, on real sockets: whatever some clients do, others are answered.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use report::serve::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::{LONG, connect, exchange, rest, start};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST_REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// No limit is reached.
const NEVER: Limits = Limits { connections: 10_000, request: LONG, unread: LONG };

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// Reads up to and including this text.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut received = Vec::new();
    while !received.ends_with(text.as_bytes()) {
        received.push(tokio::time::timeout(LONG, stream.read_u8()).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn requests_that_are_never_sent_completely_end() {
    let address = start(hello(), Limits { request: Duration::from_millis(200), ..NEVER }).await;
    let mut streams = Vec::new();
    for half in ["", "G", "GET / HTTP/1.1\r\nHost: localhost\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "]
    {
        for _ in 0..50 {
            streams.push(connect(address, half.as_bytes()).await);
        }
    }
    for stream in &mut streams {
        assert_eq!(rest(stream).await, "");
    }
    // Also after a response, and if something arrives all the time.
    let mut idle = connect(address, REQUEST.as_bytes()).await;
    assert!(rest(&mut idle).await.ends_with("hello"));
    let (mut reader, mut writer) = connect(address, b"GET / HTTP/1.1\r\nX: ").await.into_split();
    let trickle = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        while writer.write_all(b"x").await.is_ok() {
            pace.tick().await;
        }
    });
    let _ = tokio::time::timeout(LONG, reader.read_to_end(&mut Vec::new())).await.unwrap();
    tokio::time::timeout(LONG, trickle).await.unwrap().unwrap();
}

#[tokio::test]
async fn half_sent_requests_lock_nobody_out() {
    let address = start(hello(), Limits { connections: 8, ..NEVER }).await;
    let mut half_sent = Vec::new();
    for _ in 0..200 {
        half_sent.push(connect(address, b"GET / HTTP/1.1\r\n").await);
    }
    for _ in 0..3 {
        let (status, body) = exchange(address, LAST_REQUEST).await;
        assert_eq!((status, body.as_str()), (200, "hello"));
    }
    // The oldest have made room for the others, and the last ones are still answered.
    for stream in &mut half_sent[..192] {
        assert_eq!(rest(stream).await, "");
    }
    let last = half_sent.last_mut().unwrap();
    last.write_all(b"Host: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(last).await.ends_with("hello"));
}

#[tokio::test]
async fn connections_with_a_request_end_only_for_others_with_one() {
    let (send, messages) = mpsc::unbounded_channel::<Result<&str, Infallible>>();
    let messages = Arc::new(Mutex::new(Some(messages)));
    let stream = move || {
        let messages = messages.lock().unwrap().take().unwrap();
        async { Body::from_stream(UnboundedReceiverStream::new(messages)) }
    };
    let forever = || async { Body::from_stream(tokio_stream::pending::<Result<&str, Infallible>>()) };
    let site = hello().route("/stream", get(stream)).route("/forever", get(forever));
    let address = start(site, Limits { connections: 3, ..NEVER }).await;
    let request = |path: &str| REQUEST.replacen("/ ", &format!("{path} "), 1);
    let mut first = connect(address, request("/stream").as_bytes()).await;
    send.send(Ok("one.")).unwrap();
    read_until(&mut first, "one.\r\n").await;
    let mut half_sent = Vec::new();
    for _ in 0..20 {
        half_sent.push(connect(address, b"GET / HTTP/1.1\r\n").await);
        assert_eq!(exchange(address, LAST_REQUEST).await.0, 200);
    }
    send.send(Ok("two.")).unwrap();
    read_until(&mut first, "two.\r\n").await;
    // When all have one, the oldest ends.
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = connect(address, request("/forever").as_bytes()).await;
        read_until(&mut other, "\r\n\r\n").await;
        others.push(other);
    }
    assert_eq!(rest(&mut first).await, "");
    send.closed().await;
    assert_eq!(exchange(address, LAST_REQUEST).await.0, 200);
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let address = start(hello(), NEVER).await;
    let with = |headers: &str| format!("GET / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    let many = |count: usize| (0..count).map(|n| format!("X-{n}: x\r\n")).collect::<String>();
    let large = |bytes: usize| format!("X: {}\r\n", "x".repeat(bytes));
    for accepted in [with(&many(90)), with(&large(15 << 10))] {
        assert_eq!(exchange(address, &accepted).await, (200, "hello".to_owned()));
    }
    let path = format!("GET /?{} HTTP/1.1\r\n", "x".repeat(20 << 10));
    for refused in [with(&many(110)), with(&large(17 << 10)), with(&large(1 << 20)), path] {
        let (status, body) = exchange(address, &refused).await;
        assert!(status == 431 && body.is_empty(), "{status} {body}");
    }
    assert_eq!(exchange(address, "\0\x01garbage\r\n\r\n").await.0, 400);
}

#[tokio::test]
async fn bodies_of_requests_are_not_read() {
    let site = Router::new().fallback(|| async { "hello" });
    let address = start(site, NEVER).await;
    for length in ["Content-Length: 1000000000000", "Transfer-Encoding: chunked"] {
        for expect in ["", "Expect: 100-continue\r\n"] {
            let (status, body) =
                exchange(address, &format!("POST / HTTP/1.1\r\n{length}\r\n{expect}\r\n")).await;
            assert_eq!((status, body.as_str()), (200, "hello"), "{length} {expect}");
        }
    }
}

/// Reports that it was dropped: that the server has given up the response.
struct Endless(mpsc::UnboundedSender<()>);

impl Stream for Endless {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(Bytes::from_static(&[b'x'; 8192]))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn clients_that_do_not_read_end() {
    let (dropped, mut drops) = mpsc::unbounded_channel();
    let endless = move || {
        let body = Endless(dropped.clone());
        async { Body::from_stream(body) }
    };
    let site = hello().route("/endless", get(endless));
    let address = start(site, Limits { unread: Duration::from_millis(500), ..NEVER }).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(connect(address, REQUEST.replacen("/ ", "/endless ", 1).as_bytes()).await);
    }
    for _ in &streams {
        tokio::time::timeout(LONG, drops.recv()).await.unwrap().unwrap();
    }
    assert_eq!(exchange(address, LAST_REQUEST).await.0, 200);
}

/// A connection with a small buffer for what it has not yet read.
async fn connect_small(address: SocketAddr, sent: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(32 << 10).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_slow_client_receives_all_of_a_large_document() {
    // More than the buffers of both sockets hold.
    const BYTES: usize = 64 << 20;
    let document = Bytes::from(vec![b'x'; BYTES]);
    let site = hello().route("/document", get(move || std::future::ready(document.clone())));
    let limits = Limits { connections: 3, request: Duration::from_millis(300), ..NEVER };
    let address = start(site, limits).await;
    let mut slow = connect_small(address, &REQUEST.replacen("/ ", "/document ", 1)).await;
    read_until(&mut slow, "\r\n\r\n").await;
    // Before it reads on, the time for a request passes several times, and there are too many connections.
    for _ in 0..3 {
        rest(&mut connect(address, b"GET").await).await;
    }
    let mut half_sent = Vec::new();
    for _ in 0..20 {
        half_sent.push(connect(address, b"GET").await);
    }
    assert_eq!(exchange(address, LAST_REQUEST).await.0, 200);
    assert_eq!(rest(&mut slow).await.len(), BYTES);
}
