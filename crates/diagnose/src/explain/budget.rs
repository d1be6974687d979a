//! The mean latency of a transaction, broken down into parts.
//!
//! A client's time is the time of its server session. The kernel accounts for CPU time and waiting for a CPU
//! (`/proc/<pid>/schedstat`); wait events, and waiting for the client, are sampled many times a second
//! (`pg_stat_activity`). If a session is active and does not wait, and the kernel has it neither on a CPU nor in a run
//! queue, that time is unexplained. The time for which the server waits for its client belongs to the driver and to the
//! network between them.

use model::message::{Interval, Phase};
use model::waits::{SessionKind, Waits};
use model::workload::Workload;

use super::case::Case;
use super::confidence::Confidence;

/// A mean latency and its parts, which add up to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Mean latency of a transaction from its intended start, in microseconds.
    pub latency_us: f64,
    /// Non-zero parts, largest first, with the unexplained one last.
    pub parts: Vec<ComponentTime>,
    /// Number of samples of the server's sessions.
    pub samples: u32,
    /// Samples that show transactions: in an open loop, sessions are idle in the others.
    pub effective_samples: f64,
}

/// One part of a latency.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentTime {
    /// The component that the time was spent in.
    pub component: Component,
    /// The lock or wait, by the server's name; `None` if the component is specific enough.
    pub of: Option<String>,
    /// Mean time per transaction, in microseconds. Negative only for [`Component::Unexplained`]: the parts then exceed
    /// the measured latency.
    pub us: f64,
}

/// A component of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// In an open loop, the transaction waits for a free client.
    FreeClient,
    /// The client waits until the pooler has a server connection for it.
    PoolerQueue,
    /// The pooler uses CPU.
    PoolerCpu,
    /// A response has arrived, or a transaction is due, and the driver waits for a CPU.
    DriverRunQueue,
    /// The same, and the driver is busy with other clients.
    DriverLag,
    /// The driver uses CPU.
    DriverCpu,
    /// Network between driver and server, and waking up either, between transactions.
    Network,
    /// The server waits for its client within a transaction, in addition to the driver's time.
    ClientInTransaction,
    /// The server's session waits for a CPU.
    ServerRunQueue,
    /// The server's session uses CPU.
    ServerCpu,
    /// Heavyweight locks: rows, tables, transactions.
    Lock,
    /// The server's lightweight locks.
    LwLock,
    /// Reading and writing files other than WAL.
    Io,
    /// Waiting until WAL is flushed to disk.
    WalFlush,
    /// Any other wait event.
    OtherWait,
    /// The rest.
    Unexplained,
}

impl Component {
    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FreeClient => "waiting for a free client",
            Self::PoolerQueue => "waiting for a server connection",
            Self::PoolerCpu => "pooler CPU",
            Self::DriverRunQueue => "driver waits for a CPU",
            Self::DriverLag => "driver lag",
            Self::DriverCpu => "driver CPU",
            Self::Network => "network and wake-up",
            Self::ClientInTransaction => "client-wait inside a transaction",
            Self::ServerRunQueue => "server waits for a CPU",
            Self::ServerCpu => "server on CPU",
            Self::Lock => "lock",
            Self::LwLock => "LWLock",
            Self::Io => "I/O",
            Self::WalFlush => "WAL flush",
            Self::OtherWait => "wait",
            Self::Unexplained => "unexplained",
        }
    }
}

impl ComponentTime {
    /// Display name, such as `lock transactionid`.
    pub fn name(&self) -> String {
        match &self.of {
            Some(of) => format!("{} {of}", self.component.name()),
            None => self.component.name().to_owned(),
        }
    }
}

impl Budget {
    pub(crate) fn new(case: &Case) -> Self {
        let open_loop = case.summary.service.is_some();
        let service_us = case.summary.service.as_ref().and_then(|service| service.mean_us);
        let service_us = service_us.unwrap_or(case.latency_us);
        let mut parts = vec![ComponentTime {
            component: Component::FreeClient,
            of: None,
            us: case.latency_us - service_us,
        }];

        let cpu_us = case.growth("role.run_us", Some("load")).map(|us| case.per_transaction(us));
        let queue_us = case.growth("role.wait_us", Some("load")).map(|us| case.per_transaction(us));
        let worked_us = cpu_us.unwrap_or_default() + queue_us.unwrap_or_default();
        let active_us = case.load_us(|waits| is_active(waits) && waits.event.is_none());
        let mut named = named_waits(case);

        // If the kernel accounts for more work than was sampled in active sessions that do not wait, it was done by
        // others. CPU time by those still shown as waiting for their client (waking up, reading, answering), and by those
        // waiting for I/O, whose system calls use it; any session that has been woken up waits for a CPU while it is
        // still shown as waiting for something else.
        let hidden_us = (worked_us - active_us).max(0.0);
        let unexplained_us = match cpu_us {
            Some(_) => (active_us - worked_us).max(0.0),
            None => active_us,
        };
        let mut in_transaction_us = case.load_us(is_idle_in_transaction);
        let mut between_us = case.load_us(is_idle);
        let pooler = Pooler::new(case);
        if let Some(pooler) = &pooler {
            // Server connections outlive transactions, and no client has one between two: what remains of the clients' time.
            let named_us: f64 = named.iter().map(|part| part.us).sum();
            between_us = (service_us - pooler.queue_us - active_us - named_us - in_transaction_us).max(0.0);
        } else if open_loop {
            // Sessions are also idle while no transaction is due: the clients' time without the transactions'.
            between_us = (between_us - case.idle_clients_us(service_us)).max(0.0);
        }
        let client_us = in_transaction_us + between_us;
        let sum = |parts: &[ComponentTime], is_meant: fn(&ComponentTime) -> bool| -> f64 {
            parts.iter().filter(|part| is_meant(part)).map(|part| part.us).sum()
        };
        let io_us = sum(&named, |part| matches!(part.component, Component::Io | Component::WalFlush));
        let ratio = |us: f64, of_us: f64| if of_us > 0.0 { (us / of_us).min(1.0) } else { 0.0 };
        let hidden = ratio(hidden_us, worked_us);
        let on_cpu = ratio(hidden * cpu_us.unwrap_or_default(), client_us + io_us);
        let queued = ratio(hidden * queue_us.unwrap_or_default(), client_us + sum(&named, |_| true));
        let kept = (1.0 - on_cpu - queued).max(0.0);
        in_transaction_us *= kept;
        between_us *= kept;
        named.iter_mut().for_each(|part| part.us *= 1.0 - queued);
        // Counted once, as part of the I/O.
        let cpu_us = cpu_us.map(|us| (us - on_cpu * io_us).max(0.0));
        let driver = Driver::new(case, in_transaction_us + between_us);
        let of_driver_us = driver.cpu_us + driver.queue_us + driver.lag_us;
        let (pooler_queue_us, pooler_cpu_us) = pooler.map_or((0.0, 0.0), |pooler| {
            let left_us = (in_transaction_us + between_us - of_driver_us).max(0.0);
            (pooler.queue_us, pooler.cpu_us.min(left_us))
        });
        let network_share = match in_transaction_us + between_us {
            0.0 => 0.0,
            whole_us => 1.0 - (of_driver_us + pooler_cpu_us) / whole_us,
        };
        let mut add = |component, us: f64| parts.push(ComponentTime { component, of: None, us });
        add(Component::PoolerQueue, pooler_queue_us);
        add(Component::PoolerCpu, pooler_cpu_us);
        add(Component::DriverRunQueue, driver.queue_us);
        add(Component::DriverLag, driver.lag_us);
        add(Component::DriverCpu, driver.cpu_us);
        add(Component::Network, between_us * network_share);
        add(Component::ClientInTransaction, in_transaction_us * network_share);
        add(Component::ServerRunQueue, queue_us.unwrap_or_default());
        add(Component::ServerCpu, cpu_us.unwrap_or_default());
        parts.extend(named);
        add_commit_delay(case, unexplained_us, &mut parts);
        let total_us: f64 = parts.iter().map(|part| part.us).sum();
        parts.retain(|part| part.us > 0.0);
        parts.sort_by(|a, b| b.us.total_cmp(&a.us));
        parts.push(ComponentTime {
            component: Component::Unexplained,
            of: None,
            us: case.latency_us - total_us,
        });
        let concurrent = case.transactions * service_us / case.load_time_us();
        let effective_samples = f64::from(case.samples) * concurrent.min(1.0);
        Self { latency_us: case.latency_us, parts, samples: case.samples, effective_samples }
    }

    /// The mean of several budgets, part by part: the budget of a cell's transaction. `None` without budgets.
    pub fn mean(budgets: &[Self]) -> Option<Self> {
        let count = budgets.len() as f64;
        let (first, rest) = budgets.split_first()?;
        let mut mean = first.clone();
        for budget in rest {
            mean.latency_us += budget.latency_us;
            mean.samples += budget.samples;
            mean.effective_samples += budget.effective_samples;
            for part in &budget.parts {
                match mean
                    .parts
                    .iter_mut()
                    .find(|other| (other.component, &other.of) == (part.component, &part.of))
                {
                    Some(other) => other.us += part.us,
                    None => mean.parts.push(part.clone()),
                }
            }
        }
        mean.latency_us /= count;
        mean.parts.iter_mut().for_each(|part| part.us /= count);
        mean.parts.sort_by(|a, b| {
            let last = |part: &ComponentTime| part.component == Component::Unexplained;
            last(a).cmp(&last(b)).then(b.us.total_cmp(&a.us))
        });
        Some(mean)
    }

    /// The part's share of the latency.
    pub fn share(&self, part: &ComponentTime) -> f64 {
        part.us / self.latency_us
    }

    /// Time of all parts of a component, in microseconds.
    pub fn us(&self, component: Component) -> f64 {
        self.parts.iter().filter(|part| part.component == component).map(|part| part.us).sum()
    }

    /// The share of the latency in some components.
    pub fn share_of(&self, components: &[Component]) -> f64 {
        components.iter().map(|&component| self.us(component)).sum::<f64>() / self.latency_us
    }

    /// Half the width of the 95 % confidence interval of a share of one half, the widest: samples are assumed to be
    /// independent, the sessions within one sample are not.
    pub fn half_width(&self) -> f64 {
        if self.effective_samples > 0.0 { (1.96 * 0.5 / self.effective_samples.sqrt()).min(1.0) } else { 1.0 }
    }

    /// Confidence in shares, by the number of samples and by the unexplained part.
    pub fn confidence(&self) -> Confidence {
        let unexplained = (self.us(Component::Unexplained) / self.latency_us).abs();
        match (unexplained, self.half_width()) {
            (..=0.10, ..=0.05) => Confidence::High,
            (..=0.25, ..=0.12) => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// A pooler's part of a transaction's time.
struct Pooler {
    /// Time for which the client waited for a server connection, by the pooler's own clock.
    queue_us: f64,
    cpu_us: f64,
}

impl Pooler {
    /// None without a pooler.
    fn new(case: &Case) -> Option<Self> {
        let queue_us = case.per_transaction(case.growth("pgbouncer.wait_us", None)?);
        let cpu_us = case.growth("role.run_us", Some("pgbouncer")).unwrap_or_default();
        Some(Self { queue_us, cpu_us: case.per_transaction(cpu_us) })
    }
}

/// The driver's part of a client's time.
struct Driver {
    cpu_us: f64,
    queue_us: f64,
    lag_us: f64,
}

impl Driver {
    /// From the time for which the server waits for its clients.
    fn new(case: &Case, client_us: f64) -> Self {
        let run = case.growth("role.run_us", Some("driver"));
        let run_us = run.unwrap_or(case.summary.driver_cpu_us.unwrap_or_default() as f64);
        let wait_us = case.growth("role.wait_us", Some("driver")).unwrap_or_default();
        let cpu_us = case.per_any_transaction(run_us).min(client_us);
        // While a driver thread waits for a CPU, so do the clients whose responses have arrived. Responses wake up a
        // sleeping thread: the clients' time falls into the time in which it runs or waits to run.
        let starved = if run_us + wait_us > 0.0 { wait_us / (run_us + wait_us) } else { 0.0 };
        let queue_us = (client_us * starved).min(client_us - cpu_us).max(0.0);
        // From the wake-up until each response is handled: on a CPU, waiting for one, and busy with other clients.
        let others_us = handling_lag_us(case) - case.per_any_transaction(run_us) - queue_us;
        let rest_us = (client_us - cpu_us - queue_us).max(0.0);
        let lag_us = if is_saturated(case, run_us) { rest_us } else { others_us.clamp(0.0, rest_us) };
        Self { cpu_us, queue_us, lag_us }
    }
}

/// Share of the window that threads of a saturated driver run.
const SATURATED: f64 = 0.9;

/// Whether the driver's threads hardly ever sleep. A response that arrives while its thread works has no wake-up from which its
/// lag could be measured; the thread's own time decides how many transactions there are.
///
/// Source: Denning, Buzen: The Operational Analysis of Queueing Network Models (1978), bottleneck analysis.
fn is_saturated(case: &Case, run_us: f64) -> bool {
    let Some(busiest_us) = case.growth("role.busiest_run_us", Some("driver")) else { return false };
    let threads = (run_us / busiest_us).round().max(1.0);
    run_us >= SATURATED * threads * case.load_time_us()
}

/// Driver lag of all responses of a transaction, from the thread's wake-up until each is handled.
fn handling_lag_us(case: &Case) -> f64 {
    let window = case.record.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    case.per_any_transaction(window.filter_map(Interval::lag_us).sum())
}

fn is_active(waits: &Waits) -> bool {
    matches!(waits.state.as_deref(), Some("active" | "fastpath function call"))
}

fn is_idle_in_transaction(waits: &Waits) -> bool {
    matches!(waits.state.as_deref(), Some("idle in transaction" | "idle in transaction (aborted)"))
}

fn is_idle(waits: &Waits) -> bool {
    waits.state.as_deref() == Some("idle")
        || (is_active(waits) && waits.event_type.as_deref() == Some("Client"))
}

/// Wait events of active sessions, one part per event.
fn named_waits(case: &Case) -> Vec<ComponentTime> {
    let mut parts: Vec<ComponentTime> = Vec::new();
    for waits in case.waits() {
        let (Some(kind), Some(event)) = (waits.event_type.as_deref(), waits.event.as_deref()) else {
            continue;
        };
        if waits.session != SessionKind::Load || !is_active(waits) || kind == "Client" {
            continue;
        }
        let component = component_of(kind, event);
        let subject = match component {
            Component::OtherWait => format!("{kind}:{event}"),
            Component::WalFlush => format!("({event})"),
            _ => event.to_owned(),
        };
        let us = f64::from(waits.seen) / f64::from(case.samples) * case.per_transaction(case.load_time_us());
        match parts
            .iter_mut()
            .find(|part| part.component == component && part.of.as_deref() == Some(&subject))
        {
            Some(part) => part.us += us,
            None => parts.push(ComponentTime { component, of: Some(subject), us }),
        }
    }
    parts
}

/// The component of a wait event, by its name in PostgreSQL 18.
fn component_of(kind: &str, event: &str) -> Component {
    match (kind, event) {
        ("IO", "WalSync" | "WalWrite") | ("LWLock", "WALWrite") => Component::WalFlush,
        ("Lock", _) => Component::Lock,
        ("LWLock", _) => Component::LwLock,
        ("IO", _) => Component::Io,
        _ => Component::OtherWait,
    }
}

/// Time of active sessions without CPU use or wait event: with `commit_delay` set, the session that is about to flush
/// the WAL sleeps without one. Otherwise it stays unexplained.
fn add_commit_delay(case: &Case, unexplained_us: f64, parts: &mut Vec<ComponentTime>) {
    let delay_us = case.setting("commit_delay").and_then(|value| value.parse().ok()).unwrap_or(0.0);
    if delay_us > 0.0 && case.record.trial.cell.workload.known().is_some_and(Workload::writes) {
        parts.push(ComponentTime {
            component: Component::WalFlush,
            of: Some("(commit_delay)".to_owned()),
            us: unexplained_us.min(delay_us),
        });
    }
}
