//! Factors and options of campaigns beyond versions and clients, on real servers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[cfg(test)]
mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use host::{Cache, Progress};
use model::cell::Level;
use model::message::Endpoint;
use model::record::{Status, Trial};
use model::waits::SessionKind;
use model::workload::Transport;
use server::Cluster;
use support::{Bench, bundle, text};

struct Quiet;

impl Progress for Quiet {
    fn step(&self, _: &str, _: u64, _: Option<u64>) {}
    fn notice(&self, _: &str) {}
}

const RUN: &str = "[run]\nduration = '1s'\nwarmup = '100ms'\nrepeats = 1\nseed = 1\n";

fn ran(bench: &Bench, more: &[&str]) -> Vec<Trial> {
    let output = bench.pgdyno(&[&["run", "campaign.toml"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    bench.trials()
}

#[test]
fn a_rate_pins_threads_and_a_cold_cache_are_measured_as_asked() {
    let bench = Bench::new(&format!(
        "name = 'factors'\ntags = ['nightly']\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [4]\n\
         threads = [2]\nrate = ['max', 200]\ncache = ['warm', 'cold']\npin = ['first']\n{RUN}vacuum = 'freeze'\n\
         [pins.first]\ndriver = '0'\nserver = '0'\n\
         [hooks]\nbefore_trial = 'echo $PGDYNO_RATE $PGDYNO_CACHE $PGPORT >> hooks.txt'\nafter_campaign = 'echo end >> hooks.txt'\n"
    ));
    let trials = ran(&bench, &[]);
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
        assert_eq!(
            (trial.run.tags.as_slice(), trial.cell.threads),
            (&["nightly".to_owned()][..], Level::Known(Some(2)))
        );
        assert!(trial.server_build.as_deref().is_some_and(|build| build.starts_with("18.")));
        let log = fs::read_to_string(bundle(&bench, &trial.id).join("latency.hlog")).unwrap();
        assert_eq!(
            log.contains(":service,"),
            trial.cell.rate.into_known().unwrap().get().is_some(),
            "{}",
            trial.cell
        );
        if trial.cell.rate.into_known().unwrap().get().is_some() {
            // The mean is 200 in the window.
            let transactions = trial.summary.as_ref().unwrap().transactions.unwrap();
            assert!((50..=400).contains(&transactions), "{transactions}");
        }
    }
    let hooks = fs::read_to_string(bench.path().join("hooks.txt")).unwrap();
    assert_eq!(hooks.lines().count(), 5, "{hooks}");
    assert_eq!(hooks.lines().filter(|line| line.starts_with("200 cold ")).count(), 1, "{hooks}");
}

#[test]
fn programs_in_a_directory_and_a_server_that_runs_are_servers_like_any_other() {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, "18", &Quiet).unwrap();
    let settings = [("shared_buffers".to_owned(), "16MB".to_owned())].into();
    let theirs = Cluster::empty(&cache, &installation, &[]).unwrap().start(&settings).unwrap();
    let Endpoint::Unix { directory, port } = theirs.endpoint(Transport::Unix) else {
        unreachable!("it was asked for its socket");
    };
    let bin = installation.directory().join("bin");
    let bench = Bench::new(&format!(
        "name = 'servers'\n[factors]\nserver = ['mine', 'theirs']\nsettings = ['default', 'patient']\n\
         workload = ['select-only', 'tpcb-like', 'hot-row']\nclients = [2]\n{RUN}\
         [servers.mine]\nbin = '{}'\ninitdb = ['--no-data-checksums']\n\
         [servers.theirs]\ndsn = 'host={directory} port={port} user=postgres'\nallow_settings = true\n\
         [settings.patient]\nwork_mem = '8MB'\n",
        bin.display()
    ));
    let trials = ran(&bench, &[]);
    assert_eq!(trials.len(), 12);
    for trial in &trials {
        assert_ne!(trial.validity.status, Status::Invalid, "{}: {:?}", trial.cell, trial.validity);
        let record = bench.store().load(&trial.id).unwrap();
        let setting =
            |name: &str| record.settings.iter().find(|setting| setting.name == name).unwrap().value.clone();
        let work_mem = if trial.cell.settings.known().unwrap().name == "patient" { "8192" } else { "4096" };
        assert_eq!(setting("work_mem"), work_mem, "{}", trial.cell);
        let is_mine = trial.cell.server == "mine";
        assert_eq!(setting("data_checksums"), if is_mine { "off" } else { "on" });
        assert_eq!(trial.server_build.as_deref().is_some_and(|build| build.contains("-bin-")), is_mine);
        assert_eq!(trial.accounting.surplus(), Some(0), "{}", trial.cell);
    }
    // The setting is restored.
    let mut client = theirs.session("postgres").unwrap();
    let work_mem: String = client.query_one("select current_setting('work_mem')").unwrap();
    assert_eq!(work_mem, "4MB");
}

#[test]
fn a_server_that_lets_in_by_tls_and_password_is_collected_from_as_any_other() {
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, "18", &Quiet).unwrap();
    let cluster = Cluster::empty(&cache, &installation, &[]).unwrap();
    let data = cluster.data_directory();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let owner = fs::metadata(&data).unwrap();
    for (name, content) in [("server.crt", certificate), ("server.key", key)] {
        fs::write(data.join(name), content).unwrap();
        fs::set_permissions(data.join(name), Permissions::from_mode(0o600)).unwrap();
        chown(data.join(name), Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let cluster = cluster.with_rules("local all all trust\nhostssl all all all scram-sha-256\n");
    let theirs = cluster.start(&[("ssl".to_owned(), "on".to_owned())].into()).unwrap();
    theirs.session("postgres").unwrap().execute("alter role postgres password 'well known'").unwrap();
    let Endpoint::Tcp { port, .. } = theirs.endpoint(Transport::Tcp) else {
        unreachable!("it was asked for TCP")
    };
    // Readable only by its owner, as libpq requires.
    let passwords = tempfile::NamedTempFile::new().unwrap();
    fs::write(&passwords, "*:*:*:*:well known").unwrap();
    let bench = Bench::new(&format!(
        "name = 'guarded'\n[factors]\nserver = ['theirs']\nworkload = ['tpcb-like']\nclients = [2]\n\
         transport = ['tcp']\n{RUN}\
         [servers.theirs]\ndsn = \"host=localhost port={port} user=postgres passfile={} sslmode=require\"\n",
        passwords.path().display()
    ));
    let trials = ran(&bench, &[]);
    let [trial] = trials.as_slice() else { panic!("{trials:?}") };
    assert_ne!(trial.validity.status, Status::Invalid, "{:?}", trial.validity);
    assert_eq!(trial.accounting.surplus(), Some(0));
    let record = bench.store().load(&trial.id).unwrap();
    assert!(record.waits.iter().any(|row| row.session == SessionKind::Load), "{:?}", record.waits);
    for (metric, of) in [("pg.database.commits", None), ("pg.table.index_scans", Some("pgbench_accounts"))] {
        let series = record.metrics.get(metric, of).unwrap_or_else(|| panic!("no {metric}"));
        assert!(series.points.iter().any(|point| point.value.is_some()), "{series:?}");
    }
}

#[test]
fn confounds_are_reported_and_refused_if_requested() {
    let bench = Bench::new(&format!(
        "name = 'confounds'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1]\n{RUN}"
    ));
    let plan = bench.pgdyno(&["plan", "campaign.toml", "--strict"]);
    assert_eq!(plan.status.code(), Some(2));
    assert!(text(&plan).contains("setting data_checksums: off → on"), "{}", text(&plan));
    let refused = bench.pgdyno(&["run", "campaign.toml", "--strict"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("data_checksums: off → on"), "{}", text(&refused));
    assert_eq!(bench.trials().len(), 0);
    let run = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(run.status.code(), Some(0));
    assert!(text(&run).contains("server 17 and 18 differ in more than server"), "{}", text(&run));
    assert!(String::from_utf8_lossy(&run.stdout).contains("Differences that are not a declared factor"));
}

#[test]
fn a_trial_whose_hook_fails_is_invalid_with_the_reason() {
    let bench = Bench::new(&format!(
        "name = 'hooks'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n{RUN}retries = 1\n\
         [hooks]\nbefore_trial = 'echo no room >&2; exit 1'\n"
    ));
    let output = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let trials = bench.trials();
    assert_eq!(trials.len(), 2, "it was tried again");
    let evidence = &trials[0].validity.findings[0].evidence;
    assert!(evidence.contains("no room"), "{evidence}");
    assert!(trials[1].reason.as_ref().unwrap().contains("attempt 1 was invalid"));
}
