//! What a transaction costs the load driver, beside pgbench on the same server in the same run.
//!
//! `make bench`, or `cargo run --release -p driver-cost -- --help`. It needs a pgbench; the server is one of pgdyno's
//! own, as in a campaign, and is gone afterwards. The load is select-only by prepared statements from one driver
//! thread, which is where a driver's own cost weighs most.
//!
//! # How to read it
//!
//! The two drivers take turns, and each goes first in every second round, so that whatever else the machine does hits
//! both. A ratio is pgdyno's figure over pgbench's of the same round; the table has the median of the rounds and their
//! range. Absolute figures are this machine's at that time: compare ratios, and those only where the range is narrow.
//! A range that includes 1 shows no difference.
//!
//! - **tps**: transactions per second. Server and driver share the machine's processors, so a cheaper driver leaves
//!   more to the server: above 1 is better.
//! - **cpu**: the driver process's CPU time for one transaction, user and system, starting and connecting included:
//!   below 1 is better. It is what the driver takes from the server under test.
//! - **syscalls**: system calls of the driver process for one transaction, counted by `perf` in one more run each,
//!   where it may. Fewer is better, and it hardly depends on what else the machine does.

mod cost;
mod server;

use std::env;
use std::io::{Write, stdin, stdout};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use model::workload::Transport;

use cost::{Cost, Peers, Who};
use server::Interrupt;

/// The argument that makes this program a driver process.
const DRIVER: &str = "driver";

#[derive(Parser)]
#[command(about = "Compares pgdyno's driver with pgbench on the same server")]
struct Options {
    /// The server: a major or full PostgreSQL version, downloaded where it is not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    server: String,
    /// The pgbench to compare with
    #[arg(long, value_name = "PATH", default_value = "pgbench")]
    pgbench: String,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "8")]
    clients: Vec<u32>,
    /// Transports
    #[arg(long, value_delimiter = ',', default_value = "unix,tcp", value_parser = transport)]
    transports: Vec<Transport>,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of one measurement, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// pgbench's scale factor
    #[arg(long, default_value_t = 10)]
    scale: u32,
}

fn main() -> Result<ExitCode> {
    if env::args().nth(1).as_deref() == Some(DRIVER) {
        return Ok(driver::serve(stdin(), stdout()).into());
    }
    compare(&Options::parse())?;
    Ok(ExitCode::SUCCESS)
}

fn compare(options: &Options) -> Result<()> {
    let Options { rounds, seconds, scale, .. } = *options;
    let interrupt = Interrupt::by_signals()?;
    let peers = Peers { pgbench: options.pgbench.clone(), scale, seconds };
    let peer = peers.pgbench_version()?;
    let with_syscalls = cost::counts_syscalls();
    let most_clients = options.clients.iter().max().copied().unwrap_or(1);
    let server = server::start(&options.server, scale, most_clients, &interrupt)?;
    let (server_version, _) = server.version()?;

    let mut out = stdout().lock();
    writeln!(out, "peer    {peer}")?;
    writeln!(out, "server  PostgreSQL {server_version}, scale {scale}, both drivers on the same one")?;
    writeln!(
        out,
        "load    select-only, prepared, 1 driver thread, {rounds} rounds of {seconds} s each in turns"
    )?;
    writeln!(out, "ratios  pgdyno / pgbench of a round: median (lowest - highest); tps: more is better;")?;
    writeln!(
        out,
        "        cpu, the driver's CPU time for a transaction, and its system calls: less is better"
    )?;
    writeln!(out)?;
    let head = ["pgbench tps", "pgdyno tps", "pgbench cpu", "pgdyno cpu"];
    write!(
        out,
        "{:9} {:>7} {:>11} {:>10} {:>21} {:>11} {:>10} {:>21}",
        "transport", "clients", head[0], head[1], "tps ratio", head[2], head[3], "cpu ratio"
    )?;
    if with_syscalls {
        write!(out, " {:>16} {:>15}", "pgbench syscalls", "pgdyno syscalls")?;
    }
    writeln!(out)?;
    let measured_by = |who, connection: &_, clients| -> Result<Cost> {
        if interrupt.asked() {
            bail!("interrupted");
        }
        peers.measure(who, connection, clients)
    };
    for &transport in &options.transports {
        let connection = server.connection(transport);
        for &clients in &options.clients {
            // The first of all reads the tables, and no round does.
            measured_by(Who::Pgbench, &connection, clients)?;
            let mut theirs = Vec::new();
            let mut ours = Vec::new();
            for round in 0..rounds {
                // Each goes first in turn.
                if round % 2 == 0 {
                    theirs.push(measured_by(Who::Pgbench, &connection, clients)?);
                    ours.push(measured_by(Who::Pgdyno, &connection, clients)?);
                } else {
                    ours.push(measured_by(Who::Pgdyno, &connection, clients)?);
                    theirs.push(measured_by(Who::Pgbench, &connection, clients)?);
                }
            }
            let (tps, cpu) = (|cost: &Cost| cost.tps, |cost: &Cost| cost.cpu_us);
            write!(
                out,
                "{:9} {clients:>7} {:>11.0} {:>10.0} {:>21} {:>8.2} µs {:>7.2} µs {:>21}",
                transport.name(),
                median_of(&theirs, tps),
                median_of(&ours, tps),
                ratio(&ours, &theirs, tps),
                median_of(&theirs, cpu),
                median_of(&ours, cpu),
                ratio(&ours, &theirs, cpu),
            )?;
            if with_syscalls {
                let [theirs, ours] =
                    [Who::Pgbench, Who::Pgdyno].map(|who| peers.syscalls(who, &connection, clients));
                write!(out, " {:>16.2} {:>15.2}", theirs?, ours?)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn transport(name: &str) -> Result<Transport, &'static str> {
    Transport::by_name(name).ok_or("neither unix nor tcp")
}

fn median_of(costs: &[Cost], figure: fn(&Cost) -> f64) -> f64 {
    median(costs.iter().map(figure).collect())
}

/// The ratios of the rounds: their median and range.
fn ratio(ours: &[Cost], theirs: &[Cost], figure: fn(&Cost) -> f64) -> String {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| figure(our) / figure(their)).collect();
    let low = ratios.iter().copied().fold(f64::MAX, f64::min);
    let high = ratios.iter().copied().fold(f64::MIN, f64::max);
    format!("{:.3} ({low:.3} - {high:.3})", median(ratios))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
