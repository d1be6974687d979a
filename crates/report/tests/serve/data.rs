//! Documents: those of the report, current, and sent only if they have changed.

use analysis::history::run_histories;
use analysis::overview::read_run;
use analysis::trial::{Points, detail};
use axum::http::header::{ACCEPT_ENCODING, ETAG, HOST, IF_NONE_MATCH};
use axum::http::{HeaderName, Method, StatusCode};
use model::record::Status;
use report::json;
use report::serve::{Guard, site};
use serde_json::{Value, json};

use crate::fixture::bisection;
use crate::fixture::paired::loss;
use crate::live::writer;
use crate::{OWN, TestServer};

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
    let view = || json(&read_run(&server.store().reader().unwrap(), server.run()).unwrap().unwrap());
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

/// Each session may change the probabilities of all levels.
#[tokio::test]
async fn a_bisection_follows_its_sessions() {
    let server = TestServer::new();
    let campaign = bisection::releases("");
    let records = bisection::records(&campaign, 30, |at| loss(if at >= 5 { 0.06 } else { 0.0 }), |_| false);
    let path = format!("/api/runs/{}", records[0].trial.run.id);
    let (first, rest) = records.split_at(2 * 24);
    let mut shown: Vec<Value> = Vec::new();
    for sessions in [first, rest] {
        sessions.iter().for_each(|record| drop(server.store().write(record).unwrap()));
        shown.push(server.get(&path).await.json()["bisections"][0].take());
    }
    assert_eq!((&shown[0]["sessions"], &shown[1]["sessions"]), (&json!(24), &json!(records.len() / 2)));
    let probabilities = |of: &Value| -> Vec<f64> {
        let levels = of["levels"].as_array().unwrap().iter();
        levels.filter_map(|level| level["probability"].as_f64()).collect()
    };
    let [before, after] = [&shown[0], &shown[1]].map(probabilities);
    assert_eq!((before.len(), after.len()), (bisection::RELEASES, bisection::RELEASES));
    assert_ne!(before, after);
}

#[tokio::test]
async fn damaged_bundles_are_named_in_the_view_of_the_others_until_they_are_repaired() {
    let server = TestServer::new();
    let path = format!("/api/runs/{}", server.run());
    let bundle = |nth: usize| server.folder.path().join("trials").join(&server.records[nth].trial.id);
    let damaged = [bundle(0).join("trial.json"), bundle(1).join("environment.json")];
    let contents = damaged.each_ref().map(|file| std::fs::read(file).unwrap());
    for file in &damaged {
        std::fs::remove_file(file).unwrap();
    }
    let left_out = |view: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = view["left_out"].as_array().unwrap();
        all.iter().map(|one| (text(&one["bundle"]), text(&one["file"]))).collect()
    };
    let ids = [0, 1].map(|nth| server.records[nth].trial.id.clone());
    let (headless, homeless) =
        ((ids[0].clone(), "trial.json".into()), (ids[1].clone(), "environment.json".into()));
    for _ in 0..2 {
        let response = server.get(&path).await;
        assert_eq!(response.body, json(&read_run(&server.store().reader().unwrap(), server.run()).unwrap()));
        let view = response.json();
        assert_eq!(left_out(&view), [headless.clone(), homeless.clone()]);
        assert_eq!(view["runs"][0]["trials"], server.records.len() - 2);
    }
    std::fs::write(&damaged[0], &contents[0]).unwrap();
    assert_eq!(left_out(&server.get(&path).await.json()), [homeless]);
    std::fs::write(&damaged[1], &contents[1]).unwrap();
    let view = server.get(&path).await.json();
    assert_eq!((left_out(&view), &view["runs"][0]["trials"]), (vec![], &json!(server.records.len())));

    for record in &server.records {
        let environment = server.folder.path().join("trials").join(&record.trial.id).join("environment.json");
        std::fs::write(environment, "{}").unwrap();
    }
    let new = TestServer {
        site: site(server.store(), None, Guard::new("127.0.0.1:7432".parse().unwrap(), None)).unwrap(),
        ..server
    };
    let response = new.get(&path).await;
    assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(response.error().contains("environment.json: it was changed"), "{}", response.body);
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
    let of_report = run_histories(&server.store().reader().unwrap(), server.run()).unwrap();
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
