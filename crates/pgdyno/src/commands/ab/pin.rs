//! Options of the CPUs of driver and servers.

use std::time::Duration;

use clap::{Args, ValueEnum};
use host::Turn;
use model::factor::pin::Processors;
use runner::campaign_file::pin;

/// Name of the pin with the CPU lists.
const PINNED: &str = "pinned";

/// Time over which the CPU time of other processes is measured.
const SAMPLE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(in crate::commands) struct PinArgs {
    /// CPUs of driver and servers
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", conflicts_with_all = ["driver_cpus", "server_cpus"])]
    pin: Pin,

    /// CPUs of the driver, such as 0 or 0-3,8, as for taskset [default: as --pin; with --server-cpus all]
    #[arg(long, value_name = "LIST")]
    driver_cpus: Option<String>,

    /// CPUs of each server [default: as --pin; with --driver-cpus all]
    #[arg(long, value_name = "LIST")]
    server_cpus: Option<String>,
}

/// How driver and servers get their CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pin {
    /// `separate`, or `none` if other processes use more than a tenth of the CPUs before the first
    /// session
    Auto,
    /// Half of the CPUs for the driver and half for the servers: much less noise on a machine of one's own
    Separate,
    /// The kernel chooses: right where others use the machine at the same time
    None,
}

impl PinArgs {
    /// Whether the command line has lists of CPUs.
    pub(in crate::commands) const fn has_lists(&self) -> bool {
        self.driver_cpus.is_some() || self.server_cpus.is_some()
    }

    /// The CPUs of driver and servers on a machine that nobody else uses.
    pub(in crate::commands) fn processors(&self) -> Processors {
        match self.pin {
            _ if self.has_lists() => Processors {
                name: PINNED.to_owned(),
                driver: self.driver_cpus.clone(),
                server: self.server_cpus.clone(),
            },
            Pin::None => Processors::none(),
            Pin::Auto | Pin::Separate => pin::separate().unwrap_or_else(Processors::none),
        }
    }

    /// The use of the CPUs by other processes, in words, if that decides and is too much for pins. Takes a second.
    pub(in crate::commands) fn foreign_use(&self, allow_concurrent: bool) -> Option<String> {
        // What another pgdyno uses says nothing if this one waits for its end.
        if self.pin != Pin::Auto || self.has_lists() || Turn::is_taken(allow_concurrent) {
            return None;
        }
        pin::foreign_use(SAMPLE)
    }
}
