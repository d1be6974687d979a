//! A rig that records the steps that a trial takes.

use std::cell;
use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collect::{Collected, Subject, Window};
use driver::DriverError;
use model::cell::Cell;
use model::environment::ServerFacts;
use model::limits::LimitsInForce;
use model::message::{Connection, Endpoint, Reply, Request, SessionSamples};
use model::outage::Outage;
use model::record::Setting;
use model::waits::Waits;
use model::workload::{Statement, Transport};
use server::{RawReading, Warmed};

use crate::driver_handle::Driver;
use crate::hooks::{HookEnv, HookError, Problem};
use crate::rig::{Collectors, Rig, ServerPool, ServerUnderTest, StartError, StartedServer};

/// The count of commits in the tested database when the server starts.
const COMMITS_AT_START: u64 = 100;
/// The count that a server reports if none is expected.
pub(super) const COMMITS_BEFORE: u64 = 200;

/// State shared by the parts of the rig.
pub(super) struct State {
    pub(super) steps: cell::RefCell<Vec<String>>,
    /// The step that fails or is interrupted, and the number of its occurrence.
    pub(super) failing: Option<(&'static str, usize)>,
    pub(super) interrupted: Option<(&'static str, usize)>,
    /// The step at which the server dies, and the status that its process ends with, if it ends.
    pub(super) dying: Option<(&'static str, Option<&'static str>)>,
    is_dead: cell::Cell<bool>,
    pub(super) interrupt: AtomicBool,
    pub(super) clock: cell::Cell<Instant>,
    pub(super) server_version: &'static str,
    pub(super) server_log: &'static str,
    /// Whether the role may checkpoint and use pg_prewarm.
    pub(super) is_privileged: bool,
    pub(super) has_endpoint: bool,
    pub(super) raw_reading: fn() -> Option<RawReading>,
    pub(super) collector_note: Option<&'static str>,
    pub(super) replies: cell::RefCell<VecDeque<DriverReply>>,
    /// Expected value of each count of commits.
    pub(super) expected_commits: cell::RefCell<Vec<Option<u64>>>,
    pub(super) end: cell::Cell<Option<(bool, Option<u64>)>>,
}

/// Next action of a driver.
#[derive(Clone)]
pub(super) enum DriverReply {
    Reply(Reply),
    /// Exits with this text on standard error.
    Exits(&'static str),
}

impl State {
    /// A rig on which everything succeeds, with a driver that gives these replies and no others.
    pub(super) fn new(replies: impl Into<VecDeque<DriverReply>>) -> Self {
        Self {
            steps: cell::RefCell::default(),
            failing: None,
            interrupted: None,
            dying: None,
            is_dead: cell::Cell::new(false),
            interrupt: AtomicBool::new(false),
            clock: cell::Cell::new(Instant::now()),
            server_version: "18.1",
            server_log: "",
            is_privileged: true,
            has_endpoint: true,
            raw_reading: || None,
            collector_note: None,
            replies: cell::RefCell::new(replies.into()),
            expected_commits: cell::RefCell::default(),
            end: cell::Cell::new(None),
        }
    }

    /// Takes a step; false if it fails.
    pub(super) fn step(&self, name: &str) -> bool {
        let mut steps = self.steps.borrow_mut();
        steps.push(name.to_owned());
        let occurrence = (name, steps.iter().filter(|step| *step == name).count());
        if self.interrupted == Some(occurrence) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        if self.dying.is_some_and(|(step, _)| step == name) {
            self.is_dead.set(true);
        }
        self.failing != Some(occurrence)
    }
}

pub(super) struct MockRig(pub(super) Rc<State>);

impl Rig for MockRig {
    fn run_hook(&self, command: &str, _: &HookEnv, interrupt: &AtomicBool) -> Result<(), HookError> {
        let succeeds = self.0.step(&format!("{command} hook"));
        let problem = if interrupt.load(Ordering::Relaxed) {
            Problem::Interrupted
        } else if succeeds {
            return Ok(());
        } else {
            Problem::Silent(ExitStatus::from_raw(3 << 8))
        };
        Err(HookError { command: command.to_owned(), problem })
    }

    fn start_driver(&self, program: &Path) -> Result<Box<dyn Driver>, StartError> {
        if self.0.step("start driver") {
            return Ok(Box::new(MockDriver(Rc::clone(&self.0))));
        }
        let source = std::io::ErrorKind::NotFound.into();
        Err(DriverError::Spawn { program: program.display().to_string(), source }.into())
    }

    fn start_collectors<'a>(&self, subject: Subject<'a>) -> Box<dyn Collectors + 'a> {
        self.0.step("start collectors");
        assert_eq!(subject.driver, Some(DRIVER_PID));
        assert!((subject.connect)("postgres").is_ok());
        Box::new(MockCollectors(Rc::clone(&self.0)))
    }

    fn now(&self) -> Instant {
        self.0.clock.get()
    }

    fn pause(&self, length: Duration, _: &AtomicBool) {
        self.0.step(&format!("pause {length:?}"));
    }
}

const DRIVER_PID: u32 = 4711;

struct MockDriver(Rc<State>);

impl Driver for MockDriver {
    fn pid(&self) -> Option<u32> {
        Some(DRIVER_PID)
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        let step = match request {
            Request::Run(_) => "send load",
            Request::Stop => "stop load",
            Request::Resume => "resume load",
            Request::Pause => "pause load",
            Request::ReadClock { .. } | Request::Start { .. } => "a request to a load host",
            Request::Sampled(_) => "send samples",
        };
        if self.0.step(step) { Ok(()) } else { Err(DriverError::Send(std::io::ErrorKind::BrokenPipe.into())) }
    }

    fn next(&mut self, timeout: Duration) -> Result<driver::ProcessEvent, DriverError> {
        match self.0.replies.borrow_mut().pop_front() {
            Some(DriverReply::Reply(reply)) => Ok(driver::ProcessEvent::Reply(reply)),
            Some(DriverReply::Exits(stderr)) => Ok(driver::ProcessEvent::Exited {
                status: ExitStatus::from_raw(9),
                stderr: stderr.to_owned(),
            }),
            None => {
                self.0.clock.set(self.0.clock.get() + timeout);
                Ok(driver::ProcessEvent::TimedOut)
            }
        }
    }
}

struct MockCollectors(Rc<State>);

impl Collectors for MockCollectors {
    fn add_background_backends(&self, pids: Vec<i32>) {
        assert_eq!(pids, [7]);
        self.0.step("clients connected");
    }

    fn set_paused(&self, _: bool) {}

    fn load_started(&self, _: Window) {
        self.0.step("load started");
    }

    fn waits_at(&self, _: u64) -> Option<Vec<Waits>> {
        None
    }

    fn take_session_samples(&self) -> Option<SessionSamples> {
        None
    }

    fn finish(self: Box<Self>, _: &AtomicBool) -> Collected {
        self.0.step("finish collectors");
        Collected {
            notes: self.0.collector_note.iter().map(|note| (*note).to_owned()).collect(),
            commits: 5,
            ..Collected::default()
        }
    }
}

pub(super) struct MockPool(pub(super) MockServer);

impl ServerPool for MockPool {
    fn start(&mut self, _: &Cell) -> Result<StartedServer<'_>, server::Error> {
        self.0.try_step("start server")?;
        Ok(StartedServer {
            server: &mut self.0,
            build: Some("mock".to_owned()),
            facts: ServerFacts::default(),
            commits: Some(COMMITS_AT_START),
        })
    }

    fn end_trial(&mut self, altered: bool, commits: Option<u64>) {
        self.0.0.step("end trial");
        self.0.0.end.set(Some((altered, commits)));
    }
}

pub(super) struct MockServer(pub(super) Rc<State>);

impl MockServer {
    /// Takes a step that needs the server's answer.
    fn try_step(&self, step: &str) -> Result<(), server::Error> {
        if self.0.step(step) && !self.0.is_dead.get() {
            return Ok(());
        }
        Err(no_answer(step))
    }
}

fn no_answer(step: &str) -> server::Error {
    let (doing, server) = (step.to_owned(), "mock".to_owned());
    server::Error::Sql { doing, server, why: "no answer".to_owned(), outage: Some(Outage::Unreachable) }
}

impl ServerUnderTest for MockServer {
    fn connection(&self, _: Transport) -> Result<Connection, server::Error> {
        if self.0.has_endpoint { Ok(self.own_connection("pgdyno")) } else { Err(no_answer("find a socket")) }
    }

    fn own_connection(&self, database: &str) -> Connection {
        Connection {
            endpoint: Endpoint::Unix { directory: "/nowhere".to_owned(), port: 5432 },
            user: "postgres".to_owned(),
            database: database.to_owned(),
            password: None,
        }
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn has_hidden_processes(&self) -> bool {
        false
    }

    fn data_directory(&self) -> Option<&Path> {
        None
    }

    fn run(&self, statement: &str) -> Result<u64, server::Error> {
        assert_eq!(statement, "vacuum (analyze)");
        self.try_step("vacuum").map(|()| 2)
    }

    fn run_all(&self, statements: &[Statement]) -> Result<(), server::Error> {
        let [Statement { place, .. }] = statements else { panic!("{statements:?}") };
        self.try_step(if place == "consistency.sql:1" { "check consistency" } else { "teardown" })
    }

    fn figure(&self, statements: &[Statement]) -> Result<f64, server::Error> {
        let [Statement { place, .. }] = statements else { panic!("{statements:?}") };
        assert_eq!(place, "recall.sql:1");
        self.try_step("determine figure").map(|()| 0.5)
    }

    fn checkpoint(&self) -> Result<bool, server::Error> {
        self.try_step("checkpoint").map(|()| self.0.is_privileged)
    }

    fn warm(&self) -> Result<Warmed, server::Error> {
        self.try_step("warm").map(|()| Warmed { prewarmed: self.0.is_privileged, commits: 3 })
    }

    fn raw_read(
        &self,
        relation: &str,
        _: &Path,
        _: &AtomicBool,
    ) -> Result<Option<RawReading>, server::Error> {
        assert_eq!(relation, "t");
        self.try_step("raw read").map(|()| (self.0.raw_reading)())
    }

    fn version(&self) -> Result<(String, String), server::Error> {
        let version = self.0.server_version;
        self.try_step("read version").map(|()| (version.to_owned(), format!("PostgreSQL {version}")))
    }

    fn database_bytes(&self) -> Result<u64, server::Error> {
        self.try_step("read size").map(|()| 8192)
    }

    fn settings(&self) -> Result<Vec<Setting>, server::Error> {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            unit: None,
            source: "default".to_owned(),
            context: None,
            pending_restart: None,
        };
        let settings = vec![setting("autovacuum", "off"), setting("max_parallel_workers_per_gather", "0")];
        self.try_step("read settings").map(|()| settings)
    }

    fn commits(&self, expected: Option<u64>) -> Result<u64, server::Error> {
        self.0.expected_commits.borrow_mut().push(expected);
        self.try_step("count commits").map(|()| expected.unwrap_or(COMMITS_BEFORE))
    }

    fn limits(&self) -> Option<LimitsInForce> {
        self.0.step("read limits");
        None
    }

    fn exit_status(&mut self, within: Duration) -> Option<String> {
        self.0.step(if within.is_zero() { "check server" } else { "wait for its end" });
        let (_, status) = self.0.dying.filter(|_| self.0.is_dead.get())?;
        status.map(str::to_owned)
    }

    fn take_log(&mut self) -> Option<String> {
        self.0.step("read log");
        Some(self.0.server_log.to_owned())
    }
}
