//! `pgdyno replay synthesize`: a planted mix is in the trace with its frequencies, its statements find rows, and nothing fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use serde_json::Value;
use server::{Cluster, Server};
use support::text;

/// How a snapshot is taken, as the documentation shows it.
const SNAPSHOT: &str = "SELECT now() AS snapshot_at, datname, s.* FROM pg_stat_statements s \
                        JOIN pg_database d ON d.oid = dbid";

const SCHEMA: &str = "\
CREATE TYPE state AS ENUM ('open', 'paid', 'sent');
CREATE TABLE customers (id int PRIMARY KEY, email text UNIQUE, name varchar(20), since date);
CREATE TABLE orders (id bigint PRIMARY KEY, customer int REFERENCES customers, state state, total numeric,
    created timestamptz);
CREATE TABLE items (order_id bigint REFERENCES orders, no int, sku text, PRIMARY KEY (order_id, no));
CREATE TABLE tokens (id uuid PRIMARY KEY, customer int REFERENCES customers);
CREATE TABLE teams (id int PRIMARY KEY);
CREATE TABLE members (team int REFERENCES teams, customer int REFERENCES customers, PRIMARY KEY (team, customer));
CREATE TABLE counters (name text PRIMARY KEY, n int);
INSERT INTO customers SELECT i, 'User' || i || '@example.com', 'name ' || i, date '2020-01-01' + i
    FROM generate_series(1, 2000) i;
INSERT INTO orders SELECT i * 3, 1 + i % 2000, 'open', i / 7.0, timestamptz '2026-01-01 00:00+00' + i * interval '1 min'
    FROM generate_series(1, 10000) i;
INSERT INTO items SELECT 3 + i / 3 * 3, i % 3, 'sku ' || i FROM generate_series(1, 9000) i;
INSERT INTO tokens SELECT md5(i::text)::uuid, i FROM generate_series(1, 500) i;
INSERT INTO teams SELECT generate_series(1, 100);
INSERT INTO members SELECT i % 100 + 1, i FROM generate_series(1, 200) i;
INSERT INTO counters SELECT 'counter ' || i, 0 FROM generate_series(1, 20) i;
ANALYZE";

/// A statement of the mix.
struct Planted {
    /// Words by which it is found again.
    words: &'static str,
    /// Its executions in the recorded period, an even number.
    calls: u64,
    /// The statement of execution `i`.
    text: fn(u64) -> String,
    /// Least and most rows of an execution in the playback, on average.
    rows: (f64, f64),
}

const fn planted(words: &'static str, calls: u64, rows: (f64, f64), text: fn(u64) -> String) -> Planted {
    Planted { words, calls, text, rows }
}

const ONE: (f64, f64) = (1.0, 1.0);

/// The mix.
const MIX: [Planted; 19] = [
    planted("select name from customers where id =", 400, ONE, |i| {
        format!("select name from customers where id = {}", i + 1)
    }),
    planted("lower(email)", 100, ONE, |i| {
        format!("select id from customers where lower(email) = lower('User{}@example.com')", i + 1)
    }),
    // A two hundredth of 10,000 orders: 50 and its limits.
    planted("select id from orders where created between", 60, (45.0, 55.0), |i| {
        format!(
            "select id from orders where created between '2026-01-02 00:00+00' and '2026-01-02 {:02}:00+00'",
            i % 23
        )
    }),
    // Of shortened lists (18), one element is left.
    planted("select since from customers where id in", 40, (1.0, 3.0), |i| {
        format!("select since from customers where id in ({i}, {}, {})", i + 10, i + 20)
    }),
    planted("select o.total, c.name", 200, ONE, |i| {
        format!(
            "select o.total, c.name from orders o join customers c on c.id = o.customer where o.id = {}",
            3 + i * 3
        )
    }),
    planted("insert into orders", 120, ONE, |i| {
        format!("insert into orders values ({}, {}, 'open', 12.5, '2026-11-01 00:00+00')", 100_000 + i, 1 + i)
    }),
    planted("insert into items (sku, order_id, no)", 60, ONE, |i| {
        format!("insert into items (sku, order_id, no) values ('s', {}, {})", 3 + i * 3, 10 + i)
    }),
    planted("update orders set state", 80, ONE, |i| {
        format!("update orders set state = 'paid', total = total + 1.5 where id = {}", 3 + i * 3)
    }),
    planted("update customers set email", 20, ONE, |i| {
        format!("update customers set email = 'new{i}@example.com', name = 'x' where id = {}", 1 + i)
    }),
    planted("delete from items", 40, ONE, |i| {
        format!("delete from items where order_id = {} and no = {}", 3 + i * 3, i % 3)
    }),
    planted("insert into counters", 60, ONE, |i| {
        format!(
            "insert into counters as c (name, n) values ('counter {}', 1) on conflict (name) do update set n = c.n + 1",
            1 + i % 20
        )
    }),
    planted("insert into tokens", 40, ONE, |i| {
        format!("insert into tokens values ('{:032x}', {})", 7 + i, 1 + i)
    }),
    planted("insert into members", 20, (0.5, 1.0), |i| {
        format!("insert into members (team, customer) values ({}, {})", 1 + i, 1000 + i)
    }),
    planted("order by created desc", 100, (1.0, 10.0), |i| {
        format!("select id from orders where customer = {} order by created desc limit 5 offset 0", 1 + i)
    }),
    planted("now() -", 20, ONE, |_| {
        "select count(*) from orders where created > now() - interval '2 hours'".to_owned()
    }),
    planted("date_part", 20, ONE, |i| {
        format!("select extract(year from created) from orders where id = {}", 3 + i * 3)
    }),
    planted("name like", 20, (1.0, 2000.0), |i| {
        format!("select id from customers where name like 'name {i}%'")
    }),
    planted("any", 20, (2.0, 3.0), |i| {
        format!("select id from orders where id = any('{{{}, 6, 9}}'::bigint[])", 12 + i * 3)
    }),
    planted("date_trunc", 20, (1.0, 10.0), |i| {
        format!(
            "select date_trunc('hour', created), count(*) from orders where customer = {} and state = 'open' group by 1",
            1 + i
        )
    }),
];

/// A server with the view, on which the mix was executed in the database `shop`, and which has a copy of that without it.
struct Application {
    server: Server,
    directory: tempfile::TempDir,
}

impl Application {
    fn new(major: &str) -> Self {
        let cache = Cache::open().unwrap();
        let installation = server::install_newest(&cache, major, &NoProgress).unwrap();
        let cluster = Cluster::empty(&cache, &installation, &[]).unwrap();
        let settings = [("shared_preload_libraries", "pg_stat_statements"), ("fsync", "off")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let server = cluster.start(&settings).unwrap();
        let mut session = server.session("postgres").unwrap();
        session.execute("CREATE EXTENSION pg_stat_statements").unwrap();
        session.execute("CREATE DATABASE shop").unwrap();
        server.session("shop").unwrap().execute(SCHEMA).unwrap();
        session.execute("CREATE DATABASE copy TEMPLATE shop").unwrap();
        session.execute("SELECT pg_stat_statements_reset()").unwrap();
        Self { server, directory: tempfile::tempdir().unwrap() }
    }

    /// Executes the mix, statement by statement, with two transaction blocks.
    fn work(&self) {
        let mut session = self.server.session("shop").unwrap();
        session.execute("begin").unwrap();
        for planted in &MIX {
            for number in 0..planted.calls {
                session.execute(&(planted.text)(number)).unwrap();
            }
        }
        session.execute("commit").unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let Endpoint::Unix { directory, port } = self.server.endpoint(Transport::Unix) else {
            panic!("no socket")
        };
        let user = self.server.connection(Transport::Unix).user;
        let mut command = Command::new(program);
        command.current_dir(self.directory.path()).env("PGDYNO_QUEUE", self.directory.path());
        command.env("PGHOST", directory).env("PGPORT", port.to_string()).env("PGUSER", user);
        command
    }

    fn snapshot(&self, name: &str) -> String {
        let output =
            self.command("psql").args(["-X", "--csv", "-d", "postgres", "-c", SNAPSHOT]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let path = self.path(name);
        fs::write(&path, output.stdout).unwrap();
        path
    }

    fn pgdyno(&self, args: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_pgdyno")).args(args).output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> (Value, String) {
        let output = self.pgdyno(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output));
        (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// Calls and rows of the statements of the copy.
    fn played(&self) -> Vec<(String, u64, u64)> {
        let mut session = self.server.session("postgres").unwrap();
        session
            .query(
                "SELECT query, sum(calls)::bigint, sum(rows)::bigint FROM pg_stat_statements s \
                 JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'copy' GROUP BY query",
            )
            .unwrap()
    }
}

fn counts(inspection: &Value, list: &str) -> BTreeMap<String, u64> {
    inspection[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), one["count"].as_u64().unwrap()))
        .collect()
}

/// The planted mix, recorded in 20 s and played in 10 s: half of its calls.
fn the_mix_is_played_as_often(major: &str) {
    let application = Application::new(major);
    let before = application.snapshot("before.csv");
    application.work();
    let after = application.snapshot("after.csv");
    let trace = application.path("app.pgdt");
    let synthesize = |trace: &str, more: &[&str]| {
        let args = [
            "replay",
            "synthesize",
            &before,
            &after,
            "-o",
            trace,
            "-d",
            "copy",
            "--period",
            "20s",
            "--duration",
            "10s",
            "--from-database",
            "shop",
            "--format",
            "json",
        ];
        let args = [&args[..], more].concat();
        application.succeed(&args)
    };
    let (made, notes) = synthesize(&trace, &[]);
    let planted_calls: u64 = MIX.iter().map(|planted| planted.calls).sum();
    assert_eq!(made["executions"], planted_calls / 2, "{made:#} {notes}");
    assert_eq!((&made["is_synthetic"], &made["extended"]), (&true.into(), &(planted_calls / 2).into()));
    assert_eq!(made["logs"][1]["format"], "pg_stat_statements");
    assert_eq!(made["period"]["length_s"], 10.0);
    let left_out = counts(&made, "left_out");
    assert_eq!(left_out.get("utility"), Some(&2), "{left_out:?} {notes}");
    // The interval, and what is added to columns of orders and counters.
    assert_eq!(left_out.get("typed-value"), Some(&(10 + 40 + 30)), "{left_out:?}");
    let lists = if major == "18" { Some(&20) } else { None };
    assert_eq!(left_out.get("shortened-list"), lists, "{left_out:?}");
    assert!(
        left_out.keys().all(|name| ["utility", "typed-value", "shortened-list"].contains(&name.as_str())),
        "{notes}"
    );
    assert!(!notes.contains("refused"), "{notes}");

    // The same seed, the same trace; another one, others.
    let (again, _) = synthesize(&application.path("again.pgdt"), &[]);
    let (other, _) = synthesize(&application.path("other.pgdt"), &["--seed", "2", "-c", "7"]);
    assert_eq!((&again["sum"], again["sum"] == other["sum"]), (&made["sum"], false));
    assert_eq!(other["sessions"], 7);

    application.server.session("postgres").unwrap().execute("SELECT pg_stat_statements_reset()").unwrap();
    let (report, _) = application.succeed(&["replay", "play", &trace, "-d", "copy", "--format", "json"]);
    for difference in report["differences"].as_array().unwrap() {
        // Pairs of references that exist already.
        assert!(difference["text"].as_str().unwrap().contains("members"), "{difference:#}");
        assert!(difference["count"].as_u64().unwrap() <= 3, "{difference:#}");
    }
    let played = application.played();
    for planted in &MIX {
        let of: Vec<&(String, u64, u64)> =
            played.iter().filter(|(text, ..)| text.contains(planted.words)).collect();
        let (calls, rows) = of.iter().fold((0, 0), |sum, (_, calls, rows)| (sum.0 + calls, sum.1 + rows));
        if planted.words != "insert into members" {
            assert_eq!(calls, planted.calls / 2, "{}: {of:?}", planted.words);
        }
        let per_call = rows as f64 / (planted.calls / 2) as f64;
        assert!(
            (planted.rows.0..=planted.rows.1).contains(&per_call),
            "{per_call} {}: {of:?}",
            planted.words
        );
    }
}

#[test]
fn the_mix_is_played_as_often_on_9_6() {
    the_mix_is_played_as_often("9.6");
}

#[test]
fn the_mix_is_played_as_often_on_13() {
    the_mix_is_played_as_often("13");
}

#[test]
fn the_mix_is_played_as_often_on_18() {
    the_mix_is_played_as_often("18");
}

#[test]
fn what_can_not_be_used_is_said() {
    let application = Application::new("18");
    let mut shop = application.server.session("shop").unwrap();
    shop.execute("create table only_here (id int); select * from only_here where id = 5; select 1").unwrap();
    let one = application.snapshot("one.csv");
    let trace = application.path("x.pgdt");
    let run = |args: &[&str]| {
        let output =
            application.pgdyno(&[&["replay", "synthesize", "-o", &trace, "-d", "copy"], args].concat());
        (output.status.code(), text(&output))
    };
    let given = ["--period", "1min", "--from-database", "shop"];
    let (code, several) = run(&[&one, "--period", "1min"]);
    assert!(code == Some(1) && several.contains("choose one with --from-database: "), "{several}");
    let (code, unused) = run(&[&[one.as_str()], &given[..]].concat());
    assert!(
        code == Some(0) && unused.contains("refused: select * from only_here where id = $1: "),
        "{unused}"
    );
    assert!(unused.contains("42P01"), "{unused}");
    let (code, all) = run(&[&[one.as_str()], &["--period", "1min", "--from-database", "copy"][..]].concat());
    assert!(code == Some(1) && all.contains("no statement of the database \"copy\""), "{all}");
    let (code, long) = run(&[&[one.as_str()], &given[..], &["--duration", "100000000h"]].concat());
    assert!(code == Some(2) || long.contains("--duration"), "{long}");
    let replaced = application.pgdyno(&["replay", "synthesize", &one, "-o", &one, "-d", "copy"]);
    assert!(
        replaced.status.code() == Some(2) && text(&replaced).contains("would replace"),
        "{}",
        text(&replaced)
    );
    let (code, missing) = run(&[&application.path("nowhere.csv")]);
    assert!(code == Some(1) && missing.contains("nowhere.csv can't be used: No such file"), "{missing}");
    let output = application.pgdyno(&[
        "replay",
        "synthesize",
        &one,
        "-o",
        &trace,
        "-d",
        "nowhere",
        "--period",
        "1s",
        "--from-database",
        "shop",
    ]);
    assert!(
        output.status.code() == Some(1) && text(&output).contains("database \"nowhere\" does not exist"),
        "{}",
        text(&output)
    );
    assert!(Path::new(&trace).exists());
}
