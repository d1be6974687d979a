//! The workload `order-entry`, and go-tpc.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use analysis::metric::Metric;
use anyhow::{Context, Result, ensure};
use clap::Args;
use processes::Usage;

use crate::reference_server::ReferenceServer;
use crate::table::{Figures, Load};
use crate::{Common, Comparison};

/// The database that go-tpc fills, and the copy that it works on.
const FILLED: &str = "reference_filled";
const DATABASE: &str = "reference";
/// Share of go-tpc's transactions that may fail.
const FAILURES: f64 = 0.01;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The go-tpc to compare with, built from its repository, github.com/pingcap/go-tpc
    #[arg(long, value_name = "PATH")]
    go_tpc: PathBuf,
    /// Number of warehouses
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    warehouses: u32,
    /// Number of clients
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Length of a load, in seconds
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

pub(crate) struct OrderEntry {
    options: Options,
    server: ReferenceServer,
}

impl OrderEntry {
    /// Has go-tpc fill its database.
    pub(crate) fn prepare(options: Options, server: ReferenceServer) -> Result<Self> {
        let this = Self { options, server };
        this.server.create(FILLED, "template0")?;
        this.go_tpc("prepare", FILLED, &["--no-check"])?;
        this.server.execute(FILLED, "VACUUM ANALYZE")?;
        Ok(this)
    }

    /// Runs go-tpc to its end; returns what it wrote.
    fn go_tpc(&self, command: &str, database: &str, args: &[&str]) -> Result<String> {
        let Options { go_tpc, warehouses, clients, .. } = &self.options;
        let output = Command::new(go_tpc)
            .args(["tpcc", command, "-d", "postgres", "-H", "127.0.0.1", "-U", "postgres", "-D", database])
            .args(["-P", &self.server.port(), "--conn-params", "sslmode=disable"])
            .args(["--warehouses", &warehouses.to_string(), "-T", &clients.to_string()])
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| {
                format!("cannot start {}: build go-tpc from github.com/pingcap/go-tpc", go_tpc.display())
            })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "go-tpc {command} failed ({}): {errors}{text}", output.status);
        Ok(text)
    }
}

impl Comparison for OrderEntry {
    fn loads(&self) -> &'static [Load] {
        &[Load { name: "order-entry", unit: "new orders/min" }]
    }

    fn reference(&mut self) -> Result<Vec<Figures>> {
        self.server.create(DATABASE, FILLED)?;
        self.server.execute(DATABASE, READ_TABLES)?;
        let (clients_us, server_us) = (Usage::of_children()?.cpu_us, self.server.cpu_us()?);
        let time = format!("{}s", self.options.seconds);
        let text = self.go_tpc("run", DATABASE, &["--time", &time, "--interval", "1h"])?;
        let (clients_us, server_us) =
            (Usage::of_children()?.cpu_us - clients_us, self.server.cpu_us()? - server_us);
        let summary = Summary::parse(&text).with_context(|| format!("not the output of go-tpc: {text}"))?;
        let Summary { new_orders_per_minute, transactions, failures } = summary;
        ensure!(failures <= transactions * FAILURES, "{failures} of go-tpc's transactions failed: {text}");
        Ok(vec![Figures {
            rate: new_orders_per_minute,
            client_us: Some(clients_us / transactions),
            server_us: Some(server_us / transactions),
        }])
    }

    fn pgdyno(&mut self) -> Result<Vec<Figures>> {
        let Options { warehouses, clients, seconds, .. } = &self.options;
        let record = self.server.campaign(&format!(
            "workload = [\"order-entry\"]\nscale = [{warehouses}]\nclients = [{clients}]\nduration = [\"{seconds}s\"]\n"
        ))?;
        let summary = record.trial.summary.as_ref().context("the trial of pgdyno has no results")?;
        let transactions = record.trial.accounting.driver_transactions.map(|count| count as f64);
        Ok(vec![Figures {
            rate: Metric::NewOrders.value(&record).context("the trial of pgdyno has no new orders")?,
            client_us: summary.driver_cpu_us.zip(transactions).map(|(us, count)| us as f64 / count),
            server_us: Metric::CpuPerTransaction.value(&record),
        }])
    }
}

/// Reads the tables into the server's buffers, as pgdyno does before a trial.
const READ_TABLES: &str = "DO $$ DECLARE name text; BEGIN \
     FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP \
     EXECUTE 'SELECT count(*) FROM ' || name; END LOOP; END $$";

/// The last lines of go-tpc's output.
#[derive(Debug, PartialEq)]
struct Summary {
    /// Those that are rolled back for an unknown item included.
    new_orders_per_minute: f64,
    transactions: f64,
    failures: f64,
}

impl Summary {
    /// Lines such as `[Summary] NEW_ORDER - Takes(s): 15.0, Count: 6572, TPM: 26288.4, Sum(ms): …`.
    fn parse(text: &str) -> Option<Self> {
        let mut summary = Self { new_orders_per_minute: 0.0, transactions: 0.0, failures: 0.0 };
        for line in text.lines().filter_map(|line| line.strip_prefix("[Summary] ")) {
            let (kind, figures) = line.split_once(" - ")?;
            let figure = |name: &str| -> Option<f64> {
                let value = figures.split(", ").find_map(|figure| figure.strip_prefix(name));
                value?.strip_prefix(": ")?.parse().ok()
            };
            let (kind, count) = (kind.trim(), figure("Count")?);
            if kind.ends_with("_ERR") {
                summary.failures += count;
            } else {
                summary.transactions += count;
            }
            if kind == "NEW_ORDER" {
                summary.new_orders_per_minute = figure("TPM")?;
            }
        }
        (summary.new_orders_per_minute > 0.0).then_some(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_rate_and_counts() {
        let text = "Finished\n\
            [Summary] DELIVERY - Takes(s): 14.9, Count: 580, TPM: 2335.3, Sum(ms): 3211.2\n\
            [Summary] NEW_ORDER - Takes(s): 15.0, Count: 6572, TPM: 26288.4, Sum(ms): 34567.1\n\
            [Summary] NEW_ORDER_ERR - Takes(s): 15.0, Count: 2, TPM: 8.0, Sum(ms): 4.1\n\
            tpmC: 26288.4, tpmTotal: 58420.0, efficiency: 51104.2%\n";
        let expected = Summary { new_orders_per_minute: 26288.4, transactions: 7152.0, failures: 2.0 };
        assert_eq!(Summary::parse(text), Some(expected));
        assert_eq!(Summary::parse("Finished\n"), None);
    }
}
