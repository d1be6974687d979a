//! `/api/fleet`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use model::fleet::{FleetStatus, QueuedRun, RunStatus, SetAsideBlock};
use report::serve::{Guard, site};
use serde_json::json;
use store::Store;

use crate::TestServer;

fn server(ask: impl Fn() -> Result<FleetStatus, String> + Send + Sync + 'static) -> TestServer {
    let server = TestServer::new();
    let store = Store::existing(server.folder.path()).unwrap();
    let guard = Guard::new("127.0.0.1:7432".parse().unwrap(), None);
    TestServer { site: site(store, Some(Box::new(ask)), guard).unwrap(), ..server }
}

#[tokio::test]
async fn without_a_fleet_there_is_none() {
    let response = TestServer::new().get("/api/fleet").await;
    assert_eq!((response.status, &*response.body), (StatusCode::OK, "null"));
}

#[tokio::test]
async fn viewers_share_an_answer() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = server(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let run = QueuedRun {
            run: "01KAK3".to_owned(),
            campaign: "versions".to_owned(),
            coordinator: "desk".to_owned(),
            at: "2026-11-27T12:00:00Z".parse().unwrap(),
        };
        let aside = SetAsideBlock { block: "3".to_owned(), reasons: vec!["agent one died".to_owned()] };
        let run =
            RunStatus { run, waiting: 2, running: vec![], complete: 5, set_aside: vec![aside], trials: 20 };
        Ok(FleetStatus { agents: vec![], runs: vec![run] })
    });
    for _ in 0..3 {
        let document = server.get("/api/fleet").await.json();
        assert_eq!(
            document,
            json!({
                "schema": 1,
                "agents": [],
                "runs": [{
                    "run": "01KAK3", "campaign": "versions", "coordinator": "desk", "at": "2026-11-27T12:00:00Z",
                    "waiting": 2, "running": [], "complete": 5, "trials": 20,
                    "set_aside": [{ "block": "3", "reasons": ["agent one died"] }],
                }],
            })
        );
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_fleet_that_does_not_answer_is_asked_again() {
    let asked = AtomicUsize::new(0);
    let server = server(move || match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the NATS server does not answer".to_owned()),
        _ => Ok(FleetStatus::default()),
    });
    let response = server.get("/api/fleet").await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.error(), "the NATS server does not answer");
    assert_eq!(server.get("/api/fleet").await.status, StatusCode::OK);
}
