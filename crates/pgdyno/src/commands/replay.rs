//! `pgdyno replay`: the statements of an application, from the logs of its server and against another.

mod inspect;
mod play;
mod read;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Record the statements of an application from the logs of its server, and play them
///
/// `read` makes a trace of logs: sessions, statements, parameters, times, outcomes. `inspect` shows what is in it,
/// and `play` plays it against another server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno replay read postgresql-*.csv -o app.pgdt\n  \
                        pgdyno replay read postgresql.log.gz --prefix '%m [%p] %q%u@%d ' -o app.pgdt\n  \
                        pgdyno replay inspect app.pgdt\n  \
                        pgdyno replay play app.pgdt -d copy\n\n\
                        What a server must log is in docs/replay.md.")]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Read(read::ReadArgs),
    Inspect(inspect::InspectArgs),
    Play(Box<play::PlayArgs>),
}

impl ReplayArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Read(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Play(args) => args.run(),
        }
    }
}
