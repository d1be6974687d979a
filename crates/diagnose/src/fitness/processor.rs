//! CPUs: number, competing use, and stability of their frequency.

use model::fitness::{Facts, MAX_FOREIGN_SHARE};

use super::{CheckFn, Judgement, State, bad, judged, ok, percent, state_above, unknown, warn};

pub(super) const CHECKS: [(&str, CheckFn); 9] = [
    ("processors", processors),
    ("foreign-load", foreign_load),
    ("steal", steal),
    ("governor", governor),
    ("turbo", turbo),
    ("smt", smt),
    ("numa", numa),
    ("virtualization", virtualization),
    ("mitigations", mitigations),
];

/// With fewer CPUs, driver and server compete for them.
const MIN_CPUS: u32 = 4;

fn processors(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let Some(cpus) = environment.cpus else { return unknown("the number of CPUs is unknown") };
    let total = environment.cpu.threads.filter(|threads| *threads != cpus);
    let total = total.map(|threads| format!(" of {threads}")).unwrap_or_default();
    let model = environment.cpu_model.as_deref().map(|model| format!(" ({model})")).unwrap_or_default();
    let evidence = format!("{cpus}{total}{model}");
    match cpus {
        1 => bad(evidence, "driver and server share it: run the driver on another machine"),
        cpus if cpus < MIN_CPUS => warn(
            evidence,
            "driver and server compete for them: compare results, but do not trust absolute figures",
        ),
        _ => ok(evidence),
    }
}

fn foreign_load(facts: &Facts) -> Judgement {
    let Some(activity) = &facts.activity else { return unknown("the processes can't be read") };
    let cpus = facts.environment.cpu.threads.or(facts.environment.cpus).unwrap_or(1);
    let state = state_above(activity.foreign_share(cpus), 0.02, MAX_FOREIGN_SHARE);
    judged(state, activity.foreign_in_words(cpus), "stop other programs, or wait until they end")
}

fn steal(facts: &Facts) -> Judgement {
    let Some(share) = facts.activity.as_ref().and_then(|activity| activity.steal_share) else {
        return unknown("the kernel does not report it");
    };
    let evidence = format!("{} of the time", percent(share));
    let advice =
        "the hypervisor gives this machine's CPU time to other guests: use a machine with dedicated CPUs";
    judged(state_above(share, 0.005, 0.02), evidence, advice)
}

fn governor(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let Some(governor) = &environment.cpu_governor else {
        return unknown(match environment.virtualization {
            Some(_) => "not visible: the host decides",
            None => "not visible: the firmware decides, or the frequency is fixed",
        });
    };
    let cpu = &environment.cpu;
    let driver = cpu.frequency_driver.as_deref().map(|driver| format!(" by {driver}")).unwrap_or_default();
    let range = match (cpu.frequency_min_khz, cpu.frequency_max_khz) {
        (Some(min), Some(max)) => format!(", {:.1} to {:.1} GHz", min as f64 / 1e6, max as f64 / 1e6),
        _ => String::new(),
    };
    let evidence = format!("{governor}{driver}{range}");
    match governor.as_str() {
        "performance" => ok(evidence),
        _ => warn(evidence, "set it: cpupower frequency-set --governor performance"),
    }
}

fn turbo(facts: &Facts) -> Judgement {
    match facts.environment.cpu.turbo {
        None => unknown("not reported by the kernel"),
        Some(false) => ok("off"),
        Some(true) => warn(
            "on: the clock depends on temperature and on how many cores are busy",
            "for steady figures: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost",
        ),
    }
}

fn smt(facts: &Facts) -> Judgement {
    let cpu = &facts.environment.cpu;
    let evidence = |state: &str| match (cpu.cores, cpu.threads) {
        (Some(cores), Some(threads)) => format!("{state}: {cores} cores, {threads} threads"),
        _ => state.to_owned(),
    };
    match cpu.smt.as_deref() {
        None => unknown("not reported by the kernel"),
        Some("on") if cpu.cores.is_some() && cpu.cores == cpu.threads => ok(evidence("not in use")),
        Some("on") => warn(
            evidence("on"),
            "two threads of a core slow each other down: use separate cores for driver and server, or \
             echo off > /sys/devices/system/cpu/smt/control",
        ),
        Some("off" | "forceoff") => ok(evidence("off")),
        Some(_) => ok(evidence("none")),
    }
}

fn numa(facts: &Facts) -> Judgement {
    let nodes = facts.environment.numa_nodes.len();
    let balancing = super::sysctl_number(facts, "kernel.numa_balancing");
    match (nodes, balancing) {
        (0, _) => unknown("the kernel does not report its nodes"),
        (1, _) => ok("one node"),
        (_, Some(balancing)) if balancing != 0 => warn(
            format!(
                "{nodes} nodes, and the kernel moves pages between them (kernel.numa_balancing = {balancing})"
            ),
            "sysctl kernel.numa_balancing=0, and start the server on one node: numactl --cpunodebind=0 --membind=0",
        ),
        _ => warn(
            format!("{nodes} nodes"),
            "memory of another node is slower: start the server on one, numactl --cpunodebind=0 --membind=0",
        ),
    }
}

fn virtualization(facts: &Facts) -> Judgement {
    match facts.environment.virtualization.as_deref() {
        None => ok("none detected"),
        Some(kind) if kind.starts_with("virtual machine") => warn(
            kind,
            "other guests and the host's disks affect every result: compare only runs of one session, in random order",
        ),
        Some(kind) => ok(kind),
    }
}

fn mitigations(facts: &Facts) -> Judgement {
    let all = &facts.environment.cpu.vulnerabilities;
    if all.is_empty() {
        return unknown("the kernel does not report them");
    }
    let count = |beginning: &str| all.values().filter(|state| state.starts_with(beginning)).count();
    let evidence = format!(
        "{} mitigated, {} vulnerable, {} do not affect this processor",
        count("Mitigation"),
        count("Vulnerable"),
        count("Not affected")
    );
    let command_line = facts.environment.kernel_command_line.as_deref().unwrap_or_default();
    match command_line.split(' ').find(|word| *word == "mitigations=off") {
        Some(word) => warn(
            format!("{evidence}; the kernel was booted with {word}"),
            "system calls are cheaper than without it: compare only with machines booted the same way",
        ),
        None => Judgement { state: State::Ok, evidence, advice: None },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::environment::{Cpu, Environment, NumaNode};
    use model::fitness::{Activity, BusyProcess};

    use super::*;

    fn machine(environment: Environment) -> Facts {
        Facts { environment, ..Facts::default() }
    }

    #[test]
    fn few_processors_are_reported() {
        let with = |cpus, threads| {
            let cpu = Cpu { threads: Some(threads), ..Cpu::default() };
            processors(&machine(Environment { cpus: Some(cpus), cpu, ..Environment::default() }))
        };
        assert_eq!(with(1, 1).state, State::Bad);
        assert_eq!(with(2, 8), warn("2 of 8", with(3, 3).advice.unwrap()));
        assert_eq!(with(8, 8), ok("8"));
    }

    #[test]
    fn foreign_load_is_reported_with_its_processes() {
        let with = |foreign_cpus| {
            let busiest = vec![BusyProcess { pid: 7, name: "cc1".to_owned(), cpus: foreign_cpus }];
            let activity = Activity { seconds: 2.0, foreign_cpus, busiest, ..Activity::default() };
            let environment = Environment { cpus: Some(4), ..Environment::default() };
            foreign_load(&Facts { activity: Some(activity), ..machine(environment) })
        };
        assert_eq!(with(0.01).state, State::Ok);
        assert_eq!(with(0.2).state, State::Warn);
        assert_eq!(with(1.0).state, State::Bad);
        assert_eq!(with(1.0).evidence, "1.00 of 4 CPUs (25.0%) in 2 s: cc1 (7) 1.00");
    }

    #[test]
    fn stolen_time_is_reported() {
        let with = |steal_share| {
            steal(&Facts {
                activity: Some(Activity { steal_share, ..Activity::default() }),
                ..Facts::default()
            })
            .state
        };
        assert_eq!(
            [None, Some(0.0), Some(0.01), Some(0.2)].map(with),
            [State::Unknown, State::Ok, State::Warn, State::Bad]
        );
    }

    #[test]
    fn a_changing_frequency_is_reported() {
        let with = |governor: &str, turbo_on| {
            let cpu = Cpu {
                turbo: Some(turbo_on),
                frequency_min_khz: Some(800_000),
                frequency_max_khz: Some(3_400_000),
                ..Cpu::default()
            };
            let facts = machine(Environment {
                cpu_governor: Some(governor.to_owned()),
                cpu,
                ..Environment::default()
            });
            (super::governor(&facts), super::turbo(&facts).state)
        };
        assert_eq!(with("performance", false), (ok("performance, 0.8 to 3.4 GHz"), State::Ok));
        let (governor, turbo) = with("performance,powersave", true);
        assert_eq!((governor.state, turbo), (State::Warn, State::Warn));
    }

    #[test]
    fn threads_of_a_core_and_nodes_are_reported() {
        let with = |smt: &str, cores, nodes, balancing: &str| {
            let cpu =
                Cpu { smt: Some(smt.to_owned()), cores: Some(cores), threads: Some(8), ..Cpu::default() };
            let facts = machine(Environment {
                cpu,
                numa_nodes: vec![NumaNode::default(); nodes],
                sysctl: BTreeMap::from([("kernel.numa_balancing".to_owned(), balancing.to_owned())]),
                ..Environment::default()
            });
            (super::smt(&facts).state, numa(&facts).state)
        };
        assert_eq!(with("on", 4, 1, "1"), (State::Warn, State::Ok));
        assert_eq!(with("on", 8, 2, "0"), (State::Ok, State::Warn));
        assert_eq!(with("forceoff", 8, 2, "1"), (State::Ok, State::Warn));
    }

    #[test]
    fn disabled_mitigations_are_reported() {
        let with = |command_line: &str| {
            let states =
                [("a", "Mitigation: x"), ("b", "Vulnerable"), ("c", "Not affected"), ("d", "Not affected")];
            let vulnerabilities = states.map(|(name, state)| (name.to_owned(), state.to_owned())).into();
            mitigations(&machine(Environment {
                cpu: Cpu { vulnerabilities, ..Cpu::default() },
                kernel_command_line: Some(command_line.to_owned()),
                ..Environment::default()
            }))
        };
        let evidence = "1 mitigated, 1 vulnerable, 2 do not affect this processor";
        assert_eq!(with("quiet mitigations=auto"), ok(evidence));
        assert_eq!(with("quiet mitigations=off").state, State::Warn);
    }
}
