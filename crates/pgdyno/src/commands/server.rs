//! `pgdyno server`: PostgreSQL versions, and servers that stay up.

mod build;
mod install;
mod list;
mod remove;
mod restore;
mod start;
mod stop;

use clap::{Args, Subcommand};
use host::Cache;

use crate::exit::{Exit, Usage};
use crate::output::note;

/// Install PostgreSQL versions, and run servers that stay up
///
/// `pgdyno run` installs, fills, starts and stops the servers that it measures. These commands do parts of that by hand:
/// prepare a machine that will have no network, inspect a server with psql, free disk space, or restore settings of a
/// server that pgdyno does not own.
///
/// VERSION is a major, such as 18 or 9.6, a full version, such as 16.4, or the name that `pgdyno server build` gave to
/// a build.
///
/// Everything is in the cache: PGDYNO_CACHE, else $XDG_CACHE_HOME/pgdyno, else ~/.cache/pgdyno. PostgreSQL does not run
/// as root: for root, servers run as PGDYNO_SERVER_USER, else pgdyno, else nobody, and if that user can't access
/// root's cache, the cache is /var/cache/pgdyno.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno server install 13 18\n  \
                        pgdyno server build ~/postgresql --ref my-branch\n  \
                        pgdyno server start 18 --scale 10 --settings shared_buffers=1GB\n  \
                        pgdyno server list\n  \
                        pgdyno server stop 18\n\n\
                        Environment:\n  \
                        PGDYNO_BUILDS_MAX   limit of the size of all builds from source, such as 20GB: before one is made,\n  \
                        \x20                   the least recently used are removed, unless they are in use\n  \
                        PGDYNO_CACHE        directory of the cache\n  \
                        PGDYNO_MIRROR       base URL of a Maven repository to download from (https; http only with\n  \
                        \x20                   the option --insecure-mirror, which every command accepts)\n  \
                        PGDYNO_SERVER_USER  user that servers run as if pgdyno runs as root\n  \
                        HTTPS_PROXY         proxy for downloads")]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(install::InstallArgs),
    Build(build::BuildArgs),
    List(list::ListArgs),
    Start(start::StartArgs),
    Stop(stop::StopArgs),
    Remove(remove::RemoveArgs),
    Restore(restore::RestoreArgs),
}

impl ServerArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        self.command.run().map_err(|error| match error.downcast_ref::<server::Error>() {
            Some(error) if is_usage(error) => Usage::from_error(error).into(),
            _ => error,
        })
    }
}

impl Command {
    fn run(self) -> anyhow::Result<Exit> {
        let cache = Cache::open()?;
        if let Some(notice) = server::sweep(&cache)?.notice() {
            note(&format!("{notice}\n"));
        }
        match self {
            Self::Install(args) => args.run(&cache),
            Self::Build(args) => args.run(&cache),
            Self::List(args) => args.run(&cache),
            Self::Start(args) => args.run(&cache),
            Self::Stop(args) => args.run(&cache),
            Self::Remove(args) => args.run(&cache),
            Self::Restore(args) => args.run(&cache),
        }
    }
}

/// Whether the command line is wrong, so that nothing was started.
fn is_usage(error: &server::Error) -> bool {
    matches!(
        error,
        server::Error::NotAVersion(_)
            | server::Error::NoSuchVersion { .. }
            | server::Error::NotInstalled { .. }
            | server::Error::InsecureMirror { .. }
            | server::Error::NotAMirror { .. }
            | server::Error::Source { .. }
            | server::Error::Setting { .. }
            | server::Error::Scale { .. }
    )
}
