//! `pgdyno pgbench` on a real server: initialization, runs, and how they end.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use support::pgbench::{Bench, Pgbench, RunOutput, form};
use support::{signal, wait_until};

const OURS: Pgbench = Pgbench::Ours(18);

#[test]
fn initialization_makes_the_tables_in_every_way() {
    let bench = Bench::new("18");
    let ways = [
        "-i -s 2",
        "-i -s 2 -q -I dtGvp",
        "-i -s 2 --foreign-keys --unlogged-tables -F 90",
        "-i -s 2 --partitions=3",
        "-i -s 2 --partitions=2 --partition-method=hash -n",
    ];
    for way in ways {
        let ended = run(&bench, way);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), ""), "{way}: {}", ended.all());
        assert!(ended.stderr.contains("\ndone in "), "{way}: {}", ended.stderr);
        let mut client = bench.client();
        let counts: Vec<u64> = client
            .query_one("select (select count(*) from pgbench_branches where filler is null),
                        (select count(*) from pgbench_tellers where bid = (tid - 1) / 10 + 1 and filler is null),
                        (select count(*) from pgbench_accounts
                         where bid = (aid - 1) / 100000 + 1 and octet_length(filler) = 84),
                        (select count(*) from pgbench_history)")
            .unwrap();
        assert_eq!(counts, [2, 20, 200_000, 0], "{way}");
        let report = run(&bench, "-S -t 1 -n").stdout;
        let partitions = |method: &str, count: u32| {
            report.contains(&format!("scaling factor: 2\npartition method: {method}\npartitions: {count}\n"))
        };
        match way.contains("partitions") {
            true => assert!(partitions("range", 3) || partitions("hash", 2), "{report}"),
            false => assert!(report.contains("scaling factor: 2\nquery mode: "), "{report}"),
        }
    }
}

#[test]
fn without_tables_the_hint_is_initialization() {
    let bench = Bench::new("18");
    bench.client().execute("drop table pgbench_branches").unwrap();
    let ended = run(&bench, "-S");
    assert_eq!(ended.code, Some(1), "{}", ended.all());
    assert!(
        ended.stderr.contains(
            "pgbench: error: could not count number of branches: ERROR:  relation \"pgbench_branches\" does not exist"
        ) && ended.stderr.contains("pgbench: hint: Perhaps you need to do initialization (\"pgbench -i\")"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_run_reports_its_settings_and_results() {
    let bench = Bench::new("18");
    let ended =
        run(&bench, "-c 3 -j 2 -t 20 -b tpcb-like -b select-only@0 -r --max-tries=3 --failures-detailed");
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    assert_eq!(ended.stderr, "starting vacuum...end.\n");
    for line in [
        "transaction type: multiple scripts",
        "number of clients: 3",
        "number of threads: 2",
        "maximum number of tries: 3",
        "number of transactions actually processed: 60/60",
        "number of deadlock failures: 0 (0.000%)",
        " - weight: 1 (targets 100.0% of total)",
        " - 60 transactions (100.0% of total)",
        " - weight: 0 (targets 0.0% of total)",
        " - 0 transactions (0.0% of total)",
        " - statement latencies in milliseconds, failures and retries:",
    ] {
        assert!(ended.stdout.lines().any(|output_line| output_line == line), "{line} in\n{}", ended.stdout);
    }
    let commands: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("   ")).collect();
    assert_eq!(commands.len(), 11 + 2, "{}", ended.stdout);
    assert!(
        commands[10].ends_with(" END;") && form(commands[10]).trim_start().starts_with("#.###"),
        "{commands:?}"
    );
    assert_eq!(bench.client().query_one::<u64>("select count(*) from pgbench_history").unwrap(), 60);
}

#[test]
fn every_interval_is_reported_including_the_last_incomplete_one() {
    let bench = Bench::new("18");
    bench.script("nap.sql", "\\sleep 300 ms\nSELECT 1;");
    let ended = run(&bench, "-n -f nap.sql -t 5 -P 1");
    let form_of_all = "progress: #.# s, #.# tps, lat #.### ms stddev #.###, # failed";
    assert!(ended.stderr.lines().all(|line| form(line) == form_of_all), "{}", ended.all());
    let figures: Vec<Vec<f64>> = ended
        .stderr
        .lines()
        .map(|line| line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect())
        .collect();
    // The run takes at least 1.5 s on any machine.
    assert!(figures.len() >= 2 && figures[0][0] < 1.5, "{}", ended.stderr);
    let mut before = 0.0;
    let mut transactions = 0.0;
    for interval in &figures {
        let [at, tps, latency, _, failed] = interval[..] else { panic!("{}", ended.stderr) };
        transactions += tps * (at - before);
        before = at;
        assert!((tps == 0.0 || latency >= 300.0) && failed == 0.0, "{}", ended.stderr);
    }
    // Times are reported to a tenth of a second.
    assert!((transactions - 5.0).abs() < 1.0, "{transactions}: {}", ended.stderr);
}

#[test]
fn variables_are_those_of_the_options() {
    let bench = Bench::new("18");
    bench.script(
        "variables.sql",
        "SELECT :scale AS scale, :client_id AS id, :random_seed AS seed, ':a' AS a, :b AS b;\n\
         \\set x debug(:scale)\n\\set x debug(:random_seed)\n\\set x debug(:a + :b)\n",
    );
    let ended = run(&bench, "-n -f variables.sql -t 1 -s 7 -D a=3 -D b=4 -D unused=x --random-seed=11");
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    assert_eq!(
        ended.stderr,
        "pgbench: setting random seed to 11\ndebug(script=0,command=2): int 7\n\
         debug(script=0,command=3): int 11\ndebug(script=0,command=4): int 7\n"
    );
    assert!(ended.stdout.contains("scaling factor: 7\n"), "{}", ended.stdout);
}

#[test]
fn an_aborted_client_makes_the_results_incomplete() {
    let bench = Bench::new("18");
    bench.script("bad.sql", "SELECT 1/:client_id;");
    let ended = run(&bench, "-n -f bad.sql -t 5 -c 2");
    assert_eq!(ended.code, Some(2), "{}", ended.all());
    assert!(ended.stdout.contains("number of transactions actually processed: 5/10\n"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero")
            && ended.stderr.ends_with("pgbench: error: Run was aborted; the above results are incomplete.\n"),
        "{}",
        ended.stderr
    );
    let ended = run(&bench, "-n -f bad.sql -T 60 -c 2 -j 2 --exit-on-abort");
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(2), 1), "{}", ended.all());
    assert!(ended.stderr.ends_with("Run was aborted due to an error in thread 0\n"), "{}", ended.stderr);
}

#[test]
fn an_interrupted_run_reports_what_ran() {
    let bench = Bench::new("18");
    let mut command = bench.command(OURS);
    command.args(["-n", "-S", "-T", "600", "-P", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    assert!(first.starts_with("progress: 1.0 s, "), "{first}");
    signal(child.id() as i32, libc::SIGINT);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let ended = RunOutput::new(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.all());
    assert!(rest.contains("Run was interrupted"), "{rest}");
    assert!(ended.stdout.contains("\ntps = "), "{}", ended.stdout);
}

#[test]
fn waiting_for_a_lock_does_not_delay_the_end() {
    let bench = Bench::new("18");
    let mut locker = bench.client();
    locker.execute("begin; lock pgbench_accounts").unwrap();
    let mut command = bench.command(OURS);
    command
        .args(["-n", "-S", "-c", "3", "-j", "2", "-T", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut client = bench.client();
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    wait_until("all wait", || client.query_one::<u64>(waiting).unwrap() == 3);
    signal(child.id() as i32, libc::SIGINT);
    let ended = RunOutput::new(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.all());
    assert!(ended.stdout.contains("number of transactions actually processed: 0\n"), "{}", ended.stdout);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn an_interrupted_initialization_is_cancelled_in_the_server() {
    let bench = Bench::new("18");
    let mut command = bench.command(OURS);
    command.args(["-i", "-I", "dtG", "-s", "1000"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut printed = String::new();
    while !printed.ends_with("generating data (server-side)...\n") {
        assert!(stderr.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    // Without a running statement, nothing would be cancelled.
    let mut client = bench.client();
    let running = "select count(*) from pg_stat_activity where query like 'insert into pgbench_accounts%'";
    wait_until("rows are made", || client.query_one::<u64>(running).unwrap() == 1);
    signal(child.id() as i32, libc::SIGINT);
    stderr.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{printed}");
    assert!(printed.contains("query failed: ERROR:  canceling statement due to user request\n"), "{printed}");
}

#[test]
fn a_failed_connection_is_reported_with_the_message_of_libpq() {
    let bench = Bench::new("18");
    let ended = run(&bench, "-n no-such-database");
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{}", ended.all());
    assert!(
        ended.stderr.starts_with("pgbench: error: connection to server on socket \"")
            && ended.stderr.contains("failed: FATAL:  database \"no-such-database\" does not exist\n")
            && ended.stderr.ends_with("pgbench: error: could not create connection for setup\n"),
        "{}",
        ended.stderr
    );
}

fn run(bench: &Bench, line: &str) -> RunOutput {
    bench.run(OURS, &line.split(' ').collect::<Vec<_>>())
}
