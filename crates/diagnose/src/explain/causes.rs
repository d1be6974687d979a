//! Causes that limit a trial, each a function from the trial and its budget to at most one finding.
//!
//! Each threshold is where a cause becomes worth reporting; docs/validation.md shows the results for planted causes,
//! and docs/explain.md the inputs of each.

use model::factor::pin::cpu_list;
use model::record::Event;
use model::waits::{SessionKind, Waits};

use super::budget::{Budget, Component, ComponentTime};
use super::case::Case;
use super::confidence::Confidence;
use crate::cpu::CpuTime;

/// A cause that limits the trial, or that users of its figures must know.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Name, such as `wal-flush`: the same in every release.
    pub name: &'static str,
    /// Size of the cause.
    pub share: f64,
    /// The quantity that it is a share of.
    pub of: Measure,
    /// The verdict, in one sentence.
    pub sentence: String,
    /// The figures that support it.
    pub evidence: Vec<String>,
    /// What to try next.
    pub next: &'static str,
    /// Confidence in the cause.
    pub confidence: Confidence,
}

/// The quantity that a cause's share refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean latency of a transaction.
    Latency,
    /// The time of the measured window.
    Window,
    /// The machine's CPU time in the window.
    MachineCpu,
}

impl Measure {
    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Window => "the window",
            Self::MachineCpu => "the machine's CPU time",
        }
    }
}

impl Cause {
    /// The sort key. A share of the latency shows what limits; a share of the window or of the machine shows concurrent
    /// activity and counts less, unless other processes have most of the machine: then everything else is secondary.
    pub fn weight(&self) -> f64 {
        match self.of {
            Measure::Latency => self.share,
            Measure::MachineCpu if self.share > MIN_DOMINANT_SHARE => self.share,
            Measure::Window | Measure::MachineCpu => self.share / 2.0,
        }
    }
}

pub(crate) type Detector = fn(&Case, &Budget) -> Option<Cause>;

/// All causes.
pub(crate) const CAUSES: [Detector; 14] = [
    driver,
    foreign_cpu,
    background,
    server_cpu,
    idle_transaction,
    row_locks,
    wal_flush,
    disk_reads,
    internal_lock,
    sleep,
    round_trips,
    free_clients,
    checkpoints,
    autovacuum,
];

/// The smallest share of the latency for which a cause is reported.
const MIN_SHARE: f64 = 0.15;
/// The same for causes that have a share of the latency in every trial, and limit it only if they are most of it.
const MIN_DOMINANT_SHARE: f64 = 0.5;

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

fn ms(us: f64) -> String {
    format!("{:.3} ms", us / 1e3)
}

fn latency_cause(
    budget: &Budget,
    name: &'static str,
    share: f64,
    sentence: String,
    evidence: Vec<String>,
    next: &'static str,
) -> Cause {
    Cause {
        name,
        share,
        of: Measure::Latency,
        sentence,
        evidence,
        next,
        confidence: budget.confidence(share),
    }
}

/// Parts of some components as text, largest first.
fn evidence_of(budget: &Budget, components: &[Component]) -> Vec<String> {
    let parts = budget.parts.iter().filter(|part| components.contains(&part.component));
    parts.map(|part| format!("{}: {} per transaction", part.name(), ms(part.us))).collect()
}

fn driver(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::DriverLag, Component::DriverCpu]);
    let run_us = case.growth("role.busiest_run_us", Some("driver"))?;
    let wait_us = case.growth("role.busiest_wait_us", Some("driver")).unwrap_or_default();
    let (run, wait) = (run_us / case.window_us(), wait_us / case.window_us());
    let server_wait = budget.us(Component::ServerRunQueue);
    // If the server's sessions wait for CPUs at least as long, the machine is saturated, the driver included.
    let limits =
        run + wait >= MIN_DOMINANT_SHARE && (run >= 0.7 || budget.us(Component::DriverLag) > server_wait);
    if share < MIN_DOMINANT_SHARE || !limits {
        return None;
    }
    let mut evidence = evidence_of(budget, &[Component::DriverLag, Component::DriverCpu]);
    evidence.push(format!(
        "its busiest thread ran for {} of the window and waited for a CPU for {}",
        percent(run),
        percent(wait)
    ));
    let sentence =
        format!("the driver is the limit, not the server: {} of latency is the driver's", percent(share));
    let next = if wait > run {
        "pin the driver to separate CPUs, or stop other programs there"
    } else {
        "raise run.threads, or run the driver on another machine"
    };
    Some(latency_cause(budget, "driver", share, sentence, evidence, next))
}

/// CPU time of the whole machine.
fn machine_cpu_time(case: &Case) -> Option<CpuTime> {
    CpuTime::new(&case.record.metrics, "all", case.from_us, case.to_us)
}

/// CPU time of the CPUs that the server may use.
fn server_cpu_time(case: &Case) -> Option<CpuTime> {
    let Some(cpus) = case.record.trial.cell.pin.known().and_then(|pin| cpu_list(pin.server.as_deref()?))
    else {
        return machine_cpu_time(case);
    };
    let each = cpus
        .iter()
        .map(|cpu| CpuTime::new(&case.record.metrics, &format!("cpu{cpu}"), case.from_us, case.to_us));
    each.sum()
}

fn foreign_cpu(case: &Case, budget: &Budget) -> Option<Cause> {
    let cpu = machine_cpu_time(case)?;
    let share = case.growth("role.run_us", Some("foreign"))? / cpu.total_us;
    if share < 0.10 {
        return None;
    }
    let waited = budget.share_of(&[Component::ServerRunQueue, Component::DriverLag]);
    Some(Cause {
        name: "foreign-cpu",
        share,
        of: Measure::MachineCpu,
        sentence: format!(
            "other processes used {} of the machine's CPU time, which affects the result",
            percent(share)
        ),
        evidence: vec![
            format!("the machine's CPUs were busy for {} of the window", percent(cpu.busy())),
            format!("waiting for a CPU is {} of latency", percent(waited)),
        ],
        next: "stop other programs (`pgdyno doctor` lists them), and measure again",
        confidence: Confidence::High,
    })
}

/// The smallest share of the machine's CPU time, and of reads, for which a background workload is reported.
const MIN_BACKGROUND_SHARE: f64 = 0.10;

fn background(case: &Case, budget: &Budget) -> Option<Cause> {
    if case.summary.background.is_empty() {
        return None;
    }
    let what = case
        .summary
        .background
        .iter()
        .map(|background| background.workload.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let cpu_us = case.growth("role.run_us", Some("beside"));
    let cpu = cpu_us.zip(machine_cpu_time(case)).map_or(0.0, |(us, machine)| us / machine.total_us);
    let read = |role| case.growth("role.read_bytes", Some(role)).unwrap_or_default();
    // Reads by I/O workers are attributed to the sessions that wait for them.
    let waits_for_worker = |who: &SessionKind| {
        case.sessions(|waits| {
            waits.session == *who && waits.event.as_deref().is_some_and(|event| event.starts_with("Aio"))
        })
    };
    let (theirs, ours) = (waits_for_worker(&SessionKind::Background), waits_for_worker(&SessionKind::Load));
    let by_workers = if theirs + ours > 0.0 { read("io worker") / (theirs + ours) } else { 0.0 };
    let (their_bytes, our_bytes) = (read("beside") + by_workers * theirs, read("load") + by_workers * ours);
    let of_reads = match their_bytes + our_bytes {
        0.0 => 0.0,
        bytes => their_bytes / bytes,
    };
    let waited = budget.share_of(&[Component::Io]);
    let by_disk = waited >= MIN_SHARE && of_reads >= MIN_BACKGROUND_SHARE;
    if cpu < MIN_BACKGROUND_SHARE && !by_disk {
        return None;
    }
    let mut evidence = vec![format!("{what} used {} of the machine's CPU time", percent(cpu))];
    if of_reads > 0.0 {
        evidence.push(format!(
            "{} of reads from disk ({:.1} MB) are theirs; I/O is {} of latency",
            percent(of_reads),
            their_bytes / 1e6,
            percent(waited)
        ));
    }
    let waits_for_cpu = budget.share_of(&[Component::ServerRunQueue]);
    evidence.push(format!("waiting for a CPU is {} of latency", percent(waits_for_cpu)));
    let (share, of, took) = if by_disk && waited * of_reads > cpu {
        (
            waited * of_reads,
            Measure::Latency,
            format!("{} of the reads from disk, for which transactions wait", percent(of_reads)),
        )
    } else {
        (cpu, Measure::MachineCpu, format!("{} of the machine's CPU time", percent(cpu)))
    };
    Some(Cause {
        name: "beside",
        share,
        of,
        sentence: format!("background workloads compete for resources ({what}): {took}"),
        evidence,
        next: "measure without the background workload: the difference is its cost",
        confidence: Confidence::High,
    })
}

fn server_cpu(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::ServerCpu, Component::ServerRunQueue]);
    let cpu = server_cpu_time(case)?;
    let busy = cpu.busy();
    let server_us = case.growth("role.run_us", Some("load"))?;
    let waits = budget.us(Component::ServerRunQueue) > budget.us(Component::ServerCpu);
    // CPUs that are busy with processes other than the server are another cause.
    if busy < 0.85 || share < 1.0 / 3.0 || server_us < 0.3 * cpu.busy_us {
        return None;
    }
    let mut evidence = evidence_of(budget, &[Component::ServerCpu, Component::ServerRunQueue]);
    evidence.push(format!(
        "the CPUs that the server may use were busy for {} of the window, {} of that in the load's sessions",
        percent(busy),
        percent(server_us / cpu.busy_us)
    ));
    let sentence = format!(
        "server CPU is the limit: {} of latency is on a CPU or waiting for one{}",
        percent(share),
        if waits { ", most of it waiting" } else { "" }
    );
    let next = "profile the server, or add CPUs; more clients only wait longer";
    Some(latency_cause(budget, "server-cpu", share, sentence, evidence, next))
}

/// The age from which a transaction of the load that holds a lock is not part of the load's usual work.
const LONG_TRANSACTION_US: f64 = 1e6;

/// Lock holders other than the load at its usual work.
fn outside_lock_holders<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Event> {
    case.events("lock-holder").map(|(_, event)| event).filter(|event| {
        let figure = |name| event.figures.get(name).copied().unwrap_or_default();
        figure("is_load") == 0.0 || figure("xact_age_us") > LONG_TRANSACTION_US
    })
}

/// The share of lock waits caused by sessions outside the load, or by long transactions of the load.
fn held_by_others(case: &Case) -> f64 {
    let is_lock =
        |waits: &Waits| waits.session == SessionKind::Load && waits.event_type.as_deref() == Some("Lock");
    // Lock holders are queried once a second, each with the sessions that it blocks: session-seconds.
    let held: f64 = outside_lock_holders(case)
        .filter_map(|event| Some(event.figures.get("sessions_blocked")? * event.figures.get("looks")?))
        .sum();
    let waited = case.sessions(is_lock) * case.window_us() / 1e6;
    if waited > 0.0 { (held / waited).min(1.0) } else { 0.0 }
}

fn idle_transaction(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::Lock]) * held_by_others(case);
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence: Vec<String> = outside_lock_holders(case).map(|event| event.message.clone()).collect();
    evidence.extend(evidence_of(budget, &[Component::Lock]));
    let sentence = format!(
        "clients wait for a lock that a session outside the load holds: {} of latency",
        percent(share)
    );
    let next =
        "end that session's transaction (pg_terminate_backend), or set idle_in_transaction_session_timeout";
    Some(latency_cause(budget, "idle-transaction", share, sentence, evidence, next))
}

fn row_locks(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::Lock]) * (1.0 - held_by_others(case));
    if share < MIN_SHARE {
        return None;
    }
    let sentence = format!("clients wait for each other's locks: {} of latency", percent(share));
    let next =
        "spread the updates over more rows (a larger scale), shorten the transaction, or lock later in it";
    Some(latency_cause(budget, "row-locks", share, sentence, evidence_of(budget, &[Component::Lock]), next))
}

fn wal_flush(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::WalFlush]);
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence = evidence_of(budget, &[Component::WalFlush]);
    if let Some(bytes) = case.growth("pg.wal.bytes", None) {
        evidence.push(format!("{:.1} kB of WAL per transaction", case.per_transaction(bytes) / 1e3));
    }
    let sentence = format!("commits wait for WAL flush: {} of latency", percent(share));
    let next = "use a disk that syncs faster, synchronous_commit = off if losing the last commits is acceptable, or \
                more clients, which share flushes (commit_delay makes more of them share one)";
    Some(latency_cause(budget, "wal-flush", share, sentence, evidence, next))
}

fn disk_reads(case: &Case, budget: &Budget) -> Option<Cause> {
    let read = |part: &&ComponentTime| {
        let event = part.of.as_deref().unwrap_or_default();
        part.component == Component::Io
            && (event.starts_with("DataFileRead")
                || event.starts_with("DataFilePrefetch")
                || event.starts_with("AioIo")
                || event.starts_with("AioUring"))
    };
    let us: f64 = budget.parts.iter().filter(read).map(|part| part.us).sum();
    let share = us / budget.latency_us;
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence = vec![format!("waiting for reads: {} per transaction", ms(us))];
    if let Some(blocks) = case.growth("pg.database.blks_read", None) {
        evidence.push(format!("{:.2} blocks read per transaction", case.per_transaction(blocks)));
    }
    let sentence = format!("transactions wait for reads from disk: {} of latency", percent(share));
    let next = "use more shared_buffers or memory, a smaller data set, or a faster disk";
    Some(latency_cause(budget, "disk-reads", share, sentence, evidence, next))
}

fn internal_lock(_: &Case, budget: &Budget) -> Option<Cause> {
    let part = budget.parts.iter().find(|part| part.component == Component::LwLock)?;
    let share = budget.share_of(&[Component::LwLock]);
    if share < MIN_SHARE {
        return None;
    }
    let name = part.of.clone().unwrap_or_default();
    let sentence = format!(
        "sessions wait for the server's internal locks, mostly {name}: {} of latency",
        percent(share)
    );
    let next = "use fewer clients, or see the manual for this lock (pg_stat_activity, wait events)";
    Some(latency_cause(
        budget,
        "internal-locks",
        share,
        sentence,
        evidence_of(budget, &[Component::LwLock]),
        next,
    ))
}

fn sleep(_: &Case, budget: &Budget) -> Option<Cause> {
    let part = budget.parts.iter().find(|part| part.of.as_deref() == Some("Timeout:PgSleep"))?;
    let share = budget.share(part);
    if share < MIN_SHARE {
        return None;
    }
    let sentence = format!("statements sleep (pg_sleep): {} of latency", percent(share));
    let evidence = vec![format!("pg_sleep: {} per transaction", ms(part.us))];
    let next = "search for pg_sleep in the script, and in the functions and triggers that it calls";
    Some(latency_cause(budget, "sleep", share, sentence, evidence, next))
}

fn round_trips(case: &Case, budget: &Budget) -> Option<Cause> {
    const COMPONENTS: [Component; 2] = [Component::Network, Component::ClientInTransaction];
    let share = budget.share_of(&COMPONENTS);
    if share < MIN_DOMINANT_SHARE {
        return None;
    }
    let mut evidence = evidence_of(budget, &COMPONENTS);
    if let Some(cpu) = machine_cpu_time(case) {
        evidence.push(format!("the machine's CPUs were busy for {} of the window", percent(cpu.busy())));
    }
    let sentence = format!(
        "round trips are the limit: {} of latency is the network between driver and server, and wake-ups",
        percent(share)
    );
    let next = "use more clients, fewer statements per transaction (pipelines, functions), or a Unix socket instead of TCP";
    Some(latency_cause(budget, "round-trips", share, sentence, evidence, next))
}

fn free_clients(_: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::FreeClient]);
    if share < MIN_DOMINANT_SHARE {
        return None;
    }
    let sentence = format!(
        "the clients cannot keep up with the rate: {} of latency is waiting for a free client",
        percent(share)
    );
    let next = "use a lower rate, or more clients; the other components show what limits the clients";
    let evidence = evidence_of(budget, &[Component::FreeClient]);
    Some(latency_cause(budget, "free-clients", share, sentence, evidence, next))
}

/// Checkpoints triggered by the amount of WAL, if there are at least two in the window.
fn checkpoints(case: &Case, _: &Budget) -> Option<Cause> {
    let inside = |at_us: &i64| (case.from_us..case.to_us).contains(at_us);
    let by_wal = |message: &str| message.contains("wal") || message.contains("xlog");
    let begun: Vec<i64> = case
        .events("checkpoint-started")
        .filter(|(_, event)| by_wal(&event.message))
        .map(|(at_us, _)| at_us)
        .filter(inside)
        .collect();
    if begun.len() < 2 {
        return None;
    }
    let during_us = case.record.checkpoint_us(case.from_us, case.to_us);
    let share = (during_us / case.window_us()).min(1.0);
    let mut evidence = vec![format!(
        "{} checkpoints were triggered by the amount of WAL, one every {:.2} s",
        begun.len(),
        case.window_us() / 1e6 / begun.len() as f64
    )];
    if let (Some(images), Some(records)) =
        (case.growth("pg.wal.full_page_images", None), case.growth("pg.wal.records", None))
        && records > 0.0
    {
        evidence.push(format!("{} of WAL records contain a full page", percent(images / records)));
    }
    if let Some(size) = case.record.settings.iter().find(|setting| setting.name == "max_wal_size") {
        evidence.push(format!("max_wal_size is {} {}", size.value, size.unit.as_deref().unwrap_or_default()));
    }
    Some(Cause {
        name: "checkpoints",
        share,
        of: Measure::Window,
        sentence: format!(
            "max_wal_size triggers frequent checkpoints: one was running for {} of the window",
            percent(share)
        ),
        evidence,
        next: "raise max_wal_size until checkpoints are triggered by time",
        confidence: Confidence::High,
    })
}

/// Autovacuum workers, without the launcher.
fn autovacuum(case: &Case, _: &Budget) -> Option<Cause> {
    let workers = case.sessions(|waits| waits.session == SessionKind::Server("autovacuum worker".to_owned()));
    let tables: Vec<String> = ["autovacuum", "autoanalyze"]
        .into_iter()
        .flat_map(|kind| case.events(kind))
        .filter(|(at_us, _)| (case.from_us..case.to_us + 1_000_000).contains(at_us))
        .filter_map(|(_, event)| event.object.clone())
        .filter(|table| table.contains(".public.") || table.starts_with("pgdyno."))
        .collect();
    let share = workers.min(1.0);
    if share < 0.10 {
        return None;
    }
    let mut evidence = vec![format!("{workers:.2} autovacuum workers were running on average")];
    if let Some(cpu_us) = case.growth("role.run_us", Some("autovacuum worker")) {
        evidence.push(format!("they used {:.2} s of CPU time", cpu_us / 1e6));
    }
    if !tables.is_empty() {
        let mut names = tables;
        names.sort();
        names.dedup();
        evidence.push(format!("it completed on {}", names.join(", ")));
    }
    Some(Cause {
        name: "autovacuum",
        share,
        of: Measure::Window,
        sentence: format!("autovacuum processed the tested tables for {} of the window", percent(share)),
        evidence,
        next: "use a longer window, so that every trial has its share of autovacuum, or autovacuum = off for a short one",
        confidence: Confidence::Medium,
    })
}
