//! The command line of pgdyno: arguments, a call of the libraries, output and an exit code.

mod bisection;
mod campaign_arg;
mod campaign_run;
mod commands;
mod comparison;
mod completion;
mod connection;
mod exit;
mod fleet_args;
mod help;
mod interrupt;
mod output;
mod process_limits;
mod progress;
mod reading;
mod reboot_args;
mod result_output;
mod run_and_print;
mod snippet;
mod store_arg;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    if let Err(error) = process_limits::prepare() {
        return exit::report(Err(error));
    }
    if let Some(code) = commands::pgbench::run_by_name() {
        return code;
    }
    completion::answer_shell(commands::Cli::command);
    let matches = help::fitted(commands::Cli::command()).get_matches_from(commands::guest::arguments());
    let cli = commands::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    exit::report(cli.run())
}
