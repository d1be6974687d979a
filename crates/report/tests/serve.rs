//! Answers of `pgdyno serve` and its access control: every request passes through all of it except a socket.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use analysis::history::run_histories;
use analysis::overview::read_run;
use analysis::trial::{Points, detail};
use axum::Router;
use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE, ETAG, HOST, IF_NONE_MATCH, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use model::record::{Status, TrialRecord};
use report::json;
use report::serve::{Guard, Token, site};
use serde_json::{Value, json};
use store::format::live::{self, Ended, How, Line, TrialBegins};
use store::{LiveWriter, Store};
use tempfile::TempDir;
use tower::ServiceExt as _;

const OWN: &str = "localhost:7432";
const TOKEN: &str = "0123456789abcdef0123";

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
        let site = site(store, Guard::new(address.parse().unwrap(), token)).unwrap();
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

    async fn listen(&self) -> Listener {
        let request = Request::builder().uri("/api/live").header(HOST, OWN).body(Body::empty()).unwrap();
        let response = self.site.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Listener { body: response.into_body(), received: String::new() }
    }
}

/// A client of the live data.
struct Listener {
    body: Body,
    received: String,
}

impl Listener {
    /// The next message; none if the stream has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((message, rest)) = self.received.split_once("\n\n") {
                let message = message.strip_prefix("data: ").map(|data| serde_json::from_str(data).unwrap());
                self.received = rest.to_owned();
                if message.is_some() {
                    return message;
                }
                continue;
            }
            let frame = self.body.frame().await?.unwrap().into_data().unwrap();
            self.received += std::str::from_utf8(&frame).unwrap();
        }
    }

    async fn kinds(&mut self, count: usize) -> Vec<String> {
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(self.next().await.unwrap()["event"]["kind"].as_str().unwrap().to_owned());
        }
        kinds
    }
}

fn head(campaign: &str) -> live::Run {
    live::Run {
        format: live::VERSION,
        campaign: campaign.to_owned(),
        pgdyno_version: "0.1.0".to_owned(),
        begun: "2026-01-02T03:04:05Z".parse().unwrap(),
        planned: 1,
        cells: vec![],
    }
}

fn begins() -> TrialBegins {
    TrialBegins {
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        position: 1,
        of: 1,
        cell: "18 select-only".to_owned(),
        cell_index: 0,
        repeat: 1,
        attempt: 1,
        reason: None,
        remaining_us: 2_000_000,
        warmup_us: 0,
        duration_us: 1_000_000,
    }
}

fn interval(start_us: u64) -> Line {
    Line::Interval(live::Interval {
        start_us,
        width_us: 1_000_000,
        phase: model::message::Phase::Measure,
        tps: 1234.5,
        failed: Some(0),
        p50_us: Some(700.0),
        p95_us: Some(900.0),
        p99_us: Some(1100.0),
        max_us: Some(5000.0),
        waits: Some(vec![live::Wait {
            session: "load".to_owned(),
            kind: "CPU".to_owned(),
            event: None,
            sessions: 3.5,
        }]),
    })
}

fn writer(store: &Store, run: &str) -> LiveWriter {
    let mut writer = store.begin_live(run, head("upgrade")).unwrap();
    writer.trial(head("upgrade"), begins()).unwrap();
    writer
}

#[tokio::test]
async fn the_page_may_connect_to_this_server_only_and_its_policy_is_sent() {
    let page = TestServer::new().get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("<!--PGDYNO_DATA-->") && page.body.contains("connect-src 'self'"));
    let policy = page.header("content-security-policy".parse::<HeaderName>().unwrap());
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("connect-src 'none'"), "{policy}");
}

#[tokio::test]
async fn all_responses_have_the_security_headers() {
    let server = TestServer::new();
    let mut responses = vec![server.request(Method::GET, "/", &[(HOST, "evil.example")]).await];
    for path in ["/", "/api/runs", "/api/runs/x", "/nowhere"] {
        responses.push(server.get(path).await);
    }
    responses.push(server.request(Method::POST, "/", &[(HOST, OWN)]).await);
    for response in responses {
        let header = |name: &'static str| response.header(HeaderName::from_static(name));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(header("x-frame-options"), "DENY");
        assert!(header("content-security-policy").contains("default-src 'none'"));
        assert!(!header("cache-control").is_empty());
    }
}

#[tokio::test]
async fn runs_are_listed_with_their_trials_by_validity_and_whether_they_run() {
    let server = TestServer::new();
    let runs = server.get("/api/runs").await.json();
    let count =
        |status| server.records.iter().filter(|record| record.trial.validity.status == status).count();
    let trials = server.records.iter().map(|record| &record.trial);
    assert_eq!(
        runs,
        json!([{
            "id": server.run(),
            "campaign": server.records[0].trial.run.campaign,
            "tags": server.records[0].trial.run.tags,
            "imported": false,
            "started": trials.clone().filter_map(|trial| trial.started).min(),
            "ended": trials.filter_map(|trial| trial.ended).max(),
            "valid": count(Status::Valid),
            "suspect": count(Status::Suspect),
            "invalid": count(Status::Invalid),
            "running": false,
        }])
    );
    assert!(
        ["valid", "suspect", "invalid"].iter().all(|validity| runs[0][validity].as_u64().unwrap() > 0),
        "{runs}"
    );
    let (again, new) = (server.run().to_owned(), store::new_id());
    let _resumed = writer(&server.store(), &again);
    let _begun = writer(&server.store(), &new);
    let runs = server.get("/api/runs").await.json();
    assert_eq!(runs[0]["running"], true);
    assert_eq!((&runs[1]["id"], &runs[1]["running"]), (&json!(new), &json!(true)));
    assert_eq!((&runs[1]["campaign"], &runs[1]["valid"]), (&json!("upgrade"), &json!(0)));
    assert_eq!(server.get(&format!("/api/runs/{new}")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_view_equals_that_of_the_report_and_follows_the_store() {
    let server = TestServer::new();
    let path = format!("/api/runs/{}", server.run());
    let first = server.get(&path).await;
    let view = || json(&read_run(&server.store(), server.run()).unwrap().unwrap());
    assert_eq!(first.body, view());
    assert_eq!(first.header(HeaderName::from_static("content-type")), "application/json");
    let mut record = server.records[0].clone();
    record.trial.id = store::new_id();
    record.trial.attempt += 1;
    server.store().write(&record).unwrap();
    let second = server.get(&path).await;
    assert_eq!(second.body, view());
    assert_ne!(first.body, second.body);
    assert_ne!(first.header(ETAG), second.header(ETAG));
}

#[tokio::test]
async fn a_trial_has_the_full_detail_of_the_report() {
    let server = TestServer::new();
    let id = &server.records[0].trial.id;
    let response = server.get(&format!("/api/trials/{id}")).await;
    assert_eq!(response.body, json(&detail(&server.store().load(id).unwrap(), Points::All)));
    let unknown = server.get(&format!("/api/trials/{}", store::new_id())).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.error().contains("store list"), "{}", unknown.body);
    let damaged = &server.records[1].trial.id;
    let bundle = server.folder.path().join("trials").join(damaged);
    std::fs::write(bundle.join("trial.json"), "{}").unwrap();
    let response = server.get(&format!("/api/trials/{damaged}")).await;
    assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(response.error().contains(damaged), "{}", response.body);
}

#[tokio::test]
async fn histories_equal_those_of_the_report_and_follow_the_store() {
    let server = TestServer::new();
    let path = format!("/api/runs/{}/histories", server.run());
    assert_eq!(server.get(&path).await.json(), json!([]));
    for _ in 0..4 {
        let mut record = server.records[0].clone();
        (record.trial.id, record.trial.run.id) = (store::new_id(), store::new_id());
        server.store().write(&record).unwrap();
    }
    let response = server.get(&path).await;
    let trials = server.store().trials().unwrap();
    let of_report = run_histories(&server.store(), &trials, server.run()).unwrap();
    assert!(!of_report.is_empty());
    assert_eq!(
        response.json(),
        json!(of_report.iter().map(report::history::Document::new).collect::<Vec<_>>())
    );
    let unknown = server.get(&format!("/api/runs/{}/histories", store::new_id())).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn no_bundle_is_read_again() {
    let server = TestServer::new();
    let path = format!("/api/runs/{}", server.run());
    let first = server.get(&path).await.body;
    // Data that were read stay cached, even if the files change.
    for record in &server.records {
        std::fs::write(server.folder.path().join("trials").join(&record.trial.id).join("SHA256SUMS"), "")
            .unwrap();
    }
    assert_eq!(server.get(&path).await.body, first);
    let mut record = server.records[0].clone();
    record.trial.id = store::new_id();
    record.trial.attempt += 1;
    server.store().write(&record).unwrap();
    let second = server.get(&path).await;
    assert_eq!(second.status, StatusCode::OK, "{}", second.body);
    assert!(second.body.contains(&record.trial.id));
}

#[tokio::test]
async fn unchanged_documents_are_not_sent_again() {
    let server = TestServer::new();
    for path in ["/".to_owned(), "/api/runs".to_owned(), format!("/api/runs/{}", server.run())] {
        let first = server.get(&path).await;
        let tag = first.header(ETAG);
        assert!(tag.starts_with("W/\""), "{tag}");
        let known = format!("\"other\", {tag}");
        let again = server.request(Method::GET, &path, &[(HOST, OWN), (IF_NONE_MATCH, &known)]).await;
        assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{path}");
        let other = server.request(Method::GET, &path, &[(HOST, OWN), (IF_NONE_MATCH, "\"other\"")]).await;
        assert_eq!(other.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn responses_are_compressed_if_the_client_accepts_it() {
    let server = TestServer::new();
    let path = format!("/api/runs/{}", server.run());
    let plain = server.get(&path).await;
    let small = server.request(Method::GET, &path, &[(HOST, OWN), (ACCEPT_ENCODING, "gzip, br")]).await;
    assert_eq!(small.header(HeaderName::from_static("content-encoding")), "gzip");
    assert_eq!(plain.header(HeaderName::from_static("content-encoding")), "");
    assert!(small.body_bytes < plain.body_bytes / 2);
}

#[tokio::test]
async fn only_get_and_head_are_accepted() {
    let server = TestServer::new();
    let head = server.request(Method::HEAD, "/api/runs", &[(HOST, OWN)]).await;
    assert_eq!((head.status, head.body.as_str()), (StatusCode::OK, ""));
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        for path in ["/", "/api/runs", "/api/live", "/nowhere"] {
            let response = server.request(method.clone(), path, &[(HOST, OWN)]).await;
            assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert!(response.error().contains("GET"));
        }
    }
}

#[tokio::test]
async fn only_ids_give_access_to_the_store() {
    let server = TestServer::new();
    std::fs::write(server.folder.path().join("secret"), "secret").unwrap();
    let id = server.run();
    let lower = id.to_lowercase();
    for bad in ["..", "../secret", "..%2Fsecret", "%2e%2e%2fsecret", "%00", "%FF", "x", &id[..10], &lower] {
        for path in
            [format!("/api/runs/{bad}"), format!("/api/runs/{bad}/histories"), format!("/api/trials/{bad}")]
        {
            let response = server.get(&path).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
            assert!(
                !response.error().is_empty() && !response.body.contains("secret"),
                "{path}: {}",
                response.body
            );
        }
    }
    for path in
        ["/secret", "/../secret", "/%2e%2e/secret", "//etc/passwd", "/api", "/api/runs/", "/api/runs/a/b/c"]
    {
        assert_eq!(server.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let unknown = server.get(&format!("/api/runs/{}", store::new_id())).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.error().contains("no trial of run"));
}

#[tokio::test]
async fn on_loopback_other_host_names_are_refused() {
    let server = TestServer::new();
    for host in ["evil.example:7432", "localhost", "localhost:80", "127.0.0.1.evil.example:7432"] {
        let response = server.request(Method::GET, "/api/runs", &[(HOST, host)]).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{host}");
        assert!(response.error().contains("http://localhost:7432/"));
    }
    assert_eq!(server.request(Method::GET, "/api/runs", &[]).await.status, StatusCode::FORBIDDEN);
    for host in ["127.0.0.1:7432", "[::1]:7432"] {
        assert_eq!(server.request(Method::GET, "/api/runs", &[(HOST, host)]).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn outside_loopback_a_token_is_required_and_kept_by_the_browser() {
    let server = TestServer::guarded("192.0.2.1:7432", Some(TOKEN));
    let host = (HOST, "bench.example:7432");
    let without = server.request(Method::GET, "/", std::slice::from_ref(&host)).await;
    assert_eq!(without.status, StatusCode::UNAUTHORIZED);
    assert!(without.body.contains("pgdyno serve") && without.body.contains("?token="), "{}", without.body);
    for path in ["/api/runs", "/api/live", "/api/nowhere"] {
        let without = server.request(Method::GET, path, std::slice::from_ref(&host)).await;
        assert_eq!(without.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(without.error().contains("token"));
    }
    for wrong in [
        "/?token=",
        "/?token=0123456789abcdef0124",
        "/?token=0123456789abcdef01234",
        "/api/runs?token=0123456789abcdef0123",
    ] {
        let wrong = server.request(Method::GET, wrong, std::slice::from_ref(&host)).await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        assert_eq!(wrong.header(SET_COOKIE), "");
    }

    let right = server.request(Method::GET, &format!("/?token={TOKEN}"), std::slice::from_ref(&host)).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
    assert_eq!(right.header(HeaderName::from_static("location")), "./");
    let cookie = right.header(SET_COOKIE);
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let kept = format!("theme=dark; {}", cookie.split(';').next().unwrap());
    let page = server.request(Method::GET, "/", &[host.clone(), (COOKIE, &kept)]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.body.contains(TOKEN));

    let bearer = |token: &str| format!("Bearer {token}");
    let with =
        server.request(Method::GET, "/api/runs", &[host.clone(), (AUTHORIZATION, &bearer(TOKEN))]).await;
    assert_eq!(with.status, StatusCode::OK);
    for wrong in ["", "0123456789abcdef0124", "x"] {
        let with =
            server.request(Method::GET, "/api/runs", &[host.clone(), (AUTHORIZATION, &bearer(wrong))]).await;
        assert_eq!(with.status, StatusCode::UNAUTHORIZED);
    }
    let other = kept.replace("pgdyno-7432", "pgdyno-7433");
    let of_another = server.request(Method::GET, "/api/runs", &[host, (COOKIE, &other)]).await;
    assert_eq!(of_another.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn listeners_receive_the_current_state_and_then_events() {
    let server = TestServer::new();
    let run = store::new_id();
    let mut writer = writer(&server.store(), &run);
    writer.append(&interval(0)).unwrap();

    let mut first = server.listen().await;
    assert_eq!(
        first.next().await.unwrap(),
        json!({ "run": null, "event": { "kind": "hello", "running": [run] } })
    );
    assert_eq!(first.kinds(3).await, ["run", "trial_begins", "interval"]);
    writer.append(&interval(1_000_000)).unwrap();
    assert_eq!(
        first.next().await.unwrap(),
        json!({ "run": run, "event": {
            "kind": "interval", "start_us": 1_000_000, "width_us": 1_000_000, "phase": "measure", "tps": 1234.5,
            "failed": 0, "p50_us": 700.0, "p95_us": 900.0, "p99_us": 1100.0, "max_us": 5000.0,
            "waits": [{ "session": "load", "type": "CPU", "event": null, "sessions": 3.5 }],
        }})
    );

    // A later client receives all of it, too, and new events once.
    let mut second = server.listen().await;
    assert_eq!(second.kinds(5).await, ["hello", "run", "trial_begins", "interval", "interval"]);
    let mut record = server.records[0].clone();
    record.trial.id = store::new_id();
    server.store().write(&record).unwrap();
    writer.end(Ended { at: "2026-01-02T03:04:05Z".parse().unwrap(), how: How::Finished, why: None });
    for listener in [&mut first, &mut second] {
        let stored = listener.next().await.unwrap();
        assert_eq!(stored["run"], record.trial.run.id);
        assert_eq!(stored["event"]["kind"], "trial");
        assert_eq!(stored["event"]["id"], record.trial.id);
        assert_eq!(stored["event"]["cell"], record.trial.cell.to_string());
        assert_eq!(stored["event"]["validity"], record.trial.validity.status.as_str());
        let ended = listener.next().await.unwrap();
        assert_eq!((&ended["event"]["kind"], &ended["event"]["how"]), (&json!("ended"), &json!("finished")));
    }
    assert_eq!(
        server.listen().await.next().await.unwrap()["event"],
        json!({ "kind": "hello", "running": [] })
    );
}

#[tokio::test]
async fn slow_listeners_are_disconnected_and_delay_nobody() {
    let server = TestServer::new();
    let run = store::new_id();
    let mut writer = writer(&server.store(), &run);
    let (mut slow, mut other) = (server.listen().await, server.listen().await);
    other.kinds(3).await;
    for number in 0..6000_u64 {
        writer.append(&interval(number * 1_000_000)).unwrap();
        // Received now and then, so that not too many messages wait.
        if number % 1000 == 999 {
            while other.next().await.unwrap()["event"]["start_us"] != number * 1_000_000 {}
        }
    }
    assert_eq!(slow.kinds(3).await, ["hello", "run", "trial_begins"]);
    assert_eq!(slow.next().await, None);
    let mut again = server.listen().await;
    assert_eq!(again.kinds(4).await, ["hello", "run", "trial_begins", "interval"]);
}

#[tokio::test]
async fn a_killed_run_is_reported_as_dead_until_it_is_resumed() {
    let server = TestServer::new();
    let run = server.run().to_owned();
    let path = server.folder.path().join(format!(".live-{run}.jsonl"));
    let alive = writer(&server.store(), &run);
    let mut listener = server.listen().await;
    assert_eq!(listener.kinds(3).await, ["hello", "run", "trial_begins"]);
    // As after a kill: the lock is released, and the file stays.
    let copy = server.folder.path().join("copy");
    std::fs::hard_link(&path, &copy).unwrap();
    drop(alive);
    std::fs::rename(&copy, &path).unwrap();
    let died = listener.next().await.unwrap();
    assert_eq!((&died["run"], &died["event"]["how"]), (&json!(run), &json!("died")));
    assert_eq!(server.get("/api/runs").await.json()[0]["running"], false);
    let mut later = server.listen().await;
    assert_eq!(later.next().await.unwrap()["event"], json!({ "kind": "hello", "running": [] }));

    let _resumed = writer(&Store::existing(server.folder.path()).unwrap(), &run);
    for listener in [&mut listener, &mut later] {
        let resumed = listener.next().await.unwrap();
        assert_eq!((&resumed["run"], &resumed["event"]["kind"]), (&json!(run), &json!("run")));
    }
}
