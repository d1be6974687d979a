//! Replies made of records.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use model::message::{Interval, Latency, Outcome, Phase, ScriptInterval};

use crate::error::LoadError;
use crate::record::{Record, latencies};
use crate::schedule::Schedule;

/// Adds up a load, interval by interval, and writes the intervals down.
pub(crate) struct Summary {
    script_names: Vec<&'static str>,
    window_start_ns: u64,
    window_end_ns: u64,
    /// The end of the last interval.
    told_until_ns: u64,
    warmup: u64,
    drain: u64,
    failed: u64,
    window: Histogram<u64>,
    serializer: V2DeflateSerializer,
    serialized: Vec<u8>,
}

impl Summary {
    pub(crate) fn new(script_names: Vec<&'static str>, schedule: &Schedule) -> Result<Self, LoadError> {
        let window_start_ns = schedule.window_start_ns();
        Ok(Self {
            script_names,
            window_start_ns,
            window_end_ns: window_start_ns,
            told_until_ns: 0,
            warmup: 0,
            drain: 0,
            failed: 0,
            window: latencies()?,
            serializer: V2DeflateSerializer::new(),
            serialized: Vec::new(),
        })
    }

    /// Takes in the next interval.
    pub(crate) fn interval(&mut self, record: &Record) -> Result<Interval, LoadError> {
        let mut scripts = Vec::with_capacity(record.scripts.len());
        for (name, script) in self.script_names.iter().zip(&record.scripts) {
            let transactions = script.latency.len();
            self.failed += script.failed;
            match record.phase {
                Phase::Warmup => self.warmup += transactions,
                Phase::Drain => self.drain += transactions,
                Phase::Measure => self
                    .window
                    .add(&script.latency)
                    .map_err(|error| LoadError::Internal(format!("cannot add histograms: {error}")))?,
            }
            self.serialized.clear();
            self.serializer
                .serialize(&script.latency, &mut self.serialized)
                .map_err(|error| LoadError::Internal(format!("cannot write a histogram: {error}")))?;
            scripts.push(ScriptInterval {
                script: (*name).to_owned(),
                transactions,
                failed: script.failed,
                latency_ns: STANDARD.encode(&self.serialized),
            });
        }
        if record.phase == Phase::Measure {
            self.window_end_ns = self.window_end_ns.max(record.end_ns);
        }
        // After a stop, which threads notice one after the other, records overlap by so much.
        let start_ns = record.start_ns.max(self.told_until_ns);
        let end_ns = record.end_ns.max(start_ns);
        self.told_until_ns = end_ns;
        // Rounded at both ends, so that an interval begins where the one before ended.
        let start_us = start_ns / 1_000;
        let lag = record.lag;
        Ok(Interval {
            start_us,
            width_us: end_ns / 1_000 - start_us,
            phase: record.phase,
            scripts,
            busy: record.busy,
            lag_max_us: lag.max_ns as f64 / 1e3,
            lag_mean_us: (lag.responses > 0).then(|| lag.sum_ns as f64 / lag.responses as f64 / 1e3),
        })
    }

    /// The totals; what is not counted in intervals is the caller's.
    pub(crate) fn outcome(
        &self,
        stopped_early: bool,
        cpu_us: u64,
        connections: u64,
        other_commits: u64,
    ) -> Outcome {
        Outcome {
            window_us: (self.window_end_ns - self.window_start_ns) / 1_000,
            stopped_early,
            warmup_transactions: self.warmup,
            window_transactions: self.window.len(),
            drain_transactions: self.drain,
            failed_transactions: self.failed,
            latency: (!self.window.is_empty()).then(|| in_figures(&self.window)),
            connections,
            other_commits,
            cpu_us,
        }
    }
}

fn in_figures(latency_ns: &Histogram<u64>) -> Latency {
    let quantile = |q| latency_ns.value_at_quantile(q) as f64 / 1e3;
    Latency {
        mean_us: latency_ns.mean() / 1e3,
        stddev_us: latency_ns.stdev() / 1e3,
        min_us: latency_ns.min() as f64 / 1e3,
        p50_us: quantile(0.5),
        p90_us: quantile(0.9),
        p95_us: quantile(0.95),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: latency_ns.max() as f64 / 1e3,
    }
}
