//! `pgdyno kernel`: kernels for measurements.

mod boot;
mod fetch;
mod list;
mod remove;
mod restore;

use clap::{Args, Subcommand};
use host::Cache;

use crate::exit::{Exit, Usage};
use crate::output::note;

/// Boot, list, fetch, build and remove kernels
///
/// A kernel is named as in a campaign: by a version of Linux, such as 6.12; by a Debian package, such as
/// linux-image-6.12.9-cloud-amd64, or a glob of packages, such as 'linux-image-6.12.*-cloud-amd64'; by the path of a
/// bzImage or of a built kernel tree, which contains a /; or by a commit of a git repository, such as ./linux@v6.6, which is built
/// in the cache. Packages are downloaded by this machine's apt and unpacked into the cache; nothing is installed.
///
/// A name stands for the same kernel, without a network, until `pgdyno kernel fetch` updates it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch 'linux-image-6.12.*-cloud-amd64'\n  \
                        pgdyno kernel boot 6.12 -- uname -r\n  \
                        pgdyno kernel boot ./linux@v6.6 -- uname -r\n  \
                        pgdyno kernel list\n  \
                        pgdyno kernel remove 6.1\n\n\
                        Environment:\n  \
                        PGDYNO_CACHE  directory of the cache")]
pub(crate) struct KernelArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Boot(boot::BootArgs),
    List(list::ListArgs),
    Fetch(fetch::FetchArgs),
    Remove(remove::RemoveArgs),
    Restore(restore::RestoreArgs),
}

impl KernelArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        self.command.run().map_err(|error| match error.downcast_ref::<machine::Error>() {
            Some(error) if is_usage(error) => Usage::from_error(error).into(),
            _ => error,
        })
    }
}

impl Command {
    fn run(self) -> anyhow::Result<Exit> {
        let cache = Cache::open()?;
        let left = machine::sweep(&cache)?.len();
        if left > 0 {
            note(&format!("removed {left} incomplete kernels of a killed pgdyno\n"));
        }
        match self {
            Self::Boot(args) => args.run(&cache),
            Self::List(args) => args.run(&cache),
            Self::Fetch(args) => args.run(&cache),
            Self::Remove(args) => args.run(&cache),
            Self::Restore(args) => args.run(),
        }
    }
}

/// Whether the command line is wrong, so that nothing was started.
fn is_usage(error: &machine::Error) -> bool {
    matches!(
        error,
        machine::Error::NotAKernel { .. }
            | machine::Error::NoKernel { .. }
            | machine::Error::Kernel { .. }
            | machine::Error::Image { .. }
            | machine::Error::Module { .. }
    )
}
