//! `pgdyno replay inspect`: what is in a trace.

use std::path::PathBuf;

use clap::Args;
use plaintext::table::Format;
use replay::inspect;
use report::replay::inspection_text;
use trace::TraceReader;

use crate::exit::Exit;
use crate::output::{FormatArg, print, print_json, terminal};

/// Show what is in a trace: sessions, rates, statements, and what will not replay
///
/// Reads all of it and checks its sum. Statements that differ in their values only are one, by libpg_query's fingerprint.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A trace of `pgdyno replay read` or `synthesize`
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    format: FormatArg,
}

impl InspectArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let inspection = inspect(&TraceReader::open(&self.trace)?)?;
        match self.format.get() {
            Format::Json => print_json(&inspection)?,
            format => print(&inspection_text(&inspection, format, terminal()))?,
        }
        Ok(Exit::Ok)
    }
}
