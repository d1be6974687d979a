//! CPU time of one reading of each operating system source, with idle backends running:
//! `cargo run -p collect --release --example reading_cost [BACKENDS [READINGS]]`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a program to look at figures with"
)]

use std::collections::BTreeMap;

use collect::{Machine, Processes, Reading, Source, Watched};
use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::workload::Transport;
use rustix::time::{ClockId, clock_gettime};
use server::{Cluster, Server};
use wire::ConnectParams;
use wire::blocking::Session;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<usize>().unwrap());
    let (backends, readings) = (numbers.next().unwrap_or(64), numbers.next().unwrap_or(500));
    let cache = Cache::open().unwrap();
    let installation = server::install(&cache, "18", &NoProgress).unwrap();
    let connections = ("max_connections".to_owned(), (backends + 10).to_string());
    let server =
        Cluster::empty(&cache, &installation, &[]).unwrap().start(&BTreeMap::from([connections])).unwrap();
    let _sessions: Vec<Session> = (0..backends).map(|_| connect(&server)).collect();

    let own = std::process::id();
    let watched = Watched { driver: Some(own), postmaster: Some(server.pid()), ..Watched::default() };
    let mut sources: [Box<dyn Source>; 2] = [
        Box::new(Machine::new(Some(server.data_directory()), Some(server.pid()))),
        Box::new(Processes::new(watched)),
    ];
    println!("{} processes on this machine, {backends} idle backends", processes());
    for source in &mut sources {
        let first = time(source.as_mut(), 1);
        println!(
            "{}: {first:.0} µs the first, {:.0} µs each",
            source.name(),
            time(source.as_mut(), readings)
        );
    }
}

/// Mean CPU time of a reading, in microseconds.
fn time(source: &mut dyn Source, readings: usize) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    };
    let before = now();
    for _ in 0..readings {
        source.read(&mut Reading::default()).unwrap();
    }
    (now() - before) / readings as f64
}

fn connect(server: &Server) -> Session {
    let Endpoint::Unix { directory, port } = server.endpoint(Transport::Unix) else { panic!("not a socket") };
    Session::connect(&ConnectParams::new(directory, port, server::USER, "postgres", None)).unwrap()
}

fn processes() -> usize {
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok())).count()
}
