//! pgbench's command line, without a server: rejected options, their messages, and options that only print.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

mod support;

use std::os::unix::fs::symlink;
use std::process::Command;

use skip::skip;
use support::pgbench::{Pgbench, RunOutput, oracle};

/// Command lines that pgbench rejects before it connects to a server.
const REFUSED: [&str; 62] = [
    "--bad-option",
    "--bad-option=3",
    "---debug",
    "-x",
    "-nx",
    "-c",
    "--time",
    "--no-vacuum=3",
    "--c=3",
    "--part=3",
    "a b c",
    "-- -S",
    "-f no-such-file",
    "-f no-such-file@3",
    "-b no-such-builtin",
    "-b s",
    "-b select-only@one",
    "-b select-only@",
    "-b select-only@-1",
    "-b select-only@2147483648",
    "-b se@0 -b si@0 -b tpcb@0",
    "-c three",
    "-c 3x",
    "-c 0",
    "-c 99999999999",
    "-j eleven",
    "-j 0",
    "-i -s two",
    "-s 0",
    "-t zil",
    "-T ten",
    "-t 1000 -T 1",
    "-D foobla",
    "-D =x",
    "-D x=",
    "-D x.y=1",
    "-F 1",
    "-F 101",
    "-M no-such-mode",
    "-P 0",
    "-R 0.0",
    "-R -1",
    "-L 0",
    "--sampling-rate=0",
    "--sampling-rate=1.5",
    "--aggregate-interval=-3",
    "--progress-timestamp",
    "-I dtg",
    "-i -I dta",
    "-i -S",
    "-S -F 90",
    "--random-seed=one",
    "--random-seed=",
    "-i --partition-method=BAD",
    "-i --partitions -1",
    "-i --partition-method=hash",
    "--max-tries -10",
    "--max-tries 0",
    "--sampling-rate=0.01",
    "-l --sampling-rate=0.1 --aggregate-interval=3",
    "-l -T 1 --aggregate-interval=3",
    "-l -T 5 --aggregate-interval=3",
];

#[test]
fn refused_options_have_the_messages_of_pgbench() {
    let major = match oracle() {
        Ok(major) => major,
        Err(why) => return skip(why),
    };
    for line in REFUSED {
        let refused = |pgbench| run(pgbench, line);
        let (ours, theirs) = (refused(Pgbench::Ours(major)), refused(Pgbench::Oracle));
        assert_eq!((ours.code, &*ours.stdout), (Some(1), ""), "{line}: {}", ours.all());
        // glibc's messages name the program by its path.
        let mut theirs = theirs.stderr.replace(&path_in(&theirs.stderr), "pgbench:");
        if major == 15 {
            // 15.20 names the option `--client`, as later majors do; 15.18, whose tests we pass, has `--clients`.
            theirs = theirs.replace("-c/--clients", "-c/--client").replace("-c/--client", "-c/--clients");
        }
        assert_eq!(ours.stderr, theirs, "{line}");
    }
}

#[test]
fn texts_that_scripts_rely_on() {
    let refusals = [
        ("-c three", "pgbench: error: invalid value \"three\" for option -c/--client\n"),
        (
            "-x",
            "pgbench: invalid option -- 'x'\npgbench: hint: Try \"pgbench --help\" for more information.\n",
        ),
        (
            "--random-seed=one",
            "pgbench: error: unrecognized random seed option \"one\"\n\
             pgbench: detail: Expecting an unsigned integer, \"time\" or \"rand\".\n\
             pgbench: error: error while setting random seed from --random-seed option\n",
        ),
        (
            "-b s",
            "pgbench: error: ambiguous builtin name: 2 builtin scripts found for prefix \"s\"\n\
             Available builtin scripts:\n      tpcb-like: <builtin: TPC-B (sort of)>\n  \
             simple-update: <builtin: simple update>\n    select-only: <builtin: select only>\n\n",
        ),
        (
            "--engine fast",
            "pgbench: error: invalid value \"fast\" for option --engine\n\
             pgbench: detail: Expecting \"auto\", \"epoll\" or \"uring\".\n",
        ),
        (
            "--compat 9",
            "pgbench: error: invalid value \"9\" for option --compat\n\
             pgbench: detail: Expecting the major version of a pgbench: 15, 17 or 18.\n",
        ),
    ];
    for (line, expected) in refusals {
        let ended = run(Pgbench::Ours(18), line);
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(1), "", expected), "{line}");
    }
}

#[test]
fn versions_differ_where_pgbenchs_do() {
    let error = |major, line| run(Pgbench::Ours(major), line).stderr;
    assert!(error(15, "-c three").contains("-c/--clients"));
    assert!(error(15, "--exit-on-abort").contains("unrecognized option"));
    assert!(error(17, "-d").contains("option requires an argument -- 'd'"));
    assert!(error(15, "-d -c three").contains("invalid value"), "-d is --debug");
    // The option takes precedence over the environment.
    assert!(error(17, "--compat 15 -c three").contains("-c/--clients"));
}

#[test]
fn what_is_only_shown() {
    let help = run(Pgbench::Ours(18), "--help");
    assert_eq!((help.code, &*help.stderr), (Some(0), ""));
    assert!(help.stdout.starts_with("pgbench is a benchmarking tool for PostgreSQL.\n"), "{}", help.stdout);

    let version = run(Pgbench::Ours(18), "-V");
    assert!(version.stdout.starts_with("pgbench (PostgreSQL) 18 (pgdyno "), "{}", version.stdout);

    let list = run(Pgbench::Ours(18), "-b list");
    assert_eq!((list.code, &*list.stdout), (Some(0), ""));
    assert!(list.stderr.starts_with("Available builtin scripts:\n"), "{}", list.stderr);

    let script = run(Pgbench::Ours(18), "--show-script se");
    assert!(
        script.stderr.starts_with("-- select-only: <builtin: select only>\n\\set aid"),
        "{}",
        script.stderr
    );
}

#[test]
fn the_program_answers_to_the_name_of_pgbench() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("pgbench");
    symlink(env!("CARGO_BIN_EXE_pgdyno"), &name).unwrap();
    let ended = RunOutput::new(Command::new(name).arg("--version").output().unwrap());
    assert!(ended.stdout.starts_with("pgbench (PostgreSQL) "), "{}", ended.all());
}

fn run(pgbench: Pgbench, line: &str) -> RunOutput {
    RunOutput::new(pgbench.command().args(line.split(' ')).output().unwrap())
}

/// `/…/pgbench:` in a message, or a text that no message contains.
fn path_in(text: &str) -> String {
    match text.split_once(' ') {
        Some((path, _)) if path.starts_with('/') => path.to_owned(),
        _ => "\0".to_owned(),
    }
}
