//! Ten thousand clients of one driver, on each of its event loops: memory per client.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

#[cfg(test)]
mod support;

use std::fs;
use std::time::Duration;

use driver::{Control, DriverMessage, Engine, Group, Load, LoadError, Observer, Record, WeightedScript};
use model::record::ClockReading;
use model::workload::Protocol;
use script::{Names, Script, Seeds, Value, Variables};
use wire::ConnectParams;

use support::NullServer;

const CLIENTS: u32 = 10_000;

/// Maximum memory of the driver per client, in bytes.
const MAX_BYTES_PER_CLIENT: u64 = 32 * 1024;

fn load(server: &NullServer, clients: u32, engine: Engine) -> Load {
    let mut names = Names::default();
    let text = script::builtin("select-only").unwrap().text;
    let script = Script::parse("select-only", text, &mut names).unwrap();
    let mut variables = Variables::new(&names);
    variables.set(names.find("scale").unwrap(), Value::Int(10)).unwrap();
    let connection = ConnectParams::new(server.host(), server.port, "me", "bench", None);
    let scripts = vec![WeightedScript { script, weight: 1 }];
    let seeds = Seeds::draw(1, clients as usize, 1, false);
    let clients_of = Group { transactions: Some(5), ..Group::new(clients, scripts, variables) };
    Load { protocol: Protocol::Prepared, engine, ..Load::new(connection, clients_of, seeds) }
}

#[derive(Default)]
struct Counted {
    transactions: u64,
    /// Resident memory at the load's end, in bytes.
    memory: u64,
}

impl Observer for Counted {
    fn connected(&mut self, _took: Duration, _others: &[i32]) {}

    fn started(&mut self, _: ClockReading, _: Duration) {}

    fn interval(&mut self, record: &Record) {
        self.transactions += record.scripts[0].moments.count;
        self.memory = self.memory.max(resident());
    }

    fn on_message(&mut self, message: &DriverMessage) {
        panic!("{message:?}");
    }
}

/// This process's resident memory in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn ten_thousand_clients_use_little_memory() {
    let server = NullServer::start(&[]);
    for engine in [Engine::Epoll, Engine::Uring] {
        let run = |clients| {
            let mut counted = Counted::default();
            driver::run(load(&server, clients, engine), Control::default(), &mut counted).map(|_| counted)
        };
        let few = run(1).unwrap();
        let many = match run(CLIENTS) {
            Ok(many) => many,
            Err(error @ LoadError::TooManyFiles { .. }) => {
                let message = error.to_string();
                assert!(message.contains("ulimit -Hn"), "{message}");
                eprintln!("skipped: {message}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!((few.transactions, many.transactions), (5, 5 * u64::from(CLIENTS)));
        let each = many.memory.saturating_sub(few.memory) / u64::from(CLIENTS);
        eprintln!("{engine:?}: {each} bytes a client");
        assert!(each <= MAX_BYTES_PER_CLIENT, "{engine:?}: {each} bytes a client");
    }
}
