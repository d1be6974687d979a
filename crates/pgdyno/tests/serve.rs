//! `pgdyno serve` during a campaign on a real server: its events, and the effect of killing one of the two.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use model::message::Phase;
use serde_json::Value;
use store::Store;
use store::format::live::Line;
use support::serve::Server;
use support::{Bench, signal, text, wait_until, wait_until_gone};

struct Listener(BufReader<TcpStream>);

impl Listener {
    fn new(server: &Server) -> Self {
        Self(server.request("/api/live", ""))
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The next event of a kind; events before it are skipped.
    fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next();
            if message["event"]["kind"] == kind {
                return message;
            }
        }
    }
}

fn bench() -> Bench {
    let bench = Bench::new(
        "name = 'watched'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1, 2]\n\
         [run]\nduration = '4s'\nwarmup = '1s'\nrepeats = 1\norder = 'sequential'\n",
    );
    Store::open(&bench.path().join(".pgdyno")).unwrap();
    bench
}

fn live_files(bench: &Bench) -> usize {
    let entries = std::fs::read_dir(bench.path().join(".pgdyno")).unwrap();
    entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(".live-")).count()
}

/// Whether an interval has all its figures.
fn has_all_figures(interval: &Value) -> bool {
    let positive = |name: &str| interval[name].as_f64().is_some_and(|value| value > 0.0);
    let waits = interval["waits"].as_array();
    ["tps", "p50_us", "p95_us", "p99_us", "max_us"].into_iter().all(positive)
        && interval["failed"] == 0
        && waits.is_some_and(|waits| waits.iter().any(|wait| wait["session"] == "load"))
}

#[test]
fn a_running_campaign_is_reported_also_by_a_restarted_server() {
    let bench = bench();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let (status, page) = server.get("/", "");
    assert!(status == 200 && page.contains("<!--PGDYNO_DATA-->"), "{status}");
    assert_eq!(server.runs(), serde_json::json!([]));
    let mut listener = Listener::new(&server);
    assert_eq!(listener.next()["event"], serde_json::json!({ "kind": "hello", "running": [] }));

    let running = bench.start();
    let head = listener.wait_for("run");
    let run = head["run"].as_str().unwrap().to_owned();
    assert_eq!((&head["event"]["campaign"], &head["event"]["planned"]), (&"watched".into(), &2.into()));
    let cells = head["event"]["cells"].as_array().unwrap();
    assert_eq!(cells.iter().map(|cell| cell["planned"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(1)]);
    let begun = listener.wait_for("trial_begins")["event"].clone();
    assert_eq!((&begun["position"], &begun["of"], &begun["cell_index"]), (&1.into(), &2.into(), &0.into()));
    assert_eq!(begun["cell"], cells[0]["cell"]);
    assert!(begun["remaining_us"].as_u64().unwrap() > 5_000_000, "{begun}");
    while !has_all_figures(&listener.wait_for("interval")["event"]) {}

    // The server is killed during the first trial. Its successor reports the state so far.
    server.end(libc::SIGKILL);
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let mut listener = Listener::new(&server);
    let hello = listener.next();
    assert_eq!(hello["event"]["running"], serde_json::json!([run]), "{hello}");
    assert_eq!(listener.next()["event"]["kind"], "run");
    assert_eq!(listener.next()["event"], begun);
    let first = listener.wait_for("interval");
    assert_eq!((&first["event"]["start_us"], &first["event"]["phase"]), (&0.into(), &"warmup".into()));
    let here = server.runs();
    assert_eq!(
        (&here[0]["id"], &here[0]["running"], &here[0]["valid"]),
        (&run.as_str().into(), &true.into(), &0.into())
    );

    // The trial appears without a request.
    let stored = listener.wait_for("trial");
    let ended = listener.wait_for("trial_ended");
    assert_eq!((&stored["run"], &stored["event"]["id"]), (&run.as_str().into(), &ended["event"]["id"]));
    assert!(stored["event"]["tps"].as_f64().unwrap() > 0.0);
    assert_eq!(stored["event"]["tps"], ended["event"]["tps"]);
    assert_eq!(bench.trials()[0].id, stored["event"]["id"].as_str().unwrap());
    let (status, view) = server.get(&format!("/api/runs/{run}"), "");
    assert!(status == 200 && view.contains(stored["event"]["id"].as_str().unwrap()), "{status}");

    // A killed run is reported as dead, and reappears when it is resumed.
    assert_eq!(listener.wait_for("trial_begins")["event"]["position"], 2);
    while !has_all_figures(&listener.wait_for("interval")["event"]) {}
    for command in ["check", "reindex"] {
        let done = bench.pgdyno(&["store", command]);
        assert_eq!(done.status.code(), Some(0), "beside a live file: {}", text(&done));
    }
    assert_eq!(live_files(&bench), 1);
    let process_tree = running.process_tree();
    signal(running.pid(), libc::SIGKILL);
    assert_eq!(running.end().0, None);
    let died = listener.wait_for("ended");
    assert_eq!((&died["run"], &died["event"]["how"]), (&run.as_str().into(), &"died".into()));
    assert_eq!(server.runs()[0]["running"], false);
    assert_eq!(Listener::new(&server).next()["event"]["running"], serde_json::json!([]));
    wait_until_gone(&process_tree);
    let check = bench.pgdyno(&["store", "check"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
    assert_eq!(live_files(&bench), 0, "what it left is swept");

    let resumed = bench.start_with(&["resume", "campaign.toml"]);
    let head = listener.wait_for("run");
    assert_eq!(head["run"], run.as_str());
    let done = |cell: &Value| {
        ["valid", "suspect", "invalid"].map(|of| cell[of].as_u64().unwrap()).iter().sum::<u64>()
    };
    let cells = head["event"]["cells"].as_array().unwrap();
    assert_eq!(cells.iter().map(done).collect::<Vec<_>>(), [1, 0]);
    let ended = listener.wait_for("ended");
    assert_eq!(ended["event"]["how"], "finished");
    let (code, stderr) = resumed.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(live_files(&bench), 0);

    // Ctrl-C ends the server at once, even with a client connected.
    assert_eq!(server.end(libc::SIGINT).code(), Some(0));
}

/// The value of the first sample with this name and label.
fn sample(document: &str, name: &str, label: &str) -> Option<f64> {
    let line = document.lines().find(|line| line.starts_with(name) && line.contains(label))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn metrics_of_a_running_campaign_count_what_its_bundles_have() {
    let bench = bench();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let mut listener = Listener::new(&server);
    listener.next();
    let running = bench.start();
    let run = listener.wait_for("run")["run"].as_str().unwrap().to_owned();
    let store = Store::open(&bench.path().join(".pgdyno")).unwrap();
    let mut live = store.open_live(&run).unwrap();
    let measured = loop {
        let interval = listener.wait_for("interval")["event"].clone();
        if interval["phase"] == "measure" {
            break interval;
        }
    };
    assert!(measured.get("totals").is_none(), "browsers have no use for them: {measured}");

    let (status, document) = server.get("/metrics", "");
    assert_eq!(status, 200, "{document}");
    let measured = |name| sample(&document, name, "phase=\"measure\"");
    assert!(measured("pgdyno_load_transactions_total").unwrap() > 0.0, "{document}");
    assert_eq!(measured("pgdyno_load_failed_transactions_total"), Some(0.0));
    assert_eq!(measured("pgdyno_run_phase"), Some(1.0));
    assert_eq!(measured("pgdyno_load_latency_seconds_count"), measured("pgdyno_load_transactions_total"));
    let info = document.lines().find(|line| line.starts_with("pgdyno_trial_info")).unwrap();
    for label in ["workload=\"select-only\"", "clients=\"1\"", "position=\"1\"", "server=\"18\""] {
        assert!(info.contains(label), "{info}");
    }
    check_by_promtool(&document);
    let (_, openmetrics) = server.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(openmetrics.ends_with("\n# EOF\n"), "{openmetrics}");

    let (mut totals, mut is_over) = (Vec::new(), false);
    while !is_over {
        listener.next();
        for line in live.poll().unwrap().lines {
            match line {
                Line::Interval(interval) => totals = interval.totals.0,
                Line::Ended(_) => is_over = true,
                _ => {}
            }
        }
    }
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trials = bench.trials();
    let stored: u64 = trials.iter().map(|trial| trial.summary.as_ref().unwrap().transactions.unwrap()).sum();
    let measured = totals.iter().find(|totals| totals.phase == Phase::Measure).unwrap();
    assert_eq!((trials.len(), measured.transactions), (2, stored));
    assert_eq!(measured.latency_counts.iter().sum::<u64>(), stored);
    let (_, after) = server.get("/metrics", "");
    assert_eq!(sample(&after, "pgdyno_running_runs ", ""), Some(0.0), "{after}");
}

#[test]
fn metrics_of_a_campaign_in_pairs_have_both_sides() {
    let bench = Bench::new(
        "name = 'pairs'\n[factors]\nserver = ['18']\nsettings = ['a', 'b']\nworkload = ['select-only']\nclients = [2]\n\
         [settings.a]\nwork_mem = '4MB'\n[settings.b]\nwork_mem = '8MB'\n\
         [run]\norder = 'paired'\ncompare = 'settings'\nduration = '30s'\nwarmup = '100ms'\nrepeats = { min = 3, max = 3 }\n",
    );
    Store::open(&bench.path().join(".pgdyno")).unwrap();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let running = bench.start();
    let of_side = |document: &str, name: &str, side: &str| {
        let mut lines = document.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        lines
            .find(|line| line.contains(&format!("side=\"{side}\"")) && !line.contains("phase=\"warmup\""))
            .map(str::to_owned)
    };
    let value = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
    let mut document = String::new();
    wait_until("both sides have transactions", || {
        document = server.get("/metrics", "").1;
        ["a", "b"].iter().all(|side| {
            of_side(&document, "pgdyno_interval_tps", side).is_some()
                && of_side(&document, "pgdyno_load_transactions_total", side)
                    .is_some_and(|line| value(&line) > 0.0)
        })
    });
    check_by_promtool(&document);
    for side in ["a", "b"] {
        let info = of_side(&document, "pgdyno_trial_info", side).unwrap();
        assert!(info.contains(&format!("settings=\"{side}\"")), "{info}");
    }
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
}

/// `promtool check metrics` reads a document and knows the conventions of names.
fn check_by_promtool(document: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = command.spawn() else { return skip::skip("promtool is not installed") };
    promtool.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}\n{document}", text(&output));
}

#[test]
fn outside_loopback_the_url_has_the_required_token() {
    let bench = bench();
    let server = Server::start(&bench, &["--listen", "0.0.0.0:0"]);
    let token = server.url.split_once("/?token=").unwrap().1;
    assert!(token.len() == 32, "{}", server.url);
    assert_eq!(server.get("/api/runs", "").0, 401);
    assert_eq!(server.get("/api/runs", &format!("Authorization: Bearer {token}\r\n")).0, 200);
    assert_eq!(server.get(&format!("/?token={token}"), "").0, 303);
    let another = Server::start(&bench, &["--listen", "0.0.0.0:0"]);
    assert_ne!(another.url.split_once("/?token=").unwrap().1, token);
    assert_eq!(server.end(libc::SIGTERM).code(), Some(0));

    let file = bench.path().join("token");
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    assert!(!server.url.contains("token"), "{}", server.url);
    assert_eq!(server.get("/api/runs", "").0, 401);
    assert_eq!(server.get("/api/runs", "Authorization: Bearer 0123456789abcdef0123\r\n").0, 200);
}

#[test]
fn a_server_without_descriptors_for_more_connections_answers_nevertheless() {
    let bench = bench();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let mut listeners: Vec<Listener> = (0..20).map(|_| Listener::new(&server)).collect();
    for listener in &mut listeners {
        assert_eq!(listener.next()["event"]["kind"], "hello");
    }
    // Fewer than are open already.
    let pid = server.pid();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    let maximum = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let limit = rustix::process::Rlimit { current: Some(open - 5), maximum };
    let process = rustix::process::Pid::from_raw(pid as i32);
    rustix::process::prlimit(process, rustix::process::Resource::Nofile, limit).unwrap();
    for _ in 0..3 {
        assert_eq!(server.get("/api/runs", "").0, 200);
    }
    assert_eq!(server.end(libc::SIGTERM).code(), Some(0));
}

#[test]
fn errors_of_serving_are_reported() {
    let bench = bench();
    let server = Server::start(&bench, &["--listen", "127.0.0.1:0"]);
    let taken = bench.pgdyno(&["serve", "--listen", &server.address]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(
        text(&taken).contains(&server.address) && text(&taken).contains("another port"),
        "{}",
        text(&taken)
    );

    std::fs::write(bench.path().join("short"), "short").unwrap();
    for (file, why) in [("short", "at least 16 characters"), ("missing", "No such file")] {
        let refused = bench.pgdyno(&["serve", "--token-file", file]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused).contains(why) && text(&refused).contains(file), "{}", text(&refused));
    }
    let none = bench.pgdyno(&["serve", "--store", "nowhere"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none).contains("there is no store in nowhere"), "{}", text(&none));
}
