//! `pgdyno kernel`: kernels to measure on.

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
/// bzImage or of a kernel tree that was built, which has a / in it. Packages are got by this machine's apt, and unpacked into
/// the cache; nothing is installed.
///
/// What a name was resolved to stays, and needs no network any more, until `pgdyno kernel fetch` asks for a newer one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch 'linux-image-6.12.*-cloud-amd64'\n  \
                        pgdyno kernel boot 6.12 -- uname -r\n  \
                        pgdyno kernel list\n  \
                        pgdyno kernel remove 6.1\n\n\
                        Environment:\n  \
                        PGDYNO_CACHE  where everything lives")]
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

/// List the kernels that were fetched: labels, release, package, size
///
/// A label is what a campaign or `pgdyno kernel fetch` asked for; it stands for the same kernel until it is fetched
/// again. Sizes are of the files, in units of 1000.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel list\n  \
                        pgdyno kernel list --format json | jq -r '.kernels[] | .release'")]
struct ListArgs {
    #[command(flatten)]
    format: FormatArg,
}

/// Fetch kernels, the newest that there are
///
/// Asks apt anew, also where there is a kernel of this label already: if there is a newer one, the label stands for
/// that from then on, and the older one stays until it is removed. Without apt, what is there already is used. A path is
/// only checked: such a kernel is used where it is. Interrupting it leaves nothing half-done, and several may run at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel fetch 6.1 6.12\n  \
                        pgdyno kernel fetch linux-image-cloud-amd64\n  \
                        apt-get update && pgdyno kernel fetch 6.12\n\n\
                        Exit codes: 0 all are there, 1 one could not be fetched, 2 there is no such kernel.")]
struct FetchArgs {
    /// Version, Debian package, glob of packages, or path
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

/// Leave the machine as `pgdyno run --kernels-by-reboot` found it
///
/// Takes away the systemd unit that goes on after boots and the boot loader's entry, and ends the walk through kernels; what was
/// measured stays, and `pgdyno resume --kernels-by-reboot` goes on with it. Where there is nothing to be put back, nothing is done.
#[derive(Debug, Args)]
struct RestoreArgs {}

/// Remove fetched kernels
///
/// By a label as it was fetched, or by a package's name; all labels that stand for it go with it. What a pgdyno that runs
/// is using stays. Trials that were measured are in the store and are not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno kernel remove 6.1\n  \
                        pgdyno kernel remove linux-image-6.12.9-cloud-amd64\n\n\
                        Exit codes: 0 removed, 1 one is in use or could not be removed, 2 there is none of these.")]
struct RemoveArgs {
    /// Labels or packages
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

impl KernelArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        self.go().map_err(|error| match error.downcast_ref::<machine::Error>() {
            Some(target) if is_usage(target) => Usage(format!("error: {target}")).into(),
            _ => error,
        })
    }

    fn go(self) -> anyhow::Result<Exit> {
        let cache = Cache::open()?;
        let left = machine::sweep(&cache)?.len();
        if left > 0 {
            note(&format!("removed {left} kernels that a killed pgdyno had fetched in part\n"));
        }
        match self.command {
            Command::Boot(args) => args.run(&cache),
            Command::List(args) => args.run(&cache),
            Command::Fetch(args) => args.run(&cache),
            Command::Remove(args) => args.run(&cache),
            Command::Restore(RestoreArgs {}) => restore(),
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

/// Errors of what was asked for.
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
            print(&said(label, &fetched))?;
        }
        Ok(Exit::Ok)
    }
}

/// What came of fetching a kernel.
fn said(label: &str, fetched: &Fetched) -> String {
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
