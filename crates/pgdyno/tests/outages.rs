//! Outages of what trials depend on: a server that pgdyno does not own restarts, a disk is full. They cost no attempts,
//! and nothing that was measured is lost.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use host::{Cache, NoProgress};
use model::record::{Status, Trial};
use server::instance::{self, Instance};
use server::{Installation, StopMode};
use skip::skip;
use support::{Bench, signal, text, wait_until};
use wire::ConnectParams;
use wire::blocking::Session;

fn installation() -> Installation {
    server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap()
}

/// A server that pgdyno does not own, in a cache of its own; stopped when dropped.
struct Theirs {
    directory: tempfile::TempDir,
    installation: Installation,
    port: u16,
    socket_directory: String,
}

impl Theirs {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let installation = installation();
        let server = start(directory.path(), &installation, None);
        let socket_directory = server.socket_directory().unwrap().display().to_string();
        Self { port: server.port(), directory, installation, socket_directory }
    }

    fn start(&self) {
        start(self.directory.path(), &self.installation, Some(self.port));
    }

    /// A campaign of trials on it.
    fn campaign(&self, run: &str) -> String {
        format!(
            "name = 'outage'\n[factors]\nserver = ['theirs']\nworkload = ['select-only']\nclients = [1]\n\
             [servers.theirs]\ndsn = 'host={} port={} user=postgres'\n\
             [run]\nduration = '300ms'\nwarmup = '0s'\n{run}",
            self.socket_directory, self.port
        )
    }

    /// The command that stops it after the first trial.
    fn stop_after_first(&self) -> String {
        format!(
            "test $PGDYNO_TRIAL != 1 || PGDYNO_CACHE={} {} server stop theirs",
            self.directory.path().display(),
            env!("CARGO_BIN_EXE_pgdyno")
        )
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let cache = Cache::at(self.directory.path()).unwrap();
        let _ = instance::stop(&cache, "theirs", StopMode::Immediate);
        let _ = instance::remove(&cache, "theirs");
    }
}

fn start(cache: &Path, installation: &Installation, port: Option<u16>) -> Instance {
    let settings = [("fsync".to_owned(), "off".to_owned())].into();
    let start = instance::Start {
        name: "theirs",
        installation,
        template: None,
        settings: &settings,
        port,
        tcp: false,
    };
    instance::start(&Cache::at(cache).unwrap(), &start, &NoProgress).unwrap()
}

/// Each trial's attempt, and whether it is usable.
fn attempts(trials: &[Trial]) -> Vec<(u32, bool)> {
    trials.iter().map(|trial| (trial.attempt, trial.validity.status != Status::Invalid)).collect()
}

#[test]
fn a_campaign_waits_for_a_server_that_restarts() {
    let theirs = Theirs::new();
    let stop = theirs.stop_after_first();
    let bench = Bench::new(
        &theirs.campaign(&format!("repeats = 3\nretries = 0\n[hooks]\nafter_trial = '''{stop}'''\n")),
    );
    let mut running = bench.start();
    running.wait_for("waiting for the server");
    theirs.start();
    let (code, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(attempts(&bench.trials()), [(1, true); 3], "{stderr}");
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_and_resume_runs_the_rest() {
    let theirs = Theirs::new();
    let stop = theirs.stop_after_first();
    let bench = Bench::new(
        &theirs.campaign(&format!("repeats = 2\nretries = 0\n[hooks]\nafter_trial = '''{stop}'''\n")),
    );
    let mut running = bench.start();
    running.wait_for("waiting for the server");
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("1 remain: pgdyno resume"), "{stderr}");
    // While it is down, nothing is measured and no attempt is used.
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(1), "{}", text(&resumed));
    assert!(text(&resumed).contains("Is the server running"), "{}", text(&resumed));
    assert_eq!(attempts(&bench.trials()), [(1, true)]);
    theirs.start();
    let resumed = bench.pgdyno(&["resume", "campaign.toml"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert_eq!(attempts(&bench.trials()), [(1, true); 2]);
}

#[test]
fn ctrl_c_ends_a_setup_on_a_server_that_pgdyno_does_not_own() {
    let theirs = Theirs::new();
    let campaign = theirs.campaign("repeats = 1\n").replace("select-only", "slow");
    let bench = Bench::new(&format!(
        "{campaign}[workloads.slow]\nscript = 'slow.sql'\nsetup = 'setup.sql'\ntables = 'none'\n"
    ));
    fs::write(bench.path().join("setup.sql"), "select pg_sleep(3600);\n").unwrap();
    fs::write(bench.path().join("slow.sql"), "select 1;\n").unwrap();
    let running = bench.start();
    let host = theirs.socket_directory.clone();
    let mut session =
        Session::connect(&ConnectParams::new(host, theirs.port, "postgres", "postgres", None)).unwrap();
    let mut count = |from: &str| session.query_one::<u64>(&format!("select count(*) from {from}")).unwrap();
    wait_until("the setup runs", || {
        count("pg_stat_activity where state = 'active' and query like 'select pg_sleep%'") == 1
    });
    assert_eq!(count("pg_database where datname like 'pgdyno%'"), 1);
    signal(running.pid(), libc::SIGINT);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(count("pg_stat_activity where query like 'select pg_sleep%' and pid <> pg_backend_pid()"), 0);
    assert_eq!(count("pg_database where datname like 'pgdyno%'"), 0, "{stderr}");
}

/// Runs a shell script as root in a mount namespace of its own, where `small` is a file system of 256 MB. Returns its
/// output; none, with the reason, if that is not possible here.
fn with_small_disk(bench: &Bench, script: &str) -> Option<String> {
    let mount = "mkdir small && mount -t tmpfs -o size=256m,mode=755 tmpfs small";
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).current_dir(bench.path());
        command.env("PGDYNO", env!("CARGO_BIN_EXE_pgdyno")).env_remove("PGDYNO_STORE");
        command.env("PGDYNO_QUEUE", bench.path()).output()
    };
    fs::set_permissions(bench.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let is_possible = in_namespace(mount).is_ok_and(|output| output.status.success());
    let _ = fs::remove_dir(bench.path().join("small"));
    if !is_possible {
        skip("a full disk: this test can't mount a small file system");
        return None;
    }
    Some(text(&in_namespace(&format!("{mount}\n{script}")).unwrap()))
}

const FILL: &str = "dd if=/dev/zero of=small/filler bs=1M 2>/dev/null";

#[test]
fn a_trial_waits_for_space_in_the_store() {
    let bench = Bench::new(&format!(
        "name = 'full'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
         [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 2\nretries = 0\n\
         [hooks]\nafter_trial = '''test $PGDYNO_TRIAL != 2 || {FILL} || true'''\n"
    ));
    let script = "$PGDYNO run campaign.toml --store small/store 2>stderr >/dev/null &
        until grep -q 'waiting for space' stderr || ! kill -0 $!; do sleep 0.1; done
        rm small/filler; wait $!; echo run: $?; cat stderr
        $PGDYNO store list --store small/store --format json";
    let Some(output) = with_small_disk(&bench, script) else { return };
    assert!(output.contains("run: 0\n"), "{output}");
    assert!(output.contains("waiting for space, up to 5 minutes"), "{output}");
    assert!(output.contains("2 usable and 0 invalid trials"), "{output}");
}

#[test]
fn a_full_cache_stops_the_campaign_and_costs_no_attempt() {
    let bench = Bench::new(&format!(
        "name = 'full'\n[factors]\nserver = ['18']\nworkload = ['tpcb-like']\nclients = [1]\n\
         [run]\nduration = '300ms'\nwarmup = '0s'\nrepeats = 3\nretries = 0\n\
         [hooks]\nafter_trial = '''test $PGDYNO_TRIAL != 1 || {FILL} || true'''\n"
    ));
    let installation = installation();
    let source = Cache::open().unwrap().installations().join(installation.identity());
    let script = format!(
        "export PGDYNO_CACHE=$PWD/small/cache
        mkdir -p small/cache/installations && cp -a {} small/cache/installations
        $PGDYNO run campaign.toml; echo run: $?
        rm small/filler; $PGDYNO resume campaign.toml; echo resume: $?",
        source.display()
    );
    let Some(output) = with_small_disk(&bench, &script) else { return };
    assert!(output.contains("run: 1\n"), "{output}");
    assert!(output.contains("No space left on device"), "{output}");
    assert!(output.contains("The campaign stopped"), "{output}");
    assert!(output.contains("resume: 0\n"), "{output}");
    assert_eq!(attempts(&bench.trials()), [(1, true); 3], "{output}");
}
