//! The disk of the data directory: free space, and commit latency.

use model::fitness::Facts;

use super::{CheckFn, Judgement, State, gib, judged, ok, percent, state_above, unknown, warn};

pub(super) const CHECKS: [(&str, CheckFn); 4] = [
    ("filesystem", filesystem),
    ("space", space),
    ("sync-latency", sync_latency),
    ("disk-pressure", disk_pressure),
];

fn filesystem(facts: &Facts) -> Judgement {
    let environment = &facts.environment;
    let Some(kind) = environment.data_filesystem.as_deref() else {
        return unknown(format!("the file system of {} is unknown", facts.directory.display()));
    };
    let devices: Vec<String> = environment
        .data_devices
        .iter()
        .map(|device| {
            let fact = |name: &str| device.facts.get(name).map(String::as_str);
            let kind = match fact("rotational") {
                Some("1") => Some("rotating"),
                Some(_) => Some("not rotating"),
                None => None,
            };
            let scheduler = fact("scheduler").map(|scheduler| format!("scheduler {scheduler}"));
            let parts = [fact("model").map(str::to_owned), kind.map(str::to_owned), scheduler];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            if parts.is_empty() {
                device.name.clone()
            } else {
                format!("{} ({})", device.name, parts.join(", "))
            }
        })
        .collect();
    let on = if devices.is_empty() { String::new() } else { format!(" on {}", devices.join(", ")) };
    let evidence = format!("{kind}{on}, for {}", facts.directory.display());
    match kind {
        "tmpfs" | "ramfs" => warn(
            evidence,
            "nothing reaches a disk: to measure commits, set PGDYNO_CACHE to a directory on a disk",
        ),
        "overlay" | "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs" | "fuse" => warn(
            evidence,
            "servers rarely use such a file system: set PGDYNO_CACHE to a directory on a local disk",
        ),
        _ => ok(evidence),
    }
}

/// Space for a data set of scale 100 with its copy and WAL, and for one of scale 10.
const MIN_FREE_BYTES: [u64; 2] = [10 << 30, 2 << 30];
/// File systems that are nearly full are slow.
const MIN_FREE_SHARE: f64 = 0.05;

fn space(facts: &Facts) -> Judgement {
    let Some(space) = facts.space else { return unknown("free space is unknown") };
    let share = space.free_bytes as f64 / space.total_bytes.max(1) as f64;
    let evidence = format!("{} of {} free", gib(space.free_bytes), gib(space.total_bytes));
    let [warn_below, bad_below] = MIN_FREE_BYTES;
    let state = match space.free_bytes {
        free if free < bad_below => State::Bad,
        free if free < warn_below || share < MIN_FREE_SHARE => State::Warn,
        _ => State::Ok,
    };
    judged(state, evidence, "free space, or set PGDYNO_CACHE to a directory on a larger file system")
}

/// A faster device has not written anything that would survive a power failure.
const MIN_SYNC_US: f64 = 20.0;

fn sync_latency(facts: &Facts) -> Judgement {
    let Some(writes) = facts.sync_writes else {
        return unknown(format!("{} can't be written to", facts.directory.display()));
    };
    let ms = |us: f64| format!("{:.2} ms", us / 1e3);
    let evidence = format!(
        "p50 {}, p99 {}, max {} of {} writes of 8 kB with fdatasync",
        ms(writes.p50_us),
        ms(writes.p99_us),
        ms(writes.max_us),
        writes.count
    );
    if writes.p50_us < MIN_SYNC_US {
        return warn(evidence, "too fast to reach a disk: commits cost less than on other machines");
    }
    // Relative to the median: a slow disk is one thing, an unsteady one another.
    let spread = writes.p99_us / writes.p50_us;
    let state =
        state_above(writes.p99_us, 20e3, 200e3).max(if spread > 10.0 { State::Warn } else { State::Ok });
    judged(
        state,
        evidence,
        "commits will sometimes wait: check what else uses the disk, and run longer trials",
    )
}

fn disk_pressure(facts: &Facts) -> Judgement {
    let Some(share) = facts.pressure.io else { return unknown("the kernel does not report it (PSI)") };
    let evidence = format!("tasks waited for a disk {} of the last 10 s", percent(share / 100.0));
    judged(
        state_above(share, 2.0, 20.0),
        evidence,
        "other programs use the disks: stop them, or wait until they end",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::environment::{BlockDevice, Environment};
    use model::fitness::{Pressure, Space, SyncWrites};

    use super::*;

    #[test]
    fn file_systems_without_a_disk_are_reported() {
        let with = |kind: &str| {
            let facts = [("rotational", "0"), ("scheduler", "none")];
            let facts: BTreeMap<_, _> = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            filesystem(&Facts {
                environment: Environment {
                    data_filesystem: Some(kind.to_owned()),
                    data_devices: vec![BlockDevice { name: "vda".to_owned(), facts }],
                    ..Environment::default()
                },
                directory: "/cache".into(),
                ..Facts::default()
            })
        };
        assert_eq!(with("ext4"), ok("ext4 on vda (not rotating, scheduler none), for /cache"));
        assert_eq!(
            ["tmpfs", "overlay", "xfs"].map(|kind| with(kind).state),
            [State::Warn, State::Warn, State::Ok]
        );
    }

    #[test]
    fn little_free_space_is_reported() {
        let with = |free_gib: u64, total_gib: u64| {
            let space = Some(Space { free_bytes: free_gib << 30, total_bytes: total_gib << 30 });
            super::space(&Facts { space, ..Facts::default() }).state
        };
        assert_eq!(with(50, 100), State::Ok);
        assert_eq!(with(5, 100), State::Warn);
        assert_eq!(with(40, 1000), State::Warn, "nearly full");
        assert_eq!(with(1, 2), State::Bad);
    }

    #[test]
    fn a_disk_is_judged_by_its_slowest_writes() {
        let with = |p50_us, p99_us| {
            let sync_writes = Some(SyncWrites { count: 200, p50_us, p99_us, max_us: p99_us });
            sync_latency(&Facts { sync_writes, ..Facts::default() })
        };
        assert_eq!(
            with(1000.0, 3000.0),
            ok("p50 1.00 ms, p99 3.00 ms, max 3.00 ms of 200 writes of 8 kB with fdatasync")
        );
        assert_eq!(with(500.0, 6000.0).state, State::Warn, "unsteady");
        assert_eq!(with(15e3, 30e3).state, State::Warn, "slow");
        assert_eq!(with(15e3, 300e3).state, State::Bad);
        assert_eq!(with(3.0, 9.0).state, State::Warn, "no disk");
    }

    #[test]
    fn waiting_for_disks_is_reported() {
        let with = |io| {
            disk_pressure(&Facts { pressure: Pressure { io, ..Pressure::default() }, ..Facts::default() })
                .state
        };
        assert_eq!(
            [None, Some(0.0), Some(5.0), Some(30.0)].map(with),
            [State::Unknown, State::Ok, State::Warn, State::Bad]
        );
    }
}
