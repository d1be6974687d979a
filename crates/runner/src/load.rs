//! One load: sends it to a driver process and receives its results until it ends or fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::ProcessEvent;
use jiff::Timestamp;
use model::load_hosts::LoadHost;
use model::message::{ClientDeath, Interval, Load, Outcome, Reply, Request, SessionSamples, TransactionSpan};
use model::outage::Outage;
use model::paired::MeasuredSlice;
use model::record::ClockReading;
use model::trace::PlayedStatement;

use crate::driver_handle::{Driver, died};
use crate::rig::Rig;
use crate::sliced_load::{SlicedLoad, Step};

/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time limit for connecting all clients.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Time limit for the end of a load after its planned end; the driver aborts transactions in flight after 5 s.
const END_LIMIT: Duration = Duration::from_secs(15);

/// Class of SQLSTATEs for syntax errors, missing objects and missing privileges: a statement that is refused each time.
/// Source: PostgreSQL manual, "PostgreSQL Error Codes".
const SYNTAX_OR_ACCESS: &str = "42";

/// Results of a load.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    /// Time it took to connect all clients.
    pub(crate) connect_us: u64,
    /// Start of the load; none if it did not start.
    pub(crate) started: Option<ClockReading>,
    /// Time at which its end was reported.
    pub(crate) ended: Option<ClockReading>,
    /// The load, second by second.
    pub(crate) intervals: Vec<Interval>,
    /// Start and end of each transaction, for workloads that ask for them.
    pub(crate) spans: Vec<TransactionSpan>,
    /// What became of the statements of a trace.
    pub(crate) played: Vec<PlayedStatement>,
    /// Slices of one side of a session, without warm-up.
    pub(crate) slices: Vec<MeasuredSlice>,
    /// Clients that died.
    pub(crate) deaths: Vec<ClientDeath>,
    /// Totals; none if the driver did not report them.
    pub(crate) outcome: Option<Outcome>,
    /// Reason why there was no load, or why it ended early.
    pub(crate) failure: Option<String>,
    /// The outage that is that reason, if it is one.
    pub(crate) outage: Option<Outage>,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
    /// The load hosts that it ran on; empty if it ran on this host.
    pub(crate) hosts: Vec<LoadHost>,
}

impl LoadResult {
    /// Start of the load by the wall clock.
    pub(crate) fn load_started(&self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.started?.unix_us).ok()
    }

    /// The first client that died because the server refuses its statement.
    pub(crate) fn refusal(&self) -> Option<&ClientDeath> {
        let is_refusal = |death: &&ClientDeath| {
            death.sqlstate.as_ref().is_some_and(|code| code.starts_with(SYNTAX_OR_ACCESS))
        };
        self.deaths.iter().find(is_refusal)
    }

    /// Whether it did not run as planned: what follows would not begin where it has to.
    pub(crate) fn is_incomplete(&self) -> bool {
        let stopped_early = self.outcome.as_ref().is_none_or(|outcome| outcome.stopped_early);
        stopped_early || self.interrupted || self.leaves_server_in_doubt()
    }

    /// Whether the load failed in a way that may have been caused by a failing server.
    pub(crate) fn leaves_server_in_doubt(&self) -> bool {
        self.failure.is_some() || !self.deaths.is_empty()
    }
}

/// An event of a running load.
pub(crate) enum LoadEvent<'a> {
    /// All clients are connected.
    Connected {
        /// Process ids of the backends that serve background workloads.
        background: Vec<i32>,
    },
    /// The load has started.
    Started(ClockReading),
    /// A slice of the load begins, or has ended.
    Paused(bool),
    /// An interval has ended.
    Interval(&'a Interval),
    /// The driver of a trace wants the samples of its sessions since the last time; none if sessions are not sampled.
    Samples(&'a mut Option<SessionSamples>),
}

/// Runs a load to its end, in slices if it is one side of a session. Failures are part of the result. A driver that does not
/// end is killed when its handle is dropped.
pub(crate) fn drive(
    rig: &dyn Rig,
    mut driver: Box<dyn Driver>,
    load: Load,
    slices: Option<SlicedLoad<'_>>,
    interrupt: &AtomicBool,
    on_event: impl FnMut(LoadEvent),
) -> LoadResult {
    let result = receive(rig, &mut *driver, load, slices, interrupt, on_event);
    LoadResult { hosts: driver.load_hosts(), ..result }
}

fn receive(
    rig: &dyn Rig,
    driver: &mut dyn Driver,
    load: Load,
    mut slices: Option<SlicedLoad<'_>>,
    interrupt: &AtomicBool,
    mut on_event: impl FnMut(LoadEvent),
) -> LoadResult {
    let length = Duration::from_micros(load.warmup_us + load.duration_us);
    let plays_trace = load.trace.is_some();
    let sent = driver.send(&Request::Run(Box::new(load)));
    let mut result = LoadResult::default();
    let mut stopped = false;
    // A driver that does not accept the request has exited; the next reply gives the reason.
    let mut deadline = rig.now() + if sent.is_ok() { CONNECT_LIMIT } else { END_LIMIT };
    loop {
        if !result.interrupted && interrupt.load(Ordering::Relaxed) {
            result.interrupted = true;
        }
        if !stopped && (result.interrupted || result.refusal().is_some()) {
            stopped = true;
            // If the driver has exited, the next reply reports it.
            let _ = driver.send(&Request::Stop);
            deadline = rig.now() + END_LIMIT;
        }
        if rig.now() > deadline {
            result.failure = Some(match (&sent, result.started) {
                (Err(error), _) => error.to_string(),
                (Ok(()), None) => {
                    format!("the clients were not connected after {} s", CONNECT_LIMIT.as_secs())
                }
                (Ok(()), Some(_)) => {
                    format!("the load was still running {} s after its planned end", END_LIMIT.as_secs())
                }
            });
            return result;
        }
        let mut timeout = POLL_INTERVAL;
        if let Some(slices) = slices.as_mut().filter(|_| !stopped && result.started.is_some()) {
            match slices.step(driver, rig.now()) {
                Ok(Step::Paused) => {
                    deadline = rig.now() + END_LIMIT;
                    timeout = Duration::ZERO;
                }
                Ok(Step::Resumed(length)) => {
                    on_event(LoadEvent::Paused(false));
                    deadline = rig.now() + length + END_LIMIT;
                    continue;
                }
                Ok(Step::Running(left)) => timeout = left.min(POLL_INTERVAL),
                // If the driver has exited, the next event reports it.
                Ok(Step::Ending) | Err(_) => {}
                Ok(ended @ (Step::End | Step::Alone)) => {
                    if ended == Step::Alone {
                        result.failure = Some("the other side of the session has ended".to_owned());
                    }
                    stopped = true;
                    let _ = driver.send(&Request::Stop);
                    deadline = rig.now() + END_LIMIT;
                }
            }
        }
        match driver.next(timeout) {
            Ok(ProcessEvent::TimedOut) => {
                if let (true, Some(slices)) = (timeout.is_zero(), &slices) {
                    slices.wait(POLL_INTERVAL);
                }
            }
            Ok(ProcessEvent::Exited { status, stderr }) => {
                result.failure = Some(died(&status.to_string(), &stderr));
                return result;
            }
            // The driver has another version, or died in the middle of a line.
            Err(error) => {
                result.failure = Some(error.to_string());
                return result;
            }
            Ok(ProcessEvent::Reply(reply)) => match reply {
                Reply::Hello { .. } | Reply::Clock { .. } => {}
                Reply::Connected { connect_us, background } => {
                    on_event(LoadEvent::Connected { background });
                    result.connect_us = connect_us;
                }
                Reply::Started { at, .. } => {
                    on_event(LoadEvent::Started(at));
                    result.started = Some(at);
                    if let Some(slices) = &slices {
                        on_event(LoadEvent::Paused(true));
                        slices.ready();
                    }
                    if !stopped {
                        deadline = rig.now() + length + END_LIMIT;
                    }
                }
                Reply::Interval(mut interval) => {
                    result.spans.append(&mut interval.spans);
                    on_event(LoadEvent::Interval(&interval));
                    result.intervals.push(interval);
                    if plays_trace {
                        let mut samples = None;
                        on_event(LoadEvent::Samples(&mut samples));
                        // If the driver has exited, the next reply reports it.
                        let _ = driver.send(&Request::Sampled(samples));
                    }
                }
                Reply::Paused(slice) => {
                    on_event(LoadEvent::Paused(true));
                    result.slices.extend(slices.as_mut().and_then(|slices| slices.end(slice)));
                }
                Reply::Statement(statement) => {
                    result.played.push(*statement);
                    // Their plans take their time.
                    deadline = rig.now() + END_LIMIT;
                }
                Reply::ClientDied(death) => result.deaths.push(death),
                Reply::Finished(outcome) => {
                    result.ended = Some(collect::now());
                    result.spans.sort_by_key(|span| (span.start_us, span.client));
                    result.outcome = Some(*outcome);
                    return result;
                }
                Reply::Failed { message, outage } => {
                    result.failure = Some(message);
                    result.outage = outage;
                    return result;
                }
            },
        }
    }
}
