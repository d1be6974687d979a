//! A load driver as its user runs it: pgbench's command line in, pgbench's report out, for both.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use model::message::{Connection, Endpoint};

/// pgdyno's event loops, by the names of its option.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Engine {
    Epoll,
    Uring,
}

/// A load driver.
#[derive(Clone)]
pub(crate) struct Peer {
    /// The command line before pgbench's arguments.
    command: Vec<String>,
    version: String,
}

/// Length of a run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Seconds(u32),
    /// One transaction of each client.
    Baseline,
}

/// The figures of a report.
pub(crate) struct Report {
    pub(crate) transactions: f64,
    /// Transactions per second, without connecting.
    pub(crate) tps: f64,
}

impl Peer {
    pub(crate) fn pgbench(program: &Path) -> Result<Self> {
        let output = Command::new(program).arg("--version").output().with_context(|| {
            format!(
                "no pgbench to compare with: cannot start {}; install one or name one with --pgbench",
                program.display()
            )
        })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { command: vec![program.display().to_string()], version })
    }

    pub(crate) fn pgdyno(program: &Path, engine: Option<Engine>) -> Result<Self> {
        let output = Command::new(program).arg("--version").output().with_context(|| {
            format!(
                "no pgdyno to measure: cannot start {}; build one or name one with --pgdyno",
                program.display()
            )
        })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut command = vec![program.display().to_string(), "pgbench".to_owned()];
        if let Some(engine) = engine.and_then(|engine| engine.to_possible_value()) {
            command.extend(["--engine".to_owned(), engine.get_name().to_owned()]);
        }
        Ok(Self { command, version })
    }

    /// The command line of a select-only run with prepared statements in one thread.
    pub(crate) fn words(&self, connection: &Connection, clients: u32, run: Run) -> Vec<String> {
        let address: Vec<String> = match &connection.endpoint {
            Endpoint::Unix { directory: host, port } | Endpoint::Tcp { host, port } => {
                ["-h", host, "-p", &port.to_string(), &connection.database].map(str::to_owned).into()
            }
            Endpoint::Conninfo { conninfo } => vec!["-d".to_owned(), conninfo.clone()],
        };
        let (option, length) = match run {
            Run::Seconds(seconds) => ("-T", seconds),
            Run::Baseline => ("-t", 1),
        };
        let [clients, length] = [clients, length].map(|number| number.to_string());
        let load = ["-n", "-S", "-M", "prepared", "-j", "1", "-c", &clients, option, &length];
        let more = load.into_iter().chain(["-U", &connection.user]).map(str::to_owned);
        self.command.iter().cloned().chain(more).chain(address).collect()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.command.join(" "), self.version)
    }
}

impl Report {
    /// Parses the report of either driver.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let figure = |label: &str| -> Option<f64> {
            let after = text.lines().find_map(|line| line.strip_prefix(label))?;
            // The planned number may follow after a slash.
            after.split([' ', '/']).find(|word| !word.is_empty())?.parse().ok()
        };
        let required = |label| figure(label).with_context(|| format!("no \"{label}\" in the report: {text}"));
        // Older versions fail as a whole, and have no such line.
        if let Some(failed) = figure("number of failed transactions:").filter(|&failed| failed > 0.0) {
            bail!("{failed} transactions failed");
        }
        let transactions = required("number of transactions actually processed:")?;
        Ok(Self { transactions, tps: required("tps =")? })
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn reports_by_time_and_by_count_are_parsed() {
        let by_time = "number of transactions actually processed: 14503\n\
            number of failed transactions: 0 (0.000%)\ntps = 14543.328650 (without initial connection time)\n";
        let report = Report::parse(by_time).unwrap();
        assert_eq!((report.transactions, report.tps), (14503.0, 14543.32865));
        let by_count = "number of transactions actually processed: 16/16\ntps = 9.5\n";
        assert_eq!(Report::parse(by_count).unwrap().transactions, 16.0);
    }

    #[test]
    fn failed_transactions_are_an_error() {
        let text =
            "number of transactions actually processed: 3\nnumber of failed transactions: 1 (25.000%)\n";
        assert!(Report::parse(text).is_err_and(|error| error.to_string() == "1 transactions failed"));
        assert!(Report::parse("").is_err());
    }
}
