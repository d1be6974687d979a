//! `/metrics`: the running campaigns in both text formats.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use axum::http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST};
use axum::http::{HeaderName, Method, StatusCode};
use model::message::Phase;
use model::paired::Side;
use report::monitoring::{Kind, all_live};
use store::format::live::{self, Line, TrialBegins, TrialEnded};
use store::{LATENCY_BOUNDS_US, LiveWriter, PhaseTotals, Totals};

use crate::live::{begins, head};
use crate::{OWN, TOKEN, TestResponse, TestServer};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0";

impl TestServer {
    async fn metrics(&self, accept: &str) -> TestResponse {
        let response = self.request(Method::GET, "/metrics", &[(HOST, OWN), (ACCEPT, accept)]).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        response
    }

    async fn samples(&self) -> BTreeMap<String, f64> {
        samples(&self.metrics("text/plain").await.body)
    }
}

/// The samples of a document, by their name with its labels. There are no two with the same.
fn samples(document: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for line in document.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert_eq!(samples.insert(name.to_owned(), value.parse().unwrap()), None, "twice: {name}");
    }
    samples
}

fn run_head(campaign: &str, valid: usize) -> live::Run {
    let cell = live::Cell { cell: "18 select-only".to_owned(), planned: 3, valid, suspect: 1, invalid: 0 };
    live::Run { planned: 3, cells: vec![cell], ..head(campaign) }
}

fn trial(position: u32) -> TrialBegins {
    let level = |name: &str, level: &str| (name.to_owned(), level.to_owned());
    // A level that needs escaping, and a factor that this release does not have.
    let levels = [level("server", "18"), level("settings", "a \"b\" \\ c\nd"), level("le", "1")];
    TrialBegins { position, levels: levels.into(), ..begins() }
}

fn wait(session: &str, kind: &str, event: Option<&str>, sessions: f64) -> live::Wait {
    live::Wait {
        session: session.to_owned(),
        kind: kind.to_owned(),
        event: event.map(str::to_owned),
        sessions,
    }
}

fn interval(phase: Phase, totals: Vec<PhaseTotals>) -> Line {
    Line::Interval(live::Interval {
        start_us: 1_000_000,
        width_us: 500_000,
        phase,
        tps: 1234.5,
        failed: Some(0),
        p50_us: Some(700.0),
        p95_us: Some(900.0),
        p99_us: None,
        max_us: Some(5000.0),
        waits: Some(vec![
            wait("load", "CPU", None, 1.5),
            wait("load", "CPU", None, 0.5),
            wait("load", "LWLock", Some("WALWrite"), 2.0),
        ]),
        side: None,
        totals: Totals(totals),
    })
}

/// Totals of a phase whose latencies are all in one bucket.
fn totals(phase: Phase, transactions: u64, failed: Option<u64>) -> PhaseTotals {
    let mut latency_counts = vec![0; LATENCY_BOUNDS_US.len() + 1];
    latency_counts[9] = transactions;
    PhaseTotals { phase, transactions, failed, latency_sum_us: transactions as f64 * 600.0, latency_counts }
}

fn writer(server: &TestServer, run: &str) -> LiveWriter {
    let mut writer = server.store().begin_live(run, run_head("upgrade", 0)).unwrap();
    writer.trial(run_head("upgrade", 0), trial(1)).unwrap();
    writer
}

fn ended(validity: &str) -> Line {
    Line::TrialEnded(TrialEnded {
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        id: store::new_id(),
        position: 1,
        cell_index: 0,
        repeat: 1,
        attempt: 1,
        validity: validity.to_owned(),
        tps: Some(1.0),
        reasons: Vec::new(),
    })
}

#[tokio::test]
async fn without_a_running_campaign_the_document_is_valid() {
    let server = TestServer::new();
    let text = server.metrics("*/*").await;
    assert_eq!(
        text.header("content-type".parse::<HeaderName>().unwrap()),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let version = model::release::VERSION;
    let expected = [
        (format!("pgdyno_build_info{{version=\"{version}\"}}"), 1.0),
        ("pgdyno_running_runs".to_owned(), 0.0),
    ];
    assert_eq!(samples(&text.body), expected.into());
    let openmetrics = server.metrics(OPENMETRICS).await;
    assert_eq!(
        openmetrics.body,
        format!(
            "# TYPE pgdyno_build info\n# HELP pgdyno_build release of this pgdyno\n\
             pgdyno_build_info{{version=\"{version}\"}} 1\n\
             # TYPE pgdyno_running_runs gauge\n# HELP pgdyno_running_runs campaigns running on the store\n\
             pgdyno_running_runs 0\n# EOF\n"
        )
    );
    check_by_promtool(&text.body);
}

/// `promtool check metrics` reads a document and knows the conventions of names.
fn check_by_promtool(document: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = command.spawn() else { return skip::skip("promtool is not installed") };
    promtool.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{complaints}\n{document}");
}

#[tokio::test]
async fn running_campaigns_are_in_the_formats_of_prometheus() {
    let server = TestServer::new();
    let mut runs = [store::new_id(), store::new_id()];
    runs.sort();
    let [run, other] = runs;
    let mut first = writer(&server, &run);
    let _second = server.store().begin_live(&other, run_head("other", 2)).unwrap();
    let so_far = vec![totals(Phase::Warmup, 1000, Some(1)), totals(Phase::Measure, 10, None)];
    first.append(&interval(Phase::Measure, so_far)).unwrap();

    let text = server.metrics("text/plain").await.body;
    check_by_promtool(&text);
    let hidden = |text: &str| {
        let remaining = text.replace(&run, "RUN").replace(&other, "OTHER");
        remaining.replace(model::release::VERSION, "VERSION")
    };
    insta::assert_snapshot!("metrics_in_prometheus_text", hidden(&text));
    let openmetrics = server.metrics(OPENMETRICS).await;
    assert_eq!(
        openmetrics.header("content-type".parse::<HeaderName>().unwrap()),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert_eq!(openmetrics.header("vary".parse::<HeaderName>().unwrap()), "Accept");
    insta::assert_snapshot!("metrics_in_openmetrics", hidden(&openmetrics.body));
    assert_eq!(samples(&openmetrics.body), samples(&text), "both have the same samples");
}

/// docs/serve.md lists families with their labels.
#[tokio::test]
async fn every_family_appears_with_its_labels() {
    let server = TestServer::new();
    let mut writer = writer(&server, &store::new_id());
    let so_far = vec![totals(Phase::Measure, 10, Some(0))];
    let Line::Interval(interval) = interval(Phase::Measure, so_far) else { panic!() };
    writer.append(&Line::Interval(live::Interval { p99_us: Some(1.0), ..interval })).unwrap();
    let samples = server.samples().await;
    for family in all_live() {
        let name =
            family.metric_name() + if family.kind == Kind::Histogram { "_bucket" } else { family.ending() };
        let labels = samples.keys().find_map(|sample| match sample.split_once('{') {
            Some((of, labels)) => (of == name).then_some(labels),
            None => (*sample == name).then_some(""),
        });
        let labels = labels.unwrap_or_else(|| panic!("no {name} in {samples:?}"));
        let names: BTreeSet<&str> =
            labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name).collect();
        let is_of_run = !["pgdyno_build_info", "pgdyno_running_runs"].contains(&name.as_str());
        let mut expected: BTreeSet<&str> =
            family.labels.iter().copied().chain(is_of_run.then_some("run")).collect();
        match (family.kind, name.as_str()) {
            (Kind::Histogram, _) => _ = expected.insert("le"),
            (_, "pgdyno_trial_info") => expected.extend(["server", "settings"]),
            _ => {}
        }
        assert_eq!(names, expected, "{name}");
    }
}

/// Counters must not fall between the trials of a run: Prometheus would not see that they began anew.
#[tokio::test]
async fn counters_continue_over_the_trials_of_a_run_and_the_rest_is_of_the_current_one() {
    let server = TestServer::new();
    let run = store::new_id();
    let mut writer = writer(&server, &run);
    let value = |samples: &BTreeMap<String, f64>, name: &str, labels: &str| {
        samples.get(&format!("{name}{{run=\"{run}\"{labels}}}")).copied()
    };
    let transactions = |samples: &BTreeMap<String, f64>| {
        value(samples, "pgdyno_load_transactions_total", ",phase=\"measure\"")
    };
    let trials = |samples: &BTreeMap<String, f64>| {
        ["valid", "suspect", "invalid"]
            .map(|of| value(samples, "pgdyno_run_trials_total", &format!(",validity=\"{of}\"")).unwrap())
    };
    let phase = |samples: &BTreeMap<String, f64>| {
        let is =
            |phase: &&str| value(samples, "pgdyno_run_phase", &format!(",phase=\"{phase}\"")) == Some(1.0);
        let current: Vec<&str> =
            ["prepare", "warmup", "measure", "drain"].into_iter().filter(|of| is(of)).collect();
        current.join(" and ")
    };
    let before = server.samples().await;
    assert_eq!((transactions(&before), phase(&before)), (None, "prepare".to_owned()));
    assert_eq!(value(&before, "pgdyno_interval_tps", ""), None, "there is no load yet");

    writer.append(&interval(Phase::Measure, vec![totals(Phase::Measure, 10, Some(0))])).unwrap();
    let measuring = server.samples().await;
    assert_eq!((transactions(&measuring), phase(&measuring)), (Some(10.0), "measure".to_owned()));
    assert_eq!(value(&measuring, "pgdyno_trial_loaded_seconds", ""), Some(1.5));

    writer.append(&interval(Phase::Measure, vec![totals(Phase::Measure, 20, Some(0))])).unwrap();
    writer.append(&ended("valid")).unwrap();
    let between = server.samples().await;
    assert_eq!((transactions(&between), phase(&between)), (Some(20.0), "prepare".to_owned()));
    assert_eq!(trials(&between), [1.0, 1.0, 0.0]);
    assert_eq!(value(&between, "pgdyno_interval_tps", ""), None, "the load is over");

    // The file of the next trial has not yet any totals, and the head has counted the trial.
    writer.trial(run_head("upgrade", 1), trial(2)).unwrap();
    let preparing = server.samples().await;
    assert_eq!((transactions(&preparing), trials(&preparing)), (Some(20.0), [1.0, 1.0, 0.0]));
    assert_eq!(value(&preparing, "pgdyno_trial_loaded_seconds", ""), Some(0.0));
    let infos: Vec<&String> = preparing.keys().filter(|name| name.starts_with("pgdyno_trial_info")).collect();
    assert!(infos.len() == 1 && infos[0].contains("position=\"2\""), "{infos:?}");

    drop(writer);
    assert_eq!(server.samples().await["pgdyno_running_runs"], 0.0);
    assert_eq!(server.samples().await.len(), 2, "a run that is over is forgotten");
}

/// Both sides of a session have their load at the same time, in turns.
#[tokio::test]
async fn campaigns_in_pairs_have_the_loads_of_both_sides() {
    let server = TestServer::new();
    let run = store::new_id();
    let mut writer = server.store().begin_live(&run, run_head("pairs", 0)).unwrap();
    let side = |position, side, level: &str| TrialBegins {
        side: Some(side),
        levels: [("server".to_owned(), level.to_owned())].into(),
        ..trial(position)
    };
    let (a, b) = (side(1, Side::A, "17"), side(2, Side::B, "18"));
    let both = TrialBegins { other: Some(Box::new(b.clone())), ..a };
    writer.trial(run_head("pairs", 0), both).unwrap();
    for (side, transactions) in [(Side::A, 10), (Side::B, 20)] {
        let Line::Interval(interval) =
            interval(Phase::Measure, vec![totals(Phase::Measure, transactions, Some(0))])
        else {
            panic!()
        };
        writer.append(&Line::Interval(live::Interval { side: Some(side), ..interval })).unwrap();
    }
    let text = server.metrics("text/plain").await.body;
    check_by_promtool(&text);
    let during = samples(&text);
    let value = |samples: &BTreeMap<String, f64>, name: &str| {
        ["a", "b"].map(|side| {
            let is_side = |sample: &&String| {
                sample.starts_with(&format!("{name}{{")) && sample.contains(&format!("side=\"{side}\""))
            };
            samples.iter().find(|(sample, _)| is_side(sample)).map(|(_, value)| *value)
        })
    };
    assert_eq!(value(&during, "pgdyno_load_transactions_total"), [Some(10.0), Some(20.0)]);
    assert_eq!(value(&during, "pgdyno_load_latency_seconds_count"), [Some(10.0), Some(20.0)]);
    assert_eq!(value(&during, "pgdyno_interval_tps"), [Some(1234.5); 2]);
    assert_eq!(value(&during, "pgdyno_trial_loaded_seconds"), [Some(1.5); 2]);
    let info = |side: &str, server: &str| {
        let is_info = |sample: &&String| {
            sample.starts_with("pgdyno_trial_info") && sample.contains(&format!("side=\"{side}\""))
        };
        during.keys().find(is_info).is_some_and(|sample| sample.contains(&format!("server=\"{server}\"")))
    };
    assert!(info("a", "17") && info("b", "18"), "{text}");
    for family in all_live().iter().filter(|family| !family.labels.contains(&"phase")) {
        let name = family.metric_name() + family.ending();
        let of_trial =
            ["pgdyno_trial_", "pgdyno_interval_", "pgdyno_load_"].iter().any(|of| name.starts_with(of));
        let without_side = during.keys().any(|sample| sample.starts_with(&name) && !sample.contains("side="));
        assert!(!of_trial || !without_side, "{name}: {text}");
    }

    // Each has a line of its own when both have ended; the counters go on, and there is no load.
    writer.append(&ended("valid")).unwrap();
    writer.trial(run_head("pairs", 1), b).unwrap();
    writer.append(&ended("valid")).unwrap();
    let after = server.samples().await;
    assert_eq!(value(&after, "pgdyno_load_transactions_total"), [Some(10.0), Some(20.0)]);
    assert_eq!(value(&after, "pgdyno_interval_tps"), [None; 2]);
    let infos = after.keys().filter(|name| name.starts_with("pgdyno_trial_info")).count();
    assert_eq!(infos, 2, "{after:?}");
}

/// A live file of an earlier release has no totals, and one of another has other buckets.
#[tokio::test]
async fn what_a_live_file_lacks_is_left_out() {
    let server = TestServer::new();
    let run = store::new_id();
    let mut writer = writer(&server, &run);
    writer.append(&interval(Phase::Measure, Vec::new())).unwrap();
    let names = |samples: BTreeMap<String, f64>| -> BTreeSet<String> {
        samples.into_keys().map(|name| name.split('{').next().unwrap().to_owned()).collect()
    };
    let without = names(server.samples().await);
    assert!(without.contains("pgdyno_interval_tps"), "{without:?}");
    assert!(
        !without.iter().any(|name| name.starts_with("pgdyno_load_t") || name.contains("bucket")),
        "{without:?}"
    );
    let other = PhaseTotals { latency_counts: vec![1, 2], ..totals(Phase::Measure, 3, None) };
    writer.append(&interval(Phase::Measure, vec![other])).unwrap();
    let without = names(server.samples().await);
    assert!(without.contains("pgdyno_load_transactions_total"), "{without:?}");
    assert!(!without.iter().any(|name| name.contains("latency_seconds")), "{without:?}");
    assert!(!without.contains("pgdyno_load_failed_transactions_total"), "unknown is not 0: {without:?}");
}

#[tokio::test]
async fn access_is_that_of_the_other_endpoints() {
    let server = TestServer::guarded("0.0.0.0:7432", Some(TOKEN));
    let refused = server.get("/metrics").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.error().contains("Authorization: Bearer"), "{}", refused.body);
    let token = format!("Bearer {TOKEN}");
    let answered = server.request(Method::GET, "/metrics", &[(HOST, "any"), (AUTHORIZATION, &token)]).await;
    assert_eq!(answered.status, StatusCode::OK);

    let server = TestServer::new();
    let foreign = server.request(Method::GET, "/metrics", &[(HOST, "evil.example")]).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let head = server.request(Method::HEAD, "/metrics", &[(HOST, OWN)]).await;
    assert_eq!((head.status, head.body_bytes), (StatusCode::OK, 0));
    let _writer = writer(&server, &store::new_id());
    let zipped = server.request(Method::GET, "/metrics", &[(HOST, OWN), (ACCEPT_ENCODING, "gzip")]).await;
    assert_eq!(zipped.header("content-encoding".parse::<HeaderName>().unwrap()), "gzip");
}
