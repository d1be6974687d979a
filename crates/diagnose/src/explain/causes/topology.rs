//! Limits that a topology adds: waiting for the pooler, and what delays the replay of a standby or subscriber.

use super::super::budget::{Budget, Component};
use super::super::case::Case;
use super::cause::{Cause, MIN_ACTIVITY, MIN_SHARE, Measure, evidence_of, ms, percent};

/// Share of the window for which replay works from which it is saturated: it hardly ever waits for something to replay.
const SATURATED: f64 = 0.85;

pub(super) fn pooler_queue(case: &Case, budget: &Budget) -> Option<Cause> {
    let share = budget.share_of(&[Component::PoolerQueue]);
    if share < MIN_SHARE {
        return None;
    }
    let mut evidence = evidence_of(budget, &[Component::PoolerQueue]);
    let mean = |metric| case.record.metrics.mean(metric, None, case.from_us, case.to_us);
    if let (Some(waiting), Some(servers)) =
        (mean("pgbouncer.clients_waiting"), mean("pgbouncer.servers_active"))
    {
        evidence.push(format!(
            "{waiting:.1} clients waited on average, while {servers:.1} server connections were in use"
        ));
    }
    let longest = case.record.metrics.get("pgbouncer.max_wait_us", None);
    if let Some(longest_us) = longest.and_then(|series| series.max(case.from_us, case.to_us)) {
        evidence.push(format!("longest wait: {}", ms(longest_us)));
    }
    let sentence =
        format!("clients wait for a server connection of the pooler: {} of latency", percent(share));
    let next = "raise default_pool_size (`pgbouncer.default_pool_size` in settings) as far as the server's CPUs and disks allow, or \
                shorten the transactions that hold connections";
    Some(Cause::of_latency(budget, "pooler-queue", share, sentence, evidence, next))
}

/// Share of the window for which replay did something.
fn replay_share(case: &Case, activity: &str) -> Option<f64> {
    Some(case.growth("replica.replay_us", Some(activity))? / case.window_us())
}

/// Evidence about the lag in the window.
fn lag_evidence(case: &Case) -> Vec<String> {
    let metrics = &case.record.metrics;
    let mut evidence = Vec::new();
    if let Some(series) = metrics.get("replica.lag_us", None)
        && let (Some(mean_us), Some(most_us)) =
            (series.mean(case.from_us, case.to_us), series.max(case.from_us, case.to_us))
    {
        evidence.push(format!(
            "commits were visible there after {} on average, {} at most",
            ms(mean_us),
            ms(most_us)
        ));
    }
    if let Some(series) = metrics.get("replica.lag_bytes", None)
        && let Some(most) = series.max(case.from_us, case.to_us)
    {
        evidence.push(format!("at most {:.1} MB of WAL were not replayed", most / 1e6));
    }
    evidence
}

pub(super) fn replay_saturated(case: &Case, _: &Budget) -> Option<Cause> {
    let share = replay_share(case, "busy")?;
    if share < SATURATED {
        return None;
    }
    let mut evidence =
        vec![format!("the process that replays changes worked for {} of the window", percent(share))];
    if let Some(run_us) = case.growth("role.run_us", Some("replica replay")) {
        evidence.push(format!("it was on a CPU for {} of the window", percent(run_us / case.window_us())));
    }
    evidence.extend(lag_evidence(case));
    let sentence =
        format!("replay is saturated: one process replays changes for {} of the window", percent(share));
    let next = "compare its time on a CPU with that in I/O: give the standby more shared_buffers or a faster disk if it reads or \
                writes, a faster CPU if it computes; fewer or smaller changes (full_page_writes, indexes) help both";
    Some(Cause::activity(("replay-saturated", share, Measure::Window), sentence, evidence, next))
}

pub(super) fn replay_conflicts(case: &Case, _: &Budget) -> Option<Cause> {
    let share = replay_share(case, "conflict")?;
    if share < MIN_ACTIVITY {
        return None;
    }
    let mut evidence = vec![format!("replay waited for sessions there for {} of the window", percent(share))];
    if let Some(cancelled) = case.growth("replica.conflicts", None) {
        evidence
            .push(format!("{cancelled:.0} queries were cancelled, because replay had waited long enough"));
    }
    evidence.extend(lag_evidence(case));
    let sentence =
        format!("replay waits for conflicting queries on the standby: {} of the window", percent(share));
    let next = "shorten queries on the standby, set hot_standby_feedback there, or lower max_standby_streaming_delay, which cancels \
                them sooner";
    Some(Cause::activity(("replay-conflicts", share, Measure::Window), sentence, evidence, next))
}
