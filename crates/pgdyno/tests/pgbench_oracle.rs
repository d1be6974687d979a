//! `pgdyno pgbench` compared with PostgreSQL's pgbench, if one is installed: the same statements for the same seed, and
//! reports, progress lines and logs of the same form.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeSet;

use skip::skip;
use support::pgbench::{Bench, Pgbench, RunOutput, form, oracle};

/// Every function and operator, every kind of value, and the predefined variables. Each result is sent to the server,
/// whose log the test reads.
const EVERYTHING: &str = r"\set uniform random(1, 1000000)
\set gaussian random_gaussian(1, 1000, 2.5)
\set exponential random_exponential(1, 1000, 3.5)
\set zipfian random_zipfian(1, 1000, 1.07)
\set zipfian_steep random_zipfian(1, 100000, 2.5)
\set permuted permute(:uniform, 1000000)
\set permuted_seed permute(:uniform, 1000, 42)
\set hashed hash(:uniform)
\set fnv hash_fnv1a(:uniform, 7)
\set murmur hash_murmur2(:uniform)
\set arithmetic (3 + 4 * 5 - 6) / 2 % 5
\set bits (5 | 2) & ~1 # 3 << 2 >> 1
\set double 1.5 * sqrt(2) + exp(1) - ln(10) + pi()
\set power pow(2.0, 0.5) + power(3, 2)
\set extremes greatest(1, 2.5, 3) + least(4, -5)
\set whole int(7.9) + abs(-3) + mod(-7, 3)
\set float double(7)
\set logic (1 < 2 and not (3 >= 4)) or 5 <> 6 or (null is null)
\set chosen case when :uniform % 3 = 0 then null is null when :uniform % 3 = 1 then false else true end
\set nothing null
\set is_nothing :nothing isnull
SELECT :uniform, :gaussian, :exponential, :zipfian, :zipfian_steep, :permuted, :permuted_seed;
SELECT :hashed, :fnv, :murmur, :default_seed::int8, :random_seed::int8, :scale::int, :client_id::int;
SELECT :arithmetic, :bits, :double::float8, :power::float8, :extremes::float8, :whole, :float::float8;
SELECT :logic::bool, :chosen::bool, :is_nothing::bool, :given::text, '12:34:56';
\if :uniform % 2 = 0
SELECT 2 AS parity \gset
\elif :uniform % 3 = 0
SELECT 3 AS parity \gset
\else
SELECT 1 AS parity \gset x_
\set parity :x_parity
\endif
SELECT :parity::int;
\sleep 100 us
";

#[test]
fn the_same_seed_sends_the_same_statements() {
    let Some((bench, ours)) = start() else { return };
    bench.script("everything.sql", EVERYTHING);
    for protocol in ["simple", "extended", "prepared"] {
        for (what, several) in [
            ("-b tpcb-like", "-c 4 -j 2 -t 10"),
            ("-b simple-update", "-c 4 -j 2 -t 10"),
            ("-b select-only", "-c 4 -j 2 -t 10"),
            ("-f everything.sql", "-c 4 -j 2 -t 10"),
            // One client per thread: clients of a thread draw scripts from one generator, in any order.
            ("-b se@3 -b si@1", "-c 2 -j 2 -t 10"),
        ] {
            for size in ["-c 1 -t 20", several] {
                let line = format!("-n -M {protocol} {what} {size} --random-seed=20 -D given=7.5");
                let statements = |pgbench| {
                    let since = bench.log_length();
                    let ended = run(&bench, pgbench, &line);
                    assert_eq!(ended.code, Some(0), "{line}: {}", ended.all());
                    bench.statements(since).into_iter().collect::<BTreeSet<_>>()
                };
                let (ours, theirs) = (statements(ours), statements(Pgbench::Oracle));
                assert!(!theirs.is_empty() && !theirs.contains(&Vec::new()), "{line}");
                assert_eq!(ours, theirs, "{line}");
            }
        }
    }
}

/// Runs whose reports contain every possible line. The choice of scripts is seeded if one could be left out by chance:
/// a script without transactions has no latency lines.
const RUNS: [&str; 9] = [
    "-S -t 20",
    "-N -t 5 -c 2 -r -v",
    "-T 1 -S -c 3 -j 3 -s 5",
    "-b se@3 -b si@1 -b tpcb@0 -t 20 -r --random-seed=20",
    "-S -t 20 -C",
    "-S -t 50 -R 1000",
    "-S -t 50 -R 1000 -L 2000 -r -b se -b si",
    "-N -t 20 --max-tries=5 --failures-detailed -r -b se",
    "-S -T 1 -L 100 --max-tries=0",
];

#[test]
fn reports_have_the_same_form() {
    let Some((bench, ours)) = start() else { return };
    for line in RUNS {
        let output = |pgbench| {
            let ended = run(&bench, pgbench, line);
            assert_eq!(ended.code, Some(0), "{line}: {}", ended.all());
            (report(&ended).join("\n"), ended.stderr)
        };
        assert_eq!(output(ours), output(Pgbench::Oracle), "{line}");
    }
}

#[test]
fn progress_lines_have_the_same_form() {
    let Some((bench, ours)) = start() else { return };
    for line in [
        "-n -S -T 2 -P 1",
        "-n -S -T 2 -P 1 --progress-timestamp",
        "-n -S -T 2 -P 1 -R 100",
        "-n -S -T 2 -P 1 -R 100 -L 100 --max-tries=2",
    ] {
        let forms = |pgbench| {
            let ended = run(&bench, pgbench, line);
            assert_eq!(ended.code, Some(0), "{line}: {}", ended.all());
            ended.stderr.lines().map(form).collect::<BTreeSet<_>>()
        };
        let (ours, theirs) = (forms(ours), forms(Pgbench::Oracle));
        assert_eq!(theirs.len(), 1, "{line}: {theirs:?}");
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn logs_have_the_same_form() {
    let Some((bench, ours)) = start() else { return };
    bench.script("nap.sql", "\\sleep 100 ms\n");
    for line in [
        "-n -S -c 3 -j 2 -t 10 -l --log-prefix=L",
        "-n -S -c 3 -j 2 -t 10 -R 1000 -l --log-prefix=L",
        "-n -S -t 10 -l --log-prefix=L --max-tries=2",
        // One transaction takes longer than the limit, which makes all others late.
        "-n -f nap.sql -t 20 -R 100000 -L 50 -l --log-prefix=L",
        "-n -S -T 2 -c 2 -j 2 -R 200 -l --log-prefix=L --aggregate-interval=1",
        "-n -S -T 2 -c 1 -l --log-prefix=L --aggregate-interval=1 --max-tries=3 --failures-detailed",
    ] {
        let logs = |pgbench| {
            let ended = run(&bench, pgbench, line);
            assert_eq!(ended.code, Some(0), "{line}: {}", ended.all());
            let forms = |text: String| text.lines().map(form).collect::<BTreeSet<_>>();
            let logs: Vec<_> =
                bench.take_logs("L").into_iter().map(|(thread, text)| (thread, forms(text))).collect();
            logs
        };
        let (ours, theirs) = (logs(ours), logs(Pgbench::Oracle));
        assert!(!theirs.is_empty(), "{line}");
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn failures_are_reported_in_the_same_words() {
    let Some((bench, ours)) = start() else { return };
    bench.script(
        "conflict.sql",
        "\\set aid random(1, 3)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n\
         SELECT sum(abalance) FROM pgbench_accounts WHERE aid <= 3;\n\\sleep 2 ms\n\
         UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\nEND;\n",
    );
    bench.script(
        "deadlock.sql",
        "\\set one :client_id + 1\n\\set two 2 - :client_id\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = 1 WHERE aid = :one;\n\\sleep 100 ms\n\
         UPDATE pgbench_accounts SET abalance = 1 WHERE aid = :two;\nEND;\n",
    );
    bench.script("bad.sql", "SELECT 1;\nSELECT 1/0;\n");
    for (line, code) in [
        ("-n -f conflict.sql -c 4 -t 50 --failures-detailed --verbose-errors -r", 0),
        ("-n -f deadlock.sql -c 2 -t 10 --failures-detailed --verbose-errors -r", 0),
        // Enough tries for any outcome: which client is the victim, and how often, is random.
        ("-n -f deadlock.sql -c 2 -t 10 --max-tries=10000 --failures-detailed --verbose-errors -r", 0),
        ("-n -f bad.sql -t 5", 2),
        ("-n -f bad.sql -t 5 -M prepared", 2),
    ] {
        let output = |pgbench| {
            let ended = run(&bench, pgbench, line);
            assert_eq!(ended.code, Some(code), "{line}: {}", ended.all());
            // The process that a server's message blames depends on the timing.
            let messages: BTreeSet<String> =
                ended.stderr.lines().filter(|line| line.starts_with("pgbench: ")).map(form).collect();
            (report(&ended), messages)
        };
        let (ours, theirs) = (output(ours), output(Pgbench::Oracle));
        assert_eq!(ours.0, theirs.0, "{line}");
        assert_eq!(ours.1, theirs.1, "{line}");
    }
}

#[test]
fn initialization_sends_the_same_statements_and_says_the_same() {
    let Some((bench, ours)) = start() else { return };
    for line in [
        "-i",
        "-i -s 2 -F 80 --foreign-keys --unlogged-tables",
        "-i -s 2 -I dtGvp --partitions=3",
        "-i -n --partitions=2 --partition-method=hash",
        "-i -I dt",
    ] {
        let done = |pgbench| {
            let since = bench.log_length();
            let ended = run(&bench, pgbench, line);
            assert_eq!(ended.code, Some(0), "{line}: {}", ended.all());
            (initialization(&bench, since), form(&ended.stderr))
        };
        assert_eq!(done(ours), done(Pgbench::Oracle), "{line}");
    }
}

/// Statements of an initialization, except the query whether a table can be frozen, which differs between versions.
fn initialization(bench: &Bench, since: usize) -> Vec<String> {
    let all = bench.all_statements(since).into_iter().flatten();
    all.filter(|statement| !statement.contains("relkind")).collect()
}

/// A server, and pgdyno as the version of the installed pgbench; `None` without one.
fn start() -> Option<(Bench, Pgbench)> {
    let major = oracle().map_err(skip).ok()?;
    Some((Bench::new("18"), Pgbench::Ours(major)))
}

fn run(bench: &Bench, pgbench: Pgbench, line: &str) -> RunOutput {
    bench.run(pgbench, &line.split(' ').collect::<Vec<_>>())
}

/// Forms of a report's lines except the first, which names the program.
fn report(ended: &RunOutput) -> Vec<String> {
    // pgbench prints a share of zero transactions as NaN.
    ended
        .stdout
        .lines()
        .skip(1)
        .map(|line| unpadded(&line.replace("-NaN%", "0.000%").replace("NaN%", "0.000%")))
        .collect()
}

/// Form of a line without the padding of its columns.
fn unpadded(line: &str) -> String {
    form(line).split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
