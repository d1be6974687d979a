//! Loads on a real server, run by a driver process as for the runner.

#[cfg(test)]
mod harness;

use model::message::{Endpoint, Load, Phase, Reply, Request};
use model::outage::Outage;
use model::units::Rate;
use model::workload::{Protocol, Workload};
use rustix::process::Signal;
use strum::VariantArray;

use harness::{Bench, Driver, MAJORS, allocations, load, unlimited};

#[test]
fn the_server_counts_the_same_transactions_13() {
    counts_the_same_transactions("13");
}

#[test]
fn the_server_counts_the_same_transactions_18() {
    counts_the_same_transactions("18");
}

/// The server and the driver count exactly the same commits, for each script and protocol.
fn counts_the_same_transactions(major: &'static str) {
    let bench = Bench::shared_of(major);
    for &protocol in Protocol::VARIANTS {
        for workload in Workload::BUILTIN {
            let mut load = load(bench.unix());
            (load.workload, load.protocol) = (workload.clone(), protocol);
            let recorded = Driver::run(&load);
            let outcome = &recorded.outcome;
            let what = format!("{major} {} {}", workload.name(), protocol.as_str());
            assert!(recorded.transactions() > 0, "{what}: {outcome:?}");
            assert_eq!((outcome.failed_transactions, outcome.stopped_early), (0, false), "{what}");
            assert_eq!(outcome.window_us, load.duration_us, "{what}");
            assert_eq!(outcome.connections, u64::from(load.clients), "{what}");
            bench.assert_commits(recorded.transactions() + outcome.other_commits, &what);
        }
    }
}

/// Interval by interval, and in every phase.
#[test]
fn alone_intervals_tile_the_load_and_add_up_to_its_outcome() {
    let bench = Bench::shared();
    let mut load = load(bench.tcp());
    (load.warmup_us, load.duration_us, load.interval_us) = (250_000, 450_000, 100_000);
    let recorded = Driver::run(&load);
    let planned: Vec<_> = recorded
        .intervals
        .iter()
        .filter(|i| i.phase != Phase::Drain)
        .map(|i| (i.start_us, i.width_us))
        .collect();
    assert_eq!(
        planned,
        [
            (0, 100_000),
            (100_000, 100_000),
            (200_000, 50_000),
            (250_000, 100_000),
            (350_000, 100_000),
            (450_000, 100_000),
            (550_000, 100_000),
            (650_000, 50_000),
        ]
    );
    for interval in &recorded.intervals {
        assert!((0.0..=1.0).contains(&interval.busy.unwrap()), "{interval:?}");
        let handled = interval.scripts[0].transactions > 0;
        assert!(
            !handled || interval.lag_mean_us.is_some_and(|mean| mean <= interval.lag_max_us.unwrap()),
            "{interval:?}"
        );
    }
    let latency = recorded.outcome.latency.as_ref().unwrap();
    assert!(latency.min_us > 0.0 && latency.min_us <= latency.p50_us && latency.p50_us <= latency.p99_us);
    // Little's law: each client is always in a transaction. Those that began in the warm-up count in full, which is
    // much for so short a window on a busy machine.
    let clients =
        recorded.outcome.window_transactions as f64 * latency.mean_us / recorded.outcome.window_us as f64;
    assert!((clients / f64::from(load.clients) - 1.0).abs() < 0.3, "{clients} of {} clients", load.clients);
}

/// A table is locked until after the window: what was due meanwhile counts with the time that it waited.
#[test]
fn an_open_loop_keeps_the_transactions_that_outlast_its_window() {
    let bench = Bench::shared();
    let mut locker = bench.client();
    // The lock would also keep statements from being prepared.
    let mut load = Load { protocol: Protocol::Simple, ..load(bench.unix()) };
    (load.warmup_us, load.duration_us) = (200_000, 2_000_000);
    load.rate = Rate::per_second(200.0).unwrap();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(load.clone())));
    driver.wait_for(|reply| matches!(reply, Reply::Interval(interval) if interval.phase == Phase::Measure));
    locker.execute("BEGIN; LOCK pgbench_accounts").unwrap();
    driver.wait_for(|reply| matches!(reply, Reply::Interval(interval) if interval.phase == Phase::Drain));
    locker.execute("COMMIT").unwrap();
    let recorded = driver.recorded();
    // Of the transactions that were due while the table was locked, only those of the clients have started.
    let drain = recorded.intervals.iter().filter(|interval| interval.phase == Phase::Drain);
    let unfinished = recorded.unfinished().unwrap();
    let drained = harness::latencies(drain, Phase::Measure);
    assert_eq!(drained.len() - unfinished, u64::from(load.clients));
    assert_eq!(recorded.outcome.failed_transactions, 0);
    assert!(unfinished > 10 * u64::from(load.clients), "{unfinished}");
    let (latency, service) = (recorded.outcome.latency.as_ref().unwrap(), recorded.outcome.service.unwrap());
    let longest_us = drained.max() as f64 / 1e3;
    assert!(latency.p99_us > 0.8 * longest_us, "{latency:?}, {longest_us}");
    assert!(service.p50_us < latency.p50_us, "{latency:?}, {service:?}");
    let window = harness::latencies(&recorded.intervals, Phase::Measure);
    for (share, us) in [(0.5, latency.p50_us), (0.99, latency.p99_us), (1.0, latency.max_us)] {
        assert_eq!(window.value_at_quantile(share) as f64 / 1e3, us, "{share}");
    }
    assert_eq!(window.mean() / 1e3, latency.mean_us);
}

/// A table is locked from the warm-up into the window: what was due in the warm-up does not count in the window.
#[test]
fn an_open_loop_does_not_count_what_was_due_before_its_window() {
    let bench = Bench::shared();
    let mut locker = bench.client();
    let mut load = Load { protocol: Protocol::Simple, ..load(bench.unix()) };
    (load.warmup_us, load.duration_us) = (1_000_000, 1_000_000);
    load.rate = Rate::per_second(200.0).unwrap();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(load)));
    driver.wait_for(|reply| matches!(reply, Reply::Interval(interval) if interval.phase == Phase::Warmup));
    locker.execute("BEGIN; LOCK pgbench_accounts").unwrap();
    driver.wait_for(|reply| matches!(reply, Reply::Interval(interval) if interval.phase == Phase::Measure));
    locker.execute("COMMIT").unwrap();
    let recorded = driver.recorded();
    let after = recorded.intervals.iter().filter(|interval| interval.phase != Phase::Warmup);
    let from_warmup = harness::latencies(after, Phase::Warmup);
    assert!(from_warmup.len() > 100, "{}", from_warmup.len());
    let window = harness::latencies(&recorded.intervals, Phase::Measure);
    let latency = recorded.outcome.latency.unwrap();
    assert_eq!((window.max() as f64 / 1e3, window.mean() / 1e3), (latency.max_us, latency.mean_us));
}

/// In the same load without a rate, only what ended in the window counts.
#[test]
fn a_closed_loop_counts_the_transactions_that_ended_in_its_window() {
    let bench = Bench::shared();
    let recorded = Driver::run(&load(bench.unix()));
    let in_window = recorded.intervals.iter().filter(|interval| interval.phase == Phase::Measure);
    let window = harness::latencies(in_window, Phase::Measure);
    let latency = recorded.outcome.latency.as_ref().unwrap();
    assert_eq!(latency.max_us, window.max() as f64 / 1e3);
    assert_eq!(latency.p99_us, window.value_at_quantile(0.99) as f64 / 1e3);
    assert_eq!((recorded.unfinished(), &recorded.outcome.service), (None, &None));
}

#[test]
fn a_stop_ends_the_load_early_and_loses_nothing() {
    let bench = Bench::shared();
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(unlimited(bench.unix()))));
    driver.wait_for(|reply| matches!(reply, Reply::Interval(interval) if interval.phase == Phase::Measure));
    driver.send(&Request::Stop);
    let recorded = driver.recorded();
    assert!(recorded.outcome.stopped_early);
    assert!(
        recorded.outcome.window_us > 0 && recorded.outcome.window_us < 60_000_000,
        "{:?}",
        recorded.outcome
    );
    assert_eq!(recorded.outcome.failed_transactions, 0);
    bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, "stopped");
}

#[test]
fn a_stop_ends_an_attempt_to_connect() {
    let mut driver = Driver::spawn();
    driver.send(&Request::Run(Box::new(load(harness::silent_server()))));
    driver.send(&Request::Stop);
    let outcome = driver.outcome_without_load();
    assert!(outcome.stopped_early);
    assert_eq!((outcome.window_us, outcome.connections, outcome.latency), (0, 0, None));
}

#[test]
fn a_transaction_that_does_not_end_is_aborted() {
    let bench = Bench::shared();
    let mut locker = bench.client();
    let mut load = load(bench.unix());
    // The lock would also keep statements from being prepared.
    (load.warmup_us, load.workload, load.protocol) = (0, Workload::TpcbLike, Protocol::Simple);
    locker.execute("BEGIN; LOCK pgbench_branches").unwrap();
    let recorded = Driver::run(&load);
    assert_eq!((recorded.outcome.stopped_early, recorded.outcome.window_transactions), (false, 0));
    assert_eq!(recorded.outcome.failed_transactions, u64::from(load.clients));
    for death in &recorded.deaths {
        assert!(
            death.message.contains("still running 5 s after the end")
                && death.message.contains("line 9 of script tpcb-like"),
            "{death:?}"
        );
    }
}

#[test]
fn a_driver_exits_when_its_runner_has_exited() {
    let bench = Bench::shared();
    let request = Request::Run(Box::new(unlimited(bench.unix())));
    assert!(harness::exits_with_its_input(&request, "interval"));
    bench.wait_for_sessions_to_end();
}

#[test]
fn every_client_reports_a_server_crash() {
    for major in MAJORS {
        let mut cluster = harness::cluster(major);
        // The second start cleans up after the killed server.
        for signal in [Signal::KILL, Signal::QUIT] {
            let bench = Bench::with_cluster(cluster);
            let mut driver = Driver::spawn();
            let load = unlimited(bench.tcp());
            driver.send(&Request::Run(Box::new(load.clone())));
            driver.wait_for(|reply| matches!(reply, Reply::Interval(_)));
            bench.signal(signal);
            let recorded = driver.recorded();
            assert!(recorded.outcome.stopped_early);
            assert_eq!(recorded.outcome.failed_transactions, u64::from(load.clients));
            let mut dead: Vec<u32> = recorded.deaths.iter().map(|death| death.client).collect();
            dead.sort_unstable();
            assert_eq!(dead, (0..load.clients).collect::<Vec<_>>());
            for death in &recorded.deaths {
                assert!(death.message.contains("connection"), "{death:?}");
            }
            cluster = bench.into_cluster();
        }
    }
}

#[test]
fn an_error_aborts_its_client_and_the_others_continue() {
    for major in MAJORS {
        let mut bench = Bench::shared_of(major);
        // Only these tellers' balances can leave the range of their type.
        bench.sql("UPDATE pgbench_tellers SET tbalance = 2147483647 - 100 WHERE tid % 10 = 0");
        let mut load = load(bench.unix());
        (load.workload, load.clients) = (Workload::TpcbLike, 8);
        let recorded = Driver::run(&load);
        assert!(!recorded.deaths.is_empty(), "{:?}", recorded.outcome);
        assert_eq!(recorded.outcome.failed_transactions, recorded.deaths.len() as u64);
        for death in &recorded.deaths {
            assert_eq!(death.sqlstate.as_deref(), Some("22003"), "{death:?}");
            assert!(death.message.contains("line 8 of script tpcb-like"), "{death:?}");
        }
        bench.assert_commits(
            recorded.transactions() + recorded.outcome.other_commits,
            &format!("with errors, {major}"),
        );
    }
}

#[test]
fn missing_tables_are_reported() {
    let bench = Bench::shared();
    let mut load = load(bench.unix());
    load.connection.database = "postgres".to_owned();
    for &protocol in Protocol::VARIANTS {
        load.protocol = protocol;
        let recorded = Driver::run(&load);
        assert!(recorded.outcome.stopped_early);
        assert_eq!(recorded.outcome.failed_transactions, u64::from(load.clients));
        assert_eq!(recorded.deaths.len(), load.clients as usize);
        assert_eq!(recorded.deaths[0].sqlstate.as_deref(), Some("42P01"));
        assert!(recorded.deaths[0].message.contains("pgbench_accounts"), "{:?}", recorded.deaths[0]);
    }
}

#[test]
fn a_refused_login_is_reported_in_the_servers_words() {
    let bench = Bench::with(&[("max_connections", "20")]);
    let mut wrong = load(bench.unix());
    wrong.connection.database = "nowhere".to_owned();
    let (message, outage) = Driver::failure_and_outage(&wrong);
    assert!(message.contains("database \"nowhere\" does not exist (SQLSTATE 3D000)"), "{message}");
    assert_eq!(outage, None);

    let mut many = load(bench.unix());
    many.clients = 100;
    let message = Driver::failure(&many);
    assert!(message.contains("53300") && message.contains("raise max_connections"), "{message}");

    let mut nobody = load(bench.unix());
    nobody.connection.endpoint = Endpoint::Unix { directory: "/nonexistent".to_owned(), port: 5432 };
    let (message, outage) = Driver::failure_and_outage(&nobody);
    assert!(message.contains("/nonexistent/.s.PGSQL.5432"), "{message}");
    assert_eq!(outage, Some(Outage::Unreachable));

    let mut none = load(bench.unix());
    none.clients = 0;
    assert!(Driver::failure(&none).contains("clients"));
    none.clients = 2_000_000;
    assert!(Driver::failure(&none).contains("ulimit -Hn"));
}

/// The connection string determines the server and the options, not the user and the database.
#[test]
fn a_connection_string_determines_the_server() {
    let bench = Bench::shared();
    let mut load = load(bench.tcp());
    let Endpoint::Tcp { host, port } = load.connection.endpoint else { panic!("not TCP") };
    let conninfo = format!(
        "host={host} port={port} user=nobody dbname=nowhere sslmode=prefer options='-c work_mem=7MB'"
    );
    load.connection.endpoint = Endpoint::Conninfo { conninfo };
    let recorded = Driver::run(&load);
    assert!(recorded.outcome.window_transactions > 0, "{:?}", recorded.outcome);
    bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, "by a connection string");

    load.connection.endpoint = Endpoint::Conninfo { conninfo: "sslmode=maybe".to_owned() };
    let message = Driver::failure(&load);
    assert!(message.contains("invalid sslmode value: \"maybe\""), "{message}");
}

#[test]
fn passwords_are_sent_by_the_method_that_the_server_requests() {
    let bench = Bench::shared();
    let mut client = bench.client();
    // The server uses another authentication method for each.
    for user in ["scram", "md5", "clear"] {
        let encryption = if user == "md5" { "md5" } else { "scram-sha-256" };
        let create = format!(
            "SET password_encryption = '{encryption}'; CREATE USER {user} PASSWORD 'sécret'; \
             GRANT ALL ON ALL TABLES IN SCHEMA public TO {user}"
        );
        client.execute(&create).unwrap();
        let mut load = load(bench.tcp());
        load.connection.user = user.to_owned();
        load.connection.password = Some("sécret".to_owned());
        assert!(Driver::run(&load).outcome.window_transactions > 0, "{user}");
        load.connection.password = Some("wrong".to_owned());
        let message = Driver::failure(&load);
        assert!(message.contains("28P01") && message.contains("check user and password"), "{message}");
        load.connection.password = None;
        assert!(Driver::failure(&load).contains("requires a password"), "{user}");
    }
}

#[test]
fn many_clients_connect_through_a_short_backlog() {
    // The backlog of the server's sockets is about twice its max_connections.
    let bench = Bench::with(&[("max_connections", "310"), ("shared_buffers", "16MB")]);
    for connection in [bench.unix(), bench.tcp()] {
        let mut load = load(connection);
        load.clients = 300;
        let recorded = Driver::run(&load);
        assert_eq!((recorded.outcome.connections, recorded.deaths.len()), (300, 0));
        bench.wait_for_sessions_to_end();
    }
}

/// Responses may be segmented in any way.
#[test]
fn responses_may_arrive_byte_by_byte() {
    let bench = Bench::shared();
    for &protocol in Protocol::VARIANTS {
        let mut load = load(bench.byte_by_byte());
        (load.workload, load.protocol, load.clients, load.threads) = (Workload::TpcbLike, protocol, 2, 1);
        let recorded = Driver::run(&load);
        assert!(recorded.outcome.window_transactions > 0);
        assert_eq!(recorded.outcome.failed_transactions, 0, "{:?}", recorded.deaths);
        bench.assert_commits(recorded.transactions() + recorded.outcome.other_commits, protocol.as_str());
    }
}

#[test]
fn a_server_other_than_postgresql_is_reported() {
    let message = Driver::failure(&load(harness::server_that_sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
    assert!(message.contains("is it PostgreSQL?"), "{message}");
    let message = Driver::failure(&load(harness::server_that_sends(b"")));
    assert!(message.contains("server closed the connection unexpectedly"), "{message}");
}

/// More transactions do not cause more allocations.
#[test]
fn alone_a_transaction_allocates_nothing() {
    let bench = Bench::shared();
    for &protocol in Protocol::VARIANTS {
        let mut load = load(bench.unix());
        load.protocol = protocol;
        (load.warmup_us, load.interval_us) = (0, 10_000_000);
        let mut counts = [200_000, 1_000_000].map(|duration_us| {
            load.duration_us = duration_us;
            let recorded = Driver::run(&load);
            (recorded.transactions(), allocations(&recorded.stderr))
        });
        counts.sort_unstable();
        let [(few, allocations_of_few), (many, allocations_of_many)] = counts;
        assert!(many > few + 1000, "{few} and {many} transactions");
        let more = allocations_of_many.abs_diff(allocations_of_few);
        assert!(
            more < 100,
            "{more} allocations more in {} transactions more, {}",
            many - few,
            protocol.as_str()
        );
    }
}
