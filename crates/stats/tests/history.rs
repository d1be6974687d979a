//! A real history: pgbench read-only on 29 Linux kernels, 2.6.39 to 4.6, three runs of each of nine cells (three scales
//! by three numbers of clients). The data are those of the article "PostgreSQL vs. Linux kernel versions" (2016).
//!
//! The file's rows are sorted as text, 3.10 before 3.2, but a history is in order of versions. Its four kernels with
//! "-stats" are second builds by others, and are omitted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use stats::{Event, change_points_of_all, events, medians};

type Version = (u32, u32, u32, u32);

/// A release candidate precedes its release.
fn version(kernel: &str) -> Version {
    let (release, candidate) = kernel.split_once("-rc").unwrap_or((kernel, "99"));
    let mut numbers = release.split('.').map(|number| number.parse().unwrap()).chain([0, 0]);
    let mut next = || numbers.next().unwrap();
    (next(), next(), next(), candidate.parse().unwrap())
}

/// The runs by cell and version.
fn runs() -> BTreeMap<(u32, u32), BTreeMap<Version, Vec<f64>>> {
    let mut cells: BTreeMap<_, BTreeMap<_, Vec<f64>>> = BTreeMap::new();
    for line in include_str!("data/kernels-2016-read-only.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kernel, scale, _, _, clients, tps] = fields[..] else { panic!("{line}") };
        if !kernel.ends_with("-stats") {
            let cell = cells.entry((scale.parse().unwrap(), clients.parse().unwrap())).or_default();
            cell.entry(version(kernel)).or_default().push(tps.parse().unwrap());
        }
    }
    cells
}

/// The event between these versions.
fn between<'a>(
    events: &'a [Event],
    versions: &[Version],
    before: (u32, u32),
    after: (u32, u32),
) -> &'a Event {
    let is = |at: usize, version: (u32, u32)| (versions[at].0, versions[at].1) == version;
    events.iter().find(|event| is(event.before, before) && is(event.after, after)).unwrap()
}

#[test]
fn the_kernels_that_changed_throughput_are_found() {
    let cells = runs();
    assert_eq!(cells.len(), 9);
    let versions: Vec<Version> = cells[&(30, 1)].keys().copied().collect();
    assert_eq!(versions.len(), 29);
    let names: Vec<_> = cells.keys().collect();
    let series: Vec<_> =
        cells.values().map(|cell| medians(&cell.values().collect::<Vec<_>>()).unwrap()).collect();
    let events = events(&change_points_of_all(&series).into_iter().map(Option::unwrap).collect::<Vec<_>>());
    let members = |event: &Event| event.changes.iter().map(|(i, _)| *names[*i]).collect::<Vec<_>>();

    // Cached reads got slower, in six cells by 9% to 12%.
    let cached = between(&events, &versions, (3, 7), (3, 8));
    assert_eq!(members(cached), [(30, 1), (30, 4), (300, 1), (300, 4), (300, 16), (1500, 1)]);
    assert!((0.88..0.91).contains(&cached.ratio), "{cached:?}");
    // With more clients than CPUs, throughput recovers.
    let many_clients = between(&events, &versions, (3, 10), (3, 11));
    assert_eq!(members(many_clients), [(30, 16), (300, 16)]);
    assert!(many_clients.largest > 1.15, "{many_clients:?}");
    // Reads from disk got faster, more so with more clients.
    let from_disk = between(&events, &versions, (3, 11), (3, 12));
    assert_eq!(members(from_disk), [(1500, 1), (1500, 4), (1500, 16)]);
    assert!(from_disk.smallest > 1.2 && from_disk.largest > 2.4, "{from_disk:?}");
    // Two more, in one cell each. Each run of 16 clients on 3.4 is faster than any on 3.3; between 4.4 and 4.5 the runs
    // of one client are 6% apart, with noise below 1%.
    let more = between(&events, &versions, (3, 3), (3, 4));
    assert_eq!(members(more), [(1500, 16)]);
    assert!((1.02..1.04).contains(&more.ratio), "{more:?}");
    let more = between(&events, &versions, (4, 4), (4, 5));
    assert_eq!(members(more), [(1500, 1)]);
    assert!((1.05..1.07).contains(&more.ratio), "{more:?}");
    assert_eq!(events.len(), 5);
}

/// In the order of the file's rows, second builds included, levels come and go: the loss of 3.8 is recovered where 3.2
/// follows 3.19.
#[test]
fn a_transient_in_the_order_of_the_rows_is_found() {
    let mut kernels: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, &str), Vec<Vec<f64>>> = BTreeMap::new();
    for line in include_str!("data/kernels-2016-read-only.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kernel, scale, _, _, clients, tps] = fields[..] else { panic!("{line}") };
        if kernels.last() != Some(&kernel) {
            kernels.push(kernel);
        }
        let cell = cells.entry((scale, clients)).or_default();
        cell.resize(kernels.len(), Vec::new());
        cell.last_mut().unwrap().push(tps.parse().unwrap());
    }
    let series: Vec<_> = cells.values().map(|cell| medians(cell).unwrap()).collect();
    let found: Vec<_> =
        events(&change_points_of_all(&series).into_iter().map(Option::unwrap).collect::<Vec<_>>())
            .iter()
            .map(|event| (kernels[event.before], kernels[event.after], event.changes.len()))
            .collect();
    assert_eq!(
        found,
        [
            ("3.11.10-stats", "3.12.58", 3),
            ("3.19.8", "3.2.79", 2),
            ("3.19.8", "3.2.79", 5),
            ("3.7.10", "3.8.13", 6),
            ("3.9.11", "4.0.9", 3)
        ]
    );
}
