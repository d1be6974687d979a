//! Synthetic trials as large as real ones, for the report to read and show, generated from a seed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use jiff::{SignedDuration, Timestamp};
use model::cell::Cell;
use model::message::{Interval, Phase, PhaseLatencies, ScriptInterval};
use model::metrics::{Kind, Metrics, Point, Series};
use model::plan::Plan;
use model::record::{
    Accounting, Environment, Event, Finding, Latency, Run, Setting, Status, Summary, Trial, TrialRecord,
    Validity,
};
use model::spec::Campaign;
use model::waits::{SessionKind, Waits};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use store::Store;

/// Size of a campaign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) runs: u32,
    /// Trials of each run.
    pub(crate) trials: u32,
    pub(crate) seconds: u64,
    pub(crate) metrics: u32,
}

/// Servers × workloads × clients: 100 cells, with enough repeats for the number of trials.
fn text(size: Size) -> String {
    format!(
        "name = \"report-speed\"\n\n[factors]\nserver = [\"14\", \"15\", \"16\", \"17\", \"18\"]\n\
         workload = [\"select-only\", \"tpcb-like\"]\nscale = [100]\n\
         clients = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96]\n\n\
         [run]\nduration = \"{}s\"\nwarmup = \"1s\"\nrepeats = {}\nseed = 1\n",
        size.seconds,
        size.trials.div_ceil(100)
    )
}

/// Fills a store with runs of such a campaign, and returns the ids of its trials, in order.
pub(crate) fn fill(
    root: &Path,
    size: Size,
    seed: u64,
    mut on_progress: impl FnMut(u32),
) -> Result<Vec<String>> {
    let store = Store::open(root)?;
    let campaign_toml = text(size);
    let to_anyhow = |error: model::spec::SpecError| anyhow::anyhow!("{}", error.message);
    let campaign = Campaign::parse(&campaign_toml).map_err(to_anyhow)?;
    let plan = Plan::new(&campaign, seed).map_err(to_anyhow)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let pool = (0..48).map(|_| histogram_of_a_second(&mut random)).collect::<Result<Vec<_>>>()?;
    let mut started: Timestamp = "2026-01-01T00:00:00Z".parse().context("invalid time")?;
    let mut ids = Vec::new();
    for _ in 0..size.runs {
        let run = Run {
            id: store::new_id(),
            campaign: plan.campaign.clone(),
            campaign_toml: campaign_toml.clone(),
            seed: Some(plan.run.seed),
            processors: plan.run.processors,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            tags: Vec::new(),
            notes: None,
        };
        for planned in plan.trials.iter().take(size.trials as usize) {
            let generator = Generator { size, pool: &pool, started, cell: plan.cell(planned) };
            let mut record = generator.record(&run, &mut random);
            record.trial.repeat = planned.repeat;
            record.trial.position = planned.position;
            store.write(&record)?;
            ids.push(record.trial.id);
            started += SignedDuration::from_secs(size.seconds as i64 + 5);
            on_progress(ids.len() as u32);
        }
    }
    Ok(ids)
}

/// An encoded histogram of a second, with its number of transactions.
fn histogram_of_a_second(random: &mut Xoshiro256PlusPlus) -> Result<(u64, String)> {
    let mut histogram = Histogram::<u64>::new(3)?;
    let transactions = random.random_range(900..1100);
    for _ in 0..transactions {
        // The product of uniform variates has a long tail.
        let spread: f64 = (0..3).map(|_| random.random_range(0.2_f64..4.0)).product();
        histogram.record((300_000.0 * spread) as u64)?;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).context("cannot serialize a histogram")?;
    Ok((transactions, STANDARD.encode(bytes)))
}

struct Generator<'a> {
    size: Size,
    pool: &'a [(u64, String)],
    started: Timestamp,
    cell: &'a Cell,
}

impl Generator<'_> {
    fn record(&self, run: &Run, random: &mut Xoshiro256PlusPlus) -> TrialRecord {
        let intervals: Vec<Interval> =
            (0..=self.size.seconds).map(|second| self.interval(second, random)).collect();
        let transactions =
            intervals.iter().skip(1).flat_map(|interval| &interval.scripts).map(|script| script.transactions);
        let transactions: u64 = transactions.sum();
        TrialRecord {
            phases: Vec::new(),
            trial: self.trial(run, transactions, random),
            environment: environment(random),
            settings: settings(&self.cell.server),
            intervals,
            spans: Vec::new(),
            metrics: self.metrics(random),
            waits: self.waits(random),
            played: Vec::new(),
            statements: Vec::new(),
            stacks: Vec::new(),
            off_cpu: Vec::new(),
            events: self.events(),
            logs: Vec::new(),
        }
    }

    fn trial(&self, run: &Run, transactions: u64, random: &mut Xoshiro256PlusPlus) -> Trial {
        // Figures of the window need not match those of its intervals here.
        let tps = transactions as f64 / self.size.seconds as f64 * random.random_range(0.97..1.03);
        let mean_us = f64::from(self.cell.clients) / tps * 1e6;
        let version = format!("{}.1", self.cell.server);
        Trial {
            phases: Vec::new(),
            id: store::new_id(),
            run: run.clone(),
            cell: self.cell.clone().into(),
            repeat: 1,
            attempt: 1,
            position: 1,
            agent: None,
            reason: None,
            started: Some(self.started),
            load_started: Some(self.started),
            clocks: None,
            ended: Some(self.started + SignedDuration::from_secs(self.size.seconds as i64 + 2)),
            server_banner: Some(format!(
                "PostgreSQL {version} on x86_64-pc-linux-gnu, compiled by gcc, 64-bit"
            )),
            server_version: Some(version),
            server_build: None,
            server_commit: None,
            limits: None,
            profile: None,
            database_bytes: Some(1_600_000_000),
            raw_read: None,
            validity: Validity { status: Status::Valid, findings: findings() },
            summary: Some(Summary {
                worst_second_tps: None,
                longest_stall_us: None,
                instructions_per_transaction: None,
                window_us: Some(self.size.seconds * 1_000_000),
                transactions: Some(transactions),
                failed: Some(0),
                tps,
                latency: Some(Latency {
                    mean_us: Some(mean_us),
                    p50_us: Some(mean_us * 0.9),
                    p95_us: Some(mean_us * 2.0),
                    p99_us: Some(mean_us * 3.0),
                    ..Latency::default()
                }),
                service: None,
                background: Vec::new(),
                connect_us: Some(2_000),
                driver_cpu_us: Some(1_000_000),
                driver_busy_max: Some(0.3),
                driver_lag_max_us: Some(800.0),
                driver_engine: Some("io_uring".to_owned()),
                driver_engine_reason: None,
                statistics: None,
            }),
            accounting: Accounting::default(),
            figures: BTreeMap::new(),
            load_hosts: Vec::new(),
            paired: None,
            imported: None,
        }
    }

    fn interval(&self, second: u64, random: &mut Xoshiro256PlusPlus) -> Interval {
        let (transactions, latency_ns) = &self.pool[random.random_range(0..self.pool.len())];
        let phase = if second == 0 { Phase::Warmup } else { Phase::Measure };
        Interval {
            start_us: second * 1_000_000,
            width_us: 1_000_000,
            phase,
            scripts: vec![ScriptInterval {
                script: self.cell.workload.name().to_owned(),
                transactions: *transactions,
                failed: Some(0),
                unfinished: None,
                latencies: vec![PhaseLatencies { phase, latency_ns: latency_ns.clone(), service_ns: None }],
            }],
            background: Vec::new(),
            spans: Vec::new(),
            busy: Some(random.random_range(0.1..0.3)),
            lag_max_us: Some(random.random_range(100.0..900.0)),
            lag_mean_us: Some(random.random_range(5.0..15.0)),
            responses: Some(7 * transactions),
            send_lag_max_us: None,
        }
    }

    /// Two counters per gauge, from five sources that are read one after the other.
    fn metrics(&self, random: &mut Xoshiro256PlusPlus) -> Metrics {
        let series = |number: u32| {
            let late_us = i64::from(number % 5) * 2_345;
            let (kind, metric) = match number % 3 {
                0 => (Kind::Gauge, format!("memory.part{number}_bytes")),
                1 => (Kind::Counter, format!("disk.part{number}_bytes")),
                _ => (Kind::Counter, format!("cpu.part{number}_us")),
            };
            let mut value = f64::from(random.random_range(0_u32..1 << 30));
            let points = (0..=self.size.seconds as i64 + 1).map(|second| {
                let step = f64::from(random.random_range(0_u32..1_000_000));
                value += if kind == Kind::Counter { step } else { step - 500_000.0 };
                Point { at_us: (second - 1) * 1_000_000 + late_us, value: Some(value) }
            });
            let points = points.collect();
            Series { metric, label: number.is_multiple_of(2).then(|| "all".to_owned()), kind, points }
        };
        Metrics((0..self.size.metrics).map(series).collect())
    }

    fn waits(&self, random: &mut Xoshiro256PlusPlus) -> Vec<Waits> {
        const KINDS: [Option<(&str, &str)>; 5] = [
            None,
            Some(("IO", "WALSync")),
            Some(("LWLock", "WALWrite")),
            Some(("Lock", "transactionid")),
            Some(("Client", "ClientRead")),
        ];
        let mut waits = Vec::new();
        for second in 0..self.size.seconds {
            for wait in KINDS {
                waits.push(Waits {
                    at_us: second as i64 * 1_000_000,
                    width_us: 1_000_000,
                    samples: 20,
                    session: SessionKind::Load,
                    state: Some("active".to_owned()),
                    event_type: wait.map(|(kind, _)| kind.to_owned()),
                    event: wait.map(|(_, event)| event.to_owned()),
                    seen: random.random_range(1..20 * self.cell.clients),
                });
            }
        }
        waits
    }

    /// A checkpoint every fifth minute, a vacuum in the other minutes; in very long trials, only in the first hour.
    fn events(&self) -> Vec<Event> {
        let minutes = (self.size.seconds / 60).min(60);
        let event = |minute: u64| {
            let (kind, figure, us) = match minute % 5 {
                0 => ("checkpoint-ended", "total_us", 40e6),
                _ => ("autovacuum", "elapsed_us", 2e6),
            };
            Event {
                at: self.started + SignedDuration::from_secs(60 * minute as i64 + 50),
                kind: kind.to_owned(),
                message: format!("{kind} of the minute {minute}"),
                object: None,
                figures: BTreeMap::from([(figure.to_owned(), us)]),
            }
        };
        (0..minutes).map(event).collect()
    }
}

/// Findings as long as those of a real trial.
fn findings() -> Vec<Finding> {
    let finding = |gate: &str| Finding {
        gate: gate.to_owned(),
        status: Status::Valid,
        evidence: "the load writes, and no checkpoint ended in its window of 10 s, which is long enough"
            .to_owned(),
        threshold: Some(
            "at least one checkpoint, or a window that is longer than the time between two".to_owned(),
        ),
        advice: Some("throughput excludes the cost of checkpoints: use a longer window".to_owned()),
        processes: Vec::new(),
    };
    ["no-checkpoint", "foreign-cpu", "cpu-steal", "driver-lag"].map(finding).into()
}

/// As many facts as a machine has; free memory and load average differ between trials.
fn environment(random: &mut Xoshiro256PlusPlus) -> Environment {
    let text = |text: &str| Some(text.to_owned());
    let sysctl = (0..330).map(|n| (format!("kernel.parameter_{n}"), format!("{}", n * 4096)));
    Environment {
        hostname: text("synthetic"),
        kernel: text("Linux 6.12.0"),
        os: text("Debian GNU/Linux 13"),
        architecture: text("x86_64"),
        cpu_model: text("none"),
        cpus: Some(2),
        memory_bytes: Some(8 << 30),
        memory_available_bytes: Some(random.random_range(1 << 30..4 << 30)),
        load_average_1m_centi: Some(random.random_range(0..200)),
        sysctl: sysctl.collect(),
        ..Environment::default()
    }
}

/// As many settings as a server has.
fn settings(server: &str) -> Vec<Setting> {
    let setting = |n: u32| Setting {
        name: format!("setting_{n}"),
        value: if n == 7 { server.to_owned() } else { (n * 8).to_string() },
        unit: n.is_multiple_of(3).then(|| "8kB".to_owned()),
        source: if n.is_multiple_of(40) { "configuration file" } else { "default" }.to_owned(),
        context: Some("sighup".to_owned()),
        pending_restart: Some(false),
    };
    (0..360).map(setting).collect()
}
