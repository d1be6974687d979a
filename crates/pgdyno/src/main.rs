//! The command line of pgdyno: reads arguments, calls the floors below, prints what comes back.

mod campaign_file;
mod commands;
mod exit;
mod output;
mod preparation;
mod progress;
mod store_arg;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    exit::report(commands::Cli::parse().run())
}
