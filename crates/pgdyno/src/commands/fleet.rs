//! `pgdyno fleet`: what the machines of a fleet do.

mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fleet::signature::SecretKey;

use crate::completion;
use crate::exit::Exit;
use crate::fleet_args::FleetArgs;
use crate::output::{note, print};

/// Show a fleet's machines and runs, cancel runs, create keys
///
/// A fleet is a NATS server with JetStream, agents on machines that run trials (`pgdyno agent`), and commands that queue
/// campaigns (`pgdyno run --fleet`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        nats-server -js &\n  \
                        pgdyno agent &                               on each machine\n  \
                        pgdyno run campaign.toml --fleet\n  \
                        pgdyno fleet status --nats nats://nats.example")]
pub(crate) struct FleetCommandArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::StatusArgs),
    Cancel(CancelArgs),
    Key(KeyArgs),
}

/// Remove a run from the fleet: what is queued does not run, and trials that were not collected are lost
///
/// An agent that measures a block of the run completes it. Trials in the coordinator's store stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno fleet cancel 01KAK3")]
struct CancelArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "ID", add = completion::runs())]
    run: String,

    #[command(flatten)]
    fleet: FleetArgs,
}

/// Create a key to sign campaigns with, and print its public key
///
/// `pgdyno run --fleet --sign-with FILE` signs with it; agents with `--trust KEYS` run only what a key of theirs has signed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno fleet key ~/.config/pgdyno.key >> keys.pub")]
struct KeyArgs {
    /// File of the secret key; only its owner can read it
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

impl FleetCommandArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Status(args) => args.run(),
            Command::Cancel(args) => {
                let run = args.fleet.connect("pgdyno fleet cancel")?.cancel(&args.run)?;
                note(&format!("removed run {run} from the fleet\n"));
                Ok(Exit::Ok)
            }
            Command::Key(args) => {
                print(&format!("{}\n", SecretKey::create(&args.path)?))?;
                Ok(Exit::Ok)
            }
        }
    }
}
