//! Who has the CPUs: the server, others, the hypervisor, or nobody because of a limit.

use model::factor::pin::cpu_list;
use model::process_share::busiest_in_words;
use model::waits::SessionKind;

use super::super::budget::{Budget, Component};
use super::super::case::Case;
use super::cause::{Cause, MIN_ACTIVITY, MIN_SHARE, Measure, evidence_of, percent};
use crate::busiest::busiest;
use crate::cpu::CpuTime;

/// CPU time of the whole machine.
pub(super) fn machine_cpu_time(case: &Case) -> Option<CpuTime> {
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

/// The share of the machine's busy CPU time that somebody used, without the time of the one who waits: while a thread
/// waits for a CPU, this is the probability that they have it.
pub(super) fn busy_share(case: &Case, used_us: f64, of_waiting_us: f64) -> f64 {
    let others_us = machine_cpu_time(case).map_or(0.0, |cpu| cpu.busy_us) - of_waiting_us;
    if others_us > 0.0 { (used_us / others_us).clamp(0.0, 1.0) } else { 0.0 }
}

/// CPU time of other processes; none of a paired trial, in which the other side's server and driver are among them.
fn foreign_us(case: &Case) -> Option<f64> {
    case.growth("role.run_us", Some("foreign")).filter(|_| case.record.trial.paired.is_none())
}

/// Time per transaction for which a session of the load, and the driver, wait for a CPU that other processes have.
fn waiting_for_foreign_us(case: &Case, budget: &Budget) -> Option<[f64; 2]> {
    let foreign_us = foreign_us(case)?;
    let run_us = |metric, role| case.growth(metric, Some(role)).unwrap_or_default();
    let sessions = case.sessions(|waits| waits.session == SessionKind::Load).max(1.0);
    let of_session = busy_share(case, foreign_us, run_us("role.run_us", "load") / sessions);
    let of_driver = busy_share(case, foreign_us, run_us("role.busiest_run_us", "driver"));
    Some([
        of_session * budget.us(Component::ServerRunQueue),
        of_driver * budget.us(Component::DriverRunQueue),
    ])
}

pub(super) fn foreign_cpu(case: &Case, budget: &Budget) -> Option<Cause> {
    let cpu = machine_cpu_time(case)?;
    let used = foreign_us(case)? / cpu.total_us;
    let share = waiting_for_foreign_us(case, budget)?.iter().sum::<f64>() / budget.latency_us;
    if used < MIN_ACTIVITY || share < MIN_SHARE {
        return None;
    }
    let mut evidence = vec![format!(
        "other processes used {} of the machine's CPU time; the CPUs were busy for {} of the window",
        percent(used),
        percent(cpu.busy())
    )];
    let window = (case.from_us, case.to_us);
    let processes = busiest(&case.record.metrics, window, cpu.total_us, foreign_us(case));
    evidence.extend(busiest_in_words(&processes));
    evidence.extend(evidence_of(budget, &[Component::ServerRunQueue, Component::DriverRunQueue]));
    let sentence = format!(
        "other processes take the CPUs: {} of latency is waiting for a CPU that they have",
        percent(share)
    );
    let next = "stop other programs (`pgdyno doctor` lists them), and measure again";
    Some(Cause::of_latency(budget, "foreign-cpu", share, sentence, evidence, next))
}

pub(super) fn background(case: &Case, budget: &Budget) -> Option<Cause> {
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
    let by_disk = waited >= MIN_SHARE && of_reads >= MIN_ACTIVITY;
    if cpu < MIN_ACTIVITY && !by_disk {
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
    let sentence = |took: String| format!("background workloads compete for resources ({what}): {took}");
    let next = "measure without the background workload: the difference is its cost";
    if by_disk && waited * of_reads > cpu {
        let sentence =
            sentence(format!("{} of the reads from disk, for which transactions wait", percent(of_reads)));
        Some(Cause::of_latency(budget, "beside", waited * of_reads, sentence, evidence, next))
    } else {
        let sentence = sentence(format!("{} of the machine's CPU time", percent(cpu)));
        Some(Cause::activity(("beside", cpu, Measure::MachineCpu), sentence, evidence, next))
    }
}

pub(super) fn server_cpu(case: &Case, budget: &Budget) -> Option<Cause> {
    let cpu = server_cpu_time(case)?;
    let busy = cpu.busy();
    let worker_us = case.growth("role.run_us", Some("parallel worker")).unwrap_or_default();
    let server_us = case.growth("role.run_us", Some("load"))? + worker_us;
    let foreign_us = waiting_for_foreign_us(case, budget).map_or(0.0, |[session_us, _]| session_us);
    let (on_cpu_us, waiting_us) =
        (budget.us(Component::ServerCpu), budget.us(Component::ServerRunQueue) - foreign_us);
    let share = (on_cpu_us + waiting_us) / budget.latency_us;
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
    if worker_us > 0.0 {
        evidence.push(format!(
            "{} of their CPU time is that of parallel workers",
            percent(worker_us / server_us)
        ));
    }
    let sentence = format!(
        "server CPU is the limit: {} of latency is on a CPU or waiting for one{}",
        percent(share),
        if waiting_us > on_cpu_us { ", most of it waiting" } else { "" }
    );
    let next = "profile the server, or add CPUs; more clients only wait longer";
    Some(Cause::of_latency(budget, "server-cpu", share, sentence, evidence, next))
}

/// CPU steal: what the hypervisor took of the time that tasks were ready to run.
pub(super) fn steal(case: &Case, _: &Budget) -> Option<Cause> {
    const MIN_STEAL: f64 = 0.05;
    let cpu = machine_cpu_time(case)?;
    let share = cpu.steal_us / cpu.total_us;
    if share.is_nan() || share < MIN_STEAL {
        return None;
    }
    let evidence = vec![format!(
        "the CPUs were busy for {} of the window, and stolen for {}: {} of the time that tasks were ready to run",
        percent(cpu.busy()),
        percent(share),
        percent(cpu.steal_us / (cpu.busy_us + cpu.steal_us))
    )];
    let sentence = format!("the hypervisor runs other guests: CPU steal is {}", percent(share));
    let next = "measure on a dedicated machine, or when its neighbours are idle";
    Some(Cause::activity(("cpu-steal", share, Measure::MachineCpu), sentence, evidence, next))
}

/// Control groups that were stopped because they had used up their CPU time. Their tasks wait in run queues meanwhile.
pub(super) fn throttling(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::ServerRunQueue, Component::DriverRunQueue]);
    let of = |group: &str| {
        let growth = |metric| case.growth(metric, Some(group));
        Some(growth("cgroup.throttled_periods")? / growth("cgroup.periods")?)
    };
    let groups = case.record.metrics.all("cgroup.periods").filter_map(|series| series.label.as_deref());
    let throttled = groups.filter_map(|group| Some((group, of(group)?)));
    let (group, periods) = throttled.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    if share < MIN_SHARE || periods.is_nan() || periods < MIN_ACTIVITY {
        return None;
    }
    let mut evidence = vec![format!("{group} was stopped in {} of its scheduling periods", percent(periods))];
    if let Some(us) = case.growth("cgroup.throttled_us", Some(group)) {
        evidence.push(format!("for {:.2} s, summed over CPUs", us / 1e6));
    }
    evidence.extend(evidence_of(budget, &[Component::ServerRunQueue, Component::DriverRunQueue]));
    let sentence =
        format!("a control group's CPU limit is reached: {} of latency is waiting for a CPU", percent(share));
    let next = "raise the limit (cpu.max of the group), or compare only trials with the same limit";
    Some(Cause::of_latency(budget, "cpu-throttling", share, sentence, evidence, next))
}
