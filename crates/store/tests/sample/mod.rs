//! Trials to store: a rich one with consistent figures, as of a real trial, and incomplete ones.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use model::cell::{Cell, RecordedCell};
use model::environment::{
    BlockDevice, Cpu, KernelConfig, KernelFacts, Mount, NumaNode, Relation, ServerFacts, VirtualMachine,
};
use model::factor::Factor;
use model::factor::cache::CacheState;
use model::factor::pin::Processors;
use model::factor::settings::SettingsVariant;
use model::limits::{DiskLimit, LimitsInForce, MemoryLimit};
use model::load_hosts::LoadHost;
use model::machine::{Acceleration, DiskAio, DiskCache, Storage, SysctlVariant};
use model::message::{Interval, Phase, PhaseLatencies, ScriptInterval};
use model::metrics::{Kind, Metrics, Point, Series};
use model::plan::Plan;
use model::process_share::ProcessShare;
use model::profile::{OffCpu, ProfileSummary, Scope, Stacks, Unwinding};
use model::record::{
    Accounting, BackgroundSummary, ClockReading, Clocks, Commit, Environment, Event, Finding, Imported,
    ImportedFile, Latency, Log, RawRead, Run, Setting, Status, Summary, Trial, TrialRecord, Validity,
};
use model::spec::Campaign;
use model::statistics::{Percentile, Stall, Statistics};
use model::units::{Rate, Size, Span};
use model::waits::{SessionKind, StatementUse, Waits};
use model::workload::{Protocol, Transport, Workload};

/// The files below a directory, by their paths relative to it.
pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

/// A cell with every level at its default.
fn planned() -> Cell {
    let campaign = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n";
    Plan::new(&Campaign::parse(campaign).unwrap(), 1).unwrap().cells.remove(0)
}

/// Latencies and service times that count in a phase.
pub(crate) fn latencies(phase: Phase, latencies_us: &[u64]) -> PhaseLatencies {
    let payload = histogram(latencies_us);
    PhaseLatencies { phase, latency_ns: payload.clone(), service_ns: Some(payload) }
}

/// One second of warm-up, three of window, a drain; two scripts; all optional fields are present.
pub(crate) fn record(id: &str) -> TrialRecord {
    let script = |name: &str, phase, latencies_us: &[u64]| ScriptInterval {
        script: name.to_owned(),
        transactions: latencies_us.len() as u64,
        failed: Some(1),
        unfinished: None,
        latencies: vec![latencies(phase, latencies_us)],
    };
    let interval = |start_us, width_us, phase, lag_mean_us, a: &[u64], b: &[u64]| Interval {
        start_us,
        width_us,
        phase,
        scripts: vec![script("tpcb-like", phase, a), script("my script, v2: 50%", phase, b)],
        background: Vec::new(),
        spans: Vec::new(),
        busy: Some(0.1 + 0.2),
        lag_max_us: Some(17.25),
        lag_mean_us,
        responses: lag_mean_us.map(|_| 42),
        send_lag_max_us: Some(12.5),
    };
    let intervals = vec![
        interval(0, 1_000_000, Phase::Warmup, Some(1.5), &[900, 1000], &[5]),
        interval(1_000_000, 1_000_000, Phase::Measure, Some(0.1), &[800, 850, 900], &[5, 6]),
        interval(2_000_000, 1_000_000, Phase::Measure, None, &[], &[]),
        interval(3_000_000, 500_001, Phase::Measure, Some(2.0), &[7_000_000], &[4]),
        interval(3_500_001, 1_234, Phase::Drain, Some(2.0), &[812], &[]),
    ];
    TrialRecord {
        trial: Trial {
            id: id.to_owned(),
            run: Run {
                id: "01JABCDEFGHJKMNPQRSTVWXYZ0".to_owned(),
                campaign: "upgrade".to_owned(),
                campaign_toml: "name = 'upgrade' # ünïcode\r\n\n[factors]\n".to_owned(),
                seed: Some(u64::MAX),
                processors: Some(64),
                pgdyno_version: "0.1.0".to_owned(),
                tags: vec!["nightly".to_owned()],
                notes: Some("after the new disk".to_owned()),
            },
            cell: Cell {
                server: "18".to_owned(),
                settings: SettingsVariant {
                    name: "big".to_owned(),
                    values: BTreeMap::from([("shared_buffers".to_owned(), "1GB".to_owned())]),
                },
                workload: Workload::TpcbLike,
                scale: 10,
                clients: 8,
                protocol: Protocol::Prepared,
                transport: Transport::Unix,
                kernel: Some("6.12".to_owned()),
                acceleration: Acceleration::Kvm,
                kernel_args: "mitigations=off".to_owned(),
                sysctl: SysctlVariant {
                    name: "calm".to_owned(),
                    values: BTreeMap::from([("vm.swappiness".to_owned(), "1".to_owned())]),
                },
                cpus: Some(2),
                storage: Storage::Virtio { cache: DiskCache::None, aio: DiskAio::Native },
                threads: Some(2),
                rate: Rate::per_second(1500.5).unwrap(),
                duration: Span::from_us(3_000_000),
                warmup: Span::from_us(500_000),
                pin: Processors { name: "apart".to_owned(), driver: Some("0-1".to_owned()), server: None },
                cache: CacheState::Cold,
                memory: MemoryLimit::new(Size::from_bytes(512 << 20)),
                disk: DiskLimit {
                    name: "slow".to_owned(),
                    read_bytes_s: Some(100 << 20),
                    write_iops: Some(1000),
                    ..DiskLimit::none()
                },
                ..planned()
            }
            .into(),
            repeat: 2,
            attempt: 1,
            position: 7,
            reason: Some("WIDE after 5 runs".to_owned()),
            agent: Some("rack-3".to_owned()),
            started: Some("2026-11-21T10:00:00.123456789Z".parse().unwrap()),
            load_started: Some("2026-11-21T10:00:02.5Z".parse().unwrap()),
            clocks: Some(Clocks {
                started: ClockReading { monotonic_us: 5_000_000, unix_us: 1_795_255_202_500_000 },
                ended: ClockReading { monotonic_us: 8_501_234, unix_us: 1_795_255_206_001_250 },
            }),
            ended: Some("2026-11-21T10:00:09Z".parse().unwrap()),
            server_version: Some("18.1".to_owned()),
            server_banner: Some("PostgreSQL 18.1 on x86_64".to_owned()),
            server_build: Some("18.1".to_owned()),
            server_commit: Some(Commit { id: "0123456789".repeat(4), position: 61_234 }),
            limits: Some(LimitsInForce {
                cgroup: "v1".to_owned(),
                groups: vec!["/sys/fs/cgroup/memory/a".to_owned(), "/sys/fs/cgroup/blkio/a".to_owned()],
                memory_bytes: Some(512 << 20),
                memory_limit_hits: Some(17),
                oom_kills: Some(0),
                device: Some("sda".to_owned()),
                read_bytes_s: Some(100 << 20),
                read_iops: None,
                write_bytes_s: None,
                write_iops: Some(1000),
            }),
            profile: Some(ProfileSummary {
                event: Some("cpu-clock".to_owned()),
                hz: 99,
                instructions_per_sample: Some(100_003),
                callgraph: Unwinding::Dwarf,
                callgraph_reason: "postgres has no frame pointers".to_owned(),
                scope: Scope::Machine,
                from_us: 500_100,
                to_us: 3_000_200,
                samples: 3,
                lost: 1,
                nameless: BTreeMap::from([("libc.so.6".to_owned(), 2)]),
                perf_version: "6.1.1".to_owned(),
                perf_cpu_us: Some(12_345),
                off_cpu: Some(OffCpu {
                    from_us: 3_000_300,
                    to_us: 4_000_000,
                    switches: 70,
                    sampled: 60,
                    lost: 0,
                    perf_cpu_us: None,
                }),
            }),
            database_bytes: Some(123_456_789),
            raw_read: Some(RawRead {
                relation: "scanned".to_owned(),
                bytes: 1_412_415_488,
                elapsed_us: 13_470_001,
            }),
            validity: Validity {
                status: Status::Suspect,
                findings: vec![Finding {
                    gate: "driver-saturated".to_owned(),
                    status: Status::Suspect,
                    evidence: "busiest thread 99.0 %".to_owned(),
                    threshold: Some("at most 90%".to_owned()),
                    advice: Some("raise run.threads".to_owned()),
                    processes: vec![
                        ProcessShare { name: Some("cc1".to_owned()), share: 0.25 },
                        ProcessShare { name: None, share: 0.0625 },
                    ],
                }],
            },
            summary: Some(Summary {
                worst_second_tps: Some(2.0),
                longest_stall_us: Some(1_234_567),
                instructions_per_transaction: Some(54_321.5),
                window_us: Some(2_500_001),
                transactions: Some(7),
                failed: Some(10),
                tps: 7.0 / 2.500_001,
                latency: Some(Latency {
                    mean_us: Some(1000.0 / 3.0),
                    stddev_us: Some(0.1),
                    min_us: Some(4.0),
                    p50_us: Some(800.0),
                    p90_us: Some(1e6),
                    p95_us: Some(2e6),
                    p99_us: Some(7e6),
                    p999_us: Some(7e6),
                    max_us: Some(7_000_000.5),
                }),
                service: Some(Latency {
                    mean_us: Some(700.5),
                    stddev_us: Some(2.0),
                    min_us: Some(600.0),
                    p50_us: Some(699.0),
                    p90_us: Some(720.0),
                    p95_us: Some(730.0),
                    p99_us: Some(750.0),
                    p999_us: Some(760.0),
                    max_us: Some(770.0),
                }),
                background: vec![BackgroundSummary {
                    rate: Some(20.5),
                    missed: Some(17),
                    workload: "scans".to_owned(),
                    transactions: 3,
                    failed: 1,
                    tps: 3.0 / 2.500_001,
                    latency: Some(Latency { mean_us: Some(4_000_000.5), ..Latency::default() }),
                }],
                connect_us: Some(4_321),
                driver_cpu_us: Some(98_765),
                driver_busy_max: Some(0.99),
                driver_lag_max_us: Some(17.25),
                driver_engine: Some("epoll".to_owned()),
                driver_engine_reason: Some("io_uring cannot be used".to_owned()),
                statistics: Some(Statistics {
                    seconds: 2,
                    tps_mean: Some(1.0 / 3.0),
                    tps_interval: Some((0.1, 0.7)),
                    effective_seconds: None,
                    stationary: Some(true),
                    drift_share: Some(-0.01),
                    trend_p: Some(0.3),
                    warmup_cut_us: Some(0),
                    stalls: Some(vec![Stall { start_us: 3, length_us: 4, baseline_tps: 0.1 }]),
                    percentiles: vec![
                        Percentile { share: 0.5, value_us: 0.7, interval_us: Some((0.1, 0.9)) },
                        Percentile { share: 0.999, value_us: 7.1, interval_us: None },
                    ],
                    missing: facts("p99.9", "too few"),
                }),
            }),
            accounting: Accounting {
                driver_commits: Some(4711),
                has_unreported_commits: true,
                driver_transactions: Some(11),
                other_commits: Some(9),
                server_commits: Some(20),
            },
            figures: [("figure.recall".to_owned(), 0.984_375), ("cost.bytes".to_owned(), 8192.0)].into(),
            phases: Vec::new(),
            load_hosts: vec![
                LoadHost {
                    name: "load-1".to_owned(),
                    clients: 3,
                    offset_us: Some(-500_000),
                    bound_us: Some(71),
                    late_us: Some(9),
                    transactions: 7,
                    busy: Some(0.25),
                    busy_max: Some(0.5),
                    lag_us: Some(3.5),
                    lag_max_us: Some(17.25),
                    cpu_us: Some(1_234),
                    lost: None,
                },
                LoadHost {
                    name: "load-2".to_owned(),
                    clients: 1,
                    lost: Some("no answer".to_owned()),
                    ..LoadHost::default()
                },
            ],
            paired: None,
            imported: None,
        },
        environment: Environment {
            hostname: Some("bench-1".to_owned()),
            memory_bytes: Some(1 << 40),
            swap_bytes: Some(0),
            load_average_1m_centi: Some(12),
            cpu: Cpu { turbo: Some(false), caches: facts("L2", "512K"), ..Cpu::default() },
            numa_nodes: vec![NumaNode { id: 0, cpus: Some("0-1".to_owned()), memory_bytes: None }],
            data_devices: vec![BlockDevice { name: "vda".to_owned(), facts: facts("scheduler", "none") }],
            mounts: vec![Mount { point: "/".to_owned(), filesystem: "ext4".to_owned(), ..Mount::default() }],
            sysctl: facts("vm.swappiness", "1"),
            kernel_facts: KernelFacts {
                config: Some(KernelConfig {
                    source: "/proc/config.gz".to_owned(),
                    sha256: "c0ffee".to_owned(),
                }),
                modules: Some(facts("zfs", "POE")),
                tainted: Some(0),
                scheduler: Some("EEVDF".to_owned()),
                preemption: Some("lazy".to_owned()),
                hz: Some(250),
            },
            virtual_machine: Some(VirtualMachine {
                acceleration: "icount".to_owned(),
                cpus: 1,
                memory_bytes: 1 << 30,
                command_line: vec!["qemu-system-x86_64".to_owned(), "-smp".to_owned(), "1".to_owned()],
                ..VirtualMachine::default()
            }),
            server: ServerFacts {
                pg_config: Some(facts("CFLAGS", "-O2")),
                extensions: Some(facts("plpgsql", "1.0")),
                available_extensions: Some(facts("bloom", "1.0")),
                authentication: Some(vec!["trust".to_owned()]),
                relations: Some(vec![Relation {
                    name: "pgbench_accounts".to_owned(),
                    bytes: 15_000_000,
                    rows_estimate: Some(100_000),
                }]),
            },
            ..Environment::default()
        },
        settings: vec![
            Setting {
                name: "shared_buffers".to_owned(),
                value: "131072".to_owned(),
                unit: Some("8kB".to_owned()),
                source: "configuration file".to_owned(),
                context: Some("postmaster".to_owned()),
                pending_restart: Some(true),
            },
            Setting {
                name: "fsync".to_owned(),
                value: "on".to_owned(),
                unit: None,
                source: "default".to_owned(),
                context: None,
                pending_restart: None,
            },
        ],
        intervals,
        spans: vec![
            model::message::TransactionSpan {
                script: "tpcb-like".to_owned(),
                client: 7,
                start_us: 1_000_001,
                end_us: 2_345_678,
                failed: false,
            },
            model::message::TransactionSpan {
                script: "my script, v2: 50%".to_owned(),
                client: 0,
                start_us: 0,
                end_us: 3_500_000,
                failed: true,
            },
        ],
        metrics: Metrics(vec![
            series(
                "cpu.user_us",
                Some("all"),
                Kind::Counter,
                &[(-250_000, Some(1.0)), (1_000_003, Some(0.1))],
            ),
            series("cpu.user_us", Some("cpu0"), Kind::Counter, &[(-250_000, None), (1_000_003, Some(7.0))]),
            series("memory.available_bytes", None, Kind::Gauge, &[(0, Some(0.0))]),
            series("memory.available_bytes", Some(""), Kind::Gauge, &[(0, None)]),
            series("cpu.user_us", Some("cpu1"), Kind::Counter, &[(0, Some(1e18)), (0, Some(1e18))]),
        ]),
        waits: vec![
            waits(-1_000_000, SessionKind::Load, Some("active"), None),
            waits(0, SessionKind::Load, Some("active"), Some(("LWLock", "WALWrite"))),
            waits(0, SessionKind::Other, Some("idle in transaction"), Some(("Client", "ClientRead"))),
            waits(
                0,
                SessionKind::Server("checkpointer".to_owned()),
                None,
                Some(("Timeout", "CheckpointWriteDelay")),
            ),
        ],
        played: Vec::new(),
        stacks: vec![
            Stacks::from_folded("background writer", "postgres;main;BackgroundWriterMain 1\n").unwrap(),
            Stacks::from_folded("load", "postgres;main;exec <x>_[k] 2\n").unwrap(),
        ],
        off_cpu: vec![Stacks::from_folded("load", "postgres;main;ProcSleep 912000\n").unwrap()],
        statements: vec![
            statement(i64::MIN, "SELECT abalance FROM pgbench_accounts WHERE aid = $1", Some(0.0)),
            statement(-1, "", None),
        ],
        events: vec![Event {
            at: "2026-11-21T10:00:05.5Z".parse().unwrap(),
            kind: "client-died".to_owned(),
            message: "client 3:\nserver closed the connection".to_owned(),
            object: Some("pgbench_accounts".to_owned()),
            figures: BTreeMap::from([("sync_us".to_owned(), 12.5)]),
        }],
        phases: Vec::new(),
        logs: vec![
            Log { name: "server".to_owned(), text: "LOG:  ready\n".repeat(100) },
            Log { name: "driver".to_owned(), text: String::new() },
        ],
    }
}

pub(crate) fn series(metric: &str, of: Option<&str>, kind: Kind, points: &[(i64, Option<f64>)]) -> Series {
    let points = points.iter().map(|&(at_us, value)| Point { at_us, value }).collect();
    Series { metric: metric.to_owned(), label: of.map(str::to_owned), kind, points }
}

fn waits(at_us: i64, session: SessionKind, state: Option<&str>, event: Option<(&str, &str)>) -> Waits {
    Waits {
        at_us,
        width_us: 1_000_000,
        samples: 20,
        session,
        state: state.map(str::to_owned),
        event_type: event.map(|(event_type, _)| event_type.to_owned()),
        event: event.map(|(_, event)| event.to_owned()),
        seen: u32::MAX,
    }
}

fn statement(query_id: i64, query: &str, wal_bytes: Option<f64>) -> StatementUse {
    StatementUse {
        query_id,
        query: query.to_owned(),
        calls: 123_456,
        total_us: 0.1 + 0.2,
        rows: 7,
        shared_hit_blocks: 1 << 40,
        shared_read_blocks: 0,
        shared_dirtied_blocks: 3,
        wal_bytes,
    }
}

fn facts(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

/// The remains of a trial whose server never answered.
pub(crate) fn bare(id: &str) -> TrialRecord {
    let TrialRecord { trial, .. } = record(id);
    TrialRecord::new(Trial {
        server_version: None,
        server_banner: None,
        database_bytes: None,
        raw_read: None,
        validity: Validity {
            status: Status::Invalid,
            findings: vec![Finding {
                gate: "load-failed".to_owned(),
                status: Status::Invalid,
                evidence: "the server never answered".to_owned(),
                threshold: None,
                advice: None,
                processes: Vec::new(),
            }],
        },
        load_started: None,
        clocks: None,
        profile: None,
        summary: None,
        accounting: Accounting::default(),
        ..trial
    })
}

/// The record as it is read back: logs are sorted by name.
pub(crate) fn stored(mut record: TrialRecord) -> TrialRecord {
    record.logs.sort_by(|a, b| a.name.cmp(&b.name));
    record
}

/// Latencies as the payload of a line of an interval log.
pub(crate) fn histogram(latencies_us: &[u64]) -> String {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for latency in latencies_us {
        histogram.record(latency * 1000).unwrap();
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
    STANDARD.encode(bytes)
}

/// A text of `bytes` bytes that compresses poorly.
pub(crate) fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + (state >> 58) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}

/// Regenerates the checksums of a bundle, as after an intentional change.
pub(crate) fn update_checksums(bundle: &Path) {
    let script = "find . -type f ! -name SHA256SUMS | sed 's|^./||' | xargs sha256sum > SHA256SUMS";
    assert!(Command::new("sh").args(["-c", script]).current_dir(bundle).status().unwrap().success());
}

/// A row of another tool's table: a throughput, a number of clients, and a custom script.
pub(crate) fn imported(id: &str) -> TrialRecord {
    let mut record = bare(id);
    let mut cell = RecordedCell::default();
    cell.set(Factor::Clients, "8").unwrap();
    cell.set(Factor::Workload, "insert.sql").unwrap();
    record.trial = Trial {
        run: Run { seed: None, ..record.trial.run },
        cell,
        started: None,
        ended: None,
        summary: Some(Summary {
            worst_second_tps: None,
            longest_stall_us: None,
            instructions_per_transaction: None,
            window_us: None,
            transactions: None,
            failed: None,
            tps: 1234.5,
            latency: Some(Latency { mean_us: Some(8000.0), ..Latency::default() }),
            service: None,
            background: Vec::new(),
            connect_us: None,
            driver_cpu_us: None,
            driver_busy_max: None,
            driver_lag_max_us: None,
            driver_engine: None,
            driver_engine_reason: None,
            statistics: None,
        }),
        validity: Validity { status: Status::Valid, findings: Vec::new() },
        imported: Some(Imported {
            format: "csv".to_owned(),
            files: vec![ImportedFile { name: "sweep.csv".to_owned(), sha256: "ab".repeat(32) }],
            line: Some(17),
            at: "2026-11-22T10:00:00Z".parse().unwrap(),
            trials: 299,
        }),
        ..record.trial
    };
    record
}
