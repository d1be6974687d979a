//! The joined driver over drivers that answer by a script, on a clock of the test's own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use driver::{DriverError, ProcessEvent};
use model::load_hosts::{LoadHost, start_spread_us};
use model::message::{
    ClientDeath, Connection, Endpoint, Interval, Load, Outcome, Phase, Reply, Request, ScriptInterval,
};
use model::outage::Outage;
use model::part::Part;
use model::record::ClockReading;
use model::units::Rate;
use model::workload::{Protocol, Workload};

use super::JoinedDriver;
use crate::driver_handle::Driver;

const SECOND_US: i64 = 1_000_000;

/// The clock of the joined driver's host.
type Now = Rc<Cell<i64>>;

/// What a host does, in addition to what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Sound,
    /// Exits this long after its start, or before it.
    ExitsAfter(i64),
    /// Sends nothing after its start.
    FallsSilent,
    /// Can't connect its clients.
    Refused,
    /// Never connects its clients.
    Hangs,
    /// Answers no question about its clock.
    HasNoClock,
    /// Exits when its load has ended.
    ExitsAtTheEnd,
    /// A client of it dies.
    LosesAClient,
    /// Begins this much after the agreed instant.
    IsLate(i64),
    /// Does not accept the load.
    TakesNothing,
    /// Its interval that begins here does not arrive.
    LosesAnInterval(u64),
}

/// A driver whose clock is ahead by `offset_us`, with messages that take these times.
struct FakeDriver {
    now: Now,
    offset_us: i64,
    there_us: i64,
    back_us: i64,
    /// Change of the offset when the load has ended.
    drift_us: i64,
    behaviour: Behaviour,
    part: Option<Part>,
    /// Replies by the time at which they arrive.
    replies: VecDeque<(i64, Reply)>,
    /// Transactions that it has reported, of the warm-up and of the window.
    reported: [u64; 2],
    exits_at: Option<i64>,
    exchanges: i64,
    requests: Rc<RefCell<Vec<Request>>>,
}

impl FakeDriver {
    fn new(now: &Now, offset_us: i64) -> Self {
        Self {
            now: Rc::clone(now),
            offset_us,
            there_us: 200,
            back_us: 100,
            drift_us: 0,
            behaviour: Behaviour::Sound,
            part: None,
            replies: VecDeque::new(),
            reported: [0; 2],
            exits_at: None,
            exchanges: 0,
            requests: Rc::default(),
        }
    }

    /// Sends a reply at this time.
    fn reply(&mut self, at_us: i64, reply: Reply) {
        self.replies.push_back((at_us + self.back_us, reply));
    }

    /// Three seconds of load, from this time on.
    fn run(&mut self, begins_us: i64, at_us: i64) {
        let late_us = begins_us - (at_us - self.offset_us);
        let at = ClockReading { monotonic_us: at_us, unix_us: 0 };
        self.reply(begins_us, Reply::Started { at, late_us: late_us as u64 });
        if self.behaviour == Behaviour::FallsSilent {
            return;
        }
        for second in 0..3 {
            let phase = if second == 0 { Phase::Warmup } else { Phase::Measure };
            let end_us = begins_us + (second + 1) * SECOND_US;
            if self.exits_at.is_some_and(|exits_us| exits_us < end_us) {
                return;
            }
            if self.behaviour == Behaviour::LosesAClient && second == 1 {
                let message = "it is gone".to_owned();
                let client = self.part.unwrap().clients(8).start;
                let death = ClientDeath { at_us: 1_500_000, client, sqlstate: None, message };
                self.reply(end_us, Reply::ClientDied(death));
            }
            self.reply(end_us, Reply::Interval(interval(second as u64 * 1_000_000, phase, 10)));
        }
        self.finish(begins_us + 3 * SECOND_US);
    }

    fn finish(&mut self, at_us: i64) {
        self.reply(at_us + 500, Reply::Finished(Box::new(outcome(20))));
        if self.behaviour == Behaviour::ExitsAtTheEnd {
            self.exits_at = Some(at_us + 600);
        }
    }
}

impl Driver for FakeDriver {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        let now_us = self.now.get();
        self.requests.borrow_mut().push(request.clone());
        match request {
            Request::Run(_) if self.behaviour == Behaviour::TakesNothing => {
                return Err(DriverError::Send(std::io::ErrorKind::BrokenPipe.into()));
            }
            Request::Run(load) => {
                self.part = load.part;
                let connect_us = 1000 + u64::from(load.part.unwrap().host);
                let background = vec![100 + load.part.unwrap().host as i32];
                match self.behaviour {
                    Behaviour::Hangs => {}
                    Behaviour::Refused => {
                        let outage = Some(Outage::Unreachable);
                        self.reply(now_us, Reply::Failed { message: "refused".to_owned(), outage });
                    }
                    _ => self.reply(now_us, Reply::Connected { connect_us, background }),
                }
            }
            Request::ReadClock { .. } if self.behaviour == Behaviour::HasNoClock => {}
            Request::ReadClock { number } => {
                // The first ones take longer, by turns on one way or the other.
                let extra_us = 1_000 / (1 + self.exchanges);
                let there_us = self.there_us + if self.exchanges % 2 == 0 { extra_us } else { 0 };
                self.exchanges += 1;
                let received_us = now_us + there_us;
                let number = *number;
                let answered_us = received_us + 7;
                let reply = Reply::Clock {
                    number,
                    received_us: received_us + self.offset_us,
                    sent_us: answered_us + self.offset_us,
                };
                self.reply(answered_us + extra_us, reply);
            }
            Request::Start { at_us } => {
                let mut begins_us = (at_us - self.offset_us).max(now_us + self.there_us);
                match self.behaviour {
                    Behaviour::ExitsAfter(us) => self.exits_at = Some(begins_us + us),
                    Behaviour::IsLate(us) => begins_us += us,
                    _ => {}
                }
                self.run(begins_us, *at_us);
            }
            Request::Stop => {
                self.replies.clear();
                self.finish(now_us + self.there_us);
            }
            Request::Resume | Request::Pause | Request::Sampled(_) => panic!("{request:?}"),
        }
        Ok(())
    }

    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        let until_us = self.now.get() + timeout.as_micros() as i64;
        let next_us = self.replies.front().map_or(i64::MAX, |(at_us, _)| *at_us);
        if self.exits_at.is_some_and(|at_us| at_us <= until_us && at_us < next_us) {
            return Ok(ProcessEvent::Exited { status: ExitStatus::from_raw(9), stderr: String::new() });
        }
        if next_us <= until_us {
            let (at_us, mut reply) = self.replies.pop_front().unwrap();
            self.now.set(at_us.max(self.now.get()));
            match &mut reply {
                Reply::Interval(interval) => {
                    self.reported[usize::from(interval.phase == Phase::Measure)] +=
                        interval.scripts[0].transactions;
                    if self.behaviour == Behaviour::LosesAnInterval(interval.start_us) {
                        return self.next(Duration::ZERO);
                    }
                }
                Reply::Finished(outcome) => {
                    [outcome.warmup_transactions, outcome.window_transactions] = self.reported;
                    self.offset_us += self.drift_us;
                }
                _ => {}
            }
            return Ok(ProcessEvent::Reply(reply));
        }
        self.now.set(until_us);
        Ok(ProcessEvent::TimedOut)
    }
}

fn interval(start_us: u64, phase: Phase, transactions: u64) -> Interval {
    Interval {
        start_us,
        width_us: 1_000_000,
        phase,
        scripts: vec![ScriptInterval {
            script: "select-only".to_owned(),
            transactions,
            failed: Some(0),
            unfinished: None,
            latencies: Vec::new(),
        }],
        background: Vec::new(),
        spans: Vec::new(),
        busy: Some(0.25),
        lag_max_us: Some(9.0),
        lag_mean_us: Some(2.0),
        responses: Some(2 * transactions),
        send_lag_max_us: None,
    }
}

fn outcome(transactions: u64) -> Outcome {
    Outcome {
        window_us: 2_000_000,
        stopped_early: false,
        warmup_transactions: 10,
        window_transactions: transactions,
        drain_transactions: 0,
        failed_transactions: 0,
        latency: None,
        service: None,
        longest_stall_us: None,
        background: Vec::new(),
        connections: 2,
        commits: transactions + 10,
        has_unreported_commits: false,
        other_commits: 2,
        cpu_us: 700,
        engine: "epoll".to_owned(),
        engine_reason: None,
    }
}

fn load() -> Load {
    Load {
        connection: Connection {
            endpoint: Endpoint::Tcp { host: "db".to_owned(), port: 5432 },
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: None,
        },
        workload: Workload::SelectOnly,
        scale: 1,
        trace: None,
        replica: None,
        protocol: Protocol::Simple,
        clients: 8,
        threads: 4,
        rate: Rate::MAX,
        cpus: None,
        seed: 1,
        warmup_us: 1_000_000,
        duration_us: 2_000_000,
        interval_us: 1_000_000,
        slices: None,
        part: None,
    }
}

/// Hosts a, b and so on, whose clocks are ahead by these, with a change of each.
struct Fixture {
    now: Now,
    driver: JoinedDriver,
    requests: Vec<Rc<RefCell<Vec<Request>>>>,
    replies: Vec<Reply>,
}

impl Fixture {
    fn new(offsets_us: &[i64], change: impl Fn(usize, &mut FakeDriver)) -> Self {
        let now = Now::new(Cell::new(77 * SECOND_US));
        let mut requests = Vec::new();
        let hosts = offsets_us.iter().enumerate().map(|(at, offset_us)| {
            let mut fake = FakeDriver::new(&now, *offset_us);
            change(at, &mut fake);
            requests.push(Rc::clone(&fake.requests));
            let name = char::from(b'a' + at as u8).to_string();
            (name, Box::new(fake) as Box<dyn Driver>)
        });
        let hosts = hosts.collect();
        let clock = Rc::clone(&now);
        // The wall clock is some days ahead.
        let clock =
            move || ClockReading { monotonic_us: clock.get(), unix_us: clock.get() + 1_000_000_000_000 };
        let driver = JoinedDriver::new(hosts, Box::new(clock));
        Self { now, driver, requests, replies: Vec::new() }
    }

    /// Runs a load until a reply matches.
    fn until(&mut self, matches: impl Fn(&Reply) -> bool) {
        let limit_us = self.now.get() + 200 * SECOND_US;
        while !self.replies.last().is_some_and(&matches) {
            assert!(self.now.get() < limit_us, "only {:?}", self.replies);
            match self.driver.next(Duration::from_millis(100)).unwrap() {
                ProcessEvent::Reply(reply) => self.replies.push(reply),
                ProcessEvent::TimedOut => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Runs a load to its end.
    fn run(offsets_us: &[i64], change: impl Fn(usize, &mut FakeDriver)) -> Self {
        let mut fixture = Self::new(offsets_us, change);
        fixture.driver.send(&Request::Run(Box::new(load()))).unwrap();
        fixture.until(|reply| matches!(reply, Reply::Finished(_) | Reply::Failed { .. }));
        fixture
    }

    fn hosts(&self) -> Vec<LoadHost> {
        self.driver.load_hosts()
    }

    /// The reason why the load failed.
    fn failure(&self) -> &str {
        match self.replies.last() {
            Some(Reply::Failed { message, outage: None }) => message,
            other => panic!("{other:?}"),
        }
    }

    fn intervals(&self) -> Vec<(u64, Phase, u64)> {
        let figures = |reply: &Reply| match reply {
            Reply::Interval(interval) => {
                Some((interval.start_us, interval.phase, interval.scripts[0].transactions))
            }
            _ => None,
        };
        self.replies.iter().filter_map(figures).collect()
    }

    fn was_stopped(&self, host: usize) -> bool {
        self.requests[host].borrow().contains(&Request::Stop)
    }
}

#[test]
fn several_drivers_report_as_one() {
    let fixture = Fixture::run(&[0, 500_000, -500_000, 3], |_, _| ());
    let [connected, started, .., finished] = fixture.replies.as_slice() else { panic!("too few replies") };
    // As long as the slowest one took, and all backends.
    assert_eq!(*connected, Reply::Connected { connect_us: 1003, background: vec![100, 101, 102, 103] });
    assert!(matches!(started, Reply::Started { late_us: 0, .. }), "{started:?}");
    assert_eq!(
        fixture.intervals(),
        [(0, Phase::Warmup, 40), (1_000_000, Phase::Measure, 40), (2_000_000, Phase::Measure, 40)]
    );
    let Reply::Finished(outcome) = finished else { panic!("{finished:?}") };
    assert_eq!((outcome.window_transactions, outcome.warmup_transactions, outcome.commits), (80, 40, 120));
    assert_eq!((outcome.connections, outcome.cpu_us, outcome.window_us), (8, 2800, 2_000_000));
    for (at, host) in fixture.hosts().into_iter().enumerate() {
        assert_eq!((host.clients, host.transactions, host.cpu_us), (2, 20, Some(700)), "{at}");
        assert_eq!((host.busy, host.busy_max), (Some(0.25), Some(0.25)));
        assert_eq!((host.lag_us, host.lag_max_us), (Some(4.0), Some(9.0)), "two responses a transaction");
        assert_eq!((host.late_us, host.lost), (Some(0), None));
    }
}

#[test]
fn offsets_are_found_to_within_their_bounds_and_starts_agree() {
    let offsets_us = [0, 500_000, -500_000, 123_456_789_000];
    let fixture = Fixture::run(&offsets_us, |at, fake| {
        (fake.there_us, fake.back_us) = [(0, 0), (10_000, 0), (0, 10_000), (3_000, 2_000)][at];
    });
    let Some(Reply::Started { at, .. }) = fixture.replies.get(1) else { panic!("no start") };
    assert_eq!(at.unix_us - at.monotonic_us, 1_000_000_000_000, "by the clocks of the campaign's host");
    for (host, (offset_us, requests)) in fixture.hosts().iter().zip(offsets_us.iter().zip(&fixture.requests))
    {
        let bound_us = host.bound_us.unwrap();
        let error_us = host.offset_us.unwrap().abs_diff(*offset_us);
        assert!(error_us <= bound_us, "{host:?} of {offset_us}");
        let start_us = requests.borrow().iter().find_map(|request| match request {
            Request::Start { at_us } => Some(*at_us),
            _ => None,
        });
        let began_us = start_us.unwrap() - offset_us;
        assert!(began_us.abs_diff(at.monotonic_us) <= bound_us, "{host:?} began at {began_us}");
    }
    // Two of the ways take no time in one direction: their bounds are reached.
    assert!(fixture.hosts()[1].bound_us.unwrap() < 5_100 && fixture.hosts()[0].bound_us.unwrap() < 100);
    assert_eq!(start_spread_us(&fixture.hosts()), Some(0));
}

#[test]
fn a_clock_that_drifts_widens_its_bound() {
    let fixture = Fixture::run(&[0, 500_000], |at, fake| fake.drift_us = [0, 2_500][at]);
    let [steady, drifting] = fixture.hosts().try_into().unwrap();
    assert!(steady.bound_us.unwrap() < 500, "{steady:?}");
    assert!((2_400..3_200).contains(&drifting.bound_us.unwrap()), "{drifting:?}");
}

#[test]
fn a_host_that_begins_late_is_recorded() {
    let fixture = Fixture::run(&[0, 5], |at, fake| {
        if at == 1 {
            fake.behaviour = Behaviour::IsLate(30_000);
        }
    });
    assert!(matches!(fixture.replies[1], Reply::Started { late_us: 30_000.., .. }));
    let spread_us = start_spread_us(&fixture.hosts()).unwrap();
    assert!((29_000..31_000).contains(&spread_us), "{spread_us}");
}

#[test]
fn a_host_that_is_lost_ends_the_load_of_the_others() {
    let fixture = Fixture::run(&[0, 0, 0], |at, fake| {
        if at == 1 {
            fake.behaviour = Behaviour::ExitsAfter(1_500_000);
        }
    });
    let why = "lost load host b with its 3 clients: the driver process died (signal: 9 (SIGKILL)) and left no message";
    assert_eq!(fixture.failure(), why);
    assert!(fixture.was_stopped(0) && fixture.was_stopped(2) && !fixture.was_stopped(1));
    assert_eq!(fixture.intervals()[0], (0, Phase::Warmup, 30), "what all of them reported is kept");
    let [a, b, c] = fixture.hosts().try_into().unwrap();
    assert_eq!(b.loss().as_deref(), Some(why));
    assert_eq!((b.cpu_us, b.bound_us), (None, None));
    for host in [a, c] {
        assert_eq!((host.lost, host.cpu_us), (None, Some(700)));
    }
}

/// Then the load has no start, and so no intervals that would be counted from it.
#[test]
fn a_host_that_is_lost_before_it_begins_leaves_no_load() {
    let fixture = Fixture::run(&[0, 0], |at, fake| {
        if at == 1 {
            fake.behaviour = Behaviour::ExitsAfter(-1_000);
        }
    });
    assert!(fixture.failure().starts_with("lost load host b with its 4 clients: "), "{}", fixture.failure());
    assert!(fixture.was_stopped(0));
    assert_eq!(fixture.replies.len(), 2, "connected and failed: {:?}", fixture.replies);
}

#[test]
fn a_host_that_falls_silent_is_lost() {
    let fixture = Fixture::run(&[0, 0], |at, fake| {
        if at == 0 {
            fake.behaviour = Behaviour::FallsSilent;
        }
    });
    assert_eq!(fixture.failure(), "lost load host a with its 4 clients: it has reported nothing for 12 s");
}

#[test]
fn a_host_whose_interval_did_not_arrive_is_lost() {
    for start_us in [0, 1_000_000, 2_000_000] {
        let fixture = Fixture::run(&[0, 0], |at, fake| {
            if at == 1 {
                fake.behaviour = Behaviour::LosesAnInterval(start_us);
            }
        });
        let why = "lost load host b with its 4 clients: some of its intervals were lost on their way: those that arrived \
                   have 20 of its 30 transactions";
        assert!(fixture.failure().starts_with(why), "{}", fixture.failure());
        let [a, b] = fixture.hosts().try_into().unwrap();
        assert_eq!((a.lost, b.lost.is_some()), (None, true));
    }
}

#[test]
fn a_host_that_can_not_take_part_is_named_before_anything_starts() {
    for (behaviour, why) in [
        (Behaviour::Refused, "lost load host b with its 4 clients: refused"),
        (Behaviour::Hangs, "lost load host b with its 4 clients: they were not connected after 50 s"),
        (
            Behaviour::HasNoClock,
            "lost load host b with its 4 clients: it did not report its clock within 5 s",
        ),
        (
            Behaviour::TakesNothing,
            "lost load host b with its 4 clients: cannot send a request to the driver process: broken pipe; it has \
             probably exited",
        ),
    ] {
        let fixture = Fixture::run(&[0, 0], |at, fake| {
            if at == 1 {
                fake.behaviour = behaviour;
            }
        });
        assert_eq!(fixture.failure(), why);
        assert!(!fixture.replies.iter().any(|reply| matches!(reply, Reply::Started { .. })));
        for requests in &fixture.requests {
            assert!(!requests.borrow().iter().any(|request| matches!(request, Request::Start { .. })));
        }
    }
}

#[test]
fn a_host_whose_clock_can_not_be_read_at_the_end_has_results_but_no_bound() {
    let fixture = Fixture::run(&[0, 0], |at, fake| {
        if at == 1 {
            fake.behaviour = Behaviour::ExitsAtTheEnd;
        }
    });
    assert!(matches!(fixture.replies.last(), Some(Reply::Finished(_))), "{:?}", fixture.replies.last());
    let [a, b] = fixture.hosts().try_into().unwrap();
    assert!(a.bound_us.is_some());
    assert_eq!((b.bound_us, b.lost, b.cpu_us), (None, None, Some(700)));
}

#[test]
fn a_client_that_dies_has_its_number_and_its_host() {
    let fixture = Fixture::run(&[0, 0], |at, fake| {
        if at == 1 {
            fake.behaviour = Behaviour::LosesAClient;
        }
    });
    let death = fixture.replies.iter().find_map(|reply| match reply {
        Reply::ClientDied(death) => Some((death.client, death.message.as_str())),
        _ => None,
    });
    assert_eq!(death, Some((4, "it is gone (on load host b)")));
}

#[test]
fn a_stop_reaches_all_hosts_at_any_time() {
    // While the clients connect, before the start, and during the load.
    for before in [0, 1, 3] {
        let mut fixture = Fixture::new(&[0, 0], |_, _| ());
        fixture.driver.send(&Request::Run(Box::new(load()))).unwrap();
        for _ in 0..before {
            let reply = next_reply(&mut fixture.driver);
            fixture.replies.push(reply);
        }
        fixture.driver.send(&Request::Stop).unwrap();
        fixture.until(|reply| matches!(reply, Reply::Finished(_) | Reply::Failed { .. }));
        assert!(matches!(fixture.replies.last(), Some(Reply::Finished(_))), "{:?}", fixture.replies);
        assert!(fixture.was_stopped(0) && fixture.was_stopped(1));
        let has_started = fixture.replies.iter().any(|reply| matches!(reply, Reply::Started { .. }));
        assert_eq!(has_started, before == 3, "{before}");
    }
}

fn next_reply(driver: &mut JoinedDriver) -> Reply {
    loop {
        if let ProcessEvent::Reply(reply) = driver.next(Duration::from_millis(100)).unwrap() {
            return reply;
        }
    }
}

#[test]
fn slices_are_refused() {
    let mut fixture = Fixture::new(&[0, 0], |_, _| ());
    let error = fixture.driver.send(&Request::Resume).unwrap_err().to_string();
    assert!(error.contains("a load on several hosts runs in one piece"), "{error}");
    assert_eq!(fixture.driver.pid(), None);
}
