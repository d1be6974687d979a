//! `pgdyno profile`: which functions processors were in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use diagnose::profile::Groups;
use report::profile::{
    Difference, Document, Profile, ProfileError, difference_svg, difference_text, function_text, groups_of,
    profile, svg, text,
};
use report::table::Format;
use report::{Selection, Selector};
use store::Store;

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json};
use crate::store_arg::{RunArg, StoreArg};

/// Say which functions processors were in, by role, group and function
///
/// Of trials whose campaign has [profile]: shares of samples by role (driver, the load's backends, checkpointer, …), and of
/// one role by group of functions (protocol, parse and plan, executor, commit, buffer, WAL, lock) and by function, by itself
/// and with all that it calls. Of a cell, its trials' samples are taken together. Of two, it says where a transaction
/// takes more processor time in the second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno profile                                    the latest trial
  pgdyno profile clients=8,server=18 --svg load.svg --role load
                                                    a flame graph of a cell's backends
  pgdyno profile --function ExecScan                a function, what calls it and what it calls
  pgdyno profile server=17 server=18                where the second takes more CPU time of a transaction
  pgdyno profile server=17 server=18 --svg diff.svg as a flame graph: red is more, blue is less
  pgdyno profile --role driver --folded | inferno-flamegraph > driver.svg
  pgdyno profile --format json | jq '.profiles[0].roles[] | {role, samples}'")]
pub(crate) struct ProfileArgs {
    /// A trial's id, or the beginning of it; or a cell, as FACTOR=LEVEL,…, of another run with run:ID or campaign:NAME
    /// [default: the latest trial]
    #[arg(value_name = "TRIAL|CELL", num_args = 0..=2)]
    what: Vec<Selector>,

    /// Only this role: driver, load, checkpointer, "background writer", … [default: all; of groups and functions load]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Of one profile, print this function's samples, what calls it and what it calls
    #[arg(long, value_name = "NAME", conflicts_with_all = ["svg", "folded"])]
    function: Option<String>,

    /// Write a flame graph to this file and print nothing; of two, that of the second, coloured by the difference
    #[arg(long, value_name = "FILE", conflicts_with = "folded")]
    svg: Option<PathBuf>,

    /// Print the folded stacks of one profile, as flame-graph tools read them
    #[arg(long)]
    folded: bool,

    /// Take groups of functions from this TOML file, too: a table [groups] with lists such as json = ["jsonb_*"]
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,

    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

impl ProfileArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let run = self.run.get();
        let store = Store::existing(&self.store.root())?;
        let groups = match &self.groups {
            None => Groups::default(),
            Some(file) => read_groups(file)?,
        };
        let usual = Selector::default();
        let what = if self.what.is_empty() { std::slice::from_ref(&usual) } else { &self.what };
        let found =
            what.iter().map(|what| self.profile(&store, &run, what)).collect::<Result<Vec<_>, _>>()?;
        match found.as_slice() {
            [first, second, ..] => self.difference(first, second, &groups)?,
            [only] => self.one(only, &groups)?,
            [] => {}
        }
        Ok(Exit::Ok)
    }

    fn profile(&self, store: &Store, run: &Selection, what: &Selector) -> Result<Profile, ProfileError> {
        let found = profile(store, run, what)?;
        match &self.role {
            Some(role) => found.only(role),
            None => Ok(found),
        }
    }

    fn one(&self, profile: &Profile, groups: &Groups) -> anyhow::Result<()> {
        if let Some(file) = &self.svg {
            return write(file, &svg(profile)?);
        }
        if self.folded {
            return print(&profile.folded());
        }
        if let (Some(function), Some(stacks)) = (&self.function, profile.usual()) {
            if self.format.get() == Format::Json {
                return Err(
                    Usage("error: --function prints tables: leave --format json out".to_owned()).into()
                );
            }
            return print(&function_text(profile, stacks, function, self.format.get())?);
        }
        match self.format.get() {
            Format::Json => print_json(&Document::of(&[profile], groups, None)),
            format => print(&text(profile, groups, format)),
        }
    }

    fn difference(&self, before: &Profile, after: &Profile, groups: &Groups) -> anyhow::Result<()> {
        if let Some(file) = &self.svg {
            return write(file, &difference_svg(before, after)?);
        }
        if self.folded || self.function.is_some() {
            let option = if self.folded { "--folded" } else { "--function" };
            return Err(Usage(format!("error: {option} is of one profile, and two are named")).into());
        }
        let differences = Difference::between(before, after, groups)?;
        match self.format.get() {
            Format::Json => print_json(&Document::of(&[before, after], groups, Some(&differences))),
            format => print(&difference_text(before, after, &differences, format)),
        }
    }
}

fn read_groups(file: &Path) -> anyhow::Result<Groups> {
    let text = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    Ok(groups_of(&text, &file.display().to_string())?)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("could not write {}", file.display()))?;
    note(&format!("The flame graph is in {}\n", file.display()));
    Ok(())
}
