//! A load in parts, each run by a driver process of its own, against the same load run by one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod harness;

use std::sync::Arc;
use std::time::Duration;

use driver::MergedLoad;
use model::message::{Connection, Load, Outcome, Reply, Request};
use model::part::Part;
use model::units::Rate;
use model::workload::{Custom, WeightedScript, Workload};

use harness::{Bench, Driver, Recorded, load};

/// Time between the request to start and the start.
const LEAD_US: i64 = 100_000;

fn custom(text: &str, change: impl FnOnce(&mut Custom)) -> Workload {
    let script = WeightedScript { name: "script".to_owned(), weight: 1, text: text.to_owned() };
    let mut custom = Custom::new("custom", vec![script]);
    change(&mut custom);
    Workload::Custom(Arc::new(custom))
}

/// Starts a driver for each part; returns them when all clients are connected.
fn connect(load: &Load, hosts: u32) -> Vec<Driver> {
    let parts = Part::all(hosts).map(|part| {
        let mut driver = Driver::spawn();
        driver.send(&Request::Run(Box::new(Load { part: Some(part), ..load.clone() })));
        driver
    });
    let mut parts: Vec<Driver> = parts.collect();
    parts.iter_mut().for_each(|driver| driver.wait_for(|reply| matches!(reply, Reply::Connected { .. })));
    parts
}

/// Runs a load in parts that start at the same instant.
fn run_in_parts(load: &Load, hosts: u32) -> Vec<Recorded> {
    let mut parts = connect(load, hosts);
    // The drivers are on this host.
    let at_us = parts[0].clock_us() + LEAD_US;
    for driver in &mut parts {
        driver.send(&Request::Start { at_us });
    }
    for driver in &mut parts {
        driver.wait_for(|reply| matches!(reply, Reply::Started { .. }));
        assert_eq!(driver.origin_us(), at_us, "all parts have the same origin");
    }
    parts.into_iter().map(Driver::recorded_part).collect()
}

fn sum(parts: &[Recorded], figure: impl Fn(&Outcome) -> u64) -> u64 {
    parts.iter().map(|part| figure(&part.outcome)).sum()
}

/// The rows of the table `drawn`, sorted.
fn drawn(bench: &Bench) -> Vec<String> {
    let mut session = bench.client();
    session.query("SELECT client || ' ' || number FROM drawn ORDER BY client, number").unwrap()
}

#[test]
fn clients_draw_the_same_numbers_in_parts_as_in_one_driver() {
    const DRAW: &str =
        "\\set number random(1, 1000000000)\nINSERT INTO drawn VALUES (:client_id, :number);\n";
    let run = |hosts: Option<u32>| {
        let mut bench = Bench::shared();
        bench.sql("CREATE TABLE drawn (client int, number int)");
        let load = Load {
            workload: custom(DRAW, |custom| custom.iterations = Some(20)),
            clients: 5,
            threads: 2,
            warmup_us: 0,
            duration_us: 20_000_000,
            ..load(bench.unix())
        };
        match hosts {
            None => assert_eq!(Driver::run(&load).transactions(), 100),
            Some(hosts) => {
                let parts = run_in_parts(&load, hosts);
                assert_eq!(parts.iter().map(Recorded::transactions).sum::<u64>(), 100);
                assert!(parts.iter().all(|part| !part.outcome.stopped_early));
            }
        }
        drawn(&bench)
    };
    let whole = run(None);
    assert_eq!(whole.len(), 100);
    for hosts in [1, 2, 5] {
        assert_eq!(run(Some(hosts)), whole, "{hosts} hosts");
    }
}

#[test]
fn parts_of_an_open_loop_keep_one_schedule() {
    // Faster than any transaction takes, so that the schedule alone decides how many there are.
    let of = |connection: Connection| Load {
        clients: 6,
        threads: 3,
        rate: Rate::per_second(400.0).unwrap(),
        warmup_us: 200_000,
        duration_us: 800_000,
        ..load(connection)
    };
    let arrivals = |recorded: &Recorded| {
        let scripts = recorded.intervals.iter().flat_map(|interval| &interval.scripts);
        recorded.transactions() + scripts.filter_map(|script| script.unfinished).sum::<u64>()
    };
    let bench = Bench::shared();
    let whole = Driver::run(&of(bench.unix()));
    let expected = arrivals(&whole);
    assert!(expected > 300, "{expected}");
    for hosts in [2, 3] {
        let bench = Bench::shared();
        let parts = run_in_parts(&of(bench.unix()), hosts);
        let each: Vec<u64> = parts.iter().map(arrivals).collect();
        assert_eq!(each.iter().sum::<u64>(), expected, "{hosts} hosts: {each:?}");
        // They take turns.
        assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1, "{each:?}");
    }
}

#[test]
fn each_client_runs_in_one_part_with_its_number_and_the_server_counts_the_same() {
    let bench = Bench::shared();
    let workload = custom("SELECT 1;\n", |custom| custom.spans = true);
    let load = Load { workload, clients: 5, threads: 1, ..load(bench.unix()) };
    let parts = run_in_parts(&load, 3);
    let clients = |part: &Recorded| {
        let spans = part.intervals.iter().flat_map(|interval| &interval.spans);
        let mut clients: Vec<u32> = spans.map(|span| span.client).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    };
    assert_eq!(parts.iter().map(clients).collect::<Vec<_>>(), [vec![0, 1], vec![2, 3], vec![4]]);
    assert_eq!(sum(&parts, |outcome| outcome.connections), 5);
    let commits = sum(&parts, |outcome| outcome.commits + outcome.other_commits);
    bench.assert_commits(commits, "three parts");

    let mut merged = MergedLoad::new(&load, parts.len()).unwrap();
    for (at, part) in parts.iter().enumerate() {
        part.intervals.iter().for_each(|interval| merged.add(at, interval.clone()).unwrap());
        merged.end(at, part.outcome.clone()).unwrap();
    }
    let intervals: Vec<_> = std::iter::from_fn(|| merged.next_interval().unwrap()).collect();
    let outcome = merged.outcome().unwrap();
    let merged =
        Recorded { intervals, slices: Vec::new(), deaths: Vec::new(), outcome, stderr: String::new() };
    merged.check();
    assert_eq!(merged.transactions(), parts.iter().map(Recorded::transactions).sum::<u64>());
}

#[test]
fn an_instant_that_has_passed_starts_the_load_at_once_and_says_how_late_it_is() {
    let bench = Bench::shared();
    let mut parts = connect(&load(bench.unix()), 1);
    let mut driver = parts.pop().unwrap();
    let at_us = driver.clock_us() - 20_000;
    driver.send(&Request::Start { at_us });
    driver.wait_for(|reply| matches!(reply, Reply::Started { .. }));
    let late_us = driver.replies().iter().find_map(|reply| match reply {
        Reply::Started { at, late_us } => Some((at.monotonic_us, *late_us)),
        _ => None,
    });
    let (origin_us, late_us) = late_us.unwrap();
    assert_eq!(origin_us, at_us);
    assert!(late_us >= 20_000, "{late_us}");
    driver.recorded_part();
}

#[test]
fn the_clock_is_read_before_during_and_after_a_part() {
    let bench = Bench::shared();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(Load { part: Some(Part::WHOLE), ..load(bench.unix()) })));
    driver.wait_for(|reply| matches!(reply, Reply::Connected { .. }));
    let before_us = driver.clock_us();
    driver.send(&Request::Start { at_us: before_us + LEAD_US });
    driver.wait_for(|reply| matches!(reply, Reply::Started { .. }));
    let started_us = driver.clock_us();
    driver.wait_for(|reply| matches!(reply, Reply::Interval(_)));
    let during_us = driver.clock_us();
    driver.wait_for(|reply| matches!(reply, Reply::Finished(_)));
    let after_us = driver.clock_us();
    assert!(before_us + LEAD_US <= started_us, "{before_us} {started_us}");
    assert!(started_us < during_us && during_us < after_us);
}

#[test]
fn a_part_that_is_stopped_before_its_start_has_no_load_and_closes_its_connections() {
    let bench = Bench::shared();
    for has_instant in [false, true] {
        let mut driver = connect(&load(bench.unix()), 1).pop().unwrap();
        if has_instant {
            let at_us = driver.clock_us() + 3_600_000_000;
            driver.send(&Request::Start { at_us });
        }
        driver.send(&Request::Stop);
        driver.wait_for(|reply| matches!(reply, Reply::Finished(_)));
        let Some(Reply::Finished(outcome)) = driver.replies().last() else { panic!("no outcome") };
        assert_eq!((outcome.window_us, outcome.window_transactions), (0, 0));
        assert_eq!(outcome.connections, 4);
        bench.wait_for_sessions_to_end();
    }
}

#[test]
fn a_load_in_one_piece_can_not_be_started() {
    let bench = Bench::shared();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(harness::unlimited(bench.unix()))));
    driver.wait_for(|reply| matches!(reply, Reply::Started { .. }));
    driver.send(&Request::Start { at_us: 1 });
    let failed = driver.failed();
    assert!(failed.contains("a start of a load that begins by itself"), "{failed}");

    let mut driver = Driver::spawn();
    let part = Some(Part { host: 2, hosts: 2 });
    driver.send(&Request::Run(Box::new(Load { part, ..load(bench.unix()) })));
    assert!(driver.failed().contains("a load on 2 hosts has no part 2"));

    let mut driver = Driver::spawn();
    let part = Some(Part { host: 4, hosts: 5 });
    driver.send(&Request::Run(Box::new(Load { part, ..load(bench.unix()) })));
    assert!(driver.failed().contains("5 hosts can't share 4 clients"));
}

/// A part is one of several processes: if its runner is gone, nothing of it stays.
#[test]
fn a_part_ends_with_its_runner() {
    let bench = Bench::shared();
    let parts = connect(&load(bench.unix()), 2);
    drop(parts);
    bench.wait_for_sessions_to_end();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(Load { part: Some(Part::WHOLE), ..load(bench.unix()) })));
    driver.wait_for(|reply| matches!(reply, Reply::Connected { .. }));
    let at_us = driver.clock_us();
    driver.send(&Request::Start { at_us });
    driver.wait_for(|reply| matches!(reply, Reply::Finished(_)));
    driver.receive_for(Duration::from_millis(50));
    assert!(matches!(driver.replies().last(), Some(Reply::Finished(_))), "it waits for the end of its input");
}
