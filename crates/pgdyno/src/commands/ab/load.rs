//! Options of the load that comparisons and bisections share.

use clap::Args;

use super::pin::PinArgs;
use crate::commands::bench::ProtocolName;

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(in crate::commands) struct LoadArgs {
    /// Clients: concurrent sessions of users
    #[arg(short, long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::commands) clients: u32,

    /// Threads of the driver [default: one for each client if there are at most two for each CPU, else one for each CPU]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::commands) threads: Option<u32>,

    #[command(flatten)]
    pub(in crate::commands) pin: PinArgs,

    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value = "prepared", value_name = "PROTOCOL")]
    pub(in crate::commands) protocol: ProtocolName,
}
