//! The cost of a transaction to the load driver, compared with pgbench and sysbench on the same server in the same run.
//!
//! `cargo build --release -p pgdyno -p null-server -p driver-cost`, then `driver-cost --help`, which describes the
//! measurement; `bench/README.md` describes how to read it.
//!
//! In the order of a run: `servers.rs` starts the server under load, `peer.rs` is a load driver as its user runs it,
//! `process.rs` runs it and reads its resource usage, `cost.rs` derives the cost of a transaction, `targets.rs` has
//! pgdyno's targets, `table.rs` prints.

mod cost;
mod interrupt;
mod peer;
mod process;
mod servers;
mod table;
mod targets;

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use model::workload::Transport;
use processes::sibling_program;

use cost::{Cell, Length};
use interrupt::Interrupt;
use peer::{Competitor, Engine, Peer};
use servers::{Kind, Loaded, Setup};

/// Compares the cost of a transaction to pgdyno's load driver with that to pgbench and to sysbench
///
/// Each is run as a user would. Against pgbench, both have the same arguments and one thread: pgbench -n -S -M prepared
/// -j 1 -c CLIENTS -T SECONDS, and pgdyno pgbench. Against sysbench, which has a thread for each client, pgdyno has its
/// default number of threads: sysbench select-only.lua --threads=CLIENTS, and pgdyno bench select-only -c CLIENTS; so it
/// has against the bare client, the least that a thread for each client costs: a loop that sends and receives. The two of a
/// comparison alternate on the same server, and the one that goes first changes from round to round. A ratio is
/// pgdyno's figure over the other's of the same round; the output has the median of the rounds and their range, and
/// pgdyno's target. "met" and "missed" are the median's, with a question mark if the range has both.
///
/// Every run is paired with one of a single transaction per client, whose cost is subtracted: CPU time, system
/// calls and context switches of a transaction do not include starting, connecting and preparing. They are those that
/// the kernel counts for the process and its children, user and system, once they have been waited for. perf counts
/// system calls in separate runs, if it is installed and permitted. Memory is the growth of the peak resident size per
/// client, from the smallest number of clients on.
///
/// The null server answers with canned bytes, so that the driver is the bottleneck; the real one is PostgreSQL.
#[derive(Parser)]
struct Options {
    /// The server under load
    #[arg(long, value_enum, default_value = "both")]
    server: Servers,
    /// The real server: a major or full PostgreSQL version, downloaded if not cached
    #[arg(long, value_name = "VERSION", default_value = "18")]
    postgres: String,
    /// The load drivers to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_value = "pgbench,sysbench,bare-client")]
    peers: Vec<Competitor>,
    /// The pgbench to compare with; the first in PATH if not given
    #[arg(long, value_name = "PATH", default_value = "pgbench")]
    pgbench: PathBuf,
    /// The sysbench to compare with; the first in PATH if not given
    #[arg(long, value_name = "PATH", default_value = "sysbench")]
    sysbench: PathBuf,
    /// The pgdyno to measure; the one next to this program if not given
    #[arg(long, value_name = "PATH")]
    pgdyno: Option<PathBuf>,
    /// pgdyno's event loop, if not its default
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Measures the other load drivers against themselves: how far from 1 the ratios are by chance
    #[arg(long, conflicts_with_all = ["pgdyno", "engine"])]
    control: bool,
    /// Numbers of clients; if not given, 1,16,64,256,1000 on the null server and 4 as well on the real one, 4,16,64
    /// against sysbench, 1,4 against the bare client
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    clients: Option<Vec<u32>>,
    /// Transports
    #[arg(long, value_delimiter = ',', default_value = "unix,tcp", value_parser = transport)]
    transport: Vec<Transport>,
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of one measurement, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// pgbench's scale factor, on the real server
    #[arg(long, default_value_t = 10)]
    scale: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Servers {
    Null,
    Real,
    Both,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let interrupt = Interrupt::on_signals()?;
    // A program that is missing is reported before anything is measured.
    let comparisons =
        options.peers.iter().map(|&peer| Comparison::new(peer, &options)).collect::<Result<Vec<_>>>()?;
    let with_syscalls = process::can_count_syscalls(&interrupt);
    let length = Length { rounds: options.rounds, seconds: options.seconds, with_syscalls };

    let mut out = stdout();
    writeln!(out, "{} rounds of {} s; ratios are B/A of a round", options.rounds, options.seconds)?;
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(out, "load average at the start: {load} (other load widens the ranges)")?;
    }
    if !with_syscalls {
        writeln!(out, "system calls are not counted: perf is not installed or not permitted")?;
    }
    for comparison in &comparisons {
        comparison.run(&options, length, &interrupt, &mut out)?;
    }
    Ok(())
}

/// Two load drivers to compare: A is another one, B is pgdyno, or the other one again as a control.
struct Comparison {
    competitor: Competitor,
    theirs: Peer,
    ours: Peer,
}

impl Comparison {
    fn new(competitor: Competitor, options: &Options) -> Result<Self> {
        let theirs = match competitor {
            Competitor::Pgbench => Peer::pgbench(&options.pgbench)?,
            Competitor::Sysbench => Peer::sysbench(&options.sysbench)?,
            Competitor::BareClient => Peer::bare_client()?,
        };
        let ours = if options.control { theirs.clone() } else { pgdyno(competitor, options)? };
        Ok(Self { competitor, theirs, ours })
    }

    fn run(
        &self,
        options: &Options,
        length: Length,
        interrupt: &Interrupt,
        out: &mut impl Write,
    ) -> Result<()> {
        let Self { competitor, theirs, ours } = self;
        writeln!(out, "\nA: {theirs}\nB: {ours}")?;
        table::head(out)?;
        for &kind in options.server.kinds() {
            let clients = options.clients_of(*competitor, kind);
            let max_clients = clients.last().copied().unwrap_or(1);
            let loaded = Loaded::start(kind, &options.postgres, options.scale, max_clients, interrupt)?;
            for &transport in &options.transport {
                let mut fewest: Option<Cell> = None;
                for &clients in &clients {
                    let connection = loaded.connection(transport);
                    let setup = Setup { kind, transport, clients, scale: options.scale, connection };
                    let cell = Cell::measure([theirs, ours], setup, length, interrupt)?;
                    let with_targets = (!options.control).then_some(*competitor);
                    table::rows(out, &cell, fewest.as_ref(), with_targets)?;
                    fewest.get_or_insert(cell);
                }
            }
        }
        Ok(())
    }
}

fn pgdyno(competitor: Competitor, options: &Options) -> Result<Peer> {
    let program = match &options.pgdyno {
        Some(program) => program.clone(),
        None => sibling_program("pgdyno")?,
    };
    match competitor {
        Competitor::Pgbench => Peer::pgdyno_pgbench(&program, options.engine),
        Competitor::Sysbench | Competitor::BareClient => Peer::pgdyno_bench(&program, options.engine),
    }
}

fn transport(name: &str) -> Result<Transport, &'static str> {
    name.parse().map_err(|_| "expected unix or tcp")
}

impl Servers {
    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Null => &[Kind::Null],
            Self::Real => &[Kind::Real],
            Self::Both => &[Kind::Null, Kind::Real],
        }
    }
}

impl Options {
    /// Numbers of clients, the smallest first.
    fn clients_of(&self, competitor: Competitor, kind: Kind) -> Vec<u32> {
        let mut clients = self.clients.clone().unwrap_or_else(|| match (competitor, kind) {
            (Competitor::Sysbench, _) => vec![4, 16, 64],
            (Competitor::BareClient, _) => vec![1, 4],
            (Competitor::Pgbench, Kind::Null) => vec![1, 16, 64, 256, 1000],
            (Competitor::Pgbench, Kind::Real) => vec![1, 4, 16, 64, 256, 1000],
        });
        clients.sort_unstable();
        clients.dedup();
        clients
    }
}
