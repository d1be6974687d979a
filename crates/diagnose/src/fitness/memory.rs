//! Memory: enough of it, and no swapping.

use model::fitness::Facts;

use super::{CheckFn, Judgement, bad, gib, judged, ok, percent, state_above, sysctl_number, unknown, warn};

pub(super) const CHECKS: [(&str, CheckFn); 4] =
    [("memory", memory), ("swap", swap), ("huge-pages", huge_pages), ("memory-pressure", memory_pressure)];

fn memory(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let Some(total) = environment.memory_bytes else { return unknown("the size is unknown") };
    let Some(available) = environment.memory_available_bytes else { return ok(gib(total)) };
    let used = 1.0 - available as f64 / total.max(1) as f64;
    let evidence = format!("{} of {} available", gib(available), gib(total));
    judged(
        state_above(used, 0.5, 0.9),
        evidence,
        "other programs use it: the page cache left for the server varies with them",
    )
}

/// The largest value without a warning; the kernel's default is higher.
const MAX_SWAPPINESS: i64 = 10;

fn swap(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let (Some(total), Some(used)) = (environment.swap_bytes, environment.swap_used_bytes) else {
        return unknown("the size is unknown");
    };
    if total == 0 {
        return ok("none");
    }
    let evidence = format!("{} of {} in use", gib(used), gib(total));
    if let Some(pages) =
        facts.activity.as_ref().and_then(|activity| activity.swapped_pages).filter(|n| *n > 0)
    {
        return bad(
            format!("{evidence}, and {pages} pages were swapped during the check"),
            "too little memory: stop other programs, or reduce shared_buffers",
        );
    }
    if used > 0 {
        return warn(evidence, "reading swapped pages is slow: swapoff -a && swapon -a");
    }
    match sysctl_number(facts, "vm.swappiness") {
        Some(swappiness) if swappiness > MAX_SWAPPINESS => warn(
            format!("{evidence}, vm.swappiness = {swappiness}"),
            "the kernel may swap out the server's memory to cache files: sysctl vm.swappiness=1",
        ),
        _ => ok(evidence),
    }
}

fn huge_pages(facts: &Facts) -> Judgement {
    match facts.environment.transparent_hugepages.as_deref() {
        None => unknown("the mode of transparent huge pages is unknown"),
        Some("always") => warn(
            "transparent: always",
            "the kernel merges and splits pages unpredictably: echo madvise > \
             /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(mode) => ok(format!("transparent: {mode}")),
    }
}

fn memory_pressure(facts: &Facts) -> Judgement {
    let Some(share) = facts.pressure.memory else { return unknown("the kernel does not report it (PSI)") };
    let evidence = format!("tasks waited for memory {} of the last 10 s", percent(share / 100.0));
    judged(state_above(share, 0.1, 5.0), evidence, "too little memory: stop other programs")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::environment::Environment;
    use model::fitness::{Activity, Pressure};

    use super::super::State;
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn memory_used_by_others_is_reported() {
        let with = |available| {
            let memory_bytes = Some(8 * GIB);
            let environment =
                Environment { memory_bytes, memory_available_bytes: available, ..Environment::default() };
            memory(&Facts { environment, ..Facts::default() })
        };
        assert_eq!(with(Some(6 * GIB)), ok("6.0 GiB of 8.0 GiB available"));
        assert_eq!(with(Some(3 * GIB)).state, State::Warn);
        assert_eq!(with(Some(GIB / 2)).state, State::Bad);
        assert_eq!(with(None), ok("8.0 GiB"), "before Linux 3.14");
    }

    #[test]
    fn swap_in_use_is_worse_than_swap_that_exists() {
        let with = |total, used, moved, swappiness: &str| {
            let environment = Environment {
                swap_bytes: Some(total),
                swap_used_bytes: Some(used),
                sysctl: BTreeMap::from([("vm.swappiness".to_owned(), swappiness.to_owned())]),
                ..Environment::default()
            };
            let activity = Some(Activity { swapped_pages: Some(moved), ..Activity::default() });
            swap(&Facts { environment, activity, ..Facts::default() }).state
        };
        assert_eq!(with(0, 0, 0, "60"), State::Ok);
        assert_eq!(with(GIB, 0, 0, "1"), State::Ok);
        assert_eq!(with(GIB, 0, 0, "60"), State::Warn);
        assert_eq!(with(GIB, 4096, 0, "1"), State::Warn);
        assert_eq!(with(GIB, 4096, 3, "1"), State::Bad);
    }

    #[test]
    fn transparent_huge_pages_are_reported() {
        let with = |mode: &str| {
            let transparent_hugepages = Some(mode.to_owned());
            huge_pages(&Facts {
                environment: Environment { transparent_hugepages, ..Environment::default() },
                ..Facts::default()
            })
            .state
        };
        assert_eq!(["always", "madvise", "never"].map(with), [State::Warn, State::Ok, State::Ok]);
    }

    #[test]
    fn waiting_for_memory_is_reported() {
        let with = |memory| {
            memory_pressure(&Facts {
                pressure: Pressure { memory, ..Pressure::default() },
                ..Facts::default()
            })
            .state
        };
        assert_eq!(
            [None, Some(0.0), Some(1.0), Some(6.0)].map(with),
            [State::Unknown, State::Ok, State::Warn, State::Bad]
        );
    }
}
