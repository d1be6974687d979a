//! Options of error handling.

use std::time::Duration;

use bench::{ErrorOptions, ErrorRule};
use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Errors")]
pub(super) struct ErrorArgs {
    /// What to do about errors of a SQLSTATE, of a class (40) or all others (*): retry, count (as failed), reconnect, or
    /// abort (the client) [default: 40001 and 40P01 retry, class 42 aborts, all others count]
    #[arg(long, value_name = "STATE=ACTION")]
    on_error: Vec<ErrorRule>,

    /// Tries per transaction, the first included; 0 is without limit
    #[arg(long, value_name = "N", default_value = "10")]
    max_tries: u32,

    /// Pause before a transaction is tried again; doubles each further time up to 64 times, and varies at random by half
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = bench::duration, hide_default_value = true)]
    back_off: Duration,

    /// Reconnect clients that lose their connection; their transactions count as failed
    #[arg(long)]
    reconnect: bool,

    /// Transactions that take longer are late; in an open loop those that could only start later are skipped
    #[arg(long, value_name = "TIME", value_parser = bench::positive_duration)]
    pub(super) latency_limit: Option<Duration>,
}

impl From<ErrorArgs> for ErrorOptions {
    fn from(args: ErrorArgs) -> Self {
        Self {
            rules: args.on_error,
            max_tries: args.max_tries,
            back_off: args.back_off,
            reconnect: args.reconnect,
        }
    }
}
