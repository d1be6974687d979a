//! The command line of pgdyno: reads arguments, calls the floors below, prints what comes back.

mod acceleration;
mod campaign_file;
mod campaign_run;
mod commands;
mod connection;
mod exit;
mod git;
mod interrupt;
mod kernels_by_reboot;
mod output;
mod overrides;
mod progress;
mod seed;
mod store_arg;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(code) = commands::pgbench::run_by_name() {
        return code;
    }
    exit::report(commands::Cli::parse().run())
}
