//! `pgdyno driver`: the load generator as a process of its own. Started by `pgdyno run`, not by users.

use std::io;

use clap::Args;
use driver::ServeOutcome;

use crate::exit::Exit;

/// Run as a driver process: read a load from standard input, run it, report on standard output
#[derive(Debug, Args)]
pub(crate) struct DriverArgs {}

impl DriverArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match driver::serve(io::stdin(), io::stdout()) {
            ServeOutcome::Finished => Ok(Exit::Ok),
            // The runner knows the reason, or has ended.
            ServeOutcome::Failed | ServeOutcome::Abandoned => Ok(Exit::Error),
        }
    }
}
