//! `pgdyno dataset`: filled data sets and their sizes.

use clap::{ArgGroup, Args, Subcommand};
use host::Cache;
use plaintext::table::Format;
use server::Template;

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json, print_table};
use report::datasets::List;

/// List and remove data sets
///
/// A data set is a data directory with pgbench's tables or a database of your own, and the tables of a workload's setup. It is
/// filled once for a server, its initdb options, a scale or that database, and that setup, and copied for each trial: by
/// sharing blocks if the file system supports that (XFS, Btrfs), else block by block. `pgdyno run` and `pgdyno server start
/// --scale` create the data sets that they need; a removed data set only costs the time of filling it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno dataset list\n  \
                        pgdyno dataset remove --scale 1000\n  \
                        PGDYNO_DATASETS_MAX=50GB pgdyno run campaign.toml\n\n\
                        Environment:\n  \
                        PGDYNO_CACHE         directory of the cache\n  \
                        PGDYNO_DATASETS_MAX  limit of the size of all data sets, such as 50GB: before one is created,\n                       \
                        the least recently used are removed, unless they are in use [default: no limit]")]
pub(crate) struct DatasetArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Remove(RemoveArgs),
}

/// List data sets: server, initdb options, scale or database, workload, size, when made and last used
///
/// Sizes are of the files, in units of 1000. Outdated data sets were made by an older pgdyno and are no longer used.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno dataset list\n  \
                        pgdyno dataset list --format json | jq '[.datasets[].bytes] | add'")]
struct ListArgs {
    #[command(flatten)]
    format: FormatArg,
}

/// Remove data sets
///
/// By name, as in `pgdyno dataset list`, or by server and scale; with both, only data sets that match both. Data sets in use
/// are not removed. Trials are in the store and are not touched.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
                        pgdyno dataset remove 18.6-scale-10-v2\n  \
                        pgdyno dataset remove --server 16 --scale 100\n  \
                        pgdyno dataset remove --all\n\n\
                        Exit codes: 0 removed, 1 some are in use or could not be removed, 2 there is no such data set.")]
struct RemoveArgs {
    /// Names
    #[arg(value_name = "NAME", group = "what", conflicts_with_all = ["server", "scale", "all"])]
    names: Vec<String>,

    /// Data sets of a server: a major (18, 9.6), a full version (16.4) or another name in the list's column
    #[arg(long, value_name = "SERVER", group = "what")]
    server: Option<String>,

    /// Data sets of a scale
    #[arg(long, value_name = "SCALE", group = "what", value_parser = clap::value_parser!(u32).range(1..))]
    scale: Option<u32>,

    /// All data sets
    #[arg(long, group = "what", conflicts_with_all = ["server", "scale"])]
    all: bool,
}

impl DatasetArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let cache = Cache::open()?;
        match self.command {
            Command::List(args) => args.run(&cache),
            Command::Remove(args) => args.run(&cache),
        }
    }
}

impl ListArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let document = List::read(cache)?;
        match self.format.get() {
            Format::Json => print_json(&document)?,
            format => print_table(&document.table(), format)?,
        }
        Ok(Exit::Ok)
    }
}

impl RemoveArgs {
    fn run(self, cache: &Cache) -> anyhow::Result<Exit> {
        let mut exit = Exit::Ok;
        for template in self.selected(server::templates(cache)?)? {
            let (name, bytes) = (template.name().to_owned(), template.bytes());
            match template.remove(cache) {
                Ok(()) => print(&format!("removed {name} ({})\n", report::datasets::size(bytes)))?,
                Err(error) => {
                    note(&format!("error: {error}\n"));
                    exit = Exit::Error;
                }
            }
        }
        Ok(exit)
    }

    /// The data sets to remove; each name must exist, and the other options match at least one.
    fn selected(&self, all: Vec<Template>) -> anyhow::Result<Vec<Template>> {
        let none = |wanted: String| Usage(format!("error: {}", server::Error::NoDataset { wanted }));
        if let Some(name) = self.names.iter().find(|&name| !all.iter().any(|one| one.name() == name)) {
            return Err(none(name.clone()).into());
        }
        let selected: Vec<Template> = all.into_iter().filter(|template| self.matches(template)).collect();
        if selected.is_empty() && !self.all {
            let server = self.server.iter().map(|server| format!("of the server {server}"));
            let scale = self.scale.iter().map(|scale| format!("of scale {scale}"));
            return Err(none(server.chain(scale).collect::<Vec<_>>().join(" ")).into());
        }
        Ok(selected)
    }

    fn matches(&self, template: &Template) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|name| name == template.name());
        }
        self.server.as_ref().is_none_or(|server| template.is_of(server))
            && self.scale.is_none_or(|scale| template.own().is_none() && template.scale() == scale)
    }
}
