//! Limits of the driver, and of the load itself.

use super::super::budget::{Budget, Component};
use super::super::case::Case;
use super::cause::{Cause, MIN_DOMINANT_SHARE, evidence_of, ms, percent};
use super::processors::{busy_share, machine_cpu_time};

pub(super) fn driver(case: &Case, budget: &Budget) -> Option<Cause> {
    let run_us = case.growth("role.run_us", Some("driver"))?;
    let busiest_us = case.growth("role.busiest_run_us", Some("driver"))?;
    let wait_us = case.growth("role.busiest_wait_us", Some("driver")).unwrap_or_default();
    // Waiting for a CPU is the driver's own limit as far as its other threads have the CPUs.
    let own = busy_share(case, run_us - busiest_us, busiest_us);
    let us = budget.us(Component::DriverCpu)
        + budget.us(Component::DriverLag)
        + own * budget.us(Component::DriverRunQueue);
    let share = us / budget.latency_us;
    let (run, wait) = (busiest_us / case.load_time_us(), wait_us / case.load_time_us());
    if share < MIN_DOMINANT_SHARE || run + own * wait < MIN_DOMINANT_SHARE {
        return None;
    }
    let mut evidence =
        evidence_of(budget, &[Component::DriverCpu, Component::DriverLag, Component::DriverRunQueue]);
    evidence.push(format!(
        "its busiest thread ran for {} of the window and waited for a CPU for {}",
        percent(run),
        percent(wait)
    ));
    let sentence =
        format!("the driver is the limit, not the server: {} of latency is the driver's", percent(share));
    let next = if wait > run {
        "give the driver more CPUs (pins), or lower run.threads to the number of its CPUs"
    } else {
        "raise run.threads, or run the driver on another machine"
    };
    Some(Cause::of_latency(budget, "driver", share, sentence, evidence, next))
}

pub(super) fn round_trips(case: &Case, budget: &Budget) -> Option<Cause> {
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
    Some(Cause::of_latency(budget, "round-trips", share, sentence, evidence, next))
}

/// The busy share of the clients from which on a rate is more than they can keep up with. With a lower one, random arrivals alone
/// make no transaction wait for a client for half of its latency: that share is at most the busy share, reached with one client and
/// exponential service times (M/M/1).
///
/// Source: Kleinrock: Queueing Systems, volume 1 (1975), section 3.2.
const MIN_BUSY_CLIENTS: f64 = MIN_DOMINANT_SHARE;

pub(super) fn free_clients(case: &Case, budget: &Budget) -> Option<Cause> {
    let wait = WaitForClient::new(case, budget).filter(|wait| wait.busy >= MIN_BUSY_CLIENTS)?;
    let sentence = format!(
        "the clients cannot keep up with the rate: {} of latency is waiting for a free client",
        percent(wait.share)
    );
    let next = "use a lower rate, or more clients; the other components show what limits the clients";
    Some(Cause::of_latency(budget, "free-clients", wait.share, sentence, wait.evidence, next))
}

pub(super) fn stalls(case: &Case, budget: &Budget) -> Option<Cause> {
    let wait = WaitForClient::new(case, budget).filter(|wait| wait.busy < MIN_BUSY_CLIENTS)?;
    let sentence = format!(
        "transactions pile up while all clients stand still now and then: {} of latency is waiting for a free client",
        percent(wait.share)
    );
    let next = "look at throughput and waits over time for what stops all clients at once: a slow disk, a lock, a checkpoint, or a slow \
                statement where there are few clients";
    Some(Cause::of_latency(budget, "stalls", wait.share, sentence, wait.evidence, next))
}

/// Waiting for a free client, as most of the latency.
struct WaitForClient {
    share: f64,
    /// Share of the clients' time in which they had a transaction.
    busy: f64,
    evidence: Vec<String>,
}

impl WaitForClient {
    fn new(case: &Case, budget: &Budget) -> Option<Self> {
        let wait_us = budget.us(Component::FreeClient);
        let share = wait_us / budget.latency_us;
        if share < MIN_DOMINANT_SHARE {
            return None;
        }
        let service_us = budget.latency_us - wait_us;
        let busy = service_us / (service_us + case.idle_clients_us(service_us));
        let mut evidence = evidence_of(budget, &[Component::FreeClient]);
        evidence.push(format!("the clients had transactions for {} of their time", percent(busy)));
        if let Some(us) = case.summary.longest_stall_us {
            evidence.push(format!("no transaction ended for up to {}", ms(us as f64)));
        }
        Some(Self { share, busy, evidence })
    }
}
