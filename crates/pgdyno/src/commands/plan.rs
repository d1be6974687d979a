//! `pgdyno plan`: what a campaign comes to, without running it.

use std::path::PathBuf;

use clap::Args;
use model::plan::{Cell, Plan, PlannedTrial, RunSettings};
use report::table::{Format, Table};
use serde::Serialize;

use crate::campaign_file::CampaignFile;
use crate::exit::Exit;
use crate::output::{FormatArg, about, print, print_json};

/// Show what a campaign comes to, without running it
///
/// Prints the cells (combinations of factor levels), the trials in the order in which they would run, and about how
/// long they would take. Nothing is downloaded or started.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno plan campaigns/quick.toml\n  \
                        pgdyno plan campaigns/quick.toml --format json | jq '.cells | length'")]
pub(crate) struct PlanArgs {
    /// The campaign: a TOML file
    #[arg(value_name = "FILE")]
    campaign: PathBuf,

    #[command(flatten)]
    format: FormatArg,
}

/// `plan --format json`, schema 1.
#[derive(Serialize)]
struct PlanDocument<'a> {
    schema: u32,
    campaign: &'a str,
    run: RunSettings,
    /// Seconds.
    estimated_s: f64,
    cells: &'a [Cell],
    trials: &'a [PlannedTrial],
}

impl PlanArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let plan = CampaignFile::read(&self.campaign)?.plan;
        match self.format.get() {
            Format::Json => print_json(&PlanDocument {
                schema: 1,
                campaign: &plan.campaign,
                run: plan.run,
                estimated_s: plan.estimate().seconds(),
                cells: &plan.cells,
                trials: &plan.trials,
            })?,
            Format::Table => print(&format!("{}\n{}", headline(&plan), table(&plan).render(Format::Table)))?,
            format => print(&table(&plan).render(format))?,
        }
        Ok(Exit::Ok)
    }
}

/// `quick: 20 cells × 3 repeats = 60 trials, about 3 min of trials (…)`.
pub(crate) fn headline(plan: &Plan) -> String {
    format!(
        "{}: {} cells × {} repeats = {} trials of {} (warm-up {}), about {} in all; seed {}\n",
        plan.campaign,
        plan.cells.len(),
        plan.run.repeats,
        plan.trials.len(),
        plan.run.duration,
        plan.run.warmup,
        about(plan.estimate().seconds()),
        plan.run.seed
    )
}

fn table(plan: &Plan) -> Table {
    let mut table = Table::new([
        "#trial",
        "#repeat",
        "server",
        "settings",
        "workload",
        "#scale",
        "#clients",
        "protocol",
        "transport",
    ]);
    for trial in &plan.trials {
        let cell = plan.cell(trial);
        table.push(vec![
            trial.position.to_string(),
            trial.repeat.to_string(),
            cell.server.clone(),
            cell.settings.name.clone(),
            cell.workload.name().to_owned(),
            cell.scale.to_string(),
            cell.clients.to_string(),
            cell.protocol.name().to_owned(),
            cell.transport.name().to_owned(),
        ]);
    }
    table
}
