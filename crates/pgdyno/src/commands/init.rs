//! `pgdyno init`: writes a campaign to start from.

mod questions;
mod scripts;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use host::usable_cpus;
use model::units::{Share, Span};
use model::workload::Workloads;
use report::plan::headline;
use runner::campaign_file::draft::{Draft, DraftMachine, DraftWorkload};
use runner::campaign_file::{CampaignFile, directory, pin};

use crate::completion;
use crate::exit::{Exit, Usage};
use crate::output::{note, print};
use crate::progress::PreparationProgress;
use questions::{ask, list};

/// Time over which the CPU time of other processes is measured.
const SAMPLE: Duration = Duration::from_secs(1);

/// Write a campaign to start from, with comments
///
/// Looks at the machine (CPUs, memory, other load) and at the directory of FILE, whose *.sql files become workloads; setup.sql and
/// schema.sql create their tables. On a terminal, asks for what no option gives; Enter takes the suggestion. Nothing is
/// downloaded or started.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        pgdyno init                                   asks, and writes campaign.toml\n  \
                        pgdyno init upgrade.toml --servers 14,18 --time 20min\n  \
                        pgdyno init - --servers 18 --workloads queue --clients 1,8,32   to standard output\n\n\
                        Exit codes: 0 written, 1 error, 2 wrong option, or the file exists.")]
pub(crate) struct InitArgs {
    /// The campaign to write; - for standard output
    #[arg(value_name = "FILE", default_value = "campaign.toml")]
    file: PathBuf,

    /// Versions (18, 16.4) or names of builds, the baseline first; with one, its cells are measured without a comparison
    #[arg(long, value_name = "SERVER,…", value_delimiter = ',', add = completion::servers())]
    servers: Vec<String>,

    /// Built-in scripts, bundled workloads, and *.sql files in the directory of FILE
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', add = completion::workloads())]
    workloads: Vec<String>,

    /// Numbers of clients
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    clients: Vec<u32>,

    /// Scale factor of pgbench's tables
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,

    /// Time for the whole campaign
    #[arg(long, value_name = "TIME")]
    time: Option<Span>,

    /// The smallest change that matters
    #[arg(long, value_name = "SHARE")]
    effect: Option<Share>,

    /// Ask nothing
    #[arg(short = 'y', long)]
    yes: bool,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
}

impl InitArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let is_stdout = self.file.as_os_str() == "-";
        if !is_stdout && !self.force && self.file.exists() {
            let path = self.file.display();
            return Err(Usage(format!(
                "error: {path} exists: name another file, or replace it with --force"
            ))
            .into());
        }
        let draft = self.draft(if is_stdout { Path::new("campaign.toml") } else { &self.file })?;
        let text = draft.to_toml();
        let path = if is_stdout { Path::new("campaign.toml") } else { &self.file };
        let progress = PreparationProgress::new();
        let none = Workloads::default();
        let campaign = CampaignFile::parse_with(path, text.clone(), None, &none, &progress);
        progress.clear();
        let campaign = campaign?;
        if is_stdout {
            print(&text)?;
            return Ok(Exit::Ok);
        }
        self.write(&text)?;
        note(&headline(&campaign.plan));
        let path = path.display();
        note(&format!("{path} is written. Look at it, then: pgdyno plan {path}; pgdyno run {path}\n"));
        Ok(Exit::Ok)
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        let open = || match self.force {
            true => File::create(&self.file),
            false => OpenOptions::new().write(true).create_new(true).open(&self.file),
        };
        open()
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("could not write {}", self.file.display()))
    }

    /// The campaign that options, answers and the machine give.
    fn draft(&self, path: &Path) -> anyhow::Result<Draft> {
        let asks = !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let parent = directory(path);
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let scripts =
            scripts::in_directory(parent).with_context(|| format!("could not list {}", parent.display()))?;
        let foreign = pin::foreign_use(SAMPLE);
        let machine = DraftMachine {
            cpus: usable_cpus(),
            memory_bytes: collect::Host::read().environment(None).memory_bytes,
            is_shared: foreign.is_some(),
        };
        if let Some(foreign) = foreign {
            note(&format!("other processes use {foreign}: without them, results take less time\n"));
        }

        let servers = match self.servers.is_empty() {
            false => self.servers.clone(),
            true => ask(asks, "PostgreSQL versions to compare, the baseline first", &newest_majors(), list)?,
        };
        let found: Vec<String> = scripts.iter().map(DraftWorkload::name).map(str::to_owned).collect();
        let suggested = if found.is_empty() { "select-only,tpcb-like".to_owned() } else { found.join(",") };
        let names = match self.workloads.is_empty() {
            false => self.workloads.clone(),
            true => ask(asks, "Workloads", &suggested, list)?,
        };
        let clients = match self.clients.is_empty() {
            false => self.clients.clone(),
            true => ask(asks, "Clients at the same time", &suggested_clients(machine.cpus), list)?,
        };
        let effect = |asks| ask(asks, "Smallest change that matters", "5%", |text| text.parse());
        let effect = match self.effect {
            Some(effect) => effect,
            None => effect(asks && servers.len() > 1)?,
        };
        let time = match self.time {
            Some(time) => time,
            None => ask(asks, "Time for the campaign", "10min", |text| text.parse())?,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Draft {
            name: stem
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '-' })
                .collect(),
            servers,
            workloads: names.into_iter().map(|name| workload(name, &scripts)).collect(),
            scale: self.scale,
            clients,
            time,
            effect,
            machine,
        })
    }
}

/// The workload of a name: that of a script with this name or file name, else one that pgdyno knows.
fn workload(name: String, scripts: &[DraftWorkload]) -> DraftWorkload {
    let is_named = |script: &&DraftWorkload| match script {
        DraftWorkload::Script { name: known, file, .. } => name == *known || name == *file,
        DraftWorkload::Named(_) => false,
    };
    scripts.iter().find(is_named).cloned().unwrap_or(DraftWorkload::Named(name))
}

/// The two newest majors.
fn newest_majors() -> String {
    let majors: Vec<String> = server::known_majors().iter().map(ToString::to_string).collect();
    majors[majors.len().saturating_sub(2)..].join(",")
}

/// One client, and two for each CPU: without and with contention.
fn suggested_clients(cpus: Option<u32>) -> String {
    format!("1,{}", cpus.unwrap_or(2) * 2)
}
