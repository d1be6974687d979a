//! pgdyno's workloads `order-entry` and `insert-benchmark` against the programs that they follow.
//!
//! `cargo build --release -p pgdyno -p reference-loads`, then `reference-loads --help`, which describes the measurement;
//! `bench/README.md` describes how to read it.
//!
//! `reference_server.rs` starts the server and runs pgdyno's campaigns, `order_entry.rs` and `insert_benchmark.rs` are the two
//! comparisons, `iibench.rs` runs the reference of the latter, `usage.rs` reads CPU time, `table.rs` prints.

mod iibench;
mod insert_benchmark;
mod order_entry;
mod reference_server;
mod table;
mod usage;

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use processes::sibling_program;

use insert_benchmark::InsertBenchmark;
use order_entry::OrderEntry;
use reference_server::ReferenceServer;
use table::{Figures, Load, Pair};

/// Compares pgdyno's workloads with the programs that they follow, on the same server: rates and CPU time
///
/// The server, which this program starts, runs on one CPU and all clients on another: otherwise what a client computes
/// is taken from the server, and a closed loop compares the clients. In each round both programs run once, and the one
/// that goes first changes from round to round. A ratio is pgdyno's figure over the reference's; at the end are the
/// geometric means of the rounds.
///
/// pgdyno's figures are those of a trial of a campaign, of which it fills the data before. CPU time of its client is
/// that of the driver (summary.driver_cpu_us). CPU time of a reference is what the kernel counts for its processes, user
/// and system, of iibench without the start of its interpreter. CPU time of the server is that of all its processes;
/// in pgdyno's trials, those that answer its collectors are left out.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    comparison: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The workload order-entry, and go-tpc: new orders per minute
    OrderEntry(order_entry::Options),
    /// The workload insert-benchmark, and iibench: rows per second of l.i0, l.i1 and l.i2, seconds of l.x, queries per
    /// second of qr100
    InsertBenchmark(insert_benchmark::Options),
}

/// What both comparisons need.
#[derive(Args)]
pub(crate) struct Common {
    /// Version of the server
    #[arg(long, value_name = "VERSION", default_value = "18")]
    server: String,
    /// Number of rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The pgdyno to measure; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
}

/// A reference and pgdyno, with the same loads.
trait Comparison {
    /// The loads, in the order of their figures.
    fn loads(&self) -> &'static [Load];

    /// Runs the reference once.
    fn reference(&mut self) -> Result<Vec<Figures>>;

    /// Runs pgdyno once.
    fn pgdyno(&mut self) -> Result<Vec<Figures>>;
}

fn main() -> Result<()> {
    match Options::parse().comparison {
        Command::OrderEntry(options) => {
            let server = options.common.start()?;
            let rounds = options.common.rounds;
            compare(&mut OrderEntry::prepare(options, server)?, rounds)
        }
        Command::InsertBenchmark(options) => {
            insert_benchmark::check_python(&options)?;
            let server = options.common.start()?;
            let rounds = options.common.rounds;
            compare(&mut InsertBenchmark::new(options, server), rounds)
        }
    }
}

fn compare(comparison: &mut dyn Comparison, rounds: u32) -> Result<()> {
    let mut out = stdout();
    let mut measured = Vec::new();
    table::head(&mut out)?;
    for round in 1..=rounds {
        let (reference, pgdyno) = if round % 2 == 1 {
            let reference = comparison.reference()?;
            (reference, comparison.pgdyno()?)
        } else {
            let pgdyno = comparison.pgdyno()?;
            (comparison.reference()?, pgdyno)
        };
        let pairs = reference.into_iter().zip(pgdyno);
        let pairs = pairs.zip(comparison.loads()).map(|(figures, &load)| Pair { load, figures });
        let pairs: Vec<Pair> = pairs.collect();
        for pair in &pairs {
            table::row(&mut out, &round.to_string(), pair)?;
        }
        measured.push(pairs);
        out.flush()?;
    }
    for number in 0..comparison.loads().len() {
        let of_load = measured.iter().filter_map(|pairs| pairs.get(number));
        if let Some(mean) = Pair::mean(of_load) {
            table::row(&mut out, "mean", &mean)?;
        }
    }
    Ok(())
}

impl Common {
    fn start(&self) -> Result<ReferenceServer> {
        let pgdyno = match &self.pgdyno {
            Some(program) => program.clone(),
            None => sibling_program("pgdyno")?,
        };
        ReferenceServer::start(&self.server, pgdyno)
    }
}
