//! Lack of memory.

use super::super::budget::{Budget, Component};
use super::super::case::Case;
use super::cause::{Cause, MIN_ACTIVITY, MIN_SHARE, Measure, ms, percent};

/// What the kernel did to free memory, in words.
fn evidence(case: &Case) -> Vec<String> {
    let grown = |metric, of| case.growth(metric, of).filter(|count| *count > 0.0);
    let mut evidence = Vec::new();
    let counters = [
        ("vm.pswpin", "pages read from swap"),
        ("vm.pswpout", "pages written to swap"),
        ("vm.pgmajfault", "page faults that read from a disk"),
        ("vm.allocstall", "allocations that had to free memory first"),
    ];
    for (metric, what) in counters {
        evidence.extend(grown(metric, None).map(|count| format!("{what}: {count:.0}")));
    }
    for group in case.record.metrics.all("cgroup.memory_limit_hits") {
        let hits = grown("cgroup.memory_limit_hits", group.label.as_deref());
        let name = group.label.as_deref().unwrap_or_default();
        evidence.extend(hits.map(|count| format!("{name} reached its memory limit {count:.0} times")));
    }
    evidence
}

/// Tasks that wait for memory, by the kernel's pressure stall information.
pub(super) fn pressure(case: &Case, _: &Budget) -> Option<Cause> {
    let share = case.growth("psi.memory_some_us", None)? / case.window_us();
    if share < MIN_ACTIVITY {
        return None;
    }
    let sentence = format!("memory is short: tasks waited for it for {} of the window", percent(share));
    let next =
        "let the server use less memory (shared_buffers, work_mem), or give the machine or its group more";
    Some(Cause::activity(("memory-pressure", share, Measure::Window), sentence, evidence(case), next))
}

/// Pages read from swap, while sessions neither wait for an event nor have or want a CPU.
pub(super) fn swap(case: &Case, budget: &Budget) -> Option<Cause> {
    /// Fewer cost less than a percent of the time even on a slow disk.
    const MIN_PAGES_PER_S: f64 = 100.0;
    let per_s = case.growth("vm.pswpin", None)? / case.window_us() * 1e6;
    let us = budget.us(Component::Unexplained);
    let share = us / budget.latency_us;
    if per_s < MIN_PAGES_PER_S || share < MIN_SHARE {
        return None;
    }
    let mut evidence = evidence(case);
    evidence.push(format!("unexplained: {} per transaction", ms(us)));
    let sentence = format!(
        "the machine swaps ({per_s:.0} pages read per second): {} of latency is neither CPU nor a wait of the server's",
        percent(share)
    );
    let next = "let the server use less memory, disable swap, or stop other programs";
    Some(Cause::of_latency(budget, "swap", share, sentence, evidence, next))
}
