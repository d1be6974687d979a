//! A benchmark: preparation, the load, and its report.

use std::thread;
use std::time::Duration;

use driver::{
    Arrivals, Control, DriverMessage, ErrorPolicy, Group, Level, Load, LoadError, LogOptions, Observer, Rate,
    Record, Spacing, Stopper, Verbosity,
};
use model::record::ClockReading;
use script::{Seeds, Value, Variables};
use wire::ConnectParams;

use crate::console::Console;
use crate::interrupt::{Interrupt, OnSignal};
use crate::message::Fatal;
use crate::progress;
use crate::results::Results;
use crate::server::Server;
use crate::table_info::TableInfo;
use crate::task::{Benchmark, Length, Vacuum};

/// Interval of records without --progress.
const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// A shorter last interval gets no line: its rate would be meaningless.
const MIN_PROGRESS_NS: u64 = 100_000_000;

/// Time that transactions in flight have after Ctrl-C.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Exit code of a run in which a client was aborted.
const ABORTED: u8 = 2;

/// Runs a benchmark, prints its report and returns the exit code.
pub(crate) fn benchmark(task: &Benchmark, console: &Console, on_signal: &OnSignal<'_>) -> Result<u8, Fatal> {
    let mut server = Server::connect(&task.connection, console)
        .map_err(|failure| Fatal::new(failure).error("could not create connection for setup"))?;
    console.print(&format!("pgbench ({}, server {})\n", task.compat.version(), server.version()))?;
    if task.debug {
        console.info(settings(task, &server));
    }
    let tables = if task.scripts.builtin {
        TableInfo::read(&mut server, task.scale.is_some(), console)?
    } else {
        TableInfo { scale: task.scale.unwrap_or(1), partitions: None }
    };
    vacuum(task.vacuum, &mut server, console);
    let load = load(task, &tables, server.close());

    let control = Control::default();
    let stopper = control.stopper();
    let interrupt = Interrupt::new(on_signal, move || stop(&stopper))?;
    let mut recorder = Recorder::new(task, console, &interrupt);
    let outcome = driver::run(load, control, &mut recorder).map_err(|error| failure(&error, task))?;
    let results = Results {
        task,
        tables,
        record: recorder.total.as_ref(),
        elapsed_ns: outcome.elapsed_ns,
        connecting_ns: recorder.connecting.as_nanos() as u64,
    };
    console.print(&results.text())?;
    if let Some(code) = interrupt.exit_code() {
        console.error("Run was interrupted; the above results cover only the part before the interruption.");
        return Ok(code);
    }
    if outcome.aborted > 0 {
        console.error("Run was aborted; the above results are incomplete.");
        return Ok(ABORTED);
    }
    Ok(0)
}

/// Stops the load, and aborts it if it does not end soon.
fn stop(stopper: &Stopper) {
    stopper.stop();
    thread::sleep(GRACE_PERIOD);
    stopper.abort();
}

/// The error of a load without a report.
fn failure(error: &LoadError, task: &Benchmark) -> Fatal {
    match error {
        LoadError::Aborted { client } => {
            let thread = thread_of(*client, task.clients, task.threads);
            Fatal::new(format_args!("Run was aborted due to an error in thread {thread}"))
                .with_exit_code(ABORTED)
        }
        LoadError::Connect { client, failures, .. } => {
            Fatal::new(failures).error(format_args!("could not create connection for client {client}"))
        }
        other => Fatal::new(other),
    }
}

/// The settings that `--debug` prints.
fn settings(task: &Benchmark, server: &Server) -> String {
    let length = match task.length {
        Length::Transactions(count) => format!("nxacts: {count}"),
        Length::Seconds(seconds) => format!("duration: {seconds}"),
    };
    let (host, port) = server.host_and_port();
    let (clients, database) = (task.clients, server.database());
    format!("pghost: {host} pgport: {port} nclients: {clients} {length} dbName: {database}")
}

/// Vacuums the tables. Errors are printed and ignored: the tables may not exist.
fn vacuum(vacuum: Vacuum, server: &mut Server, console: &Console) {
    if vacuum == Vacuum::None {
        return;
    }
    console.plain("starting vacuum...");
    for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
        server.try_execute(sql);
    }
    console.plain("end.\n");
    if vacuum == Vacuum::AllTables {
        console.plain("starting vacuum pgbench_accounts...");
        server.try_execute("vacuum analyze pgbench_accounts");
        console.plain("end.\n");
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
            // These names are valid.
            let _ = variables.set(slot, Value::Int(value));
        }
    }
    for (name, value) in &task.defines {
        if let Some(slot) = names.find(name) {
            // The names were checked.
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

/// Observer of a load: sums its records, prints progress and messages.
struct Recorder<'a> {
    task: &'a Benchmark,
    console: &'a Console,
    interrupt: &'a Interrupt,
    connecting: Duration,
    started_unix_us: i64,
    total: Option<Record>,
}

impl<'a> Recorder<'a> {
    fn new(task: &'a Benchmark, console: &'a Console, interrupt: &'a Interrupt) -> Self {
        Self { task, console, interrupt, connecting: Duration::ZERO, started_unix_us: 0, total: None }
    }
}

impl Observer for Recorder<'_> {
    fn connected(&mut self, took: Duration, _: &[i32]) {
        self.connecting = took;
    }

    fn started(&mut self, at: ClockReading, _: Duration) {
        self.started_unix_us = at.unix_us;
    }

    fn interval(&mut self, record: &Record) {
        if self.task.progress.is_some() && record.end_ns - record.start_ns >= MIN_PROGRESS_NS {
            self.console.plain(&progress::line(self.task, record, self.started_unix_us));
        }
        match &mut self.total {
            Some(total) => total.add(record),
            None => self.total = Some(record.clone()),
        }
    }

    fn on_message(&mut self, message: &DriverMessage) {
        if message.aborted && self.interrupt.is_requested() {
            // The interrupt cut it off.
            return;
        }
        match message.level {
            Level::Debug | Level::Info => self.console.info(&message.text),
            Level::Error => self.console.error(&message.text),
            Level::Plain => self.console.plain(&message.text),
        }
    }
}

/// The thread that runs a client. The first threads get one client more if they can't all have the same number.
fn thread_of(client: u32, clients: u32, threads: u32) -> u32 {
    let (each, more) = (clients / threads, clients % threads);
    let with_more = (each + 1) * more;
    if client < with_more { client / (each + 1) } else { more + (client - with_more) / each }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_distributed_over_threads() {
        let threads =
            |clients, threads| (0..clients).map(|client| thread_of(client, clients, threads)).collect();
        let threads_of_clients: Vec<u32> = threads(7, 3);
        assert_eq!(threads_of_clients, [0, 0, 0, 1, 1, 2, 2]);
        let threads_of_clients: Vec<u32> = threads(2, 2);
        assert_eq!(threads_of_clients, [0, 1]);
    }
}
