//! A flawless trial, to be modified by the tests of the gates.

use model::load_hosts::LoadHost;
use model::message::{Interval, Phase, ScriptInterval, Slice};
use model::metrics::{Kind, Metrics, Point, Series};
use model::paired::{MeasuredSlice, PairedTrial, Side};
use model::record::{Accounting, ClockReading, Clocks, Event, Latency, Setting, Status, Summary};
use model::waits::{SessionKind, Waits};

use super::{Observation, judge};

/// A second of warm-up, three of window.
pub(super) const WINDOW: (i64, i64) = (1_000_000, 4_000_000);

/// The load's start, by the wall clock.
const START_US: i64 = 1_795_255_200_000_000;

/// The data that its observation borrows.
pub(super) struct TrialFixture {
    summary: Summary,
    pub(super) intervals: Vec<Interval>,
    pub(super) metrics: Metrics,
    pub(super) events: Vec<Event>,
    pub(super) waits: Vec<Waits>,
    pub(super) settings: Vec<Setting>,
}

impl TrialFixture {
    pub(super) fn new() -> Self {
        let phase = |second| if second == 0 { Phase::Warmup } else { Phase::Measure };
        let mut trial = Self {
            summary: summary(10_000.0, 400.0),
            intervals: (0..4).map(|second| interval(second * 1_000_000, phase(second), 10_000)).collect(),
            metrics: Metrics::default(),
            events: Vec::new(),
            waits: sessions(20),
            settings: vec![Setting {
                name: "log_checkpoints".to_owned(),
                value: "on".to_owned(),
                unit: None,
                source: "default".to_owned(),
                context: None,
                pending_restart: None,
            }],
        };
        trial.event("checkpoint-ended", None, 2_500_000);
        // Two CPUs.
        for (state, us) in [
            ("cpu.user_us", 1_000_000.0),
            ("cpu.nice_us", 0.0),
            ("cpu.system_us", 400_000.0),
            ("cpu.idle_us", 545_000.0),
            ("cpu.iowait_us", 5_000.0),
            ("cpu.irq_us", 10_000.0),
            ("cpu.softirq_us", 30_000.0),
            ("cpu.steal_us", 10_000.0),
        ] {
            trial.counter(state, Some("all"), us);
        }
        for (role, us) in
            [("driver", 300_000.0), ("load", 900_000.0), ("pgdyno", 50_000.0), ("checkpointer", 100_000.0)]
        {
            trial.counter("role.run_us", Some(role), us);
        }
        trial.counter("role.busiest_wait_us", Some("driver"), 10_000.0);
        trial.counter("psi.memory_some_us", None, 1_000.0);
        for counter in ["vm.pswpin", "vm.pswpout", "vm.oom_kill"] {
            trial.counter(counter, None, 0.0);
        }
        trial.gauge("memory.total_bytes", None, &[8e9; 5]);
        trial.gauge("memory.available_bytes", None, &[4e9, 3e9, 2e9, 3e9, 3e9]);
        trial.gauge("cpu.frequency_hz", Some("cpu0"), &[3.0e9, 3.5e9, 3.3e9, 3.4e9, 3.5e9]);
        trial.gauge("cpu.frequency_hz", Some("cpu1"), &[3.0e9, 3.3e9, 3.5e9, 3.4e9, 3.3e9]);
        trial.counter("collector.failed", Some("cpu"), 0.0);
        trial
    }

    pub(super) fn observed(&self) -> Observation<'_> {
        Observation {
            clients: 4,
            writes: true,
            summary: Some(&self.summary),
            accounting: Accounting {
                driver_commits: None,
                has_unreported_commits: false,
                driver_transactions: Some(20_500),
                other_commits: Some(8),
                server_commits: Some(20_508),
            },
            autovacuum: Some(false),
            intervals: &self.intervals,
            metrics: &self.metrics,
            waits: &self.waits,
            window: Some(WINDOW),
            clocks: Some(Clocks {
                started: ClockReading { monotonic_us: 7_000_000, unix_us: START_US },
                ended: ClockReading { monotonic_us: 11_100_000, unix_us: START_US + 4_100_000 },
            }),
            events: &self.events,
            log_was_read: true,
            settings: &self.settings,
            settings_after: &self.settings,
            ..Observation::default()
        }
    }

    /// One side of a session, whose transactions ran in a slice of this length.
    pub(super) fn side(&self, load_us: u64) -> PairedTrial {
        let load = Slice {
            start_us: 0,
            pause_us: load_us,
            end_us: load_us,
            transactions: self.summary.transactions.unwrap(),
            failed: 0,
            guarded: 0,
            client_us: load_us,
            latency_us: load_us,
            service_us: None,
        };
        let slice =
            MeasuredSlice { load, server_cpu_us: None, paused_cpu_us: None, server_instructions: None };
        PairedTrial { session: 1, side: Side::A, slices: vec![slice] }
    }

    /// Adds a counter that grows by this amount in each second of the load.
    pub(super) fn counter(&mut self, metric: &str, of: Option<&str>, a_second: f64) {
        let points: Vec<(i64, f64)> =
            (0..5).map(|second| (second * 1_000_000, 7.0 + second as f64 * a_second)).collect();
        self.readings(metric, of, Kind::Counter, &points);
    }

    /// Adds a gauge, read at each second of the load.
    pub(super) fn gauge(&mut self, metric: &str, of: Option<&str>, values: &[f64; 5]) {
        let points: Vec<(i64, f64)> =
            values.iter().enumerate().map(|(second, value)| (second as i64 * 1_000_000, *value)).collect();
        self.readings(metric, of, Kind::Gauge, &points);
    }

    /// Replaces the readings of a series.
    pub(super) fn readings(&mut self, metric: &str, of: Option<&str>, kind: Kind, points: &[(i64, f64)]) {
        self.without(metric, of);
        let points = points.iter().map(|&(at_us, value)| Point { at_us, value: Some(value) }).collect();
        let label = of.map(str::to_owned);
        self.metrics.0.push(Series { metric: metric.to_owned(), label, kind, points });
    }

    /// Removes the readings of a series.
    pub(super) fn without(&mut self, metric: &str, of: Option<&str>) {
        self.metrics.0.retain(|series| series.metric != metric || series.label.as_deref() != of);
    }

    /// Adds an event at this time after the load's start.
    pub(super) fn event(&mut self, kind: &str, of: Option<&str>, after_us: i64) {
        let mut event = Event { kind: kind.to_owned(), object: of.map(str::to_owned), ..Event::default() };
        event.at = "1970-01-01T00:00:00Z".parse().unwrap();
        event.at += std::time::Duration::from_micros((START_US + after_us).unsigned_abs());
        self.events.push(event);
    }
}

/// Two hosts that each have half of the load, with clocks half a second apart.
pub(super) fn load_hosts() -> Vec<LoadHost> {
    let host = |name: &str, offset_us| LoadHost {
        name: name.to_owned(),
        clients: 2,
        offset_us: Some(offset_us),
        bound_us: Some(80),
        late_us: Some(50),
        transactions: 15_000,
        busy: Some(0.5),
        busy_max: Some(0.6),
        lag_us: Some(4.0),
        lag_max_us: Some(10.0),
        cpu_us: Some(500),
        lost: None,
    };
    vec![host("a", 500_000), host("b", -20)]
}

/// A second of load, with transactions of two statements each.
pub(super) fn interval(start_us: u64, phase: Phase, transactions: u64) -> Interval {
    Interval {
        start_us,
        width_us: 1_000_000,
        phase,
        scripts: vec![ScriptInterval {
            script: "simple-update".to_owned(),
            transactions,
            failed: Some(0),
            unfinished: None,
            latencies: Vec::new(),
        }],
        background: Vec::new(),
        spans: Vec::new(),
        busy: Some(0.5),
        lag_max_us: Some(10.0),
        lag_mean_us: Some(2.0),
        responses: Some(2 * transactions),
        send_lag_max_us: None,
    }
}

/// Sessions in the window, of which so many per cent of the time wait for their clients.
pub(super) fn sessions(waiting: u32) -> Vec<Waits> {
    let row = |at_us, state: &str, seen| Waits {
        at_us,
        width_us: 1_000_000,
        samples: 25,
        session: SessionKind::Load,
        state: Some(state.to_owned()),
        event_type: None,
        event: None,
        seen,
    };
    // All of them wait in the warm-up.
    let of_second = |second| [row(second, "idle", waiting), row(second, "active", 100 - waiting)];
    [row(0, "idle", 100)]
        .into_iter()
        .chain([1_000_000, 2_000_000, 3_000_000].into_iter().flat_map(of_second))
        .collect()
}

pub(super) fn summary(tps: f64, mean_us: f64) -> Summary {
    Summary {
        instructions_per_transaction: None,
        window_us: Some(3_000_000),
        transactions: Some((tps * 3.0) as u64),
        failed: Some(0),
        tps,
        latency: Some(Latency {
            mean_us: Some(mean_us),
            stddev_us: Some(1.0),
            min_us: Some(mean_us),
            p50_us: Some(mean_us),
            p90_us: Some(mean_us),
            p95_us: Some(mean_us),
            p99_us: Some(mean_us),
            p999_us: Some(mean_us),
            max_us: Some(mean_us),
        }),
        service: None,
        worst_second_tps: None,
        longest_stall_us: None,
        background: Vec::new(),
        connect_us: Some(1000),
        driver_cpu_us: Some(1000),
        driver_busy_max: Some(0.5),
        driver_lag_max_us: Some(10.0),
        driver_engine: None,
        driver_engine_reason: None,
        statistics: None,
    }
}

/// The status and the names of the gates with findings.
pub(super) fn gates(observed: &Observation) -> (Status, Vec<&'static str>) {
    let validity = judge(observed);
    (validity.status, validity.findings.into_iter().map(|finding| &*finding.gate.leak()).collect())
}

#[test]
fn a_flawless_trial_has_no_findings() {
    assert_eq!(gates(&TrialFixture::new().observed()), (Status::Valid, vec![]));
}

#[test]
fn missing_readings_have_no_findings() {
    let nothing = Metrics::default();
    let trial = TrialFixture::new();
    let observed = Observation { metrics: &nothing, ..trial.observed() };
    assert_eq!(gates(&observed), (Status::Valid, vec![]));
    for series in &trial.metrics.0 {
        let mut less = TrialFixture::new();
        less.without(&series.metric, series.label.as_deref());
        // Then fewer processes are known to be pgdyno's or the server's: see the gate's own test.
        if series.metric != "role.run_us" {
            assert_eq!(
                gates(&less.observed()),
                (Status::Valid, vec![]),
                "{} {:?}",
                series.metric,
                series.label
            );
        }
        let mut failed = TrialFixture::new();
        for read in failed.metrics.0.iter_mut().filter(|read| read.metric == series.metric) {
            read.points.iter_mut().for_each(|point| point.value = None);
        }
        assert_eq!(gates(&failed.observed()), (Status::Valid, vec![]), "{} failed", series.metric);
    }
    assert_eq!(gates(&Observation::default()), (Status::Valid, vec![]));
}
