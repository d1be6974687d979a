//! A run: what is done before it, the load, and what is said of it.

use std::thread;
use std::time::Duration;

use driver::{
    Arrivals, Control, ErrorPolicy, Group, Level, Load, LoadError, LogOptions, Observer, Rate, Record, Said,
    Spacing, Stopper, Verbosity,
};
use model::record::ClockReading;
use script::{Seeds, Value, Variables};
use wire::ConnectParams;

use super::interrupt::Interrupt;
use super::message::{self, Fatal};
use super::progress;
use super::results::Results;
use super::server::Server;
use super::table_info::TableInfo;
use super::task::{Benchmark, Length, Vacuum};

/// Interval of records where nobody asks for progress.
const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// A last interval that is shorter than this gets no line: its rate would mean nothing.
const SHORTEST_PROGRESS_NS: u64 = 100_000_000;

/// How long transactions may go on after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(1);

/// Exit code of a run in which a client was aborted.
const ABORTED: u8 = 2;

/// Runs it, prints the report and gives the exit code.
pub(super) fn benchmark(task: &Benchmark) -> Result<u8, Fatal> {
    let mut server = Server::connect(&task.connection)
        .map_err(|failure| Fatal::new(failure).error("could not create connection for setup"))?;
    message::out(&format!("pgbench ({}, server {})\n", task.compat.version(), server.version()))?;
    if task.debug {
        message::info(setting(task, &server));
    }
    let tables = match task.scripts.builtin {
        true => TableInfo::read(&mut server, task.scale.is_some())?,
        false => TableInfo { scale: task.scale.unwrap_or(1), partitions: None },
    };
    vacuum(task.vacuum, &mut server);
    let load = load(task, &tables, server.close());

    let control = Control::default();
    let stopper = control.stopper();
    let interrupt = Interrupt::has(move || stop(&stopper))?;
    let mut watch = Watch::of(task, &interrupt);
    let outcome = driver::run(load, control, &mut watch).map_err(|error| failed(&error, task))?;
    let results = Results {
        task,
        tables,
        record: watch.total.as_ref(),
        elapsed_ns: outcome.elapsed_ns,
        connecting_ns: watch.connecting.as_nanos() as u64,
    };
    message::out(&results.text())?;
    if let Some(code) = interrupt.exit_code() {
        message::error("Run was interrupted; the above results are of what was run until then.");
        return Ok(code);
    }
    if outcome.aborted > 0 {
        message::error("Run was aborted; the above results are incomplete.");
        return Ok(ABORTED);
    }
    Ok(0)
}

/// Ends the load, for somebody who waits for it.
fn stop(stopper: &Stopper) {
    stopper.stop();
    thread::sleep(PATIENCE);
    stopper.cut_off();
}

/// A run of which there is nothing to report.
fn failed(error: &LoadError, task: &Benchmark) -> Fatal {
    match error {
        LoadError::Aborted { client } => {
            let thread = thread_of(*client, task.clients, task.threads);
            Fatal::new(format_args!("Run was aborted due to an error in thread {thread}")).exit(ABORTED)
        }
        LoadError::Connect { client, failures, .. } => {
            Fatal::new(failures).error(format_args!("could not create connection for client {client}"))
        }
        other => Fatal::new(other),
    }
}

/// For `--debug`.
fn setting(task: &Benchmark, server: &Server) -> String {
    let length = match task.length {
        Length::Transactions(count) => format!("nxacts: {count}"),
        Length::Seconds(seconds) => format!("duration: {seconds}"),
    };
    let (host, port) = server.host_and_port();
    let (clients, database) = (task.clients, server.database());
    format!("pghost: {host} pgport: {port} nclients: {clients} {length} dbName: {database}")
}

/// Errors are told, and are no reason to stop: there may be no such tables.
fn vacuum(vacuum: Vacuum, server: &mut Server) {
    if vacuum == Vacuum::Nothing {
        return;
    }
    message::plain("starting vacuum...");
    for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
        server.try_execute(sql);
    }
    message::plain("end.\n");
    if vacuum == Vacuum::AllTables {
        message::plain("starting vacuum pgbench_accounts...");
        server.try_execute("vacuum analyze pgbench_accounts");
        message::plain("end.\n");
    }
}

fn load(task: &Benchmark, tables: &TableInfo, connection: ConnectParams) -> Load {
    let names = &task.scripts.names;
    let defined = |name: &str| task.defines.iter().any(|(defined, _)| defined == name);
    let seeds =
        Seeds::draw(task.random_seed, task.clients as usize, task.threads as usize, defined("default_seed"));
    let mut variables = Variables::new(names);
    let automatic = [
        ("scale", i64::from(tables.scale)),
        ("default_seed", seeds.default_seed.unwrap_or_default()),
        ("random_seed", task.random_seed as i64),
    ];
    for (name, value) in automatic {
        if let Some(slot) = names.find(name) {
            // These are valid names.
            let _ = variables.set(slot, Value::Int(value));
        }
    }
    for (name, value) in &task.defines {
        if let Some(slot) = names.find(name) {
            // Their names were checked.
            let _ = variables.set_text(slot, value);
        }
    }
    let (transactions, length) = match task.length {
        Length::Transactions(count) => (Some(u64::from(count)), None),
        Length::Seconds(seconds) => (None, Some(Duration::from_secs(u64::from(seconds)))),
    };
    let clients = Group {
        client_id: names.find("client_id").filter(|_| !defined("client_id")),
        arrivals: task
            .rate
            .map_or(Arrivals::Closed, |rate| Arrivals::Rate(Rate::constant(rate, Spacing::Poisson))),
        reconnect: task.connect,
        transactions,
        ..Group::new(task.clients, task.scripts.list.clone(), variables)
    };
    Load {
        protocol: task.protocol,
        length,
        interval: task
            .progress
            .map_or(QUIET_INTERVAL, |progress| Duration::from_secs(u64::from(progress.interval_s))),
        latency_limit: task.latency_limit,
        errors: ErrorPolicy { exit_on_abort: task.exit_on_abort, ..ErrorPolicy::pgbench(task.max_tries) },
        per_command: task.report_per_command,
        log: task.log.as_ref().map(|log| LogOptions {
            prefix: log.prefix.clone().into(),
            sampling_rate: log.sampling_rate,
            aggregate_interval: log.aggregate_interval_s.map(u64::from),
            failures_detailed: task.failures_detailed,
            retries: task.max_tries != Some(1),
        }),
        verbosity: Verbosity { errors: task.verbose_errors, debug: task.debug, notices: true },
        engine: task.engine,
        ..Load::new(connection, clients, seeds)
    }
}

/// Adds up what is counted, and tells what is to be told at once.
struct Watch<'a> {
    task: &'a Benchmark,
    interrupt: &'a Interrupt,
    connecting: Duration,
    started_unix_us: i64,
    total: Option<Record>,
}

impl<'a> Watch<'a> {
    fn of(task: &'a Benchmark, interrupt: &'a Interrupt) -> Self {
        Self { task, interrupt, connecting: Duration::ZERO, started_unix_us: 0, total: None }
    }
}

impl Observer for Watch<'_> {
    fn connected(&mut self, took: Duration, _: &[i32]) {
        self.connecting = took;
    }

    fn started(&mut self, at: ClockReading) {
        self.started_unix_us = at.unix_us;
    }

    fn interval(&mut self, record: &Record) {
        if self.task.progress.is_some() && record.end_ns - record.start_ns >= SHORTEST_PROGRESS_NS {
            message::plain(&progress::line(self.task, record, self.started_unix_us));
        }
        match &mut self.total {
            Some(total) => total.add(record),
            None => self.total = Some(record.clone()),
        }
    }

    fn said(&mut self, said: &Said) {
        if said.aborted && self.interrupt.came() {
            // It was cut off, as was asked for.
            return;
        }
        match said.level {
            Level::Debug | Level::Info => message::info(&said.text),
            Level::Error => message::error(&said.text),
            Level::Plain => message::plain(&said.text),
        }
    }
}

/// The thread that a client is dealt to: the first ones get one client more where they cannot have the same.
fn thread_of(client: u32, clients: u32, threads: u32) -> u32 {
    let (each, more) = (clients / threads, clients % threads);
    let with_more = (each + 1) * more;
    if client < with_more { client / (each + 1) } else { more + (client - with_more) / each }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_to_threads() {
        let threads =
            |clients, threads| (0..clients).map(|client| thread_of(client, clients, threads)).collect();
        let dealt: Vec<u32> = threads(7, 3);
        assert_eq!(dealt, [0, 0, 0, 1, 1, 2, 2]);
        let dealt: Vec<u32> = threads(2, 2);
        assert_eq!(dealt, [0, 1]);
    }
}
