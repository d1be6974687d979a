//! A load driver as its user runs it: its command line for a load of point lookups, and the figures of its report.

use std::env;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use model::message::Endpoint;
use serde_json::Value;

use crate::servers::Setup;

/// sysbench's script of the load.
const SYSBENCH_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/select-only.lua");

/// pgdyno's event loops, by the names of its option.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Engine {
    Epoll,
    Uring,
}

/// A load driver to compare with.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Competitor {
    Pgbench,
    Sysbench,
    /// A loop of `send` and `recv` in a thread for each client: the least that such a client costs.
    BareClient,
}

/// A load driver.
#[derive(Clone)]
pub(crate) struct Peer {
    interface: Interface,
    /// The beginning of the command line.
    command: Vec<String>,
    version: String,
}

/// A command line and its report.
#[derive(Clone, Copy)]
enum Interface {
    /// pgbench's, in one thread; also those of `pgdyno pgbench`.
    Pgbench,
    /// Those of `pgdyno bench`, with its default number of threads.
    PgdynoBench,
    /// sysbench's, which has a thread for each client.
    Sysbench,
    /// Those of `bare-client`.
    BareClient,
}

/// Length of a run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Seconds(u32),
    /// One transaction of each client.
    Baseline,
}

/// The figures of a report.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) transactions: f64,
    /// Transactions per second, without connecting.
    pub(crate) tps: f64,
}

impl Peer {
    pub(crate) fn pgbench(program: &Path) -> Result<Self> {
        Self::new(
            Interface::Pgbench,
            program,
            "pgbench to compare with",
            "install one or name one with --pgbench",
        )
    }

    pub(crate) fn sysbench(program: &Path) -> Result<Self> {
        let advice = "install one, name one with --sysbench, or compare with --peers pgbench";
        Self::new(Interface::Sysbench, program, "sysbench to compare with", advice)
    }

    pub(crate) fn bare_client() -> Result<Self> {
        let program = env::current_exe()?.with_file_name("bare-client");
        let advice = "run cargo build --release -p driver-cost";
        Self::new(Interface::BareClient, &program, "bare client to compare with", advice)
    }

    /// `pgdyno pgbench`, for comparison with pgbench.
    pub(crate) fn pgdyno_pgbench(program: &Path, engine: Option<Engine>) -> Result<Self> {
        Self::pgdyno(Interface::Pgbench, "pgbench", program, engine)
    }

    /// `pgdyno bench`, for comparison with other load drivers.
    pub(crate) fn pgdyno_bench(program: &Path, engine: Option<Engine>) -> Result<Self> {
        Self::pgdyno(Interface::PgdynoBench, "bench", program, engine)
    }

    fn pgdyno(interface: Interface, command: &str, program: &Path, engine: Option<Engine>) -> Result<Self> {
        let mut peer =
            Self::new(interface, program, "pgdyno to measure", "build one or name one with --pgdyno")?;
        peer.command.push(command.to_owned());
        if let Some(engine) = engine.and_then(|engine| engine.to_possible_value()) {
            peer.command.extend(["--engine".to_owned(), engine.get_name().to_owned()]);
        }
        Ok(peer)
    }

    fn new(interface: Interface, program: &Path, purpose: &str, advice: &str) -> Result<Self> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .with_context(|| format!("no {purpose}: cannot start {}; {advice}", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { interface, command: vec![program.display().to_string()], version })
    }

    /// The command line of a select-only run with prepared statements.
    pub(crate) fn words(&self, setup: &Setup, run: Run) -> Vec<String> {
        let more = match self.interface {
            Interface::Pgbench => pgbench_words(setup, run),
            Interface::PgdynoBench => bench_words(setup, run),
            Interface::Sysbench => sysbench_words(setup, run),
            Interface::BareClient => bare_words(setup, run),
        };
        self.command.iter().cloned().chain(more).collect()
    }

    /// Parses a report of this driver.
    pub(crate) fn parse(&self, text: &str) -> Result<Report> {
        match self.interface {
            Interface::Pgbench | Interface::BareClient => parse_pgbench(text),
            Interface::PgdynoBench => parse_bench(text),
            Interface::Sysbench => parse_sysbench(text),
        }
        .with_context(|| format!("in the report of {}:\n{text}", self.command.join(" ")))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.command.join(" "), self.version)
    }
}

fn pgbench_words(setup: &Setup, run: Run) -> Vec<String> {
    let load = ["-n", "-S", "-M", "prepared", "-j", "1", "-c"].map(str::to_owned);
    load.into_iter().chain([setup.clients.to_string()]).chain(length(run)).chain(address(setup)).collect()
}

fn bare_words(setup: &Setup, run: Run) -> Vec<String> {
    let load = ["-s".to_owned(), setup.scale.to_string(), "-c".to_owned(), setup.clients.to_string()];
    load.into_iter().chain(length(run)).chain(address(setup)).collect()
}

/// `--allow-concurrent`, because the other drivers do not wait for each other either.
fn bench_words(setup: &Setup, run: Run) -> Vec<String> {
    let load = ["select-only", "-M", "prepared", "--format", "json", "-q", "--allow-concurrent", "-c"];
    let load = load.map(str::to_owned);
    load.into_iter().chain([setup.clients.to_string()]).chain(length(run)).chain(address(setup)).collect()
}

/// The length of a run, as an option of pgbench and of pgdyno.
fn length(run: Run) -> [String; 2] {
    match run {
        Run::Seconds(seconds) => ["-T".to_owned(), seconds.to_string()],
        Run::Baseline => ["-t".to_owned(), "1".to_owned()],
    }
}

/// The server, as options of pgbench and of pgdyno.
fn address(setup: &Setup) -> Vec<String> {
    let connection = &setup.connection;
    let mut words = vec!["-U", &connection.user];
    let port_text;
    match &connection.endpoint {
        Endpoint::Unix { directory: host, port } | Endpoint::Tcp { host, port } => {
            port_text = port.to_string();
            words.extend(["-h", host, "-p", &port_text, "-d", &connection.database]);
        }
        Endpoint::Conninfo { conninfo } => words.extend(["-d", conninfo]),
    }
    words.into_iter().map(str::to_owned).collect()
}

fn sysbench_words(setup: &Setup, run: Run) -> Vec<String> {
    let connection = &setup.connection;
    let mut words = vec![SYSBENCH_SCRIPT.to_owned(), "--db-driver=pgsql".to_owned()];
    if let Endpoint::Unix { directory: host, port } | Endpoint::Tcp { host, port } = &connection.endpoint {
        words.extend([format!("--pgsql-host={host}"), format!("--pgsql-port={port}")]);
    }
    let (seconds, events) = match run {
        Run::Seconds(seconds) => (seconds, 0),
        Run::Baseline => (0, setup.clients),
    };
    words.extend([
        format!("--pgsql-user={}", connection.user),
        format!("--pgsql-db={}", connection.database),
        format!("--scale={}", setup.scale),
        format!("--threads={}", setup.clients),
        format!("--time={seconds}"),
        format!("--events={events}"),
        "run".to_owned(),
    ]);
    words
}

fn parse_pgbench(text: &str) -> Result<Report> {
    // Older versions fail as a whole, and have no such line.
    if let Some(failed) = figure(text, "number of failed transactions:").filter(|&failed| failed > 0.0) {
        bail!("{failed} transactions failed");
    }
    let transactions = required(text, "number of transactions actually processed:")?;
    Ok(Report { transactions, tps: required(text, "tps =")? })
}

fn parse_sysbench(text: &str) -> Result<Report> {
    let errors = required(text, "ignored errors:")?;
    if errors > 0.0 {
        bail!("{errors} errors");
    }
    // sysbench counts what is not within BEGIN and COMMIT as a transaction too.
    let transactions = required(text, "transactions:")?;
    let rate = text.lines().find_map(|line| line.trim_start().strip_prefix("transactions:"));
    let rate = rate.and_then(|line| line.split_once('(')?.1.split(' ').next()?.parse().ok());
    Ok(Report { transactions, tps: rate.context("no rate of transactions")? })
}

fn parse_bench(text: &str) -> Result<Report> {
    let report: Value = serde_json::from_str(text)?;
    let total = |name: &str| {
        let value = report["totals"][name].as_f64();
        value.with_context(|| format!("no totals.{name}"))
    };
    let failed = total("failed")?;
    if failed > 0.0 {
        bail!("{failed} transactions failed");
    }
    Ok(Report { transactions: total("transactions")?, tps: total("tps")? })
}

/// The number after this label at the beginning of a line.
fn figure(text: &str, label: &str) -> Option<f64> {
    let after = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    // The planned number may follow after a slash.
    after.split([' ', '/']).find(|word| !word.is_empty())?.parse().ok()
}

fn required(text: &str, label: &str) -> Result<f64> {
    figure(text, label).with_context(|| format!("no \"{label}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_pgbench_by_time_and_by_count_are_parsed() {
        let by_time = "number of transactions actually processed: 14503\n\
            number of failed transactions: 0 (0.000%)\ntps = 14543.328650 (without initial connection time)\n";
        assert_eq!(parse_pgbench(by_time).unwrap(), Report { transactions: 14503.0, tps: 14543.32865 });
        let by_count = "number of transactions actually processed: 16/16\ntps = 9.5\n";
        assert_eq!(parse_pgbench(by_count).unwrap().transactions, 16.0);
    }

    #[test]
    fn reports_of_sysbench_are_parsed() {
        let text = |errors| {
            format!(
                "SQL statistics:\n    queries performed:\n        read:        14503\n        total:       14503\n    \
                 transactions:                        14503  (4833.54 per sec.)\n    \
                 queries:                             14503  (4833.54 per sec.)\n    \
                 ignored errors:                      {errors}      (0.00 per sec.)\n"
            )
        };
        assert_eq!(parse_sysbench(&text(0)).unwrap(), Report { transactions: 14503.0, tps: 4833.54 });
        assert_eq!(parse_sysbench(&text(2)).unwrap_err().to_string(), "2 errors");
        assert!(parse_sysbench("").is_err());
    }

    #[test]
    fn reports_of_pgdyno_bench_are_parsed() {
        let text = |failed| {
            format!(r#"{{ "totals": {{ "transactions": 14503, "failed": {failed}, "tps": 4834.5 }} }}"#)
        };
        assert_eq!(parse_bench(&text(0)).unwrap(), Report { transactions: 14503.0, tps: 4834.5 });
        assert_eq!(parse_bench(&text(1)).unwrap_err().to_string(), "1 transactions failed");
        assert!(parse_bench("{}").is_err());
    }

    #[test]
    fn failed_transactions_of_pgbench_are_an_error() {
        let text =
            "number of transactions actually processed: 3\nnumber of failed transactions: 1 (25.000%)\n";
        assert_eq!(parse_pgbench(text).unwrap_err().to_string(), "1 transactions failed");
        assert!(parse_pgbench("").is_err());
    }
}
