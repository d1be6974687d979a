//! Whole scripts on a real server, on each event loop: what clients send, and the handling of errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod harness;

use std::time::Duration;

use driver::{
    Arrivals, Control, DriverMessage, Engine, ErrorPolicy, Group, Level, Load, Observer, OnError, Outcome,
    Rate, Record, Spacing, Verbosity, WeightedScript,
};
use model::message::{Connection, Endpoint, Phase};
use model::record::ClockReading;
use model::workload::Protocol;
use script::{Names, Script, Seeds, Value, Variables};
use wire::ConnectParams;

use harness::Bench;

const ENGINES: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// Two clients of one thread that run this many transactions of some scripts each.
fn load(connection: &Connection, texts: &[&str], transactions: u64) -> Load {
    let mut names = Names::default();
    let scripts = texts.iter().enumerate().map(|(number, text)| {
        let script = Script::parse(&format!("script {number}"), text, &mut names).unwrap();
        WeightedScript { script, weight: 1 }
    });
    let scripts = scripts.collect();
    let (host, port) = match &connection.endpoint {
        Endpoint::Unix { directory, port } => (directory, *port),
        Endpoint::Tcp { host, port } => (host, *port),
        Endpoint::Conninfo { .. } => panic!("not the endpoint of a local server"),
    };
    let connection = ConnectParams::new(host, port, &connection.user, &connection.database, None);
    let clients = Group {
        client_id: names.find("client_id"),
        transactions: Some(transactions),
        ..Group::new(2, scripts, Variables::new(&names))
    };
    Load::new(connection, clients, Seeds::draw(7, 2, 1, false))
}

/// The records and messages of a load, added up.
#[derive(Default)]
struct Recorded {
    total: Option<Record>,
    drained: u64,
    messages: Vec<DriverMessage>,
    outcome: Option<Outcome>,
}

impl Observer for Recorded {
    fn connected(&mut self, _took: Duration, _background: &[i32]) {}

    fn started(&mut self, _: ClockReading, _: Duration) {}

    fn interval(&mut self, record: &Record) {
        if record.phase == Phase::Drain {
            self.drained += record.scripts.iter().map(|script| script.moments.count).sum::<u64>();
        }
        match &mut self.total {
            Some(total) => total.add(record),
            None => self.total = Some(record.clone()),
        }
    }

    fn on_message(&mut self, message: &DriverMessage) {
        self.messages.push(message.clone());
    }
}

impl Recorded {
    fn total(&self) -> &Record {
        self.total.as_ref().unwrap_or_else(|| panic!("nothing was recorded except {:?}", self.messages))
    }

    fn transactions(&self) -> u64 {
        self.total().scripts.iter().map(|script| script.moments.count).sum()
    }

    fn texts(&self) -> Vec<&str> {
        self.messages.iter().map(|message| message.text.as_str()).collect()
    }

    /// Asserts that a message contains `text`.
    fn assert_message(&self, text: &str) {
        assert!(
            self.messages.iter().any(|message| message.text.contains(text)),
            "{text}: {:?}",
            self.texts()
        );
    }
}

fn run(load: Load) -> Recorded {
    let mut recorded = Recorded::default();
    recorded.outcome = Some(driver::run(load, Control::default(), &mut recorded).unwrap());
    recorded
}

/// Runs a load on each event loop, and with a thread for each client on the one that it has then.
fn on_each_engine(load: &Load, mut check: impl FnMut(Recorded)) {
    let mut check = |load: Load, name: &str| {
        let recorded = run(load);
        assert_eq!(recorded.outcome.as_ref().unwrap().engine.name, name);
        check(recorded);
    };
    for engine in ENGINES {
        check(Load { engine, ..load.clone() }, if engine == Engine::Uring { "io_uring" } else { "epoll" });
    }
    let threads = load.clients();
    let seeds = Seeds::draw(7, threads as usize, threads as usize, false);
    check(Load { engine: Engine::Auto, threads, seeds, ..load.clone() }, "epoll");
}

#[test]
fn results_become_variables_and_conditions_select_branches() {
    let bench = Bench::shared();
    let script = "select 40 + :client_id as a, 'x' as b \\gset p_
\\set c 0
\\if :p_a = 40
  \\set c 100
\\elif :p_a = 41
  \\set c 200
\\else
  \\set c 300
\\endif
select 1 as one \\; select 2 as two, :c as three \\aset
\\if :one + :two + :three not in (103, 203)
  select 1 / 0;
\\endif
"
    .replace(
        ":one + :two + :three not in (103, 203)",
        ":one + :two + :three <> 103 and :one + :two + :three <> 203",
    );
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        // Only the simple protocol has several statements in one.
        let script = match protocol {
            Protocol::Simple => script.clone(),
            _ => script.replace(
                "select 1 as one \\; select 2 as two, :c as three",
                "select 1 as one, 2 as two, :c as three",
            ),
        };
        on_each_engine(&Load { protocol, ..load(&bench.unix(), &[&script], 3) }, |recorded| {
            assert_eq!((recorded.transactions(), recorded.texts()), (6, vec![]), "{protocol:?}");
        });
    }
}

#[test]
fn script_errors_abort_the_client() {
    let bench = Bench::shared();
    for (script, text) in [
        (
            "select 1 as a where false \\gset\n",
            "client 0 script 0 command 0 query 0: expected one row, got 0",
        ),
        (
            "select generate_series(1, 3) as a \\gset\n",
            "client 0 script 0 command 0 query 0: expected one row, got 3",
        ),
        (
            "select 1 \\; begin \\; commit \\gset\n",
            "client 0 script 0 command 0 query 2: expected one row, got 0",
        ),
        (
            "select 1 as \"bad name!\" \\gset\n",
            "client 0 script 0 command 0 query 0: error storing into variable bad name!",
        ),
        ("select 1 / 0 \\gset\n", "client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero"),
        (
            "select 1 \\; select 1 / 0;\n",
            "client 0 script 0 aborted in command 0 query 1: ERROR:  division by zero",
        ),
        ("copy pg_class to stdout;\n", "COPY is not supported in pgbench, aborting"),
        ("copy pg_class from stdin;\n", "COPY is not supported in pgbench, aborting"),
        ("begin;\n", "client 0 aborted: end of script reached without completing the last transaction"),
        (
            "\\set a 1 / 0\nselect 1;\n",
            "client 0 aborted in command 0 (set) of script 0; evaluation of meta-command failed",
        ),
    ] {
        on_each_engine(&load(&bench.unix(), &[script], 1), |recorded| {
            recorded.assert_message(text);
            assert_eq!(recorded.outcome.as_ref().unwrap().aborted, 2);
        });
    }
}

#[test]
fn pipelines_are_sent_at_once_and_answered_in_order() {
    let bench = Bench::shared();
    let script = "\\set big 300
\\startpipeline
begin;
select repeat('x', :big);
\\syncpipeline
select generate_series(1, 1000);
commit;
\\endpipeline
select 1;
";
    for protocol in [Protocol::Extended, Protocol::Prepared] {
        let mut load = load(&bench.unix(), &[script], 20);
        load.protocol = protocol;
        load.per_command = true;
        on_each_engine(&load, |recorded| {
            assert_eq!((recorded.transactions(), recorded.texts()), (40, vec![]));
            let script = &recorded.total().scripts[0];
            assert_eq!(script.rows, 40 * 1002);
            assert!(script.commands.iter().all(|command| command.moments.count == 40));
        });
    }
}

#[test]
fn errors_in_pipelines_abort_the_client() {
    let bench = Bench::shared();
    for (script, text) in [
        (
            "\\startpipeline\nselect 1/0;\nselect 2;\n\\endpipeline\n",
            "aborted in command 3 query 0: ERROR:  division by zero",
        ),
        ("\\startpipeline\nselect 1;\n", "aborted: end of script reached with pipeline open"),
        ("\\startpipeline\n\\startpipeline\n\\endpipeline\n", "already in pipeline mode"),
        ("\\endpipeline\nselect 1;\n", "not in pipeline mode"),
        ("\\startpipeline\nselect 1 as a \\gset\n\\endpipeline\n", "\\gset is not allowed in pipeline mode"),
    ] {
        let mut load = load(&bench.unix(), &[script], 1);
        load.protocol = Protocol::Extended;
        on_each_engine(&load, |recorded| recorded.assert_message(text));
    }
}

/// A serialization failure in every second try.
const FAILS_ONCE: &str = "\\set n :n + 1
begin;
\\if :n % 2 = 1
do $$ begin raise 'again' using errcode = '40001'; end $$;
\\endif
commit;
";

fn failing(bench: &Bench, errors: ErrorPolicy) -> Load {
    let mut names = Names::default();
    let script = Script::parse("failing", FAILS_ONCE, &mut names).unwrap();
    let mut variables = Variables::new(&names);
    variables.set(names.find("n").unwrap(), Value::Int(0)).unwrap();
    let scripts = vec![WeightedScript { script, weight: 1 }];
    Load {
        main: Group { transactions: Some(4), ..Group::new(2, scripts, variables) },
        errors,
        verbosity: Verbosity { errors: true, ..Verbosity::default() },
        ..load(&bench.unix(), &["select 1;"], 4)
    }
}

#[test]
fn a_serialization_failure_is_retried_while_tries_are_left() {
    let bench = Bench::shared();
    // The variable keeps its value, so that the second try succeeds.
    on_each_engine(&failing(&bench, ErrorPolicy::pgbench(Some(3))), |recorded| {
        let script = &recorded.total().scripts[0];
        assert_eq!((script.moments.count, script.failures.sum()), (8, 0), "{:?}", recorded.texts());
        assert_eq!((script.retried, script.retries), (8, 8));
        recorded.assert_message("got an error in command 3 (SQL) of script 0; ERROR:  again");
        recorded.assert_message("client 0 repeats the transaction after the error (try 1/3)");
    });
    on_each_engine(&failing(&bench, ErrorPolicy::pgbench(Some(1))), |recorded| {
        let script = &recorded.total().scripts[0];
        assert_eq!((script.moments.count, script.failures.serialization), (4, 4));
        assert_eq!((script.retried, recorded.outcome.as_ref().unwrap().aborted), (0, 0));
        recorded.assert_message("client 1 ends the failed transaction (try 1/1)");
    });
}

#[test]
fn errors_are_counted_or_end_the_connection_by_policy() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select 1 / 0;"], 5);
    load.errors.rules.push(("22".to_owned(), OnError::Count));
    on_each_engine(&load, |recorded| {
        assert_eq!((recorded.transactions(), recorded.total().scripts[0].failures.other), (0, 10));
        assert_eq!(recorded.outcome.as_ref().unwrap().connections, 2);
    });
    load.errors.rules.push(("22012".to_owned(), OnError::Reconnect));
    on_each_engine(&load, |recorded| {
        assert_eq!(recorded.total().scripts[0].failures.other, 10);
        assert!(recorded.outcome.as_ref().unwrap().connections >= 10, "{:?}", recorded.outcome);
    });
    load.errors.rules.clear();
    load.errors.exit_on_abort = true;
    let aborted = driver::run(load, Control::default(), &mut Recorded::default());
    assert!(aborted.unwrap_err().to_string().contains("aborted"));
}

/// The load does not shrink: a client whose backend is killed reconnects.
#[test]
fn a_lost_connection_is_replaced_if_requested() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select pg_terminate_backend(pg_backend_pid());"], 3);
    load.errors.reconnect = true;
    on_each_engine(&load, |recorded| {
        let outcome = recorded.outcome.as_ref().unwrap();
        assert_eq!((recorded.total().scripts[0].failures.other, outcome.aborted), (6, 0));
        assert!(outcome.connections >= 6, "{outcome:?}");
    });
    load.errors.reconnect = false;
    on_each_engine(&load, |recorded| {
        assert_eq!(recorded.outcome.as_ref().unwrap().aborted, 2);
        recorded.assert_message("FATAL:  terminating connection due to administrator command");
    });
}

#[test]
fn each_transaction_may_open_its_own_connection() {
    let bench = Bench::shared();
    for (connection, protocol) in [(bench.unix(), Protocol::Simple), (bench.tcp(), Protocol::Prepared)] {
        let mut load = load(&connection, &["select :client_id;"], 20);
        (load.main.reconnect, load.protocol) = (true, protocol);
        on_each_engine(&load, |recorded| {
            assert_eq!((recorded.transactions(), recorded.texts()), (40, vec![]));
            // The first connection of each client was opened before the load.
            assert_eq!(recorded.total().connects.count, 38);
            assert_eq!(recorded.outcome.as_ref().unwrap().connections, 40);
        });
    }
}

/// While one client is in \sleep or \shell, the other continues.
#[test]
fn a_pause_does_not_delay_other_clients() {
    let bench = Bench::shared();
    for pause in ["\\sleep 600 ms", "\\shell sleep 0.6"] {
        let script = format!("\\if :client_id = 0\n{pause}\n\\endif\nselect 1;\n");
        let mut load = load(&bench.unix(), &[&script], 0);
        (load.length, load.main.transactions) = (Some(Duration::from_millis(300)), None);
        on_each_engine(&load, |recorded| {
            assert_eq!(recorded.texts(), Vec::<&str>::new());
            assert!(recorded.transactions() > 50, "{} transactions", recorded.transactions());
            assert!(recorded.drained >= 1, "the transaction that slept");
        });
    }
}

#[test]
fn a_shell_command_sets_a_variable() {
    let bench = Bench::shared();
    let script =
        "\\setshell x expr 40 + :client_id\n\\if :x <> 40 + :client_id\nselect 1 / 0;\n\\endif\nselect 1;\n";
    on_each_engine(&load(&bench.unix(), &[script], 2), |recorded| {
        assert_eq!((recorded.transactions(), recorded.texts()), (4, vec![]));
    });
    on_each_engine(&load(&bench.unix(), &["\\shell false\nselect 1;\n"], 1), |recorded| {
        recorded.assert_message("false: could not launch shell command");
        recorded.assert_message(
            "client 0 aborted in command 0 (shell) of script 0; execution of meta-command failed",
        );
    });
}

#[test]
fn alone_an_open_loop_keeps_its_schedule() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select 1;"], 0);
    (load.length, load.main.transactions) = (Some(Duration::from_millis(1_000)), None);
    load.main.arrivals = Arrivals::Rate(Rate::constant(200.0, Spacing::Uniform));
    on_each_engine(&load, |recorded| {
        let transactions = recorded.transactions();
        // A busy machine may not begin what is due just before the end.
        assert!((150..=200).contains(&transactions), "{transactions}");
        let script = &recorded.total().scripts[0];
        assert_eq!(script.service.as_ref().unwrap().len(), transactions);
        assert_eq!(script.start_lag.count, transactions);
    });
}

/// At 50 ms per transaction, two clients cannot run 200 per second: late transactions are skipped.
#[test]
fn a_free_client_has_the_next_arrival_whichever_thread_it_belongs_to() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["\\if :client_id = 0\n\\sleep 500 ms\n\\endif\n"], 1);
    (load.seeds, load.threads) = (Seeds::draw(7, 2, 2, false), 2);
    load.length = Some(Duration::from_secs(60));
    let arrivals: Vec<_> = (1..=9).map(Duration::from_millis).collect();
    (load.main.arrivals, load.main.transactions) = (Arrivals::Given(arrivals.into()), None);
    load.main.spans = true;
    on_each_engine(&load, |recorded| {
        let spans = &recorded.total().spans;
        let of_first = spans.iter().filter(|span| span.client == 0).count();
        assert_eq!((of_first, spans.len()), (1, 9), "the first client of the first thread sleeps");
    });
}

#[test]
fn late_transactions_are_skipped() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select pg_sleep(0.05);"], 0);
    (load.length, load.main.transactions) = (Some(Duration::from_millis(1_000)), None);
    load.main.arrivals = Arrivals::Rate(Rate::constant(200.0, Spacing::Uniform));
    load.latency_limit = Some(Duration::from_millis(100));
    on_each_engine(&load, |recorded| {
        let script = &recorded.total().scripts[0];
        assert!(script.skipped > 50, "{}", script.skipped);
        assert!(script.moments.max < 1_000_000_000, "{:?}", script.moments);
    });
}

/// One Yielding client must not keep the thread from ending.
#[test]
fn a_script_without_statements_ends_with_the_load() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["\\set a 1\n"], 0);
    (load.length, load.main.transactions) = (Some(Duration::from_millis(100)), None);
    on_each_engine(&load, |recorded| assert!(recorded.transactions() > 1_000));
}

#[test]
fn notices_are_reported_if_requested() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["do $$ begin raise notice 'hello'; end $$;"], 1);
    load.verbosity.notices = true;
    on_each_engine(&load, |recorded| {
        let plain: Vec<_> =
            recorded.messages.iter().filter(|message| message.level == Level::Plain).collect();
        assert_eq!(plain.len(), 2);
        assert_eq!(plain[0].text, "NOTICE:  hello\n");
    });
}

/// Large responses and large statements are streamed.
#[test]
fn large_statements_and_responses_are_streamed() {
    let bench = Bench::shared();
    let text = "x".repeat(3_000_000);
    let script = format!("select repeat('y', 5000000) || '{text}';\n");
    on_each_engine(&load(&bench.tcp(), &[&script], 2), |recorded| {
        assert_eq!((recorded.transactions(), recorded.texts()), (4, vec![]));
        assert!(recorded.total().bytes > 4 * 8_000_000);
    });
}

/// A group of two clients, in addition to those of [`load`].
fn background(script: &str, transactions: Option<u64>) -> Group {
    let mut names = Names::default();
    let script = Script::parse("background", script, &mut names).unwrap();
    Group {
        client_id: names.find("client_id"),
        transactions,
        spans: true,
        ..Group::new(2, vec![WeightedScript { script, weight: 1 }], Variables::new(&names))
    }
}

#[test]
fn groups_have_their_own_scripts_numbers_and_ends() {
    let bench = Bench::shared();
    // A client with another's script or number would divide by zero.
    let mut load = load(&bench.unix(), &["select 1 / (:client_id - 2);", "\\set a 1\nselect 1 / :a;"], 6);
    load.background = vec![background("\\set a :client_id\nselect 1 / (2 - :a);", Some(3))];
    load.seeds = Seeds::draw(7, 4, 3, false);
    for threads in [1, 3] {
        load.threads = threads;
        on_each_engine(&load, |recorded| {
            assert_eq!(recorded.texts(), Vec::<&str>::new());
            let scripts: Vec<u64> =
                recorded.total().scripts.iter().map(|script| script.moments.count).collect();
            assert_eq!((scripts[0] + scripts[1], scripts[2]), (12, 6));
            // Spans of the clients that record them, which have the last numbers: three each, one after the other.
            let spans = &recorded.total().spans;
            for client in [2, 3] {
                let mut own: Vec<_> = spans.iter().filter(|span| span.client == client).collect();
                own.sort_by_key(|span| span.start_ns);
                assert_eq!(own.len(), 3, "{spans:?}");
                assert!(
                    own.iter().all(|span| span.script == 2 && !span.failed && span.end_ns > span.start_ns)
                );
                assert!(own.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "{own:?}");
            }
            assert_eq!(spans.len(), 6);
        });
    }
}

#[test]
fn clients_start_staggered_and_failures_have_spans() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select 1;"], 0);
    (load.length, load.main.transactions) = (Some(Duration::from_millis(500)), None);
    let late = Group {
        start: Duration::from_millis(100),
        stagger: Duration::from_millis(150),
        ..background("\\if :client_id = 1\nselect 1 / 0;\n\\endif\nselect 2;", Some(1))
    };
    // A group that would begin after the end does not begin.
    let never = Group { start: Duration::from_secs(60), ..background("select 3;", None) };
    load.background = vec![late, never];
    load.errors.otherwise = OnError::Count;
    load.seeds = Seeds::draw(7, 6, 1, false);
    on_each_engine(&load, |recorded| {
        let mut spans = recorded.total().spans.clone();
        spans.sort_by_key(|span| span.client);
        let seen: Vec<_> = spans.iter().map(|span| (span.client, span.failed)).collect();
        assert_eq!(seen, [(2, false), (3, true)]);
        assert!(spans[0].start_ns >= 100_000_000 && spans[1].start_ns >= 250_000_000, "{spans:?}");
        assert!(recorded.transactions() > 50 && !recorded.outcome.as_ref().unwrap().stopped_early);
    });
}

#[test]
fn alone_due_transactions_that_no_background_client_began_are_counted() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select 1;"], 0);
    (load.length, load.main.transactions) = (Some(Duration::from_secs(1)), None);
    let at_rate = |script: &str, rate| Group {
        arrivals: Arrivals::Rate(Rate::constant(rate, Spacing::Uniform)),
        ..background(script, None)
    };
    // Two clients can run at most 40 of 100.
    load.background = vec![
        at_rate("select pg_sleep(0.05);", 100.0),
        at_rate("select 1;", 20.0),
        background("select 2;", None),
    ];
    load.seeds = Seeds::draw(7, 8, 1, false);
    for threads in [1, 2] {
        load.threads = threads;
        load.seeds = Seeds::draw(7, 8, threads as usize, false);
        on_each_engine(&load, |recorded| {
            let missed = &recorded.outcome.as_ref().unwrap().background_missed;
            let ran: Vec<u64> =
                recorded.total().scripts[1..].iter().map(|script| script.transactions()).collect();
            // Two more may have begun and were cut short, or wait for their time.
            assert!((95..=102).contains(&(missed[0] + ran[0])) && missed[0] >= 55, "{missed:?} {ran:?}");
            assert!(missed[1] <= 1 && missed[2] == 0, "{missed:?} {ran:?}");
        });
    }
}

#[test]
fn alone_a_time_limit_ends_clients_with_transactions_left() {
    let bench = Bench::shared();
    let mut load = load(&bench.unix(), &["select pg_sleep(0.05);"], 1_000);
    load.length = Some(Duration::from_millis(300));
    on_each_engine(&load, |recorded| {
        assert!(recorded.outcome.as_ref().unwrap().stopped_early);
        assert!((2..=14).contains(&recorded.transactions()), "{}", recorded.transactions());
    });
    load.main.transactions = Some(2);
    on_each_engine(&load, |recorded| {
        let outcome = recorded.outcome.as_ref().unwrap();
        assert!(!outcome.stopped_early && outcome.window_ns < 290_000_000, "{outcome:?}");
    });
}

#[test]
fn background_work_is_cut_short_without_failing() {
    let bench = Bench::shared();
    for (connection, protocol) in [(bench.unix(), Protocol::Prepared), (bench.tcp(), Protocol::Simple)] {
        let mut load = load(&connection, &["select 1;"], 0);
        (load.length, load.main.transactions) = (Some(Duration::from_millis(300)), None);
        load.background = vec![
            background("begin;\nselect pg_sleep(600);\ncommit;", None),
            background("begin;\nselect 1;\n\\sleep 600 s\ncommit;", None),
            background("\\startpipeline\nselect 2;\nselect pg_sleep(600);\n\\endpipeline", None),
        ];
        load.background.truncate(if protocol == Protocol::Simple { 2 } else { 3 });
        load.protocol = protocol;
        load.seeds = Seeds::draw(7, load.clients() as usize, 1, false);
        on_each_engine(&load, |recorded| {
            let outcome = recorded.outcome.as_ref().unwrap();
            assert_eq!((recorded.texts(), outcome.aborted), (Vec::<&str>::new(), 0));
            assert!(!outcome.stopped_early && outcome.elapsed_ns < 60_000_000_000, "{outcome:?}");
            let ended: Vec<_> =
                recorded.total().scripts[1..].iter().map(|script| script.transactions()).collect();
            assert!(ended.iter().all(|ended| *ended == 0), "{ended:?}");
        });
    }
}
