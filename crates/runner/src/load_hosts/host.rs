//! One load host: its driver, its clock, and its figures.

use std::collections::VecDeque;
use std::time::Duration;

use driver::{DriverError, ProcessEvent};
use model::load_hosts::LoadHost;
use model::message::{Interval, Reply, Request, ScriptInterval};

use super::clock_offset::{ClockOffset, Exchange, ReadClock};
use crate::driver_handle::{Driver, died};

/// Number of exchanges by which a clock is measured.
const EXCHANGES: u32 = 30;

/// Time limit of a measurement.
const MEASURE_LIMIT_US: i64 = 5_000_000;

/// A load host.
pub(super) struct Host {
    pub(super) driver: Box<dyn Driver>,
    /// Replies that arrived while its clock was measured.
    received: VecDeque<Reply>,
    /// Time that it took to connect its clients; none before.
    pub(super) connect_us: Option<u64>,
    /// Process ids of the backends of its background workloads.
    pub(super) background: Vec<i32>,
    offset: Option<ClockOffset>,
    /// Number of the next exchange. None is used twice, so that a late answer is not taken for another one.
    next_exchange: u32,
    /// The shortest round trip of the measurement.
    pub(super) round_trip_us: u64,
    /// Time of its last reply, of a load that runs.
    pub(super) heard_us: i64,
    /// Whether it reports nothing more.
    pub(super) has_ended: bool,
    /// Time of the window's intervals, and the busy time and the driver lag in them, in microseconds.
    window_us: f64,
    busy_us: f64,
    lag_us: f64,
    /// Transactions in them, also of background workloads, whose responses have a lag, too.
    transactions: u64,
    pub(super) record: LoadHost,
}

impl Host {
    pub(super) fn new(name: String, driver: Box<dyn Driver>) -> Self {
        Self {
            driver,
            received: VecDeque::new(),
            connect_us: None,
            background: Vec::new(),
            offset: None,
            next_exchange: 0,
            round_trip_us: 0,
            heard_us: 0,
            has_ended: false,
            window_us: 0.0,
            busy_us: 0.0,
            lag_us: 0.0,
            transactions: 0,
            record: LoadHost { name, ..LoadHost::default() },
        }
    }

    /// Its next event.
    pub(super) fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        match self.received.pop_front() {
            Some(reply) => Ok(ProcessEvent::Reply(reply)),
            None => self.driver.next(timeout),
        }
    }

    /// Measures its clock before the load.
    ///
    /// # Errors
    /// It does not answer, and why.
    pub(super) fn measure_clock(&mut self, clock: &ReadClock) -> Result<(), String> {
        let best = self.shortest_exchange(clock)?;
        let offset = ClockOffset::from(best);
        self.round_trip_us = best.round_trip_us();
        self.offset = Some(offset);
        self.record.offset_us = Some(offset.offset_us);
        Ok(())
    }

    /// Measures its clock after the load, which gives the bound. A host that does not answer any more has none.
    pub(super) fn measure_clock_again(&mut self, clock: &ReadClock) {
        let Some(offset) = self.offset else { return };
        let later = self.shortest_exchange(clock).map(ClockOffset::from);
        self.record.bound_us = later.ok().map(|later| offset.bound_until_us(later));
    }

    /// The exchange with the shortest round trip.
    fn shortest_exchange(&mut self, clock: &ReadClock) -> Result<Exchange, String> {
        let until_us = clock().monotonic_us + MEASURE_LIMIT_US;
        let mut shortest: Option<Exchange> = None;
        for _ in 0..EXCHANGES {
            let Some(exchange) = self.exchange(clock, until_us)? else { break };
            if shortest.is_none_or(|best| exchange.round_trip_us() < best.round_trip_us()) {
                shortest = Some(exchange);
            }
        }
        let limit = MEASURE_LIMIT_US / 1_000_000;
        shortest.ok_or_else(|| format!("it did not report its clock within {limit} s"))
    }

    /// Exchanges times; none if that takes too long.
    fn exchange(&mut self, clock: &ReadClock, until_us: i64) -> Result<Option<Exchange>, String> {
        let number = self.next_exchange;
        self.next_exchange += 1;
        let sent_us = clock().monotonic_us;
        self.driver.send(&Request::ReadClock { number }).map_err(|error| error.to_string())?;
        loop {
            let left_us = until_us - clock().monotonic_us;
            let Some(timeout_us) = u64::try_from(left_us).ok().filter(|us| *us > 0) else { return Ok(None) };
            match self.driver.next(Duration::from_micros(timeout_us)) {
                Ok(ProcessEvent::Reply(Reply::Clock { number: read, received_us, sent_us: answered_us })) => {
                    if read == number {
                        let returned_us = clock().monotonic_us;
                        return Ok(Some(Exchange { sent_us, received_us, answered_us, returned_us }));
                    }
                }
                Ok(ProcessEvent::Reply(reply)) => self.received.push_back(reply),
                Ok(ProcessEvent::TimedOut) => {}
                Ok(ProcessEvent::Exited { status, stderr }) => {
                    return Err(died(&status.to_string(), &stderr));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Adds an interval of the window to its figures.
    pub(super) fn add_to_window(&mut self, interval: &Interval) {
        let record = &mut self.record;
        let us = interval.width_us as f64;
        self.window_us += us;
        self.busy_us += interval.busy.unwrap_or_default() * us;
        self.lag_us += interval.lag_us().unwrap_or_default();
        let transactions =
            |scripts: &[ScriptInterval]| scripts.iter().map(|script| script.transactions).sum::<u64>();
        record.transactions += transactions(&interval.scripts);
        self.transactions += transactions(&interval.scripts) + transactions(&interval.background);
        record.busy = Some(self.busy_us / self.window_us).filter(|share| share.is_finite());
        record.busy_max = interval.busy.into_iter().chain(record.busy_max).reduce(f64::max);
        record.lag_max_us = interval.lag_max_us.into_iter().chain(record.lag_max_us).reduce(f64::max);
        record.lag_us = Some(self.lag_us / self.transactions as f64).filter(|us| us.is_finite());
    }
}
