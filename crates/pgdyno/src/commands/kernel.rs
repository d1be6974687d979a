//! `pgdyno kernel`: kernels for measurements.

mod boot;

use std::path::Path;

use anyhow::Context;
use clap::{Args, Subcommand};
use host::Cache;
use machine::Fetched;
use plaintext::table::Format;

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json};
use crate::progress::PreparationProgress;
use boot::BootArgs;
use report::kernels::{List, size};
use runner::reboots::Restored;

/// Boot, list, fetch and remove kernels
///
/// A kernel is named as in a campaign: by a version of Linux, such as 6.12; by a Debian package, such as
/// linux-image-6.12.9-cloud-amd64, or a glob of packages, such as 'linux-image-6.12.*-cloud-amd64'; or by the path of a
/// bzImage or of a built kernel tree, which contains a /. Packages are downloaded by this machine's apt and unpacked into
/// the cache; nothing is installed.
///
/// A name stands for the same kernel, without a network, until `pgdyno kernel fetch` updates it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch 'linux-image-6.12.*-cloud-amd64'\n  \
                        pgdyno kernel boot 6.12 -- uname -r\n  \
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
    Boot(BootArgs),
    List(ListArgs),
    Fetch(FetchArgs),
    Remove(RemoveArgs),
    Restore(RestoreArgs),
}

/// List fetched kernels: labels, release, package, size
///
/// A label is the name in a campaign or in `pgdyno kernel fetch`; it stands for the same kernel until it is fetched again.
/// Sizes are of the files, in units of 1000.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel list\n  \
                        pgdyno kernel list --format json | jq -r '.kernels[] | .release'")]
struct ListArgs {
    #[command(flatten)]
    format: FormatArg,
}

/// Fetch the newest kernels
///
/// Asks apt for the newest kernel of each label, which then stands for it; older kernels stay until they are removed. Without
/// apt, fetched kernels are used. Paths are only checked: such kernels are used in place. An interrupted fetch leaves
/// nothing behind, and several may run at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch linux-image-cloud-amd64\n  \
                        apt-get update && pgdyno kernel fetch 6.12\n\n\
                        Exit codes: 0 all are fetched, 1 one could not be fetched, 2 there is no such kernel.")]
struct FetchArgs {
    /// Version, Debian package, glob of packages, or path
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

/// Restore the machine to its state before `pgdyno run --kernels-by-reboot`
///
/// Removes the systemd unit that continues after boots and the boot loader's entry, and stops booting kernels. Trials stay,
/// and `pgdyno resume --kernels-by-reboot` continues the run. Without anything to restore, nothing is done.
#[derive(Debug, Args)]
struct RestoreArgs {}

/// Remove fetched kernels
///
/// By a label or a package's name; all labels of a removed kernel are removed, too. Kernels in use are not removed. Trials
/// are in the store and are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel remove 6.1\n  \
                        pgdyno kernel remove linux-image-6.12.9-cloud-amd64\n\n\
                        Exit codes: 0 removed, 1 one is in use or could not be removed, 2 there is no such kernel.")]
struct RemoveArgs {
    /// Labels or packages
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
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
            note(&format!("removed {left} partially fetched kernels of a killed pgdyno\n"));
        }
        match self {
            Self::Boot(args) => args.run(&cache),
            Self::List(args) => args.run(&cache),
            Self::Fetch(args) => args.run(&cache),
            Self::Remove(args) => args.run(&cache),
            Self::Restore(RestoreArgs {}) => restore(),
        }
    }
}

/// Restores the machine, whichever campaign boots its kernels.
fn restore() -> anyhow::Result<Exit> {
    let Some(Restored { campaign, store, next_kernel }) = runner::reboots::restore()? else {
        note("no campaign boots kernels on this machine: there is nothing to restore\n");
        return Ok(Exit::Ok);
    };
    note(&format!(
        "the machine is as the campaign {campaign} found it; its trials are in {}\n",
        store.display()
    ));
    if let Some(release) = next_kernel {
        note(&format!("the next boot starts the machine's own kernel, {release}\n"));
    }
    Ok(Exit::Ok)
}

/// Whether a request is wrong: nothing was begun.
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

impl ListArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let document = List::read(cache)?;
        match self.format.get() {
            Format::Json => print_json(&document)?,
            format => print(&document.table().render(format))?,
        }
        Ok(Exit::Ok)
    }
}

impl FetchArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let here = std::env::current_dir().context("could not find the working directory")?;
        let bar = PreparationProgress::new();
        for label in &self.labels {
            let fetched = machine::fetch_kernel(cache, label, &here, &bar)?;
            bar.clear();
            print(&outcome(label, &fetched))?;
        }
        Ok(Exit::Ok)
    }
}

/// The kernel that a label stands for, and the one before.
fn outcome(label: &str, fetched: &Fetched) -> String {
    let Fetched { kernel, before } = fetched;
    if label.contains('/') {
        return format!(
            "{label} is Linux {}, and is used where it is: {}\n",
            kernel.release,
            kernel.image.display()
        );
    }
    let before = before.as_ref().map(|before| format!(", and no longer for {before}")).unwrap_or_default();
    let place = kernel.image.parent().unwrap_or_else(|| Path::new("/")).display();
    format!("{label} stands for Linux {} ({}){before}; it is in {place}\n", kernel.release, kernel.origin)
}

impl RemoveArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        for label in &self.labels {
            for removed in machine::remove_kernel(cache, label)? {
                let labels = match &removed.labels[..] {
                    [] => String::new(),
                    labels => format!(", which {} stood for", labels.join(", ")),
                };
                print(&format!("removed {}{labels} ({})\n", removed.kernel.origin, size(removed.bytes)))?;
            }
        }
        Ok(Exit::Ok)
    }
}
