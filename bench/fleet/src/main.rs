//! What a fleet costs: a campaign on one agent and the same campaign without a fleet, and the queue alone under many agents.
//!
//! `cargo build --release -p pgdyno -p fleet-cost`, then `fleet-cost --help`. `nats.rs` runs the server, `campaign.rs` and
//! `queue.rs` measure.

mod campaign;
mod nats;
mod queue;

use std::io::{Write, stdout};

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measures what a fleet adds to the time of a campaign, and how fast its queue is
///
/// A NATS server is started on this machine, and stopped.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The same campaign on one agent and without a fleet, in alternating order: wall time of the command
    Campaign(campaign::Options),
    /// Agents that take blocks and say that they are complete, without measuring anything
    Queue(queue::Options),
}

fn main() -> Result<()> {
    let mut out = stdout();
    let text = match Options::parse().command {
        Command::Campaign(options) => campaign::measure(&options)?,
        Command::Queue(options) => queue::measure(&options)?,
    };
    writeln!(out, "{text}")?;
    Ok(())
}
