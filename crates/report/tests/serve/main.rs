//! `pgdyno serve`: its data, its access control, its live events, and the limits of its connections.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../analysis/tests/fixture/mod.rs"]
mod fixture;

mod access;
mod connections;
mod data;
mod fleet;
mod live;
mod metrics;

use axum::Router;
use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use model::record::{Status, TrialRecord};
use report::serve::{Guard, Limits, Token, accept, site};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use store::Store;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

const OWN: &str = "localhost:7432";
const TOKEN: &str = "0123456789abcdef0123";

/// Longer than anything that is waited for.
const LONG: Duration = Duration::from_secs(120);

/// Serves these routes on a socket.
async fn start(site: Router, limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(accept(listener, site, limits));
    address
}

/// A connection that has sent this.
async fn connect(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may end it at any time.
    let _ = stream.write_all(sent).await;
    stream
}

/// All that the server still sends on a connection until it ends it.
async fn rest(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    // A connection that ends before all was read from it is reset.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut received)).await.unwrap();
    String::from_utf8_lossy(&received).into_owned()
}

/// Status and body of the response to a request, sent as it is.
async fn exchange(address: SocketAddr, request: &str) -> (u16, String) {
    let response = rest(&mut connect(address, request.as_bytes()).await).await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    (head.split(' ').nth(1).unwrap_or("0").parse().unwrap(), body.to_owned())
}

/// A store with a finished run, and a server over it.
struct TestServer {
    folder: TempDir,
    records: Vec<TrialRecord>,
    site: Router,
}

struct TestResponse {
    status: StatusCode,
    headers: HeaderMap,
    /// Bytes of the body as sent.
    body_bytes: usize,
    body: String,
}

impl TestResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn error(&self) -> String {
        let json = self.json();
        assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
        json["error"].as_str().unwrap().to_owned()
    }

    fn header(&self, name: impl Into<HeaderName>) -> &str {
        self.headers.get(name.into()).map_or("", |value| value.to_str().unwrap())
    }
}

impl TestServer {
    fn new() -> Self {
        Self::guarded("127.0.0.1:7432", None)
    }

    fn guarded(address: &str, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        // Some of each validity: a store with all of them takes long to write.
        let mut valid = 0;
        let is_wanted = |record: &TrialRecord| {
            valid += usize::from(record.trial.validity.status == Status::Valid);
            record.trial.validity.status != Status::Valid || valid <= 6
        };
        let records: Vec<TrialRecord> = fixture::records().into_iter().filter(is_wanted).collect();
        for record in &records {
            store.write(record).unwrap();
        }
        let token = token.map(|token| Token::new(token).unwrap());
        let site = site(store, None, Guard::new(address.parse().unwrap(), token)).unwrap();
        Self { folder, records, site }
    }

    fn store(&self) -> Store {
        Store::existing(self.folder.path()).unwrap()
    }

    fn run(&self) -> &str {
        &self.records[0].trial.run.id
    }

    async fn get(&self, path: &str) -> TestResponse {
        self.request(Method::GET, path, &[(HOST, OWN)]).await
    }

    async fn request(&self, method: Method, path: &str, headers: &[(HeaderName, &str)]) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let response = self.site.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let (body_bytes, body) = (body.len(), String::from_utf8_lossy(&body).into_owned());
        TestResponse { status: parts.status, headers: parts.headers, body_bytes, body }
    }
}
