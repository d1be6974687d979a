//! `pgdyno fleet status`: agents, queue, and what runs where.

use clap::Args;
use jiff::Timestamp;
use plaintext::table::Format;
use report::fleet::{Document, agents, notes, runs};

use crate::exit::Exit;
use crate::fleet_args::FleetArgs;
use crate::output::{FormatArg, note, print, print_json, print_table};

/// Show the agents of a fleet, its runs, and what runs where
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pgdyno fleet status\n  \
                        pgdyno fleet status --format json | jq -r '.agents[] | select(.state == \"idle\") | .facts.name'")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    format: FormatArg,
}

impl StatusArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let status = self.fleet.connect("pgdyno fleet status")?.status()?;
        let format = self.format.get();
        if format == Format::Json {
            print_json(&Document::new(&status))?;
            return Ok(Exit::Ok);
        }
        if status.agents.is_empty() {
            note("no agent answers: start `pgdyno agent` on a machine of the fleet\n");
        } else {
            print_table(&agents(&status.agents, Timestamp::now()), format)?;
        }
        if !status.runs.is_empty() {
            if format == Format::Table && !status.agents.is_empty() {
                print("\n")?;
            }
            print_table(&runs(&status.runs), format)?;
        }
        if format == Format::Table {
            for text in notes(&status) {
                note(&format!("{text}\n"));
            }
        }
        Ok(Exit::Ok)
    }
}
