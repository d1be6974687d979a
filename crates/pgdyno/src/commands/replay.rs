//! `pgdyno replay`: the statements of an application, from the logs of its server and against another.

mod inspect;
mod play;
mod read;
mod synthesize;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::exit::{Exit, Usage};

/// Record the statements of an application from the logs of its server, and play them
///
/// `read` makes a trace of logs: sessions, statements, parameters, times, outcomes. Without logs, `synthesize` makes one of
/// snapshots of pg_stat_statements. `inspect` shows what is in it, and `play` plays it against another server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno replay read postgresql-*.csv -o app.pgdt\n  \
                        pgdyno replay read postgresql.log.gz --prefix '%m [%p] %q%u@%d ' -o app.pgdt\n  \
                        pgdyno replay synthesize before.csv after.csv -d copy -o app.pgdt\n  \
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
    Synthesize(synthesize::SynthesizeArgs),
    Inspect(inspect::InspectArgs),
    Play(Box<play::PlayArgs>),
}

impl ReplayArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Read(args) => args.run(),
            Command::Synthesize(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Play(args) => args.run(),
        }
    }
}

/// Refuses a trace that would replace what it is made from.
fn check_output(sources: &[PathBuf], output: &Path) -> Result<(), Usage> {
    let is_same =
        |source: &PathBuf| matches!((source.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if sources.iter().any(is_same) {
        let output = output.display();
        return Err(Usage(format!(
            "error: the trace would replace {output}, which it is made from; name another with -o"
        )));
    }
    Ok(())
}
