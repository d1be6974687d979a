//! Live events: the state so far, then what happens, for as many listeners as there may be.

use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use store::format::live::{self, Ended, How, Line, TrialBegins};
use store::{LiveWriter, Store, Totals};
use tower::ServiceExt as _;

use crate::{LONG, OWN, TestServer};

impl TestServer {
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

pub(crate) fn head(campaign: &str) -> live::Run {
    live::Run {
        format: live::VERSION,
        campaign: campaign.to_owned(),
        pgdyno_version: "0.1.0".to_owned(),
        begun: "2026-01-02T03:04:05Z".parse().unwrap(),
        planned: 1,
        cells: vec![],
    }
}

pub(crate) fn begins() -> TrialBegins {
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
        levels: [("clients".to_owned(), "8".to_owned())].into(),
        side: None,
        other: None,
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
        side: None,
        totals: Totals::default(),
    })
}

pub(crate) fn writer(store: &Store, run: &str) -> LiveWriter {
    let mut writer = store.begin_live(run, head("upgrade")).unwrap();
    writer.trial(head("upgrade"), begins()).unwrap();
    writer
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
async fn there_may_be_so_many_listeners_and_no_more() {
    let server = TestServer::new();
    let mut listeners = Vec::new();
    for _ in 0..64 {
        listeners.push(server.listen().await);
    }
    let one_more = tokio::time::timeout(LONG, server.get("/api/live")).await.unwrap();
    assert_eq!(one_more.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(one_more.error().contains("64") && one_more.error().contains("close one"), "{}", one_more.body);
    assert_eq!(server.get("/api/runs").await.status, StatusCode::OK);
    listeners.pop();
    assert_eq!(server.listen().await.kinds(1).await, ["hello"]);
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
