//! Waits of the load's sessions, by what they wait for.

use model::record::Event;
use model::waits::{SessionKind, Waits};

use super::super::budget::{Budget, Component, ComponentTime};
use super::super::case::Case;
use super::cause::{Cause, MIN_SHARE, ms, percent};
use super::reads;

/// A cause that is waiting for some events. Each part of the budget belongs to the first one that it fits.
struct WaitCause {
    name: &'static str,
    /// Wait events by component, and name as in [`ComponentTime::of`]; no names for all others of the component.
    events: &'static [(Component, &'static [&'static str])],
    /// What happens, before the share of the latency.
    sentence: &'static str,
    /// A counter, and what it counts per transaction: the factor to its unit, and the unit.
    counter: Option<(&'static str, f64, &'static str)>,
    next: &'static str,
}

/// Names of wait events are those of PostgreSQL 18.
const WAIT_CAUSES: [WaitCause; 13] = [
    WaitCause {
        name: "row-locks",
        events: &[(Component::Lock, &["transactionid", "tuple", "spectoken"])],
        sentence: "clients wait for each other's row locks",
        counter: None,
        next: "spread the updates over more rows (a larger scale), shorten the transaction, or lock later in it",
    },
    WaitCause {
        name: "table-locks",
        events: &[(Component::Lock, &["relation"])],
        sentence: "clients wait for locks on tables or indexes",
        counter: None,
        next: "search the load for LOCK TABLE, TRUNCATE and DDL, and run these apart from it",
    },
    WaitCause {
        name: "advisory-locks",
        events: &[(Component::Lock, &["advisory", "userlock"])],
        sentence: "clients wait for advisory locks",
        counter: None,
        next: "hold pg_advisory_lock for less time, or use more keys",
    },
    WaitCause {
        name: "file-extension",
        events: &[(Component::Lock, &["extend"]), (Component::Io, &["DataFileExtend"])],
        sentence: "clients wait until data files are extended",
        counter: Some(("pg.wal.bytes", 1e-3, "kB of WAL")),
        next: "insert in larger batches or into more tables (partitions); PostgreSQL 16 and later extend by many blocks at once",
    },
    WaitCause {
        name: "other-locks",
        events: &[(Component::Lock, &[])],
        sentence: "clients wait for heavyweight locks other than those of rows and tables",
        counter: None,
        next: "see the manual for this lock (pg_stat_activity, wait events of type Lock)",
    },
    WaitCause {
        name: "wal-flush",
        events: &[(Component::WalFlush, &[])],
        sentence: "commits wait for WAL flush",
        counter: Some(("pg.wal.bytes", 1e-3, "kB of WAL")),
        next: "use a disk that syncs faster, synchronous_commit = off if losing the last commits is acceptable, or \
               more clients, which share flushes (commit_delay makes more of them share one)",
    },
    WaitCause {
        name: "sync-replication",
        events: &[(Component::OtherWait, &["IPC:SyncRep"]), (Component::LwLock, &["SyncRep"])],
        sentence: "commits wait for a synchronous standby",
        counter: Some(("pg.wal.bytes", 1e-3, "kB of WAL")),
        next: "see pg_stat_replication for what the standby lags in, lower synchronous_commit (remote_write, local), or \
               use more clients",
    },
    WaitCause {
        name: "temporary-files",
        events: &[(Component::Io, &["BuffileRead", "BuffileWrite", "BuffileTruncate"])],
        sentence: "sorts, hashes and materialized results use temporary files",
        counter: Some(("pg.database.temp_bytes", 1e-6, "MB of temporary files")),
        next: "raise work_mem (log_temp_files names the statements), or temp_tablespaces on a faster disk",
    },
    WaitCause {
        name: "data-writes",
        events: &[(
            Component::Io,
            &[
                "DataFileWrite",
                "DataFileFlush",
                "DataFileSync",
                "DataFileImmediateSync",
                "DataFileTruncate",
                "SlruWrite",
                "SlruSync",
                "SlruFlushSync",
            ],
        )],
        sentence: "sessions write data files themselves",
        counter: Some(("pg.backend.buffers_written", 1.0, "buffers written by sessions")),
        next: "raise shared_buffers, or let the background writer do more (bgwriter_lru_maxpages, bgwriter_delay)",
    },
    WaitCause {
        name: "internal-locks",
        events: &[
            (Component::LwLock, &[]),
            (Component::OtherWait, &["IPC:ProcarrayGroupUpdate", "IPC:XactGroupUpdate", "Timeout:SpinDelay"]),
        ],
        sentence: "sessions wait for the server's internal locks",
        counter: None,
        next: "use fewer clients, or see the manual for this lock (pg_stat_activity, wait events)",
    },
    WaitCause {
        name: "sleep",
        events: &[(Component::OtherWait, &["Timeout:PgSleep"])],
        sentence: "statements sleep (pg_sleep)",
        counter: None,
        next: "search for pg_sleep in the script, and in the functions and triggers that it calls",
    },
    WaitCause {
        name: "checkpoint-waits",
        events: &[(
            Component::OtherWait,
            &[
                "IPC:CheckpointStart",
                "IPC:CheckpointDone",
                "IPC:CheckpointDelayStart",
                "IPC:CheckpointDelayComplete",
                "Timeout:RegisterSyncRequest",
            ],
        )],
        sentence: "sessions wait for checkpoints",
        counter: None,
        next: "search the load for CHECKPOINT, CREATE DATABASE and DROP DATABASE",
    },
    WaitCause {
        name: "other-waits",
        events: &[(Component::Io, &[]), (Component::OtherWait, &[])],
        sentence: "sessions wait for other events",
        counter: None,
        next: "see the manual for these events (pg_stat_activity, wait events)",
    },
];

/// Waits of a session for its parallel workers. Also of workers for each other, which is no part of the latency.
const PARALLEL: [&str; 10] = [
    "IPC:ExecuteGather",
    "IPC:MessageQueue",
    "IPC:ParallelFinish",
    "IPC:ParallelBitmapScan",
    "IPC:ParallelCreateIndexScan",
    "IPC:Hash",
    "IPC:BtreePage",
    "IPC:AppendReady",
    "IPC:BgworkerStartup",
    "IPC:BgworkerShutdown",
];

fn is_parallel(part: &ComponentTime) -> bool {
    let of = part.of.as_deref().unwrap_or_default();
    part.component == Component::OtherWait && PARALLEL.iter().any(|event| of.starts_with(event))
}

impl WaitCause {
    fn fits(&self, part: &ComponentTime) -> bool {
        // The part's name of a WAL flush is in parentheses, and no cause needs it.
        let of = part.of.as_deref().unwrap_or_default();
        self.events.iter().any(|(component, events)| {
            *component == part.component && (events.is_empty() || events.contains(&of))
        })
    }

    fn of(part: &ComponentTime) -> Option<&'static Self> {
        if reads::is_read(part) || is_parallel(part) {
            return None;
        }
        WAIT_CAUSES.iter().find(|cause| cause.fits(part))
    }

    /// The cause, if waiting is large enough a part of the latency; locks that others hold do not count.
    fn find(&self, case: &Case, budget: &Budget, held_by_others: f64) -> Option<Cause> {
        let is_own = |part: &&ComponentTime| Self::of(part).is_some_and(|cause| cause.name == self.name);
        let parts: Vec<&ComponentTime> = budget.parts.iter().filter(is_own).collect();
        let us = |part: &&ComponentTime| match part.component {
            Component::Lock => part.us * (1.0 - held_by_others),
            _ => part.us,
        };
        let share = parts.iter().map(us).sum::<f64>() / budget.latency_us;
        if share < MIN_SHARE {
            return None;
        }
        let mut evidence: Vec<String> =
            parts.iter().map(|part| format!("{}: {} per transaction", part.name(), ms(part.us))).collect();
        if let Some((metric, factor, unit)) = self.counter
            && let Some(growth) = case.growth(metric, None)
        {
            evidence.push(format!("{:.1} {unit} per transaction", case.per_transaction(growth) * factor));
        }
        let most =
            parts.first().filter(|_| matches!(self.name, "internal-locks" | "other-locks" | "other-waits"));
        let most = most.and_then(|part| part.of.as_deref()).map(|event| format!(", mostly {event}"));
        let sentence =
            format!("{}{}: {} of latency", self.sentence, most.unwrap_or_default(), percent(share));
        Some(Cause::of_latency(budget, self.name, share, sentence, evidence, self.next))
    }
}

pub(super) fn causes(case: &Case, budget: &Budget) -> Vec<Cause> {
    let held_by_others = held_by_others(case);
    WAIT_CAUSES.iter().filter_map(|cause| cause.find(case, budget, held_by_others)).collect()
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
    let waited = case.sessions(is_lock) * case.load_time_us() / 1e6;
    if waited > 0.0 { (held / waited).min(1.0) } else { 0.0 }
}

pub(super) fn idle_transaction(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::Lock]) * held_by_others(case);
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence: Vec<String> = outside_lock_holders(case).map(|event| event.message.clone()).collect();
    let locks = budget.parts.iter().filter(|part| part.component == Component::Lock);
    evidence.extend(locks.map(|part| format!("{}: {} per transaction", part.name(), ms(part.us))));
    let sentence = format!(
        "clients wait for a lock that a session outside the load holds: {} of latency",
        percent(share)
    );
    let next =
        "end that session's transaction (pg_terminate_backend), or set idle_in_transaction_session_timeout";
    Some(Cause::of_latency(budget, "idle-transaction", share, sentence, evidence, next))
}

/// Sessions that wait for their parallel workers.
pub(super) fn parallel_workers(case: &Case, budget: &Budget) -> Option<Cause> {
    const WORKER: &str = "parallel worker";
    let parts: Vec<&ComponentTime> = budget.parts.iter().filter(|part| is_parallel(part)).collect();
    let share = parts.iter().map(|part| part.us).sum::<f64>() / budget.latency_us;
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence: Vec<String> =
        parts.iter().map(|part| format!("{}: {} per transaction", part.name(), ms(part.us))).collect();
    let is_worker = |waits: &Waits| waits.session.name() == WORKER;
    let workers = case.sessions(is_worker);
    if workers > 0.0 {
        let waiting = case.sessions(|waits| is_worker(waits) && waits.event.is_some());
        evidence.push(format!(
            "{workers:.2} workers were running on average; they waited for {} of their time",
            percent(waiting / workers)
        ));
    }
    let cpu = |metric| Some(case.per_transaction(case.growth(metric, Some(WORKER))?));
    if let (Some(run_us), Some(wait_us)) = (cpu("role.run_us"), cpu("role.wait_us")) {
        evidence.push(format!(
            "workers on a CPU: {} per transaction, waiting for one: {}",
            ms(run_us),
            ms(wait_us)
        ));
    }
    let grown = |metric| case.growth(metric, None);
    if let (Some(planned), Some(launched)) =
        (grown("pg.database.parallel_workers_to_launch"), grown("pg.database.parallel_workers_launched"))
        && planned > launched
    {
        evidence.push(format!(
            "{} of the planned workers could not be launched",
            percent(1.0 - launched / planned)
        ));
    }
    let sentence = format!("sessions wait for their parallel workers: {} of latency", percent(share));
    let next =
        "profile the workers; for statements this short, max_parallel_workers_per_gather = 0 may be faster";
    Some(Cause::of_latency(budget, "parallel-workers", share, sentence, evidence, next))
}
