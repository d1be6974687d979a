//! Options of the load.

use std::time::Duration;

use clap::{Args, ValueEnum};
use driver::{Engine, Think};
use model::workload::Protocol;

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadArgs {
    /// Clients: concurrent sessions
    #[arg(short, long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) clients: u32,

    /// Threads of the driver [default: one for each client if there are at most two for each CPU, else one for each CPU]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) threads: Option<u32>,

    /// After the load, measure whether another number of threads gives more: short loads that alternate, with one thread,
    /// one for each CPU and one for each client, some 6 s for each number
    #[arg(long, conflicts_with_all = ["transactions", "rate", "stage", "arrivals", "find_max"])]
    pub(super) probe_threads: bool,

    /// Length of the measured window: 30s, 500ms, 5min; a plain number is seconds [default: 10s; the sum of the stages;
    /// 5s a step of --find-max]
    #[arg(short = 'T', long, value_name = "TIME", value_parser = bench::positive_duration)]
    pub(super) duration: Option<Duration>,

    /// Transactions of each client, in place of a duration
    #[arg(short = 't', long, value_name = "N", conflicts_with_all = ["duration", "warmup", "find_max"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) transactions: Option<u64>,

    /// Load before the measured window [default: none; 1s a step of --find-max]
    #[arg(long, value_name = "TIME", value_parser = bench::duration)]
    pub(super) warmup: Option<Duration>,

    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value = "prepared", value_name = "PROTOCOL")]
    pub(super) protocol: ProtocolName,

    /// Pause of a client between two transactions: 10ms, or a random time: 10ms..50ms
    #[arg(long, value_name = "TIME[..TIME]", value_parser = bench::think_time)]
    pub(super) think: Option<Think>,

    /// Each transaction has a connection of its own
    #[arg(short = 'C', long)]
    pub(super) connect: bool,

    /// The driver's event loop
    #[arg(long, value_enum, default_value = "auto", value_name = "ENGINE")]
    pub(super) engine: EngineName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::commands) enum ProtocolName {
    /// As text, with the values in it
    Simple,
    /// Parsed each time
    Extended,
    /// Parsed once a session
    Prepared,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum EngineName {
    /// epoll if each thread has one client; else io_uring if it works
    Auto,
    Epoll,
    Uring,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::Simple => Self::Simple,
            ProtocolName::Extended => Self::Extended,
            ProtocolName::Prepared => Self::Prepared,
        }
    }
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Auto => Self::Auto,
            EngineName::Epoll => Self::Epoll,
            EngineName::Uring => Self::Uring,
        }
    }
}
