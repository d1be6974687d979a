//! One load from several hosts: drivers that are processes of this host, with clocks of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::{DriverError, Process, ProcessEvent};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use host::Cache;
use model::load_hosts::{RequestedHosts, start_spread_us};
use model::message::{Interval, Phase, Reply, Request};
use model::plan::Basis;
use model::record::{Status, Trial, TrialRecord};
use runner::campaign::{Campaign, RunOutcome};
use runner::campaign_file::CampaignFile;
use runner::observer::{Event, Observer};
use runner::{Driver, HostContext, LoadHosts, LoadHostsError, NamedDriver, RunError};
use store::Store;
use support::text;
use support::theirs::Theirs;

/// Drivers on this host in place of several ones: with clocks that are ahead by these, and what each of them reported.
struct LocalHosts {
    offsets_us: Vec<i64>,
    /// The host whose driver is killed in the first trial.
    killed: Option<usize>,
    trials: AtomicU32,
    hosts: Mutex<Vec<Arc<Mutex<Reported>>>>,
}

/// What one driver reported in the last trial.
#[derive(Default)]
struct Reported {
    intervals: Vec<Interval>,
    /// The instant at which it began, by the clock of this host.
    began_us: Option<i64>,
    transactions: u64,
}

impl LocalHosts {
    fn new(offsets_us: &[i64]) -> Self {
        Self {
            offsets_us: offsets_us.to_vec(),
            killed: None,
            trials: AtomicU32::new(0),
            hosts: Mutex::default(),
        }
    }
}

impl LoadHosts for LocalHosts {
    fn start(&self, requested: &RequestedHosts) -> Result<Vec<NamedDriver>, LoadHostsError> {
        let trial = self.trials.fetch_add(1, Ordering::Relaxed);
        let mut hosts = self.hosts.lock().unwrap();
        hosts.clear();
        if requested.count() as usize != self.offsets_us.len() {
            return Err(format!("only {} agents are there", self.offsets_us.len()).into());
        }
        let mut start = |(at, offset_us): (usize, &i64)| {
            let process = Process::spawn(Path::new(env!("CARGO_BIN_EXE_pgdyno")), &["driver"])?;
            let reported = Arc::default();
            hosts.push(Arc::clone(&reported));
            let is_killed = trial == 0 && self.killed == Some(at);
            let host = LocalHost { process, offset_us: *offset_us, is_killed, reported };
            Ok((format!("host-{at}"), Box::new(host) as Box<dyn Driver>))
        };
        self.offsets_us.iter().enumerate().map(&mut start).collect()
    }
}

/// A driver process whose clock is ahead: all its times are changed on their way.
struct LocalHost {
    process: Process,
    offset_us: i64,
    is_killed: bool,
    reported: Arc<Mutex<Reported>>,
}

impl Driver for LocalHost {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        match request {
            Request::Start { at_us } => self.process.send(&Request::Start { at_us: at_us - self.offset_us }),
            request => self.process.send(request),
        }
    }

    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        let mut event = self.process.next(timeout)?;
        let mut reported = self.reported.lock().unwrap();
        match &mut event {
            ProcessEvent::Reply(Reply::Clock { received_us, sent_us, .. }) => {
                *received_us += self.offset_us;
                *sent_us += self.offset_us;
            }
            ProcessEvent::Reply(Reply::Started { at, late_us }) => {
                reported.began_us = Some(at.monotonic_us + *late_us as i64);
                at.monotonic_us += self.offset_us;
            }
            ProcessEvent::Reply(Reply::Interval(interval)) => {
                reported.intervals.push(interval.clone());
                if self.is_killed {
                    self.process.kill()?;
                }
            }
            ProcessEvent::Reply(Reply::Finished(outcome)) => {
                reported.transactions =
                    outcome.warmup_transactions + outcome.window_transactions + outcome.drain_transactions;
            }
            _ => {}
        }
        Ok(event)
    }
}

struct Nobody;

impl Observer for Nobody {
    fn on_event(&self, _: &Event) {}
}

/// The trials of a campaign.
struct Ran {
    outcome: Result<RunOutcome, RunError>,
    directory: tempfile::TempDir,
}

impl Ran {
    fn store(&self) -> Store {
        Store::existing(&self.directory.path().join("store")).unwrap()
    }

    fn trials(&self) -> Vec<Trial> {
        self.store().trials().unwrap()
    }

    fn record(&self) -> TrialRecord {
        let store = self.store();
        let trials = store.trials().unwrap();
        store.load(&trials.last().unwrap().id).unwrap()
    }

    /// What a command of pgdyno prints of its store.
    fn printed(&self, args: &[&str]) -> String {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.args(args).args(["--store", "store"]).current_dir(self.directory.path());
        text(&command.env_remove("PGDYNO_STORE").output().unwrap())
    }
}

/// Runs a campaign with its load from these hosts.
fn run(campaign: &str, hosts: Option<&dyn LoadHosts>) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store")).unwrap();
    let basis = Some(Basis { seed: 1, processors: Some(4) });
    let file =
        CampaignFile::parse(&directory.path().join("campaign.toml"), campaign.to_owned(), basis).unwrap();
    let outcome = runner::run(&Campaign {
        plan: &file.plan,
        run: &file.new_run(&[]),
        trials: &[],
        earlier: &BTreeSet::new(),
        block: None,
        more_blocks: None,
        host: &HostContext::detect(),
        strict: false,
        allow_concurrent: true,
        store: &store,
        cache: &Cache::open().unwrap(),
        program: Path::new(env!("CARGO_BIN_EXE_pgdyno")),
        load_hosts: hosts,
        interrupt: &AtomicBool::new(false),
        observer: &Nobody,
    });
    Ran { outcome, directory }
}

/// Histograms by phase, start of the interval, script and phase in which they count.
type Histograms = BTreeMap<(&'static str, u64, String, &'static str), Histogram<u64>>;

/// The histograms of intervals, added by their places.
fn histograms(intervals: &[Interval]) -> Histograms {
    let mut all = Histograms::new();
    for interval in intervals {
        // The drain begins at another time on each host.
        let start_us = if interval.phase == Phase::Drain { 0 } else { interval.start_us };
        for script in &interval.scripts {
            for of_phase in &script.latencies {
                let bytes = STANDARD.decode(&of_phase.latency_ns).unwrap();
                let one: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                let name = script.script.clone();
                let key = (interval.phase.as_str(), start_us, name, of_phase.phase.as_str());
                match all.get_mut(&key) {
                    Some(sum) => sum.add(one).unwrap(),
                    None => drop(all.insert(key, one)),
                }
            }
        }
    }
    all
}

const FACTORS: &str = "workload = ['select-only']\nclients = [8]\n";

const RUN: &str = "duration = '3s'\nwarmup = '500ms'\nrepeats = 1\n";

#[test]
fn four_hosts_put_one_load_on_a_server() {
    let theirs = Theirs::new();
    let offsets_us = [0, 500_000, -500_000, 86_400_000_000];
    let hosts = LocalHosts::new(&offsets_us);
    // One driver, before and after. Their figures agree within the noise of this machine, which is not asserted.
    let one_driver = || {
        let trial = run(&theirs.campaign(FACTORS, RUN), None).trials().pop().unwrap();
        assert!(trial.load_hosts.is_empty());
        trial
    };
    let before = one_driver();
    let campaign = theirs.campaign(FACTORS, &format!("{RUN}load_hosts = 4"));
    let ran = run(&campaign, Some(&hosts));
    ran.outcome.as_ref().unwrap();
    let record = ran.record();
    let trial = &record.trial;
    assert_ne!(trial.validity.status, Status::Invalid, "{:#?}", trial.validity);

    // Every transaction is counted once, by the drivers and by the server.
    let reported: Vec<_> = hosts.hosts.lock().unwrap().clone();
    let reported: Vec<_> = reported.iter().map(|reported| reported.lock().unwrap()).collect();
    let of_drivers: u64 = reported.iter().map(|reported| reported.transactions).sum();
    assert_eq!(trial.accounting.driver_transactions, Some(of_drivers));
    assert_eq!(trial.accounting.surplus(), Some(0), "{:?}", trial.accounting);

    // Bucket by bucket, the sum of the parts.
    let parts: Vec<Interval> = reported.iter().flat_map(|reported| reported.intervals.clone()).collect();
    let (merged, parts) = (histograms(&record.intervals), histograms(&parts));
    assert!(merged.len() >= 4, "{:?}", merged.keys());
    assert_eq!(merged, parts);
    let of_window: u64 =
        merged.iter().filter(|((phase, ..), _)| *phase == "measure").map(|(_, one)| one.len()).sum();
    assert_eq!(trial.summary.as_ref().unwrap().transactions, Some(of_window));

    // Clocks and starts are as close as stated. Without the injected offsets, all clocks are one.
    assert_eq!(trial.load_hosts.len(), 4);
    let mut began_us: Vec<i64> = Vec::new();
    for ((at, host), (offset_us, reported)) in
        trial.load_hosts.iter().enumerate().zip(offsets_us.iter().zip(&reported))
    {
        assert_eq!((host.name.as_str(), host.clients), (format!("host-{at}").as_str(), 2));
        let (found_us, bound_us) = (host.offset_us.unwrap(), host.bound_us.unwrap());
        assert!(found_us.abs_diff(*offset_us) <= bound_us, "{host:?} of {offset_us}");
        assert!(host.transactions > 0 && host.busy.unwrap() > 0.0 && host.cpu_us.unwrap() > 0, "{host:?}");
        began_us.push(reported.began_us.unwrap());
        eprintln!("{at}: {found_us} ± {bound_us} µs, began {} µs late", host.late_us.unwrap());
    }
    let true_spread_us = (began_us.iter().max().unwrap() - began_us.iter().min().unwrap()) as u64;
    let bound_us = trial.load_hosts.iter().filter_map(|host| host.bound_us).max().unwrap();
    let stated_us = start_spread_us(&trial.load_hosts).unwrap();
    assert!(
        true_spread_us.abs_diff(stated_us) <= 2 * bound_us,
        "began {true_spread_us} µs apart, stated {stated_us} ± {} µs",
        2 * bound_us
    );

    // What people see.
    let shown = ran.printed(&["show", &trial.id]);
    assert!(shown.contains("load host") && shown.contains("host-3"), "{shown}");
    let offset = format!("{:+.3}", trial.load_hosts[1].offset_us.unwrap() as f64 / 1e3);
    assert!(shown.contains(&offset) && shown.contains(" ms of each other"), "{shown}");
    let shown = ran.printed(&["store", "show", &trial.id]);
    assert!(shown.contains("Load hosts") && shown.contains("2 clients, "), "{shown}");
    let checked = ran.printed(&["store", "check"]);
    assert!(checked.contains(": no problems"), "{checked}");

    for (what, trial) in [("1 driver", &before), ("4 drivers", trial), ("1 driver", &one_driver())] {
        let summary = trial.summary.as_ref().unwrap();
        let latency = summary.latency.as_ref().unwrap();
        eprintln!("{what}: {:.0} TPS, p50 {:?} µs, p99 {:?} µs", summary.tps, latency.p50_us, latency.p99_us);
    }
}

#[test]
fn an_open_loop_from_several_hosts_has_the_rate_of_one() {
    let theirs = Theirs::new();
    let hosts = LocalHosts::new(&[7_000, -7_000]);
    let factors = format!("{FACTORS}rate = [200]\n");
    let of = |run_keys: &str, hosts: Option<&dyn LoadHosts>| {
        let ran = run(&theirs.campaign(&factors, &format!("{RUN}{run_keys}")), hosts);
        ran.outcome.as_ref().unwrap();
        let record = ran.record();
        let scripts = record.intervals.iter().flat_map(|interval| &interval.scripts);
        let ended = record.trial.accounting.driver_transactions.unwrap();
        (ended + scripts.filter_map(|script| script.unfinished).sum::<u64>(), record)
    };
    let (in_parts, record) = of("load_hosts = 2", Some(&hosts));
    let (whole, _) = of("", None);
    assert_eq!(in_parts, whole, "arrivals of one schedule");
    assert!(record.trial.summary.unwrap().service.is_some());
}

#[test]
fn a_lost_host_makes_its_trial_invalid_and_the_campaign_goes_on() {
    let theirs = Theirs::new();
    let hosts = LocalHosts { killed: Some(1), ..LocalHosts::new(&[0, 0]) };
    let ran =
        run(&theirs.campaign(FACTORS, &format!("{RUN}load_hosts = ['x', 'y']\nretries = 1")), Some(&hosts));
    let outcome = ran.outcome.as_ref().unwrap();
    assert_eq!((outcome.progress.usable, outcome.progress.invalid), (1, 0), "{outcome:?}");
    let trials = ran.trials();
    let [lost, second] = trials.as_slice() else { panic!("{} trials", trials.len()) };
    assert_eq!(lost.validity.status, Status::Invalid);
    let finding = &lost.validity.findings[0];
    assert_eq!(finding.gate, "load-host-lost");
    assert!(
        finding.evidence.starts_with("lost load host host-1 with its 4 clients: the driver process died"),
        "{finding:?}"
    );
    assert!(lost.load_hosts[0].lost.is_none() && lost.load_hosts[0].cpu_us.is_some());
    assert_ne!(second.validity.status, Status::Invalid, "{:#?}", second.validity);
    assert_eq!(second.attempt, 2);
}

#[test]
fn hosts_that_are_not_there_leave_trials_without_a_load() {
    let theirs = Theirs::new();
    let campaign = theirs.campaign(FACTORS, &format!("{RUN}retries = 0\nload_hosts = 3"));
    let ran = run(&campaign, Some(&LocalHosts::new(&[0])));
    assert_eq!(ran.outcome.as_ref().unwrap().progress.invalid, 1);
    let finding = &ran.trials()[0].validity.findings[0];
    assert_eq!(finding.evidence, "the load hosts can't be used: only 1 agents are there");
}

#[test]
fn without_agents_nothing_is_measured() {
    let theirs = Theirs::new();
    let bench = support::Bench::new(&theirs.campaign(FACTORS, "load_hosts = 2"));
    let planned = bench.pgdyno(&["plan", "campaign.toml"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned));
    assert!(text(&planned).contains("; load from 2 hosts; seed "), "{}", text(&planned));
    let ran = bench.pgdyno(&["run", "campaign.toml"]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("needs agents on 2 hosts: run it with --fleet"), "{}", text(&ran));
    assert!(!bench.path().join(".pgdyno/trials").exists() || bench.trials().is_empty());
}
