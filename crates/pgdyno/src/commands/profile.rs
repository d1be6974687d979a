//! `pgdyno profile`: functions that CPU time was spent in.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::profile::{Difference, Kind, Profile, ProfileError, parse_groups, profile};
use analysis::select::{RunSelection, Selector};
use anyhow::Context;
use clap::Args;
use diagnose::profile::Groups;
use host::Cache;
use plaintext::table::Format;
use report::plan::headline;
use report::profile::{Document, difference_svg, difference_text, function_text, svg, text};
use runner::campaign_file::{CampaignFile, overrides};
use store::Store;

use crate::campaign_run::{CampaignRun, exit};
use crate::completion;
use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print};
use crate::reading::Reading;
use crate::store_arg::{RunArg, StoreArg};

/// Show the functions that CPU time was spent in, by role, group and function
///
/// For trials whose campaign has [profile]: shares of samples by role (driver, the load's backends, checkpointer, …), and for
/// one role by group of functions (protocol, parse and plan, executor, commit, buffer, WAL, lock) and by function, with and
/// without the functions it calls. Samples of a cell's trials are added up. For two profiles, shows where a transaction of
/// the second takes more CPU time. With --measure, the trial is run now. With --off-cpu, shows where threads waited.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno profile                                    the latest trial
  pgdyno profile clients=8,server=18 --svg load.svg --role load
                                                    a flame graph of a cell's backends
  pgdyno profile --function ExecScan                a function, its callers and callees
  pgdyno profile server=17 server=18                where transactions of the second take more CPU time
  pgdyno profile server=17 server=18 --svg diff.svg  as a flame graph: red is more, blue is less
  pgdyno profile --off-cpu --svg waits.svg          where threads waited, in trials with profile.off_cpu
  pgdyno profile --measure server=18,workload=select-only,clients=8,duration=20s --set profile.hz=299
                                                    measures it first, as a campaign of one trial
  pgdyno profile --role driver --folded | inferno-flamegraph > driver.svg
  pgdyno profile --format json | jq '.profiles[0].roles[] | {role, samples}'")]
pub(crate) struct ProfileArgs {
    /// A trial's id, or the beginning of it; or a cell, as FACTOR=LEVEL,…, of another run with run:ID or campaign:NAME
    /// [default: the latest trial]
    #[arg(value_name = "TRIAL|CELL", num_args = 0..=2, add = completion::selectors())]
    selectors: Vec<Selector>,

    /// Show where threads of one profile waited instead: time without a CPU, of trials whose [profile] has off_cpu
    #[arg(long)]
    off_cpu: bool,

    /// Run a trial of this cell, store it, and show its profile: FACTOR=LEVEL,… as in campaigns (at least server, workload and
    /// clients; other factors have their defaults)
    #[arg(long, value_name = "CELL", conflicts_with_all = ["selectors", "run", "campaign"])]
    measure: Option<String>,

    /// With --measure: override a key of the campaign by its dotted name [example: --set profile.hz=299]
    #[arg(long, value_name = "NAME=VALUE", requires = "measure")]
    set: Vec<String>,

    /// With --measure: do not wait for other pgdynos that measure on this host
    #[arg(long, requires = "measure")]
    allow_concurrent: bool,

    /// Only this role: driver, load, checkpointer, "background writer", … [default: all; for groups and functions, load]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Print a function's samples in one profile, with its callers and callees
    #[arg(long, value_name = "NAME", conflicts_with_all = ["svg", "folded"])]
    function: Option<String>,

    /// Write a flame graph to this file instead of printing; for two profiles, the second, coloured by the difference
    #[arg(long, value_name = "FILE", conflicts_with = "folded")]
    svg: Option<PathBuf>,

    /// Print the folded stacks of one profile, in the format of flame-graph tools
    #[arg(long)]
    folded: bool,

    /// Also use groups of functions from this TOML file: a table [groups] with lists such as json = ["jsonb_*"]
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
        let groups = match &self.groups {
            None => Groups::default(),
            Some(file) => read_groups(file)?,
        };
        let Some(cell) = &self.measure else {
            let run = self.run.get();
            self.show(&self.store.read()?, &run, &groups)?;
            return Ok(Exit::Ok);
        };
        self.measure(cell, &groups)
    }

    /// Runs a trial of a cell, and shows its profile.
    fn measure(&self, cell: &str, groups: &Groups) -> anyhow::Result<Exit> {
        let text = overrides::apply(&overrides::profiled_cell(cell)?, &self.set)?;
        let file = CampaignFile::parse(Path::new("--measure"), text, None)?;
        file.check_servers(&Cache::open()?)?;
        let store = Store::open(&self.store.root())?;
        let run = file.new_run(&[]);
        note(&headline(&file.plan));
        for warning in file.plan.warnings() {
            note(&format!("{warning}\n"));
        }
        let allow_concurrent = self.allow_concurrent;
        let trials =
            CampaignRun { file: &file, run: &run, trials: &[], fleet: None, strict: false, allow_concurrent };
        let exit = exit(&trials.measure(&store)?);
        if exit == Exit::Ok {
            self.show(&Reading::of(&store)?, &RunSelection::Run(run.id), groups)?;
        } else {
            note(&format!("no profile, because no trial is usable: pgdyno explain run:{}\n", run.id));
        }
        Ok(exit)
    }

    fn show(&self, reading: &Reading, run: &RunSelection, groups: &Groups) -> anyhow::Result<()> {
        if self.off_cpu && self.selectors.len() > 1 {
            return Err(Usage("error: --off-cpu accepts a single selector".to_owned()).into());
        }
        let latest = [Selector::default()];
        let selectors = if self.selectors.is_empty() { &latest } else { self.selectors.as_slice() };
        let profiles: Vec<Profile> = selectors
            .iter()
            .map(|selector| self.profile(reading, run, selector))
            .collect::<Result<_, _>>()?;
        match profiles.as_slice() {
            [first, second, ..] => self.difference(reading, first, second, groups),
            [only] => self.one(reading, only, groups),
            [] => Ok(()),
        }
    }

    fn profile(
        &self,
        reading: &Reading,
        run: &RunSelection,
        selector: &Selector,
    ) -> Result<Profile, ProfileError> {
        let kind = if self.off_cpu { Kind::OffCpu } else { Kind::OnCpu };
        let profile = profile(reading, run, selector, kind)?;
        match &self.role {
            Some(role) => profile.only(role),
            None => Ok(profile),
        }
    }

    fn one(&self, reading: &Reading, profile: &Profile, groups: &Groups) -> anyhow::Result<()> {
        if let Some(file) = &self.svg {
            return write(file, &svg(profile)?);
        }
        if self.folded {
            return print(&profile.folded());
        }
        if let (Some(function), Some(stacks)) = (&self.function, profile.default_role()) {
            if self.format.get() == Format::Json {
                return Err(Usage(
                    "error: --function prints tables: --format json is not supported".to_owned(),
                )
                .into());
            }
            return print(&function_text(profile, stacks, function, self.format.get())?);
        }
        match self.format.get() {
            Format::Json => reading.print_json(&Document::new(&[profile], groups, None)),
            format => print(&text(profile, groups, format)),
        }
    }

    fn difference(
        &self,
        reading: &Reading,
        before: &Profile,
        after: &Profile,
        groups: &Groups,
    ) -> anyhow::Result<()> {
        if let Some(file) = &self.svg {
            return write(file, &difference_svg(before, after)?);
        }
        if self.folded || self.function.is_some() {
            let option = if self.folded { "--folded" } else { "--function" };
            return Err(Usage(format!("error: {option} accepts a single selector")).into());
        }
        let differences = Difference::between(before, after, groups)?;
        match self.format.get() {
            Format::Json => reading.print_json(&Document::new(&[before, after], groups, Some(&differences))),
            format => print(&difference_text(before, after, &differences, format)),
        }
    }
}

fn read_groups(file: &Path) -> anyhow::Result<Groups> {
    let text = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    Ok(parse_groups(&text, &file.display().to_string())?)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("could not write {}", file.display()))?;
    note(&format!("The flame graph is in {}\n", file.display()));
    Ok(())
}
