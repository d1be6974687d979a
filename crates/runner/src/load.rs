//! One load: starts a driver process, gives it the load, and listens until it has ended, one way or the other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{DriverError, Next, Process};
use jiff::Timestamp;
use model::message::{ClientDeath, Interval, Load, Outcome, Reply, Request, TransactionSpan};
use model::record::ClockReading;

/// The argument that makes pgdyno a driver process.
const DRIVER_COMMAND: &str = "driver";

/// How often to look whether the user wants to stop.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// How long connecting all clients may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// How long after its planned end a load may take to end: the driver cuts transactions in flight after 5 s.
const END_LIMIT: Duration = Duration::from_secs(15);

/// What came of a load.
#[derive(Debug, Default)]
pub(crate) struct Driven {
    /// Time it took to connect all clients.
    pub(crate) connect_us: u64,
    /// When the load began; none where it did not.
    pub(crate) started: Option<ClockReading>,
    /// When its end was heard of.
    pub(crate) ended: Option<ClockReading>,
    /// The load second by second.
    pub(crate) intervals: Vec<Interval>,
    /// When each transaction ran, where that is asked for.
    pub(crate) spans: Vec<TransactionSpan>,
    /// Clients that could not go on.
    pub(crate) deaths: Vec<ClientDeath>,
    /// Totals; none where the driver did not live to tell.
    pub(crate) outcome: Option<Outcome>,
    /// Why there was no load, or why it broke off.
    pub(crate) failure: Option<String>,
    /// Whether the user ended it.
    pub(crate) interrupted: bool,
}

impl Driven {
    /// When the load began, by the wall clock.
    pub(crate) fn load_started(&self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.started?.unix_us).ok()
    }

    /// Whether something happened that the server may have died of, or not have survived unharmed.
    pub(crate) fn leaves_server_in_doubt(&self) -> bool {
        self.failure.is_some() || !self.deaths.is_empty()
    }
}

/// What is heard of a load while it runs.
pub(crate) enum Heard<'a> {
    /// Its clients are connected.
    Connected {
        /// Process ids of the backends that serve workloads beside it.
        beside: Vec<i32>,
    },
    /// It has begun.
    Started(ClockReading),
    /// One more interval has passed.
    Interval(&'a Interval),
}

/// Starts a driver process, which waits for its load.
///
/// # Errors
/// The process could not be started.
pub(crate) fn start(program: &Path) -> Result<Process, DriverError> {
    Process::spawn(program, &[DRIVER_COMMAND])
}

/// Runs a load to its end. A driver that does not end is killed when its handle goes.
///
/// # Errors
/// The driver process could not be spoken to. What goes wrong later is part of the result.
pub(crate) fn drive(
    mut driver: Process,
    load: Load,
    interrupt: &AtomicBool,
    mut hear: impl FnMut(Heard),
) -> Result<Driven, DriverError> {
    let length = Duration::from_micros(load.warmup_us + load.duration_us);
    driver.send(&Request::Run(Box::new(load)))?;
    let mut driven = Driven::default();
    let mut deadline = Instant::now() + CONNECT_LIMIT;
    loop {
        if !driven.interrupted && interrupt.load(Ordering::Relaxed) {
            driven.interrupted = true;
            // A driver that is gone already says so below.
            let _ = driver.send(&Request::Stop);
            deadline = Instant::now() + END_LIMIT;
        }
        if Instant::now() > deadline {
            driven.failure = Some(match driven.started {
                None => format!("the clients were not connected after {} s", CONNECT_LIMIT.as_secs()),
                Some(_) => format!("the load did not end {} s after its time", END_LIMIT.as_secs()),
            });
            return Ok(driven);
        }
        match driver.next(LOOK_AROUND) {
            Ok(Next::TimedOut) => {}
            Ok(Next::Exited { status, stderr }) => {
                driven.failure = Some(died(&status.to_string(), &stderr));
                return Ok(driven);
            }
            // A driver of another version, or one that died in the middle of a line.
            Err(error) => {
                driven.failure = Some(error.to_string());
                return Ok(driven);
            }
            Ok(Next::Reply(reply)) => match reply {
                Reply::Hello { .. } => {}
                Reply::Connected { connect_us, beside } => {
                    hear(Heard::Connected { beside });
                    driven.connect_us = connect_us;
                }
                Reply::Started { at } => {
                    hear(Heard::Started(at));
                    driven.started = Some(at);
                    if !driven.interrupted {
                        deadline = Instant::now() + length + END_LIMIT;
                    }
                }
                Reply::Interval(mut interval) => {
                    driven.spans.append(&mut interval.spans);
                    hear(Heard::Interval(&interval));
                    driven.intervals.push(interval);
                }
                Reply::ClientDied(death) => driven.deaths.push(death),
                Reply::Finished(outcome) => {
                    driven.ended = Some(collect::now());
                    driven.spans.sort_by_key(|span| (span.start_us, span.client));
                    driven.outcome = Some(*outcome);
                    return Ok(driven);
                }
                Reply::Failed { message } => {
                    driven.failure = Some(message);
                    return Ok(driven);
                }
            },
        }
    }
}

fn died(status: &str, stderr: &str) -> String {
    match stderr.trim() {
        "" => format!("the driver process died ({status}) and left no message"),
        text => format!("the driver process died ({status}): {text}"),
    }
}
