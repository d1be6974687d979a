//! The language of these tests: a scenario is a trial on a rig that records each step, where a step can fail, be
//! interrupted, or kill the server.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use collect::Host;
use model::factor::cache::CacheState;
use model::message::{ClientDeath, Interval, Latency, Outcome, Phase, Reply};
use model::outage::Outage;
use model::plan::{Plan, PlannedTrial};
use model::record::{RawRead, Run, TrialRecord};
use model::spec::Campaign;
use model::workload::{Custom, ScriptText, WeightedScript, Workload};
use server::RawReading;

use super::mock::{DriverReply, MockPool, MockRig, MockServer, State};
use crate::error::RunError;
use crate::schedule::NextTrial;
use crate::trial::{self, FinishedTrial, RunContext};

const CAMPAIGN: &str = "name = 'order'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n\
                        cache = ['warm']\n[run]\nduration = '1s'\nwarmup = '0s'\nrepeats = 1\nsettle = '2s'\n";

/// Transactions of a finished load.
const TRANSACTIONS: u64 = 100;

/// A trial and its failures.
pub(super) struct Scenario {
    plan: Plan,
    state: State,
}

/// Outcome of a trial.
pub(super) struct Ending {
    /// Its steps, separated by commas.
    pub(super) steps: String,
    pub(super) result: Result<FinishedTrial, RunError>,
    /// The trial's end for the server pool: whether data are altered, and the count of commits.
    pub(super) end: Option<(bool, Option<u64>)>,
    pub(super) expected_commits: Vec<Option<u64>>,
    /// Time for which it waited for the driver.
    pub(super) waited: Duration,
}

impl Scenario {
    /// A trial that only reads, without hooks.
    pub(super) fn reading() -> Self {
        Self::new(CAMPAIGN)
    }

    /// The same trial on a server that pgdyno does not own.
    pub(super) fn on_external_server() -> Self {
        let theirs = CAMPAIGN.replace("'18'", "'theirs'");
        Self::new(&format!("{theirs}[servers.theirs]\ndsn = 'host=db.example'\n"))
    }

    fn new(campaign: &str) -> Self {
        Self {
            plan: Plan::new(&Campaign::parse(campaign).unwrap(), 1).unwrap(),
            state: State::new([connected(), started(), interval(), finished()]),
        }
    }

    /// A trial that has every step but the raw read: with hooks, VACUUM and a workload with a teardown, a figure of its own and checks of its data.
    pub(super) fn complete() -> Self {
        let more = "vacuum = 'vacuum'\n[hooks]\nbefore_trial = 'before'\nafter_trial = 'after'\n";
        Self::new(&format!("{CAMPAIGN}{more}")).with_workload(|workload| {
            let text = "DROP TABLE IF EXISTS own;".to_owned();
            workload.teardown = vec![ScriptText { name: "teardown.sql".to_owned(), text }];
            let text = "SELECT 1 / (count(*) - 1) FROM own;".to_owned();
            workload.consistency = vec![ScriptText { name: "consistency.sql".to_owned(), text }];
            let recall = ScriptText { name: "recall.sql".to_owned(), text: "SELECT 0.5;".to_owned() };
            workload.figures = [("figure.recall".to_owned(), recall)].into();
        })
    }

    /// With a workload of the campaign's own.
    pub(super) fn with_workload(mut self, change: impl FnOnce(&mut Custom)) -> Self {
        let script = WeightedScript { name: "own.sql".to_owned(), weight: 1, text: "SELECT 1;".to_owned() };
        let mut workload = Custom::new("own", vec![script]);
        workload.writes = false;
        change(&mut workload);
        self.plan.cells[0].workload = Workload::Custom(Arc::new(workload));
        self
    }

    /// With cold caches and the raw read of a relation.
    pub(super) fn with_raw_read(self, reading: fn() -> Option<RawReading>) -> Self {
        let mut scenario = self.with_workload(|workload| workload.raw_read = Some("t".to_owned()));
        scenario.plan.cells[0].cache = CacheState::Cold;
        scenario.state.raw_reading = reading;
        scenario
    }

    /// On this server version.
    pub(super) fn version(mut self, version: &'static str) -> Self {
        self.state.server_version = version;
        self
    }

    /// On a server that logs this.
    pub(super) fn log(mut self, text: &'static str) -> Self {
        self.state.server_log = text;
        self
    }

    /// As a role that may neither checkpoint nor use pg_prewarm.
    pub(super) fn unprivileged(mut self) -> Self {
        self.state.is_privileged = false;
        self
    }

    /// On a server that clients can't reach.
    pub(super) fn unreachable(mut self) -> Self {
        self.state.has_endpoint = false;
        self
    }

    /// With collectors that return this note.
    pub(super) fn collector_note(mut self, note: &'static str) -> Self {
        self.state.collector_note = Some(note);
        self
    }

    /// With a driver that gives these replies and no others.
    pub(super) fn driver(mut self, replies: impl Into<VecDeque<DriverReply>>) -> Self {
        self.state.replies = RefCell::new(replies.into());
        self
    }

    /// This step fails.
    pub(super) fn fail(self, step: &'static str) -> Self {
        self.fail_nth(step, 1)
    }

    /// This step fails at its nth occurrence.
    pub(super) fn fail_nth(mut self, step: &'static str, nth: usize) -> Self {
        self.state.failing = Some((step, nth));
        self
    }

    /// The user interrupts this step.
    pub(super) fn interrupt(self, step: &'static str) -> Self {
        self.interrupt_nth(step, 1)
    }

    /// The user interrupts this step at its nth occurrence.
    pub(super) fn interrupt_nth(mut self, step: &'static str, nth: usize) -> Self {
        self.state.interrupted = Some((step, nth));
        self
    }

    /// The server dies in this step, and its process ends.
    pub(super) fn kill_server(mut self, step: &'static str) -> Self {
        self.state.dying = Some((step, Some("signal: 9 (SIGKILL)")));
        self
    }

    /// The server stops answering in this step, and its process stays.
    pub(super) fn hang_server(mut self, step: &'static str) -> Self {
        self.state.dying = Some((step, None));
        self
    }

    /// Runs the trial.
    pub(super) fn run(self) -> Ending {
        let Self { plan, state } = self;
        let state = Rc::new(state);
        let root = tempfile::tempdir().unwrap();
        let began = state.clock.get();
        let context = RunContext {
            side: None,
            run: &Run::default(),
            plan: &plan,
            host: &Host::read_from(root.path()),
            perf: None,
            program: Path::new("pgdyno"),
            rig: &MockRig(Rc::clone(&state)),
            interrupt: &state.interrupt,
            on_ready: &|| {
                state.step("ready");
            },
        };
        let next =
            NextTrial { trial: PlannedTrial { position: 1, cell: 0, repeat: 1 }, attempt: 1, reason: None };
        let mut servers = MockPool(MockServer(Rc::clone(&state)));
        let result = trial::run(&context, &mut servers, &next, |_, _| {
            state.step("interval");
        });
        Ending {
            steps: state.steps.borrow().join(", "),
            result,
            end: state.end.get(),
            expected_commits: state.expected_commits.borrow().clone(),
            waited: state.clock.get() - began,
        }
    }
}

impl Ending {
    /// The record of the trial.
    pub(super) fn record(&self) -> &TrialRecord {
        &self.result.as_ref().unwrap_or_else(|error| panic!("no record: {error}")).record
    }

    /// The findings that make the trial suspect or invalid, as `gate: evidence`.
    pub(super) fn findings(&self) -> Vec<String> {
        let findings = self.record().trial.validity.findings.iter();
        let bad = findings.filter(|finding| finding.status != model::record::Status::Valid);
        bad.map(|finding| format!("{}: {}", finding.gate, finding.evidence)).collect()
    }

    /// The outage that kept the trial from its end, and whether its load began.
    pub(super) fn outage(&self) -> Option<(Outage, &str, bool)> {
        let ended = self.result.as_ref().unwrap_or_else(|error| panic!("no record: {error}"));
        ended.outage.as_ref().map(|outage| (outage.kind, outage.reason.as_str(), ended.loaded))
    }

    /// The notes of the trial.
    pub(super) fn notes(&self) -> Vec<&str> {
        self.events("note")
    }

    /// The events of a kind.
    pub(super) fn events(&self, kind: &str) -> Vec<&str> {
        let events = self.record().events.iter();
        events.filter(|event| event.kind == kind).map(|event| event.message.as_str()).collect()
    }
}

pub(super) fn connected() -> DriverReply {
    DriverReply::Reply(Reply::Connected { connect_us: 1000, background: vec![7] })
}

pub(super) fn started() -> DriverReply {
    DriverReply::Reply(Reply::Started { at: collect::now(), late_us: 0 })
}

pub(super) fn interval() -> DriverReply {
    DriverReply::Reply(Reply::Interval(Interval {
        start_us: 0,
        width_us: 1_000_000,
        phase: Phase::Measure,
        scripts: Vec::new(),
        background: Vec::new(),
        spans: Vec::new(),
        busy: None,
        lag_max_us: None,
        lag_mean_us: None,
        responses: None,
        send_lag_max_us: None,
    }))
}

pub(super) fn client_died() -> DriverReply {
    client_died_of(None, "the server closed the connection")
}

pub(super) fn client_died_of(sqlstate: Option<&str>, message: &str) -> DriverReply {
    let (sqlstate, message) = (sqlstate.map(str::to_owned), message.to_owned());
    DriverReply::Reply(Reply::ClientDied(ClientDeath { at_us: 500_000, client: 0, sqlstate, message }))
}

pub(super) fn failed(message: &str, outage: Option<Outage>) -> DriverReply {
    DriverReply::Reply(Reply::Failed { message: message.to_owned(), outage })
}

pub(super) fn finished() -> DriverReply {
    finished_with(false)
}

pub(super) fn finished_early() -> DriverReply {
    finished_with(true)
}

fn finished_with(stopped_early: bool) -> DriverReply {
    // One client that is never idle.
    let us = 1e6 / TRANSACTIONS as f64;
    let latency = Latency {
        mean_us: us,
        stddev_us: 0.0,
        min_us: us,
        p50_us: us,
        p90_us: us,
        p95_us: us,
        p99_us: us,
        p999_us: us,
        max_us: us,
    };
    DriverReply::Reply(Reply::Finished(Box::new(Outcome {
        window_us: 1_000_000,
        stopped_early,
        warmup_transactions: 0,
        window_transactions: TRANSACTIONS,
        drain_transactions: 0,
        failed_transactions: 0,
        latency: Some(latency),
        service: None,
        longest_stall_us: None,
        background: Vec::new(),
        connections: 1,
        commits: TRANSACTIONS,
        has_unreported_commits: false,
        other_commits: 1,
        cpu_us: 1000,
        engine: "epoll".to_owned(),
        engine_reason: None,
    })))
}

/// The reading of a disk.
pub(super) fn raw_read() -> RawRead {
    RawRead { relation: "t".to_owned(), bytes: 8192, elapsed_us: 1 }
}
