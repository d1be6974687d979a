//! Limits of the driver, and of the load itself.

use super::super::budget::{Budget, Component};
use super::super::case::Case;
use super::cause::{Cause, MIN_DOMINANT_SHARE, evidence_of, percent};
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

pub(super) fn free_clients(_: &Case, budget: &Budget) -> Option<Cause> {
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
    Some(Cause::of_latency(budget, "free-clients", share, sentence, evidence, next))
}
