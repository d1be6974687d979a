//! The statements of a trace by second, as the transactions of other loads.

use hdrhistogram::Histogram;
use model::message::{Interval, Latency, Phase, PhaseLatencies, ScriptInterval};

use crate::error::LoadError;
use crate::histogram::{Encoder, add, figures, latencies};
use crate::playback::{Played, PlayedEnd};

/// Length of an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Time after the end of an interval until which its statements are reported.
const REPORT_DELAY_NS: u64 = 300_000_000;

/// The current interval, and the sums of all.
pub(super) struct Intervals {
    /// Name of the only script.
    script: String,
    is_open_loop: bool,
    start_ns: u64,
    current: Second,
    /// Of statements that ended in the next interval, before the current one is reported.
    next: Second,
    all: Second,
    encoder: Encoder,
}

/// The statements that ended in a second.
struct Second {
    succeeded: u64,
    failed: u64,
    commits: u64,
    /// From the intended start.
    latency_ns: Histogram<u64>,
    /// From the actual start.
    service_ns: Histogram<u64>,
    send_lag_max_ns: u64,
}

/// The sums.
pub(super) struct Totals {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) commits: u64,
    pub(super) latency: Option<Latency>,
    pub(super) service: Option<Latency>,
}

impl Second {
    fn new() -> Result<Self, LoadError> {
        Ok(Self {
            succeeded: 0,
            failed: 0,
            commits: 0,
            latency_ns: latencies()?,
            service_ns: latencies()?,
            send_lag_max_ns: 0,
        })
    }

    fn add(&mut self, played: &Played, is_failed: bool) {
        self.commits += played.commits;
        let could_ns = played.intended_ns.max(played.ready_ns);
        self.send_lag_max_ns = self.send_lag_max_ns.max(played.begun_ns.saturating_sub(could_ns));
        if is_failed || played.end == PlayedEnd::NotExecuted {
            self.failed += 1;
            return;
        }
        self.succeeded += 1;
        self.latency_ns.saturating_record(played.ended_ns.saturating_sub(played.intended_ns));
        self.service_ns.saturating_record(played.ended_ns.saturating_sub(played.begun_ns));
    }

    fn add_all(&mut self, other: &Self) -> Result<(), LoadError> {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.commits += other.commits;
        add(&mut self.latency_ns, &other.latency_ns)?;
        add(&mut self.service_ns, &other.service_ns)
    }
}

impl Intervals {
    pub(super) fn new(script: String, is_open_loop: bool) -> Result<Self, LoadError> {
        Ok(Self {
            script,
            is_open_loop,
            start_ns: 0,
            current: Second::new()?,
            next: Second::new()?,
            all: Second::new()?,
            encoder: Encoder::default(),
        })
    }

    /// Adds a statement. One that is reported late counts in the current interval.
    pub(super) fn add(&mut self, played: &Played, is_failed: bool) -> Result<(), LoadError> {
        let is_of_next = played.ended_ns >= self.start_ns + INTERVAL_NS;
        let second = if is_of_next { &mut self.next } else { &mut self.current };
        second.add(played, is_failed);
        Ok(())
    }

    /// The next interval that is complete at this time after the start.
    pub(super) fn pop_until(&mut self, now_ns: u64) -> Result<Option<Interval>, LoadError> {
        let is_complete = now_ns >= self.start_ns + INTERVAL_NS + REPORT_DELAY_NS;
        is_complete.then(|| self.pop(INTERVAL_NS)).transpose()
    }

    /// The last intervals, of a playback of this length.
    pub(super) fn finish(&mut self, elapsed_ns: u64) -> Result<Vec<Interval>, LoadError> {
        let mut last = Vec::new();
        while elapsed_ns > self.start_ns + INTERVAL_NS {
            last.push(self.pop(INTERVAL_NS)?);
        }
        let width_ns = elapsed_ns.saturating_sub(self.start_ns);
        let rest = std::mem::replace(&mut self.next, Second::new()?);
        self.current.add_all(&rest)?;
        self.current.send_lag_max_ns = self.current.send_lag_max_ns.max(rest.send_lag_max_ns);
        last.push(self.pop(width_ns)?);
        Ok(last)
    }

    /// The sums; in a closed loop, the latency is the service time.
    pub(super) fn totals(&self) -> Totals {
        let service = figures(&self.all.service_ns);
        let (latency, service) = match self.is_open_loop {
            true => (figures(&self.all.latency_ns), service),
            false => (service, None),
        };
        Totals {
            succeeded: self.all.succeeded,
            failed: self.all.failed,
            commits: self.all.commits,
            latency,
            service,
        }
    }

    fn pop(&mut self, width_ns: u64) -> Result<Interval, LoadError> {
        let second = std::mem::replace(&mut self.current, std::mem::replace(&mut self.next, Second::new()?));
        self.all.add_all(&second)?;
        let start_ns = self.start_ns;
        self.start_ns += width_ns;
        let (latency, service) = match self.is_open_loop {
            true => (&second.latency_ns, Some(&second.service_ns)),
            false => (&second.service_ns, None),
        };
        let latencies = match second.succeeded {
            0 => Vec::new(),
            _ => vec![PhaseLatencies {
                phase: Phase::Measure,
                latency_ns: self.encoder.encode(latency)?,
                service_ns: service.map(|service| self.encoder.encode(service)).transpose()?,
            }],
        };
        let script = ScriptInterval {
            script: self.script.clone(),
            transactions: second.succeeded,
            failed: Some(second.failed),
            unfinished: self.is_open_loop.then_some(0),
            latencies,
        };
        Ok(Interval {
            start_us: start_ns / 1_000,
            width_us: (start_ns + width_ns) / 1_000 - start_ns / 1_000,
            phase: Phase::Measure,
            scripts: vec![script],
            background: Vec::new(),
            spans: Vec::new(),
            busy: None,
            lag_max_us: None,
            lag_mean_us: None,
            responses: None,
            send_lag_max_us: self.is_open_loop.then_some(second.send_lag_max_ns as f64 / 1e3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(intended_ns: u64, begun_ns: u64, ended_ns: u64) -> Played {
        Played {
            tag: 0,
            session: 0,
            intended_ns,
            ready_ns: intended_ns,
            hold: crate::playback::Hold::None,
            begun_ns,
            ended_ns,
            rows: 0,
            commits: 1,
            end: PlayedEnd::Success,
        }
    }

    #[test]
    fn each_statement_is_in_one_interval() {
        const SECOND: u64 = 1_000_000_000;
        let mut intervals = Intervals::new("a.pgdt".to_owned(), true).unwrap();
        intervals.add(&played(0, 1_000, 2_000), false).unwrap();
        assert!(intervals.pop_until(SECOND).unwrap().is_none(), "others may be reported late");
        intervals.add(&played(0, 0, SECOND + 5), true).unwrap();
        intervals.add(&played(5, 10, SECOND - 5), false).unwrap();
        let first = intervals.pop_until(2 * SECOND).unwrap().unwrap();
        assert_eq!((first.start_us, first.width_us, first.scripts[0].transactions), (0, 1_000_000, 2));
        assert_eq!(first.send_lag_max_us, Some(1.0));
        assert!(intervals.pop_until(2 * SECOND).unwrap().is_none());
        let rest = intervals.finish(3 * SECOND + 500).unwrap();
        let counts: Vec<_> = rest.iter().map(|one| (one.width_us, one.scripts[0].failed)).collect();
        assert_eq!(counts, [(1_000_000, Some(1)), (1_000_000, Some(0)), (0, Some(0))]);
        let totals = intervals.totals();
        assert_eq!((totals.succeeded, totals.failed, totals.commits), (2, 1, 3));
        assert!(totals.service.is_some());
    }
}
