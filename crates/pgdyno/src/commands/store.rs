//! `pgdyno store`: the bundles in the store, and whether they are intact.

mod check;
mod list;
mod reindex;
mod show;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// List, show and check stored trials
///
/// Each trial leaves a bundle: a directory `trials/<id>` in the store, with everything that was measured. Bundles are
/// never changed. The file `index.sqlite` next to them is a cache that is rebuilt when needed: deleting it loses nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno store list\n  \
                        pgdyno store list --format json | jq -r '.trials[] | select(.validity == \"valid\") | .id'\n  \
                        pgdyno store show 01JD7P\n  \
                        pgdyno store check && tar -czf trials.tar.gz .pgdyno/trials")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Check(check::CheckArgs),
    Reindex(reindex::ReindexArgs),
}

impl StoreArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::List(args) => args.run(),
            Command::Show(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Reindex(args) => args.run(),
        }
    }
}
