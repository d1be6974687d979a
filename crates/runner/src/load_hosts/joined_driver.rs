//! One driver over several: each runs a part of the load, and their replies are summed to those of one.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use driver::{DriverError, MergedLoad, ProcessEvent};
use model::load_hosts::LoadHost;
use model::message::{Interval, Load, Outcome, Phase, Reply, Request};
use model::part::Part;
use model::record::ClockReading;

use super::NamedDriver;
use super::clock_offset::ReadClock;
use super::host::Host;
use crate::driver_handle::{Driver, died};

/// Time for which it waits for one host while the others may have something to say.
const POLL_INTERVAL_US: i64 = 20_000;

/// Time limit for connecting the clients of each host: less than that of the whole load, so that the host is named.
const CONNECT_LIMIT_US: i64 = 50_000_000;

/// Time from the agreement on the instant of the start until then, in addition to two round trips.
const START_LEAD_US: i64 = 200_000;

/// Time without a reply of a running load after which its host is lost, in addition to two intervals. Closing the connections
/// takes up to 5 s, without a reply.
const SILENCE_LIMIT_US: i64 = 10_000_000;

/// Time that the other hosts have to end their parts after one was lost.
const END_LIMIT_US: i64 = 10_000_000;

/// A driver over the drivers of several hosts. Its times are by this host's clock.
pub(crate) struct JoinedDriver {
    hosts: Vec<Host>,
    clock: ReadClock,
    merged: Option<MergedLoad>,
    stage: Stage,
    /// Replies to be returned.
    replies: VecDeque<Reply>,
    /// The host to wait for next.
    turn: usize,
    interval_us: i64,
    is_stopped: bool,
    /// Whether the start has been reported.
    has_started: bool,
}

/// Progress of a load.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// The hosts connect their clients, since this time.
    Connecting { since_us: i64 },
    /// All are connected, and that has been reported.
    Connected,
    /// They are to start, or have started, at this instant.
    Running { at_us: i64 },
    /// A host was lost: the others end, until this time.
    Failing { why: String, until_us: i64 },
    /// The end has been reported.
    Ended,
}

impl JoinedDriver {
    /// A driver over these, each with the name of its host.
    pub(crate) fn new(drivers: Vec<NamedDriver>, clock: ReadClock) -> Self {
        let since_us = clock().monotonic_us;
        Self {
            hosts: drivers.into_iter().map(|(name, driver)| Host::new(name, driver)).collect(),
            clock,
            merged: None,
            stage: Stage::Connecting { since_us },
            replies: VecDeque::new(),
            turn: 0,
            interval_us: 0,
            is_stopped: false,
            has_started: false,
        }
    }

    fn now_us(&self) -> i64 {
        (self.clock)().monotonic_us
    }

    /// Sends each host its part of a load.
    fn run(&mut self, load: &Load) {
        self.interval_us = i64::try_from(load.interval_us).unwrap_or(i64::MAX / 4);
        self.stage = Stage::Connecting { since_us: self.now_us() };
        match MergedLoad::new(load, self.hosts.len()) {
            Ok(merged) => self.merged = Some(merged),
            Err(error) => return self.fail(error.to_string()),
        }
        for (at, part) in (0..).zip(Part::all(self.hosts.len() as u32)) {
            let host: &mut Host = &mut self.hosts[at];
            host.record.clients = part.clients(load.clients).len() as u32;
            let request = Request::Run(Box::new(Load { part: Some(part), ..load.clone() }));
            if let Err(error) = host.driver.send(&request) {
                self.lose(at, error.to_string());
            }
        }
    }

    /// Sends all hosts that still run a request.
    fn send_to_all(&mut self, request: &Request) {
        for at in 0..self.hosts.len() {
            if self.hosts[at].has_ended {
                continue;
            }
            if let Err(error) = self.hosts[at].driver.send(request) {
                self.lose(at, error.to_string());
            }
        }
    }

    /// Takes the next step of the load for which everything has been received.
    fn advance(&mut self) {
        match &self.stage {
            Stage::Connecting { since_us } => {
                let since_us = *since_us;
                if self.hosts.iter().all(|host| host.connect_us.is_some()) && !self.is_stopped {
                    self.connected();
                } else if self.hosts.iter().all(|host| host.has_ended) {
                    self.finish();
                } else if self.now_us() > since_us + CONNECT_LIMIT_US && !self.is_stopped {
                    self.connected_too_late();
                }
            }
            Stage::Connected => {
                if self.hosts.iter().all(|host| host.has_ended) {
                    self.finish();
                } else if !self.is_stopped {
                    self.start();
                }
            }
            Stage::Running { at_us } => {
                let at_us = *at_us;
                let has_started = |host: &Host| host.record.late_us.is_some();
                if !self.has_started
                    && self.hosts.iter().all(|host| has_started(host) || host.has_ended)
                    && self.hosts.iter().any(has_started)
                {
                    self.started(at_us);
                }
                self.report_intervals();
                if self.hosts.iter().all(|host| host.has_ended) {
                    self.finish();
                }
            }
            Stage::Failing { why, until_us } => {
                if self.hosts.iter().all(|host| host.has_ended) || self.now_us() > *until_us {
                    let why = why.clone();
                    self.report_intervals();
                    self.fail(why);
                }
            }
            Stage::Ended => {}
        }
    }

    /// Measures the clocks, and reports that all clients are connected.
    fn connected(&mut self) {
        for at in 0..self.hosts.len() {
            if let Err(why) = self.hosts[at].measure_clock(&self.clock) {
                return self.lose(at, why);
            }
        }
        let connect_us = self.hosts.iter().filter_map(|host| host.connect_us).max().unwrap_or_default();
        let background = self.hosts.iter().flat_map(|host| host.background.iter().copied()).collect();
        self.replies.push_back(Reply::Connected { connect_us, background });
        self.stage = Stage::Connected;
    }

    fn connected_too_late(&mut self) {
        if let Some(at) = self.hosts.iter().position(|host| host.connect_us.is_none()) {
            let limit = CONNECT_LIMIT_US / 1_000_000;
            self.lose(at, format!("they were not connected after {limit} s"));
        }
    }

    /// Agrees with all hosts on the instant of the start.
    fn start(&mut self) {
        let round_trip_us = self.hosts.iter().map(|host| host.round_trip_us).max().unwrap_or_default();
        let at_us = self.now_us() + START_LEAD_US + 2 * i64::try_from(round_trip_us).unwrap_or_default();
        self.stage = Stage::Running { at_us };
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.heard_us = at_us;
            let offset_us = host.record.offset_us.unwrap_or_default();
            let request = Request::Start { at_us: at_us.saturating_add(offset_us) };
            if let Err(error) = host.driver.send(&request) {
                self.lose(at, error.to_string());
            }
        }
    }

    /// Reports that the load has started at the agreed instant.
    fn started(&mut self, at_us: i64) {
        let now = (self.clock)();
        let at = ClockReading { monotonic_us: at_us, unix_us: now.unix_us - (now.monotonic_us - at_us) };
        let late_us = self.hosts.iter().filter_map(|host| host.record.late_us).max().unwrap_or_default();
        self.replies.push_back(Reply::Started { at, late_us });
        self.has_started = true;
    }

    /// Reports the intervals that all hosts have completed, after the start.
    fn report_intervals(&mut self) {
        let Some(merged) = self.merged.as_mut().filter(|_| self.has_started) else { return };
        loop {
            match merged.next_interval() {
                Ok(Some(interval)) => self.replies.push_back(Reply::Interval(interval)),
                Ok(None) => return,
                Err(error) => return self.fail(error.to_string()),
            }
        }
    }

    /// Reports the end of the load.
    fn finish(&mut self) {
        match self.merged.as_ref().and_then(MergedLoad::outcome) {
            Some(outcome) => {
                self.replies.push_back(Reply::Finished(Box::new(outcome)));
                self.stage = Stage::Ended;
            }
            None => self.fail("no load host has reported the end of the load".to_owned()),
        }
    }

    fn fail(&mut self, message: String) {
        if self.stage != Stage::Ended {
            self.replies.push_back(Reply::Failed { message, outage: None });
            self.stage = Stage::Ended;
        }
    }

    /// Gives up a host. A load that runs ends, and the other hosts complete their transactions.
    fn lose(&mut self, at: usize, why: String) {
        let host = &mut self.hosts[at];
        if host.has_ended {
            return;
        }
        host.has_ended = true;
        host.record.lost = Some(why);
        let loss = host.record.loss().unwrap_or_default();
        if let Some(merged) = &mut self.merged {
            merged.lose(at);
        }
        match self.stage {
            Stage::Connecting { .. } | Stage::Connected => self.fail(loss),
            Stage::Running { .. } => {
                self.stage = Stage::Failing { why: loss, until_us: self.now_us() + END_LIMIT_US };
                self.send_to_all(&Request::Stop);
            }
            Stage::Failing { .. } | Stage::Ended => {}
        }
    }

    /// Receives the next event of any host, until this time; false if there is none.
    fn receive(&mut self, until_us: i64) -> bool {
        for at in 0..self.hosts.len() {
            if self.receive_from(at, Duration::ZERO) {
                return true;
            }
        }
        let left_us = until_us - self.now_us();
        let running: Vec<usize> = (0..self.hosts.len()).filter(|at| !self.hosts[*at].has_ended).collect();
        if left_us <= 0 || running.is_empty() {
            return false;
        }
        self.turn = self.turn.wrapping_add(1);
        let wait_us = left_us.min(POLL_INTERVAL_US).unsigned_abs();
        self.receive_from(running[self.turn % running.len()], Duration::from_micros(wait_us));
        true
    }

    /// Receives and handles the next event of a host; false if there is none in this time.
    fn receive_from(&mut self, at: usize, timeout: Duration) -> bool {
        let now_us = self.now_us();
        let host = &mut self.hosts[at];
        if host.has_ended {
            return false;
        }
        match host.next(timeout) {
            Ok(ProcessEvent::TimedOut) => {
                let limit_us = SILENCE_LIMIT_US + 2 * self.interval_us;
                let is_silent = now_us - host.heard_us > limit_us;
                if matches!(self.stage, Stage::Running { .. }) && is_silent {
                    self.lose(at, format!("it has reported nothing for {} s", limit_us / 1_000_000));
                    return true;
                }
                return false;
            }
            Ok(ProcessEvent::Exited { status, stderr }) => {
                self.lose(at, died(&status.to_string(), &stderr));
            }
            Err(error) => self.lose(at, error.to_string()),
            Ok(ProcessEvent::Reply(reply)) => {
                host.heard_us = host.heard_us.max(now_us);
                self.handle(at, reply);
            }
        }
        true
    }

    fn handle(&mut self, at: usize, reply: Reply) {
        let host = &mut self.hosts[at];
        match reply {
            Reply::Hello { .. } | Reply::Clock { .. } => {}
            Reply::Connected { connect_us, background } => {
                (host.connect_us, host.background) = (Some(connect_us), background);
            }
            Reply::Started { late_us, .. } => host.record.late_us = Some(late_us),
            Reply::Interval(interval) => self.add(at, interval),
            Reply::ClientDied(mut death) => {
                death.message = format!("{} (on load host {})", death.message, host.record.name);
                self.replies.push_back(Reply::ClientDied(death));
            }
            Reply::Finished(outcome) => self.end(at, *outcome),
            Reply::Failed { message, .. } => self.lose(at, message),
            Reply::Statement(_) => {
                self.lose(at, "it reported a statement of a trace, which has no parts".to_owned())
            }
            Reply::Paused(_) => self.lose(at, "it reported a slice of a load in one piece".to_owned()),
        }
    }

    /// Adds an interval of a host.
    fn add(&mut self, at: usize, interval: Interval) {
        if interval.phase == Phase::Measure {
            self.hosts[at].add_to_window(&interval);
        }
        let added = self.merged.as_mut().map_or(Ok(()), |merged| merged.add(at, interval));
        if let Err(error) = added {
            self.lose(at, format!("its results can't be added: {error}"));
        }
    }

    /// Ends the part of a host, whose clock is measured once more. One that intervals are missing of is lost.
    fn end(&mut self, at: usize, outcome: Outcome) {
        let host = &mut self.hosts[at];
        host.record.cpu_us = Some(outcome.cpu_us);
        host.measure_clock_again(&self.clock);
        let ended = self.merged.as_mut().map_or(Ok(()), |merged| merged.end(at, outcome));
        match ended {
            Ok(()) => self.hosts[at].has_ended = true,
            Err(error) => self.lose(at, error.to_string()),
        }
    }
}

impl Driver for JoinedDriver {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        match request {
            Request::Run(load) => self.run(load),
            Request::Stop => {
                self.is_stopped = true;
                self.send_to_all(request);
            }
            Request::Resume
            | Request::Pause
            | Request::ReadClock { .. }
            | Request::Start { .. }
            | Request::Sampled(_) => {
                let problem =
                    "a load on several hosts runs in one piece, from an instant that its hosts agree on";
                return Err(DriverError::Send(io::Error::other(problem)));
            }
        }
        Ok(())
    }

    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        let timeout_us = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX / 4);
        let until_us = self.now_us().saturating_add(timeout_us);
        loop {
            self.advance();
            if let Some(reply) = self.replies.pop_front() {
                return Ok(ProcessEvent::Reply(reply));
            }
            if !self.receive(until_us) {
                return Ok(ProcessEvent::TimedOut);
            }
        }
    }

    fn load_hosts(&self) -> Vec<LoadHost> {
        self.hosts.iter().map(|host| host.record.clone()).collect()
    }
}
