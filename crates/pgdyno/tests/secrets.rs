//! No secret is in anything that a run leaves or shows: bundles, the live file, reports, exports, answers of `serve`,
//! output, command lines and environments. Each secret is planted in another place and notation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use host::Cache;
use model::cell::Level;
use model::message::Endpoint;
use model::spec::Campaign;
use model::workload::Transport;
use server::{Cluster, Server};
use store::Store;
use support::{Bench, Process, Running, text, until_exists, wait_until};

/// The beginning of every planted secret.
const PLANTED: &str = "planted-";
/// The password of the server that pgdyno does not own.
const PASSWORD: &str = "planted-password";

const SETUP: &str = "DO $$ BEGIN CREATE ROLE secrets_test; EXCEPTION WHEN duplicate_object THEN NULL; END $$;\n\
                     ALTER ROLE secrets_test PASSWORD 'planted-setup';\n";
/// Fails, so that it is in the server's log; not by a missing object, which would end the campaign.
const FAILS: &str =
    "SELECT 1;\nALTER ROLE secrets_test\n  PASSWORD 'planted-log' VALID UNTIL 'never again';\n";
/// Succeeds, so that it is in pg_stat_statements.
const SUCCEEDS: &str = "ALTER ROLE bench PASSWORD 'planted-password';\n";
const TEARDOWN: &str = "ALTER ROLE nobody_at_all PASSWORD 'planted-teardown';\n";

fn campaign(port: u16) -> String {
    format!(
        r#"name = "secrets" # password=planted-comment
notes = "postgresql://me:planted-notes@host/"
[factors]
transport = ["tcp"]
clients = [1]
[[matrix]]
server = ["18"]
settings = ["plain", "replica"]
workload = ["own"]
[[matrix]]
server = ["theirs"]
workload = ["succeeds.sql"]
[run]
duration = "2s"
warmup = "0s"
repeats = 1
retries = 0
order = "sequential"
[servers.theirs]
dsn = "host=127.0.0.1 port={port} user=bench"
[settings.plain]
work_mem = "8MB"
[settings.replica]
inherits = "plain"
primary_conninfo = "host=a user=b password=planted-setting"
archive_command = "PGPASSWORD='planted command' copy %p"
"some.token" = "planted-extension"
password_encryption = "scram-sha-256"
[workloads.own]
script = "fails.sql"
setup = "setup.sql"
teardown = "teardown.sql"
parameters = {{ token = "planted-parameter" }}
[hooks]
before_campaign = "PGPASSWORD='planted-before'; true"
before_trial = '''
PGPASSWORD=planted-hook; : curl -u me:planted-login -H 'Authorization: Bearer planted-header' https://me:planted-url@host/
touch ready; {wait}'''
after_trial = '''
set -x; echo "password = planted-output $PGDYNO_TOKEN {{\"token\": \"planted-json\"}}"; exit 1'''
after_campaign = "echo 'password: planted-after'; exit 1"
"#,
        wait = until_exists("go")
    )
}

/// A server with a password that pgdyno does not own.
fn theirs() -> Server {
    let cache = Cache::open().unwrap();
    let installation = server::install_newest(&cache, "18", &host::NoProgress).unwrap();
    let cluster = Cluster::empty(&cache, &installation, &[])
        .unwrap()
        .with_rules("local all all trust\nhost all all all scram-sha-256\n");
    let settings = [("shared_preload_libraries".to_owned(), "pg_stat_statements".to_owned())].into();
    let server = cluster.start_within(&settings, &model::limits::Limits::none(), Transport::Tcp).unwrap();
    let mut session = server.session("postgres").unwrap();
    session.execute("CREATE EXTENSION pg_stat_statements").unwrap();
    session.execute(&format!("CREATE ROLE bench SUPERUSER LOGIN PASSWORD '{PASSWORD}'")).unwrap();
    server
}

/// What processes show of themselves, while they run.
#[derive(Default)]
struct Seen {
    command_lines: BTreeSet<String>,
    environments: BTreeSet<String>,
}

impl Seen {
    /// Adds the descendants of pgdyno, except those that are still a copy of it because they have not executed their
    /// program yet. Hooks have the environment of the user who wrote them.
    fn look(&mut self, running: &Running) {
        let mut hooks: Vec<i32> = Vec::new();
        let tree = running.process_tree();
        let Some(own) = tree.iter().find(|process| process.pid == running.pid()) else { return };
        for process in tree.iter().filter(|process| process.command != own.command) {
            self.command_lines.insert(process.command.clone());
            if process.command.contains("pgdyno_hook") || hooks.contains(&process.parent) {
                hooks.push(process.pid);
            } else if let Ok(environment) = fs::read(format!("/proc/{}/environ", process.pid)) {
                let name = process.command.split(' ').next().unwrap();
                self.environments.insert(format!("{name}: {}", String::from_utf8_lossy(&environment)));
            }
        }
    }

    fn has(&self, text: &str) -> bool {
        self.command_lines.iter().any(|line| line.contains(text))
    }
}

/// Asserts that a text has no secret, even split by JSON's escapes.
#[track_caller]
fn assert_clean(what: &str, text: &str) {
    if let Some(at) = text.find("planted") {
        let around: String = text[..at].chars().rev().take(60).collect::<String>().chars().rev().collect();
        panic!("{what}: {around}{}", text[at..].chars().take(60).collect::<String>());
    }
}

/// Asserts that no file below a directory has a secret, also where it is compressed.
fn assert_files_clean(directory: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += assert_files_clean(&path);
            continue;
        }
        let content = fs::read(&path).unwrap();
        let name = path.display().to_string();
        let content =
            if name.ends_with(".zst") { zstd::decode_all(content.as_slice()).unwrap() } else { content };
        assert_clean(&name, &String::from_utf8_lossy(&content));
        files += 1;
    }
    files
}

/// The content of a report file: it has compressed parts.
fn report_content(html: &str) -> String {
    let is_of_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let mut content = html.to_owned();
    for part in html.split(|c| !is_of_base64(c)).filter(|part| part.len() > 100) {
        let mut text = String::new();
        if let Ok(bytes) = STANDARD.decode(part)
            && GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).is_ok()
        {
            content += &text;
        }
    }
    content
}

/// Asserts that no command shows a secret of the store, or publishes one to this server.
fn assert_shown_clean(bench: &Bench, theirs: &Server) {
    let trials: Vec<String> = bench.store().ids().unwrap();
    let shown = |args: &[&str], code: i32| {
        let output = bench.pgdyno(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        assert_clean(&format!("{args:?}"), &text(&output));
        text(&output)
    };
    for format in ["table", "json", "csv"] {
        shown(&["show", "--format", format], 0);
        shown(&["store", "list", "--format", format], 0);
    }
    for id in &trials {
        shown(&["show", id], 0);
        shown(&["show", id, "--format", "json"], 0);
    }
    shown(&["compare", "settings=plain", "settings=replica", "--format", "json"], 4);
    shown(&["explain", "server=theirs", "--format", "json"], 0);
    for format in ["csv", "json"] {
        shown(&["export", "-o", format, "--format", format], 0);
        assert!(assert_files_clean(&bench.path().join(format)) > 5);
    }
    shown(&["report", "-o", "report.html"], 0);
    let content = report_content(&fs::read_to_string(bench.path().join("report.html")).unwrap());
    assert_clean("report.html", &content);
    assert!(content.contains("(masked)") && content.contains("pgbench_accounts"), "it was decoded");

    let Endpoint::Tcp { port, .. } = theirs.endpoint(Transport::Tcp) else { panic!("no TCP") };
    let connection = format!("postgresql://bench:{PASSWORD}@127.0.0.1:{port}/postgres");
    shown(&["publish", &connection, "--schema", "results"], 0);
    let mut session = theirs.session("postgres").unwrap();
    let published: String =
        session.query_one("SELECT schema_to_xml('results', true, false, '')::text").unwrap();
    assert_clean("published", &published);
    assert!(published.contains("ALTER ROLE bench PASSWORD '(masked)'"));
    session.execute("DROP SCHEMA results CASCADE").unwrap();

    let server = support::serve::Server::start(bench, &["--listen", "127.0.0.1:0"]);
    let run = server.runs()[0]["id"].as_str().unwrap().to_owned();
    let mut paths = vec!["/".to_owned(), "/api/runs".to_owned(), format!("/api/runs/{run}")];
    paths.push(format!("/api/runs/{run}/histories"));
    paths.extend(trials.iter().map(|id| format!("/api/trials/{id}")));
    for path in paths {
        let (status, body) = server.get(&path, "");
        assert_eq!(status, 200, "{path}: {body}");
        assert_clean(&path, &body);
    }
}

#[test]
fn no_secret_is_in_anything_that_a_run_leaves_or_shows() {
    let theirs = theirs();
    let Endpoint::Tcp { port, .. } = theirs.endpoint(Transport::Tcp) else { panic!("no TCP") };
    let campaign = campaign(port);
    let bench = Bench::new(&campaign);
    for (file, content) in
        [("fails.sql", FAILS), ("succeeds.sql", SUCCEEDS), ("setup.sql", SETUP), ("teardown.sql", TEARDOWN)]
    {
        fs::write(bench.path().join(file), content).unwrap();
    }

    // Each place is reported once.
    let plan = bench.pgdyno(&["plan", "campaign.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    assert_clean("plan", &text(&plan));
    for place in [
        "campaign.toml:1: a comment",
        "campaign.toml:25: settings.replica.primary_conninfo",
        "campaign.toml:26: settings.replica.archive_command",
        "campaign.toml:36: hooks.before_trial",
        "campaign.toml: workload own: script fails.sql, line 3",
    ] {
        let line = format!("{place} contains a secret: in results it is (masked)\n");
        assert_eq!(text(&plan).matches(&line).count(), 1, "{line} in {}", text(&plan));
    }
    assert!(!text(&plan).contains("password_encryption"));
    assert_clean("plan", &text(&bench.pgdyno(&["plan", "campaign.toml", "--format", "json"])));

    let mut command = bench.command(&["run", "campaign.toml"]);
    command.env("PGPASSWORD", PASSWORD).env("PGDYNO_TOKEN", "planted-token");
    command.env("AWS_SECRET_ACCESS_KEY", "planted-variable");
    let running = bench.start_command(command);
    let mut seen = Seen::default();
    // A hook waits, with the server running.
    wait_until("the hook runs", || bench.path().join("ready").exists());
    seen.look(&running);
    let live = |bench: &Bench| -> Option<String> {
        let entries = fs::read_dir(bench.path().join(".pgdyno")).ok()?;
        let path = entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".live-")))?;
        fs::read_to_string(path).ok()
    };
    let mut live_text = live(&bench).unwrap();
    assert!(seen.has("pgdyno_hook") && seen.has("postgres"), "{:?}", seen.command_lines);
    fs::write(bench.path().join("go"), "").unwrap();
    wait_until("the run has ended", || {
        seen.look(&running);
        live_text += &live(&bench).unwrap_or_default();
        let tree = running.process_tree();
        !tree.iter().any(|process: &Process| process.pid == running.pid())
    });
    let (code, stderr) = running.end();
    assert_eq!(code, Some(5), "{stderr}");
    assert_clean("standard error", &stderr);
    assert!(stderr.contains("the hook `echo 'password: (masked)'; exit 1` failed"), "{stderr}");
    assert_clean("the live file", &live_text);
    assert!(live_text.contains("trial_ended") && live_text.contains("\"kind\":\"interval\""), "{live_text}");
    assert!(seen.has(" driver"), "{:?}", seen.command_lines);
    assert_clean("command lines", &format!("{:?}", seen.command_lines));
    assert_clean("environments", &format!("{:?}", seen.environments));
    assert!(seen.environments.iter().any(|one| one.contains("pgdyno: ")), "{:?}", seen.environments);

    // What the run stored, as it is, with what is compressed.
    assert!(assert_files_clean(&bench.path().join(".pgdyno")) > 20);
    let trials = bench.trials();
    assert_eq!(trials.len(), 3);
    let mut all = String::new();
    for trial in &trials {
        let mut record = bench.store().with_secrets().load(&trial.id).unwrap();
        assert_clean("metrics", &format!("{:?}", std::mem::take(&mut record.metrics)));
        all += &format!("{record:?}");
    }
    assert_clean("bundles", &all);
    for evidence in [
        "query: \"ALTER ROLE bench PASSWORD '(masked)'\"",
        "STATEMENT:  ALTER ROLE secrets_test\\n\\t  PASSWORD '(masked)'",
        "+ echo password = (masked) (masked) {\\\"token\\\": \\\"(masked)\\\"}",
        "\"primary_conninfo\": \"(masked)\"",
        "\"archive_command\": \"PGPASSWORD='(masked)' copy %p\"",
        "\"password_encryption\": \"scram-sha-256\"",
        "the teardown failed",
    ] {
        assert!(all.contains(evidence), "{evidence} is not in {all}");
    }
    assert_shown_clean(&bench, &theirs);

    // Without its secrets, a campaign is not run again.
    let resumed = bench.pgdyno(&["resume"]);
    assert_eq!(resumed.status.code(), Some(2), "{}", text(&resumed));
    for part in
        ["settings.replica.primary_conninfo", "hooks.after_trial", "script fails.sql", "`pgdyno resume FILE`"]
    {
        assert!(text(&resumed).contains(part), "{part}: {}", text(&resumed));
    }
    // Another password is no change, and no other cell.
    let edited = campaign.replace("planted-setting", "planted-other").replace("exit 1", "exit 0");
    fs::write(bench.path().join("campaign.toml"), edited).unwrap();
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(2), "{}", text(&resumed));
    assert!(
        text(&resumed).contains("unchanged: 3 cells") && !text(&resumed).contains("new:"),
        "{}",
        text(&resumed)
    );
    assert!(text(&resumed).contains("hooks: "), "{}", text(&resumed));
    assert_clean("resume", &text(&resumed));

    a_store_of_an_earlier_release_is_shown_without_its_secrets(&bench, &campaign, &theirs);
}

/// Stores the trials of a bench as earlier releases did, with secrets, and shows them.
fn a_store_of_an_earlier_release_is_shown_without_its_secrets(
    bench: &Bench,
    campaign: &str,
    theirs: &Server,
) {
    let campaign_with_secrets = Campaign::parse(campaign).unwrap();
    let earlier = Bench::new(campaign);
    let store = Store::open(&earlier.path().join(".pgdyno")).unwrap().with_secrets();
    for trial in bench.trials() {
        let mut record = bench.store().load(&trial.id).unwrap();
        record.trial.run.campaign_toml = campaign.to_owned();
        if let Level::Known(settings) = &mut record.trial.cell.settings {
            for (name, value) in &mut settings.values {
                let table = campaign_with_secrets.settings.iter().find(|(key, _)| key.get_ref() == "replica");
                let written = table.and_then(|(_, table)| table.get_ref().get(name));
                *value =
                    written.and_then(|value| Some(value.get_ref().as_str()?.to_owned())).unwrap_or_default();
            }
        }
        for finding in &mut record.trial.validity.findings {
            finding.evidence = format!("{}: password=planted-finding", finding.evidence);
        }
        for event in &mut record.events {
            event.message += " PGPASSWORD=planted-event";
        }
        for log in record.logs.iter_mut().filter(|log| log.name == "server") {
            log.text = log.text.replace("(masked)", "planted-log");
        }
        for statement in &mut record.statements {
            statement.query = statement.query.replace("(masked)", "planted-statement");
        }
        store.write(&record).unwrap();
    }
    let stored = fs::read_to_string(
        earlier.path().join(".pgdyno/trials").join(&bench.trials()[0].id).join("campaign.toml"),
    );
    assert!(stored.unwrap().contains(PLANTED));
    assert_shown_clean(&earlier, theirs);
}
