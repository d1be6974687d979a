//! Was the machine free of other load, and did it stay the same?

use model::machine::Acceleration;
use model::metrics::Series;
use model::record::Finding;

use crate::busiest::busiest;
use crate::cpu::CpuTime;

use super::{Gate, GateFinding, Observation, at_most, invalid, noted, percent, suspect};

pub(super) const GATES: [Gate; 6] = [
    ("out-of-memory", out_of_memory),
    ("cpu-steal", cpu_steal),
    ("foreign-cpu", foreign_cpu),
    ("cpu-frequency", cpu_frequency),
    ("memory-pressure", memory_pressure),
    ("swap", swap),
];

fn out_of_memory(observed: &Observation) -> Option<GateFinding> {
    const ADVICE: &str = "let the server use less memory, give the machine (or the campaign's limit) more, or stop other programs";
    let of_group = observed.metrics.all("cgroup.oom_kills").filter_map(total_growth).fold(0.0, f64::max);
    if of_group > 0.0 {
        let evidence = format!("out of memory: processes of the server's control group killed: {of_group}");
        return Some(invalid(evidence).with_advice(ADVICE));
    }
    if let Some(event) = observed.events_after(0).find(|event| event.message.contains("out of memory")) {
        return Some(invalid(format!("out of memory: {}", event.message)).with_advice(ADVICE));
    }
    let killed =
        observed.metrics.get("vm.oom_kill", None).and_then(total_growth).filter(|kills| *kills > 0.0)?;
    let evidence = format!(
        "out of memory: processes killed by the kernel: {killed}, on this machine or in a control group of another"
    );
    Some(suspect(evidence).with_advice(ADVICE))
}

/// Growth of a counter from its first reading to its last.
fn total_growth(series: &Series) -> Option<f64> {
    let mut known = series.points.iter().filter_map(|point| point.value);
    let first = known.next()?;
    Some(known.next_back()? - first)
}

pub(super) fn cpu_time(observed: &Observation) -> Option<CpuTime> {
    let (from_us, to_us) = observed.window?;
    CpuTime::new(observed.metrics, "all", from_us, to_us)
}

fn cpu_steal(observed: &Observation) -> Option<GateFinding> {
    let cpu = cpu_time(observed)?;
    let share = cpu.steal_us / cpu.total_us;
    let limit = observed.thresholds.steal_share;
    if share.is_nan() || share <= limit {
        return None;
    }
    let evidence = format!("CPU steal {}", percent(share));
    Some(
        suspect(evidence)
            .with_threshold(at_most(limit))
            .with_advice("measure on a dedicated machine, or when its neighbours are idle"),
    )
}

/// CPU time of processes other than the server's, pgdyno's and the kernel's, by what it cost the load: an idle processor
/// that others use costs nothing. Where it is not known how long processes wait for a CPU, the time itself counts.
fn foreign_cpu(observed: &Observation) -> Option<GateFinding> {
    if observed.paired.is_some() {
        return foreign_cpu_of_driver(observed);
    }
    let (foreign_us, total_us) =
        (observed.growth("role.run_us", Some("foreign"))?, cpu_time(observed)?.total_us);
    let (share, limit) = (foreign_us / total_us, observed.thresholds.foreign_cpu_share);
    if share.is_nan() || share <= limit {
        return None;
    }
    let processes = busiest(observed.metrics, observed.window?, total_us, Some(foreign_us));
    let used = format!("other processes used {} of the CPU", percent(share));
    const ADVICE: &str = "stop other programs (top shows them)";
    let Some(cost) = foreign_wait(observed) else {
        let found = suspect(used).with_processes(processes);
        return Some(found.with_threshold(at_most(limit)).with_advice(ADVICE));
    };
    let limit = observed.thresholds.foreign_wait_share;
    let evidence = format!("{used}; waiting for them was {} of latency", percent(cost));
    let found = match cost > limit {
        true => suspect(evidence).with_advice(ADVICE),
        false => noted(evidence),
    };
    Some(found.with_processes(processes).with_threshold(at_most(limit)))
}

/// Time for which the load's backends and the driver, if it is here, waited for a CPU because of other processes, as a share of all
/// transactions' latency: of their whole wait, the others' share of what ran meanwhile.
fn foreign_wait(observed: &Observation) -> Option<f64> {
    let (from_us, to_us) = observed.window?;
    let ran = |series: &Series| series.growth(from_us, to_us);
    let all: f64 = observed.metrics.all("role.run_us").map(ran).sum::<Option<f64>>()?;
    let foreign = observed.growth("role.run_us", Some("foreign"))? / all;
    let roles: &[&str] = if observed.load_hosts.is_empty() { &["load", "driver"] } else { &["load"] };
    let waited: f64 =
        roles.iter().map(|role| observed.growth("role.wait_us", Some(role))).sum::<Option<f64>>()?;
    Some(foreign * waited / latency_us(observed)?).filter(|share| share.is_finite())
}

/// Latency of all transactions together.
fn latency_us(observed: &Observation) -> Option<f64> {
    let summary = observed.summary?;
    Some(summary.latency.as_ref()?.mean_us? * summary.transactions? as f64)
}

/// CPU time of processes other than the two drivers of a session on the CPUs that these are pinned to, by what it cost: no
/// change of the server affects the time for which a driver waits for others. Without pins, driver and servers have the same CPUs,
/// and wait alike.
fn foreign_cpu_of_driver(observed: &Observation) -> Option<GateFinding> {
    let (from_us, to_us) = observed.window?;
    let of_cpu = |cpu: &u32| CpuTime::new(observed.metrics, &format!("cpu{cpu}"), from_us, to_us);
    let cpus: CpuTime = observed.driver_cpus.iter().map(of_cpu).sum::<Option<CpuTime>>()?;
    // The other side's driver works as much, in turns with this one.
    let foreign_us = (cpus.busy_us - 2.0 * observed.growth("role.run_us", Some("driver"))?).max(0.0);
    let (share, limit) = (foreign_us / cpus.total_us, observed.thresholds.foreign_cpu_share);
    let waited_us = observed.growth("role.wait_us", Some("driver"))? * foreign_us / cpus.busy_us;
    let (cost, cost_limit) = (waited_us / latency_us(observed)?, observed.thresholds.foreign_wait_share);
    // Negated, because unknown values are NaN.
    if !(share > limit && cost > cost_limit) {
        return None;
    }
    let evidence = format!(
        "other processes used {} of the driver's CPUs; its waiting for them was {} of latency",
        percent(share),
        percent(cost)
    );
    let advice = "stop other programs (top shows them), or measure without pins";
    // On which CPUs a process ran is not known.
    let processes = cpu_time(observed)
        .map_or_else(Vec::new, |all| busiest(observed.metrics, (from_us, to_us), all.total_us, None));
    let found = suspect(evidence).with_processes(processes);
    Some(found.with_threshold(at_most(cost_limit)).with_advice(advice))
}

/// The finding on other pgdynos that measured on the host during a trial, by what they measured; none without any. It is not among
/// the gates, because a virtual machine, where its trial is judged, does not show them.
pub fn other_pgdynos(acceleration: Acceleration, others: &[&str]) -> Option<Finding> {
    // Nothing else affects a time that is counted in instructions.
    if others.is_empty() || acceleration == Acceleration::Icount {
        return None;
    }
    let found = suspect(format!("measured at the same time on this host: {}", others.join(", ")))
        .with_advice("measure one after the other, which pgdyno does without --allow-concurrent");
    Some(found.named("other-pgdyno"))
}

/// An agent of a fleet did not complete the block of this trial, as it was lost or stopped or the campaign was changed, and the
/// block was measured anew: what is compared was to be measured on one machine.
pub fn lost_agent(agent: &str) -> Finding {
    invalid(format!(
        "the agent {agent} did not complete the block of this trial; the block was measured anew"
    ))
    .named("lost-agent")
}

/// The mean over the CPUs in each third of the window: changes of a single CPU from second to second do not matter.
fn cpu_frequency(observed: &Observation) -> Option<GateFinding> {
    let (from_us, to_us) = observed.window?;
    let third = (to_us - from_us) / 3;
    let mean = |from_us| {
        let each = |cpu: &Series| cpu.mean(from_us, from_us + third);
        let means: Vec<f64> = observed.metrics.all("cpu.frequency_hz").filter_map(each).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    };
    let [first, second, last] = [mean(from_us)?, mean(from_us + third)?, mean(from_us + 2 * third)?];
    let (low, high) = (first.min(second).min(last), first.max(second).max(last));
    let (moved, limit) = (1.0 - low / high, observed.thresholds.frequency_share);
    if moved.is_nan() || moved <= limit {
        return None;
    }
    let ghz = |hz: f64| format!("{:.2} GHz", hz / 1e9);
    let evidence = format!(
        "the CPUs' mean frequency changed by {}: {}, {}, {} in the thirds of the window",
        percent(moved),
        ghz(first),
        ghz(second),
        ghz(last)
    );
    Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(
        "set the governor to performance, disable turbo, and check the cooling (pgdyno doctor shows the settings)",
    ))
}

fn memory_pressure(observed: &Observation) -> Option<GateFinding> {
    const ADVICE: &str = "let the server use less memory, or give the machine more";
    let limit = observed.thresholds.memory_pressure_share;
    if let Some(waited) =
        observed.share_of_window("psi.memory_some_us", None).filter(|waited| *waited > limit)
        && !observed.memory_is_limited
    {
        let evidence = format!("tasks waited for memory {} of the window", percent(waited));
        return Some(suspect(evidence).with_threshold(at_most(limit)).with_advice(ADVICE));
    }
    let (from_us, to_us) = observed.window?;
    let lowest = |metric| observed.metrics.get(metric, None)?.min(from_us, to_us);
    let available = lowest("memory.available_bytes")? / lowest("memory.total_bytes")?;
    let limit = observed.thresholds.memory_available_share;
    if available.is_nan() || available >= limit {
        return None;
    }
    let evidence = format!("available memory fell to {}", percent(available));
    Some(suspect(evidence).with_threshold(at_most(limit).replace("most", "least")).with_advice(ADVICE))
}

fn swap(observed: &Observation) -> Option<GateFinding> {
    let (read, written) = (observed.growth("vm.pswpin", None), observed.growth("vm.pswpout", None));
    let pages = read.unwrap_or_default() + written.unwrap_or_default();
    let limit = observed.thresholds.swap_pages;
    if pages <= limit {
        return None;
    }
    let shown = |pages: Option<f64>| pages.map_or("?".to_owned(), |pages| format!("{pages:.0}"));
    let evidence =
        format!("{} pages were swapped in and {} out during the window", shown(read), shown(written));
    Some(
        suspect(evidence)
            .with_threshold(format!("at most {limit}"))
            .with_advice("disable swap, let the server use less memory, or stop other programs"),
    )
}

#[cfg(test)]
mod tests {
    use model::metrics::Kind;
    use model::record::Status;

    use super::super::fixture::{TrialFixture, gates};
    use super::*;

    fn suspected(gate: &'static str) -> (Status, Vec<&'static str>) {
        (Status::Suspect, vec![gate])
    }

    #[test]
    fn an_out_of_memory_kill_of_the_server_makes_the_trial_invalid() {
        let invalid = (Status::Invalid, vec!["out-of-memory"]);
        let mut trial = TrialFixture::new();
        let kills = [(0, 3.0), (4_500_000, 4.0)];
        trial.readings("vm.oom_kill", None, Kind::Counter, &kills);
        assert_eq!(
            gates(&trial.observed()),
            suspected("out-of-memory"),
            "perhaps another's; after the window, too"
        );
        trial.readings("cgroup.oom_kills", Some("/server"), Kind::Counter, &kills);
        assert_eq!(gates(&trial.observed()), invalid);

        let mut trial = TrialFixture::new();
        trial.event("error", None, 1_000_000);
        trial.events[1].message = "ERROR:  out of memory".to_owned();
        assert_eq!(gates(&trial.observed()), invalid);
        let found = out_of_memory(&trial.observed()).unwrap();
        assert_eq!(found.evidence, "out of memory: ERROR:  out of memory");
        trial.events.remove(1);
        trial.event("error", None, -1_000_000);
        trial.events[1].message = "ERROR:  out of memory".to_owned();
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]), "before the load");
    }

    #[test]
    fn cpu_steal_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("cpu.steal_us", Some("all"), 100_000.0);
        assert_eq!(gates(&trial.observed()), suspected("cpu-steal"));
        let found = cpu_steal(&trial.observed()).unwrap();
        assert_eq!(found.evidence, "CPU steal 4.8%");
        assert_eq!(found.threshold.as_deref(), Some("at most 2%"));
        let mut lenient = trial.observed();
        lenient.thresholds.steal_share = 0.05;
        assert_eq!(gates(&lenient), (Status::Valid, vec![]), "as the campaign wants it");
    }

    #[test]
    fn cpu_time_of_other_processes_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("role.run_us", Some("foreign"), 10_000.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]));
        trial.counter("role.run_us", Some("foreign"), 5_000_000.0);
        assert_eq!(gates(&trial.observed()), suspected("foreign-cpu"));
        // Nobody waited: a processor was idle.
        trial.counter("role.wait_us", Some("load"), 10_000.0);
        trial.counter("role.wait_us", Some("driver"), 1_000.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["foreign-cpu"]), "a note");
        // Of 4 s of latency in each second; 79% of what ran was foreign.
        trial.counter("role.wait_us", Some("load"), 1_000_000.0);
        assert_eq!(gates(&trial.observed()), suspected("foreign-cpu"));
        let evidence = foreign_cpu(&trial.observed()).unwrap().evidence;
        assert!(evidence.ends_with("waiting for them was 20% of latency"), "{evidence}");
        // The server's own processes queue for it: that is the load.
        trial.counter("role.run_us", Some("foreign"), 150_000.0);
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec!["foreign-cpu"]));
        trial.metrics.0.retain(|series| series.metric != "role.run_us");
        assert_eq!(gates(&trial.observed()), (Status::Valid, vec![]), "nothing is known of any role");
    }

    #[test]
    fn the_processes_that_used_the_cpu_are_named() {
        let mut trial = TrialFixture::new();
        trial.counter("role.run_us", Some("foreign"), 5_000_000.0);
        assert_eq!(foreign_cpu(&trial.observed()).unwrap().processes, []);
        let total_us = cpu_time(&trial.observed()).unwrap().total_us;
        // In the three seconds of the window.
        trial.counter("foreign.run_us", Some("cc1"), 0.3 * total_us / 3.0);
        trial.counter("foreign.run_us", Some("make"), 0.05 * total_us / 3.0);
        trial.counter("role.run_us", Some("foreign"), 0.4 * total_us / 3.0);
        let found = foreign_cpu(&trial.observed()).unwrap();
        let expected =
            "other processes used 40% of the CPU; busiest: cc1 30%, make 5.0%, others 5.0% of the CPU";
        assert_eq!(found.evidence, expected);
        assert_eq!(found.processes.len(), 3);
        trial.counter("role.wait_us", Some("load"), 1_000_000.0);
        trial.counter("role.wait_us", Some("driver"), 1_000.0);
        let found = foreign_cpu(&trial.observed()).unwrap();
        assert!(found.evidence.ends_with("of latency; busiest: cc1 30%, make 5.0%, others 5.0% of the CPU"));
    }

    /// 4 s of latency in each second.
    #[test]
    fn others_on_the_cpus_of_a_pinned_driver_make_its_session_suspect() {
        let with = |driver_us: f64, others_us: f64, driver_cpus: &[u32]| {
            let mut trial = TrialFixture::new();
            trial.counter("role.run_us", Some("driver"), driver_us);
            trial.counter("role.wait_us", Some("driver"), 500_000.0);
            let busy_us = 2.0 * driver_us + others_us;
            trial.counter("cpu.user_us", Some("cpu1"), busy_us);
            trial.counter("cpu.idle_us", Some("cpu1"), 1_000_000.0 - busy_us);
            trial.counter("foreign.run_us", Some("cc1"), others_us);
            let side = trial.side(3_000_000);
            let observed = Observation { paired: Some(&side), driver_cpus, ..trial.observed() };
            (gates(&observed), foreign_cpu(&observed).map(|finding| finding.evidence))
        };
        let (found, evidence) = with(250_000.0, 500_000.0, &[1]);
        assert_eq!(found, suspected("foreign-cpu"));
        let expected = "other processes used 50% of the driver's CPUs; its waiting for them was 6.2% of latency; \
                        busiest: cc1 25% of the CPU";
        assert_eq!(evidence.as_deref(), Some(expected));
        for (driver_us, others_us, cpus) in [
            // The two drivers themselves have the CPU.
            (450_000.0, 50_000.0, &[1][..]),
            // Others cost little.
            (350_000.0, 200_000.0, &[1]),
            (250_000.0, 500_000.0, &[]),
            // Nothing is known of it.
            (250_000.0, 500_000.0, &[7]),
        ] {
            assert_eq!(
                with(driver_us, others_us, cpus),
                ((Status::Valid, vec![]), None),
                "{driver_us} {cpus:?}"
            );
        }
    }

    #[test]
    fn other_pgdynos_make_the_trial_suspect_unless_instructions_are_counted() {
        assert_eq!(other_pgdynos(Acceleration::None, &[]), None);
        assert_eq!(other_pgdynos(Acceleration::Icount, &["bench"]), None);
        let found = other_pgdynos(Acceleration::Kvm, &["bench", "campaign quick"]).unwrap();
        assert_eq!((&*found.gate, found.status), ("other-pgdyno", Status::Suspect));
        assert_eq!(found.evidence, "measured at the same time on this host: bench, campaign quick");
        assert!(model::validity::GATES.contains(&found.gate.as_str()), "a check of a store knows it");
    }

    #[test]
    fn a_falling_cpu_frequency_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.gauge("cpu.frequency_hz", Some("cpu0"), &[3.5e9, 3.5e9, 3.0e9, 2.5e9, 2.0e9]);
        assert_eq!(gates(&trial.observed()), suspected("cpu-frequency"));
        let evidence = cpu_frequency(&trial.observed()).unwrap().evidence;
        assert!(evidence.contains("3.33 GHz, 3.10 GHz, 2.80 GHz"), "{evidence}");
    }

    #[test]
    fn memory_pressure_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("psi.memory_some_us", None, 20_000.0);
        assert_eq!(gates(&trial.observed()), suspected("memory-pressure"));
        let limited = Observation { memory_is_limited: true, ..trial.observed() };
        assert_eq!(gates(&limited), (Status::Valid, vec![]), "it is what the campaign asks for");
        let mut trial = TrialFixture::new();
        trial.gauge("memory.available_bytes", None, &[1e8, 4e9, 3e8, 4e9, 4e9]);
        assert_eq!(gates(&trial.observed()), suspected("memory-pressure"));
        let found = memory_pressure(&trial.observed()).unwrap();
        assert_eq!(found.evidence, "available memory fell to 3.8%");
        assert_eq!(found.threshold.as_deref(), Some("at least 5%"));
    }

    #[test]
    fn swapping_makes_the_trial_suspect() {
        let mut trial = TrialFixture::new();
        trial.counter("vm.pswpout", None, 2.0);
        assert_eq!(gates(&trial.observed()), suspected("swap"));
        trial.without("vm.pswpin", None);
        let found = swap(&trial.observed()).unwrap();
        assert_eq!(found.evidence, "? pages were swapped in and 6 out during the window");
    }
}
