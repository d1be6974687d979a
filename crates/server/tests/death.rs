//! pgdyno is killed: none of its servers survives, and the next one removes its data.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use support::{as_child, cache, processes_in, role, server, wait_until};

/// Runs in a process of its own: starts a server from a thread that ends, keeps a backend busy, prints the server's
/// location, and waits to be killed.
#[test]
fn victim() {
    let Some(version) = role() else { return };
    let server = std::thread::spawn(move || server(&version, &[])).join().unwrap();
    let mut busy = server.session("postgres").unwrap();
    std::thread::spawn(move || busy.execute("select count(*) from generate_series(1, 1000000000000)"));
    let mut control = server.session("postgres").unwrap();
    wait_until("a backend is busy", || {
        let busy = "select count(*) from pg_stat_activity where query like '%generate_series%' and pid <> pg_backend_pid()";
        control.query_one::<i64>(busy).unwrap() == 1
    });
    println!("\nDATA {}", server.data_directory().display());
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn no_server_survives_the_kill_of_its_owner() {
    for version in ["13", "18"] {
        let mut child = as_child("victim", version, &[]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let data = lines.find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix("DATA ")?)));
        let data = data.expect("the victim starts its server");
        assert!(processes_in(&data).len() > 4, "{:?}", processes_in(&data));
        assert!(!server::sweep(&cache()).unwrap().removed.contains(&data.parent().unwrap().to_owned()));

        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("no process of the server is left", || processes_in(&data).is_empty());
        assert!(data.exists());
        // The test below may sweep at the same time, and be first.
        server::sweep(&cache()).unwrap();
        wait_until("its data are removed", || !data.parent().unwrap().exists());
    }
}

/// As above, but the server gets SIGSTOP, so that it can't end by itself: the sweep must end it.
#[test]
fn a_server_that_survived_is_swept() {
    let mut child = as_child("victim", "18", &[]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let data = lines.find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix("DATA ")?)));
    let data = data.expect("the victim starts its server");
    let processes = processes_in(&data);
    for pid in &processes {
        signal(*pid, rustix::process::Signal::STOP);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(processes_in(&data).len(), processes.len());
    // The test above may sweep at the same time, and be first.
    server::sweep(&cache()).unwrap();
    wait_until("it is removed", || processes_in(&data).is_empty() && !data.parent().unwrap().exists());
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
