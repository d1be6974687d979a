//! Loads in slices on a real server: two sides in turns by driver processes, and each event loop by itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod harness;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use driver::{
    Arrivals, Control, DriverMessage, Engine, Group, Load, Observer, Outcome, Rate, Record, Spacing, Stopper,
    WeightedScript,
};
use model::message::{self, Connection, Endpoint, Reply, Request, Slice, Slices};
use model::record::ClockReading;
use model::units::{self, Span};
use model::workload::{self, BackgroundWorkload, Custom, Protocol, Workload};
use rustix::process::Signal;
use script::{Names, Script, Seeds, Variables};
use wire::ConnectParams;

use harness::{Bench, Driver, Recorded, load};

const ENGINES: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// Length of a slice.
const SLICE: Duration = Duration::from_millis(50);

const LOOKUP: &str = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";

fn script(name: &str, text: &str) -> workload::WeightedScript {
    workload::WeightedScript { name: name.to_owned(), weight: 1, text: text.to_owned() }
}

/// A load in slices, of a script whose transactions are recorded one by one.
fn in_slices(connection: Connection, text: &str) -> message::Load {
    let custom = Custom { spans: true, ..Custom::new("spans", vec![script("script", text)]) };
    message::Load {
        workload: Workload::Custom(Arc::new(custom)),
        slices: Some(Slices { guard_us: 5_000 }),
        ..load(connection)
    }
}

fn start(load: &message::Load) -> Driver {
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(load.clone())));
    driver.wait_for(|reply| matches!(reply, Reply::Started { .. }));
    driver
}

fn stop(mut driver: Driver) -> Recorded {
    driver.send(&Request::Stop);
    driver.recorded()
}

/// Asserts that every transaction of a load is in one slice, and is counted there once.
fn assert_in_slices(recorded: &Recorded, what: &str) {
    let slices = &recorded.slices;
    let sum = |figure: fn(&Slice) -> u64| slices.iter().map(figure).sum::<u64>();
    let all = sum(|slice| slice.transactions) + sum(|slice| slice.failed) + sum(|slice| slice.guarded);
    assert_eq!(all, recorded.transactions() + recorded.outcome.failed_transactions, "{what}: {slices:?}");
    for slice in slices {
        assert!(slice.start_us <= slice.pause_us && slice.start_us <= slice.end_us, "{what}: {slice:?}");
    }
    for pair in slices.windows(2) {
        assert!(
            pair[0].end_us <= pair[1].start_us && pair[0].pause_us <= pair[1].start_us,
            "{what}: {pair:?}"
        );
    }
    let spans: Vec<_> = recorded.intervals.iter().flat_map(|interval| &interval.spans).collect();
    for span in &spans {
        let within = |slice: &Slice| slice.start_us <= span.start_us && span.end_us <= slice.end_us;
        assert!(slices.iter().any(within), "{what}: {span:?} is in none of {slices:?}");
    }
    if spans.is_empty() {
        return;
    }
    for slice in slices {
        let of_slice = spans.iter().filter(|span| (slice.start_us..=slice.end_us).contains(&span.start_us));
        let count = slice.transactions + slice.failed + slice.guarded;
        assert_eq!(of_slice.count() as u64, count, "{what}: {slice:?}");
    }
}

/// Two drivers in turns: while one has its slice, nothing happens in the other.
#[test]
fn alone_two_sides_alternate_and_every_transaction_counts_once() {
    for threads in [1, 2] {
        let benches = [Bench::shared(), Bench::shared()];
        let loads = benches.each_ref().map(|bench| {
            let mut load = in_slices(bench.unix(), LOOKUP);
            (load.clients, load.threads) = (5, threads);
            load
        });
        let mut sides = loads.each_ref().map(start);
        let mut absolute_us = Vec::new();
        for number in 0..20 {
            let (running, resting) = (number % 2, 1 - number % 2);
            let before = sides[resting].activity();
            let slice = sides[running].slice(SLICE);
            assert_eq!(sides[resting].activity(), before, "{threads} threads: the paused driver ran");
            let origin_us = sides[running].origin_us();
            absolute_us.push([slice.start_us, slice.end_us].map(|us| origin_us + us as i64));
            assert!(slice.transactions > 0 && slice.failed == 0, "{slice:?}");
            let clients = u64::from(loads[running].clients);
            let most_us = clients * (slice.end_us - slice.start_us);
            assert!(slice.client_us <= most_us && slice.latency_us <= slice.client_us, "{slice:?}");
            assert_eq!(slice.service_us, None);
        }
        for pair in absolute_us.windows(2) {
            assert!(pair[0][1] <= pair[1][0], "slices of the two sides overlap: {absolute_us:?}");
        }
        for (bench, driver) in benches.iter().zip(sides) {
            let recorded = stop(driver);
            let what = format!("{threads} threads");
            assert_eq!(recorded.slices.len(), 10);
            // A busy machine may begin some slices later than the guard is long.
            assert!(recorded.slices.iter().any(|slice| slice.guarded > 0), "{:?}", recorded.slices);
            assert_in_slices(&recorded, &what);
            let outcome = &recorded.outcome;
            assert_eq!((outcome.stopped_early, outcome.failed_transactions), (false, 0), "{outcome:?}");
            bench.assert_commits(recorded.transactions() + outcome.other_commits, &what);
        }
    }
}

/// Nothing begins before the first slice, and a load may end without one.
#[test]
fn a_load_begins_with_its_first_slice() {
    let bench = Bench::shared();
    let mut driver = start(&in_slices(bench.unix(), LOOKUP));
    driver.receive_for(SLICE);
    let recorded = stop(driver);
    assert_eq!((recorded.transactions(), recorded.slices.len()), (0, 0));
    bench.assert_commits(recorded.outcome.other_commits, "without a slice");
}

/// The transaction in flight at the end of a slice belongs to it; the next slice begins anew.
#[test]
fn alone_a_transaction_belongs_to_the_slice_that_began_it() {
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), "SELECT pg_sleep(0.2);");
    load.slices = Some(Slices { guard_us: 0 });
    let mut driver = start(&load);
    for _ in 0..3 {
        let slice = driver.slice(SLICE);
        assert_eq!((slice.transactions, slice.guarded), (u64::from(load.clients), 0), "{slice:?}");
        assert!(slice.pause_us < slice.start_us + 200_000, "the pause was late: {slice:?}");
        assert!(slice.end_us >= slice.start_us + 200_000, "{slice:?}");
        assert!(slice.latency_us >= slice.transactions * 200_000 && slice.client_us >= slice.latency_us);
    }
    let recorded = stop(driver);
    assert_in_slices(&recorded, "pg_sleep");
    bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, "pg_sleep");
}

/// What begins in the guard is counted apart, and in the totals.
#[test]
fn a_long_guard_leaves_out_everything() {
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), LOOKUP);
    load.slices = Some(Slices { guard_us: 60_000_000 });
    let mut driver = start(&load);
    let slice = driver.slice(SLICE);
    assert!(slice.guarded > 0, "{slice:?}");
    assert_eq!((slice.transactions, slice.client_us, slice.latency_us), (0, 0, 0));
    assert_in_slices(&stop(driver), "guard");
}

/// They do, and the time until they start passes in slices alone.
#[test]
fn background_workloads_pause_too() {
    const START_US: u64 = 75_000;
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), LOOKUP);
    let Workload::Custom(custom) = &load.workload else { panic!("not custom") };
    let background = BackgroundWorkload {
        per_client: false,
        replica: false,
        workload: Workload::Custom(Arc::new(Custom {
            spans: true,
            ..Custom::new("other", vec![script("other", "SELECT 1;")])
        })),
        clients: 2,
        rate: units::Rate::MAX,
        start: Span::from_us(START_US),
    };
    load.workload = Workload::Custom(Arc::new(Custom { background: vec![background], ..(**custom).clone() }));
    let mut driver = start(&load);
    for _ in 0..5 {
        driver.slice(SLICE);
        let before = driver.activity();
        driver.receive_for(SLICE);
        assert_eq!(driver.activity(), before, "the paused driver ran");
    }
    let recorded = stop(driver);
    let slices = &recorded.slices;
    let counted: u64 = slices.iter().map(|slice| slice.transactions + slice.guarded).sum();
    assert_eq!(counted, recorded.transactions());
    let others = recorded.outcome.background[0].transactions;
    assert!(others > 0);
    for span in recorded.intervals.iter().flat_map(|interval| &interval.spans) {
        let within = |slice: &&Slice| slice.start_us <= span.start_us && span.end_us <= slice.end_us;
        let slice = slices.iter().find(within);
        let slice = slice.unwrap_or_else(|| panic!("{span:?} is in none of {slices:?}"));
        let before = slices.iter().filter(|other| other.start_us < slice.start_us);
        let before_us: u64 = before.map(|slice| slice.pause_us - slice.start_us).sum();
        let active_us = before_us + span.start_us - slice.start_us;
        // Rounding: two times a slice.
        let is_main = span.client < load.clients;
        assert!(is_main || active_us + 10 >= START_US, "{span:?} after {active_us} µs of {slices:?}");
    }
    bench.assert_commits(counted + others + recorded.outcome.other_commits, "background");
}

/// The connection belongs to the transaction, and to its slice.
#[test]
fn transactions_may_connect() {
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), LOOKUP);
    let Workload::Custom(custom) = &load.workload else { panic!("not custom") };
    load.workload = Workload::Custom(Arc::new(Custom { reconnect: true, ..(**custom).clone() }));
    let mut driver = start(&load);
    for _ in 0..5 {
        let slice = driver.slice(SLICE);
        assert!(slice.latency_us <= slice.client_us, "{slice:?}");
        let before = driver.activity();
        driver.receive_for(SLICE);
        assert_eq!(driver.activity(), before, "the paused driver ran");
    }
    let recorded = stop(driver);
    assert_in_slices(&recorded, "connections");
    bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, "connections");
}

#[test]
fn a_stop_in_a_slice_ends_it() {
    let bench = Bench::shared();
    let mut driver = start(&in_slices(bench.unix(), LOOKUP));
    driver.slice(SLICE);
    driver.resume();
    driver.receive_for(SLICE);
    let recorded = stop(driver);
    assert_eq!(recorded.slices.len(), 2, "{:?}", recorded.slices);
    assert!(recorded.slices[1].transactions > 0 && !recorded.outcome.stopped_early);
    assert_in_slices(&recorded, "stop in a slice");
    bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, "stop in a slice");
}

/// The load ends with the iterations of its clients, in a slice.
#[test]
fn alone_iterations_may_end_in_a_slice() {
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), "SELECT pg_sleep(0.02);");
    let Workload::Custom(custom) = &load.workload else { panic!("not custom") };
    load.workload = Workload::Custom(Arc::new(Custom { iterations: Some(6), ..(**custom).clone() }));
    let mut driver = start(&load);
    driver.slice(SLICE);
    driver.resume();
    let recorded = driver.recorded();
    assert_eq!((recorded.transactions(), recorded.slices.len()), (6 * u64::from(load.clients), 2));
    assert!(!recorded.outcome.stopped_early);
    assert_in_slices(&recorded, "iterations");
}

#[test]
fn a_paused_driver_exits_when_its_runner_has_exited() {
    let bench = Bench::shared();
    let request = Request::Run(Box::new(in_slices(bench.unix(), LOOKUP)));
    assert!(harness::exits_with_its_input(&request, "started"));
    bench.wait_for_sessions_to_end();
}

#[test]
fn every_client_reports_a_crash_in_a_pause_and_in_a_slice() {
    let mut cluster = harness::cluster("18");
    for paused in [true, false] {
        let bench = Bench::with_cluster(cluster);
        let load = in_slices(bench.unix(), LOOKUP);
        let mut driver = start(&load);
        driver.slice(SLICE);
        if !paused {
            driver.resume();
        }
        bench.signal(Signal::QUIT);
        let recorded = driver.recorded();
        assert!(recorded.outcome.stopped_early);
        assert_eq!(recorded.deaths.len(), load.clients as usize, "{:?}", recorded.deaths);
        assert_eq!(recorded.slices.len(), if paused { 1 } else { 2 });
        cluster = bench.into_cluster();
    }
}

/// As at the end of a load.
#[test]
fn a_transaction_that_does_not_end_after_its_slice_is_aborted() {
    let bench = Bench::shared();
    let mut locker = bench.client();
    let mut load = in_slices(bench.unix(), "SELECT count(*) FROM pgbench_branches;");
    // The lock would also keep statements from being prepared.
    load.protocol = Protocol::Simple;
    locker.execute("BEGIN; LOCK pgbench_branches").unwrap();
    let mut driver = start(&load);
    let slice = driver.slice(SLICE);
    let recorded = driver.recorded();
    assert_eq!(slice.transactions + slice.failed + slice.guarded, u64::from(load.clients), "{slice:?}");
    assert_eq!(recorded.deaths.len(), load.clients as usize);
    for death in &recorded.deaths {
        assert!(death.message.contains("still running 5 s after the end of the slice"), "{death:?}");
    }
}

#[test]
fn a_slice_out_of_turn_is_refused() {
    let bench = Bench::shared();
    let mut driver = start(&in_slices(bench.unix(), LOOKUP));
    driver.resume();
    driver.resume();
    assert!(driver.failed().contains("a slice before the end of the last one"));
    let mut driver = start(&harness::unlimited(bench.unix()));
    driver.resume();
    assert!(driver.failed().contains("a slice of a load in one piece"));
}

/// More transactions do not cause more allocations.
#[test]
fn alone_a_transaction_in_a_slice_allocates_nothing() {
    let bench = Bench::shared();
    let mut load = in_slices(bench.unix(), LOOKUP);
    let Workload::Custom(custom) = &load.workload else { panic!("not custom") };
    load.workload = Workload::Custom(Arc::new(Custom { spans: false, ..(**custom).clone() }));
    load.interval_us = 60_000_000;
    let mut counts = [100, 1_000].map(|ms| {
        let mut driver = start(&load);
        driver.slice(Duration::from_millis(ms));
        let recorded = stop(driver);
        (recorded.transactions(), harness::allocations(&recorded.stderr))
    });
    counts.sort_unstable();
    let [(few, allocations_of_few), (many, allocations_of_many)] = counts;
    assert!(many > few + 1000, "{few} and {many} transactions");
    let more = allocations_of_many.abs_diff(allocations_of_few);
    assert!(more < 100, "{more} allocations more in {} transactions more", many - few);
}

/// What a load in this process reports.
struct Reports {
    started: Sender<()>,
    slices: Sender<Slice>,
    total: Option<Record>,
}

impl Observer for Reports {
    fn connected(&mut self, _took: Duration, _background: &[i32]) {}

    fn started(&mut self, _: ClockReading, _: Duration) {
        self.started.send(()).unwrap();
    }

    fn interval(&mut self, record: &Record) {
        match &mut self.total {
            Some(total) => total.add(record),
            None => self.total = Some(record.clone()),
        }
    }

    fn paused(&mut self, slice: &Slice) {
        self.slices.send(*slice).unwrap();
    }

    fn on_message(&mut self, message: &DriverMessage) {
        panic!("{message:?}");
    }
}

/// Runs a load in slices that `turns` begins and ends.
fn run(
    load: Load,
    turns: impl FnOnce(&Stopper, &Receiver<Slice>) -> Vec<Slice> + Send,
) -> (Vec<Slice>, Record, Outcome) {
    let control = Control::default();
    let stopper = control.stopper();
    let (started, has_started) = channel();
    let (sender, received) = channel();
    let mut reports = Reports { started, slices: sender, total: None };
    thread::scope(|scope| {
        let turns = scope.spawn(move || {
            has_started.recv().unwrap();
            let slices = turns(&stopper, &received);
            stopper.stop();
            slices
        });
        let outcome = driver::run(load, control, &mut reports).unwrap();
        (turns.join().unwrap(), reports.total.unwrap(), outcome)
    })
}

/// Slices with pauses of this length between them.
fn alternate(stopper: &Stopper, received: &Receiver<Slice>, count: usize, pause: Duration) -> Vec<Slice> {
    let nothing = |length| assert_eq!(received.recv_timeout(length), Err(RecvTimeoutError::Timeout));
    let slice = |_| {
        stopper.resume();
        nothing(SLICE);
        stopper.pause();
        let slice = received.recv().unwrap();
        nothing(pause);
        slice
    };
    (0..count).map(slice).collect()
}

/// Clients of some threads that run a script until they are stopped.
fn own_load(bench: &Bench, text: &str, clients: u32, threads: usize, arrivals: Arrivals) -> Load {
    let mut names = Names::default();
    let script = Script::parse("script", text, &mut names).unwrap();
    let Connection { endpoint: Endpoint::Unix { directory, port }, user, database, .. } = bench.unix() else {
        panic!("not a socket")
    };
    let connection = ConnectParams::new(&directory, port, &user, &database, None);
    let group = Group {
        transactions: None,
        arrivals,
        ..Group::new(clients, vec![WeightedScript { script, weight: 1 }], Variables::new(&names))
    };
    Load {
        length: Some(Duration::MAX),
        slice_guard: Some(Duration::from_millis(5)),
        ..Load::new(connection, group, Seeds::draw(7, clients as usize, threads, false))
    }
}

#[test]
fn alone_each_event_loop_counts_every_transaction_once() {
    for engine in ENGINES {
        for (clients, threads) in [(1, 1), (7, 1), (7, 2)] {
            let bench = Bench::shared();
            let load = Load { engine, ..own_load(&bench, LOOKUP, clients, threads, Arrivals::Closed) };
            let what = format!("{engine:?}, {clients} clients, {threads} threads");
            let (slices, total, outcome) =
                run(load, |stopper, received| alternate(stopper, received, 20, Duration::ZERO));
            assert_eq!(outcome.engine.name, if engine == Engine::Uring { "io_uring" } else { "epoll" });
            let counted: u64 = slices.iter().map(|slice| slice.transactions + slice.guarded).sum();
            assert_eq!(counted, total.scripts[0].moments.count, "{what}");
            assert!(slices.iter().all(|slice| slice.transactions > 0), "{what}: {slices:?}");
            bench.assert_commits(counted + u64::from(clients), &what);
        }
    }
}

/// Arrivals follow the time of the slices, and latencies do not contain the pauses.
#[test]
fn an_open_loop_stands_still_in_pauses() {
    const PER_SECOND: f64 = 400.0;
    const PAUSE: Duration = Duration::from_millis(1500);
    for engine in ENGINES {
        for threads in [1, 2] {
            let bench = Bench::shared();
            let arrivals = Arrivals::Rate(Rate::constant(PER_SECOND, Spacing::Uniform));
            let load = Load { engine, ..own_load(&bench, LOOKUP, 6, threads, arrivals) };
            let what = format!("{engine:?}, {threads} threads");
            let (slices, total, outcome) =
                run(load, |stopper, received| alternate(stopper, received, 4, PAUSE));
            let active_us: u64 = slices.iter().map(|slice| slice.pause_us - slice.start_us).sum();
            let due = (active_us as f64 / 1e6 * PER_SECOND) as u64;
            let counted: u64 = slices.iter().map(|slice| slice.transactions + slice.guarded).sum();
            assert_eq!(counted, total.scripts[0].moments.count, "{what}");
            // Of what was due at the last pause, the threads may have begun some later, or not at all.
            let all = counted + outcome.missed;
            assert!(all.abs_diff(due) <= 6, "{what}: {all} of {due} due, {slices:?}");
            let longest = Duration::from_nanos(total.scripts[0].latency.max());
            assert!(longest < PAUSE, "{what}: a latency of {longest:?}");
            bench.assert_commits(counted + 6, &what);
        }
    }
}

/// What was due at a pause begins in the next slice, before what becomes due in it.
#[test]
fn an_overloaded_open_loop_keeps_its_backlog() {
    const PAUSE: Duration = Duration::from_millis(1500);
    let bench = Bench::shared();
    let arrivals = Arrivals::Rate(Rate::constant(200.0, Spacing::Uniform));
    let load = own_load(&bench, "SELECT pg_sleep(0.03);", 2, 1, arrivals);
    let (slices, total, outcome) = run(load, |stopper, received| alternate(stopper, received, 4, PAUSE));
    let active_us: u64 = slices.iter().map(|slice| slice.pause_us - slice.start_us).sum();
    let counted: u64 = slices.iter().map(|slice| slice.transactions + slice.guarded).sum();
    assert_eq!(counted, total.scripts[0].moments.count);
    let all = counted + outcome.missed;
    assert!(all.abs_diff(active_us / 5_000) <= 2, "{all} of {} due, {slices:?}", active_us / 5_000);
    assert!(outcome.missed > 0, "{outcome:?}");
    let last = &slices[3];
    let (latency_us, service_us) = (last.latency_us, last.service_us.unwrap());
    assert!(latency_us > service_us + 50_000 * last.transactions, "the backlog waited: {last:?}");
    let longest = Duration::from_nanos(total.scripts[0].latency.max());
    assert!(longest < PAUSE, "a latency of {longest:?}");
    let unfinished = outcome.intended[0].latency.max();
    assert!(Duration::from_nanos(unfinished) < PAUSE, "{unfinished}");
}
