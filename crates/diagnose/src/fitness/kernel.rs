//! The kernel: its clock, its limits, and the access that it gives pgdyno.

use model::fitness::Facts;

use super::{
    CheckFn, Judgement, State, bad, gib, judged, ok, percent, state_above, sysctl_number, unknown, warn,
};

pub(super) const CHECKS: [(&str, CheckFn); 7] = [
    ("clocksource", clocksource),
    ("clock", clock),
    ("cpu-pressure", cpu_pressure),
    ("cgroups", cgroups),
    ("open-files", open_files),
    ("io_uring", io_uring),
    ("perf", perf),
];

fn clocksource(facts: &Facts) -> Judgement {
    let Some(source) = facts.environment.clocksource.as_deref() else {
        return unknown("not reported by the kernel");
    };
    let advice = "every reading costs a system call, and EXPLAIN ANALYZE and track_io_timing much more: see in dmesg \
                  why the kernel does not use tsc";
    match source {
        "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter" | "timebase" => ok(source),
        "hpet" | "acpi_pm" | "jiffies" => bad(source, advice),
        _ => warn(source, advice),
    }
}

fn clock(facts: &Facts) -> Judgement {
    let Some(clock) = &facts.clock else { return unknown("could not be measured") };
    let slack =
        clock.timer_slack_ns.map(|ns| format!(", timer slack {:.0} µs", ns as f64 / 1e3)).unwrap_or_default();
    let evidence = format!("{:.0} ns a reading, resolution {} ns{slack}", clock.read_ns, clock.resolution_ns);
    let state = state_above(clock.read_ns, 150.0, 1000.0).max(state_above(
        clock.resolution_ns as f64,
        1000.0,
        100_000.0,
    ));
    judged(state, evidence, "reading the clock is slow or coarse here, and is part of every latency")
}

fn cpu_pressure(facts: &Facts) -> Judgement {
    let Some(share) = facts.pressure.cpu else { return unknown("the kernel does not report it (PSI)") };
    let evidence = format!("tasks waited for a CPU {} of the last 10 s", percent(share / 100.0));
    judged(
        state_above(share, 5.0, 25.0),
        evidence,
        "other programs use the CPUs: stop them, or wait until they end",
    )
}

fn cgroups(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let cgroup = |name: &str| environment.cgroup.get(name).map(String::as_str);
    let Some(version) = cgroup("version") else { return unknown("none detected") };
    let may = match facts.can_create_cgroup {
        Some(true) => "groups can be created",
        Some(false) => "groups can't be created",
        None => "whether groups can be created is unknown",
    };
    let mut limits = Vec::new();
    let memory = cgroup("memory.max").and_then(|limit| limit.parse::<u64>().ok());
    if let Some(limit) = memory.filter(|limit| environment.memory_bytes.is_none_or(|total| *limit < total)) {
        limits.push(format!("memory {}", gib(limit)));
    }
    if let Some((time, period)) = cgroup("cpu.max").and_then(|limit| limit.split_once(' '))
        && let (Ok(time), Ok(period)) = (time.parse::<f64>(), period.parse::<f64>())
    {
        limits.push(format!("{:.2} CPUs", time / period));
    }
    let limits = limits.join(", ");
    match (limits.as_str(), facts.can_create_cgroup) {
        ("", Some(false)) => warn(
            format!("{version}, no limit on pgdyno, {may}"),
            "campaigns can't limit a server's memory here: run pgdyno as root, or by systemd-run --user --scope -p \
             Delegate=yes",
        ),
        ("", _) => ok(format!("{version}, no limit on pgdyno, {may}")),
        (limits, _) => warn(
            format!("{version}, limits on pgdyno and its servers: {limits}; {may}"),
            "a server that reaches a limit is throttled or killed: raise the limits, or adapt the settings to them",
        ),
    }
}

/// File descriptors of the driver in addition to its clients'.
const OTHER_FILES: u64 = 64;

fn open_files(facts: &Facts) -> Judgement {
    let Some(limits) = facts.open_files else { return unknown("the limit is unknown") };
    let Some(hard) = limits.hard else { return ok("no limit") };
    let evidence = format!("{hard}: enough for {} clients", hard.saturating_sub(OTHER_FILES));
    let state = match hard {
        ..256 => State::Bad,
        256..2048 => State::Warn,
        _ => State::Ok,
    };
    judged(state, evidence, "raise it: ulimit -Hn, or LimitNOFILE= of the service")
}

fn io_uring(facts: &Facts) -> Judgement {
    match &facts.io_uring {
        None => unknown("not tested"),
        Some(Ok(())) => ok("available"),
        Some(Err(why)) => warn(
            format!("not available ({why}): the driver uses epoll"),
            "the driver then needs more CPU time: sysctl kernel.io_uring_disabled=0, or allow it in the \
             container's seccomp profile",
        ),
    }
}

fn perf(facts: &Facts) -> Judgement {
    if facts.perf_is_installed == Some(false) {
        return warn(
            "no profiles, neither here nor where virtual machines count instructions: perf is not installed",
            "install it (Debian: apt-get install linux-perf; Ubuntu: linux-tools-generic; elsewhere: perf)",
        );
    }
    let (Some(paranoid), Some(restrict)) =
        (sysctl_number(facts, "kernel.perf_event_paranoid"), sysctl_number(facts, "kernel.kptr_restrict"))
    else {
        return unknown("the kernel does not report its permissions");
    };
    let settings = format!("kernel.perf_event_paranoid = {paranoid}, kernel.kptr_restrict = {restrict}");
    let advice = "sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0";
    match (facts.perf_privileged, paranoid, restrict) {
        (Some(true), _, ..=1) => ok(format!("allowed to this user ({settings})")),
        (_, ..=1, 0) => ok(format!("allowed ({settings})")),
        (Some(true), ..) | (_, ..=1, _) => {
            warn(format!("profiles lack names of kernel functions ({settings})"), advice)
        }
        (_, 2, _) => warn(format!("profiles lack the kernel ({settings})"), advice),
        _ => warn(format!("no profiles ({settings})"), advice),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::environment::Environment;
    use model::fitness::{Clock, OpenFiles, Pressure};

    use super::*;

    fn map(facts: &[(&str, &str)]) -> BTreeMap<String, String> {
        facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn slow_clocks_are_reported() {
        let with = |source: &str| {
            let environment = Environment { clocksource: Some(source.to_owned()), ..Environment::default() };
            clocksource(&Facts { environment, ..Facts::default() }).state
        };
        assert_eq!(["tsc", "kvm-clock", "arch_sys_counter"].map(with), [State::Ok; 3]);
        assert_eq!(["xen", "hpet", "acpi_pm"].map(with), [State::Warn, State::Bad, State::Bad]);
        let with = |read_ns, resolution_ns| {
            let clock = Some(Clock { read_ns, resolution_ns, timer_slack_ns: Some(50_000) });
            super::clock(&Facts { clock, ..Facts::default() })
        };
        assert_eq!(with(25.4, 1), ok("25 ns a reading, resolution 1 ns, timer slack 50 µs"));
        assert_eq!(with(400.0, 1).state, State::Warn);
        assert_eq!(with(2500.0, 1).state, State::Bad);
        assert_eq!(with(25.0, 4_000_000).state, State::Bad, "a tick");
    }

    #[test]
    fn limits_of_the_group_are_reported() {
        let with = |limits: &[(&str, &str)], can_create_cgroup| {
            let environment =
                Environment { memory_bytes: Some(8 << 30), cgroup: map(limits), ..Environment::default() };
            cgroups(&Facts { environment, can_create_cgroup, ..Facts::default() })
        };
        let free = [("version", "v2"), ("memory.max", "max"), ("cpu.max", "max")];
        assert_eq!(with(&free, Some(true)), ok("v2, no limit on pgdyno, groups can be created"));
        assert_eq!(with(&free, Some(false)).state, State::Warn);
        let tight = [("version", "v1"), ("memory.max", "1073741824"), ("cpu.max", "150000 100000")];
        let judgement = with(&tight, None);
        assert_eq!(judgement.state, State::Warn);
        assert!(judgement.evidence.contains("memory 1.0 GiB, 1.50 CPUs"), "{judgement:?}");
        assert_eq!(with(&[("version", "v2"), ("memory.max", "9999999999999")], Some(true)).state, State::Ok);
    }

    #[test]
    fn a_low_file_limit_is_reported() {
        let with = |hard| {
            open_files(&Facts { open_files: Some(OpenFiles { soft: Some(100), hard }), ..Facts::default() })
        };
        assert_eq!(with(None), ok("no limit"));
        assert_eq!(with(Some(20_064)), ok("20064: enough for 20000 clients"));
        assert_eq!([Some(1024), Some(100)].map(|hard| with(hard).state), [State::Warn, State::Bad]);
    }

    #[test]
    fn an_unavailable_io_uring_is_reported() {
        let with = |tried| io_uring(&Facts { io_uring: Some(tried), ..Facts::default() });
        assert_eq!(with(Ok(())), ok("available"));
        assert!(with(Err("not permitted".to_owned())).evidence.starts_with("not available (not permitted)"));
    }

    #[test]
    fn permissions_of_perf_are_reported() {
        let with = |perf_privileged, paranoid: &str, restrict: &str| {
            let sysctl = map(&[("kernel.perf_event_paranoid", paranoid), ("kernel.kptr_restrict", restrict)]);
            let environment = Environment { sysctl, ..Environment::default() };
            perf(&Facts { environment, perf_privileged, ..Facts::default() })
        };
        let without = perf(&Facts { perf_is_installed: Some(false), ..Facts::default() });
        assert!(without.evidence.contains("perf is not installed"), "{}", without.evidence);
        assert_eq!(with(Some(true), "4", "1").state, State::Ok);
        assert_eq!(with(Some(false), "1", "0").state, State::Ok);
        assert!(with(Some(true), "1", "2").evidence.starts_with("profiles lack names"));
        assert!(with(Some(false), "2", "0").evidence.starts_with("profiles lack the kernel"));
        assert!(with(None, "4", "0").evidence.starts_with("no profiles"));
    }

    #[test]
    fn waiting_for_processors_is_reported() {
        let with = |cpu| {
            cpu_pressure(&Facts { pressure: Pressure { cpu, ..Pressure::default() }, ..Facts::default() })
                .state
        };
        assert_eq!(
            [None, Some(0.0), Some(10.0), Some(80.0)].map(with),
            [State::Unknown, State::Ok, State::Warn, State::Bad]
        );
    }
}
