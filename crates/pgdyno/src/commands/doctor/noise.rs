//! `pgdyno doctor --noise`: an A/A test. The same cells are measured repeatedly; their differences are noise.

use std::path::Path;

use analysis::power::aa_cells;
use clap::Args;
use host::{Cache, Scratch, usable_cpus};
use model::plan::Basis;
use model::units::Span;
use plaintext::table::Format;
use report::noise::{Document, text};
use report::plan::headline;
use runner::campaign_file::{CampaignFile, new_basis};
use store::Store;

use crate::campaign_run::CampaignRun;
use crate::exit::Exit;
use crate::output::{note, print, print_json};

/// Options of the A/A test.
#[derive(Debug, Args)]
pub(crate) struct NoiseArgs {
    /// With --noise: trials of each cell; every other one is compared with the rest
    #[arg(long, default_value_t = 10, value_name = "N", requires = "noise", value_parser = clap::value_parser!(u32).range(6..=1000))]
    runs: u32,

    /// With --noise: duration of a trial's measured window
    #[arg(long, default_value = "5s", value_name = "TIME", requires = "noise")]
    duration: Span,
}

impl NoiseArgs {
    pub(super) fn run(&self, server: &str, allow_concurrent: bool, format: Format) -> anyhow::Result<Exit> {
        let file = CampaignFile::parse(
            Path::new("--noise"),
            self.campaign(server),
            Some(Basis { seed: 1, ..new_basis() }),
        )?;
        // Only the figures are kept.
        let directory = Scratch::new(&Cache::open()?)?;
        let store = Store::open(directory.path())?;
        note(&headline(&file.plan));
        let run = file.new_run(&[]);
        CampaignRun { file: &file, run: &run, trials: &[], fleet: None, strict: false, allow_concurrent }
            .measure(&store)?;
        let cells = aa_cells(&file.plan.cells, &store.trials()?);
        if cells.is_empty() {
            note("no trial is usable\n");
            return Ok(Exit::InvalidMeasurement);
        }
        match format {
            Format::Json => print_json(&Document::new(&cells))?,
            format => print(&text(&cells, format))?,
        }
        Ok(Exit::Ok)
    }

    fn campaign(&self, server: &str) -> String {
        let cpus = usable_cpus().unwrap_or(1);
        format!(
            "name = \"noise\"\ndescription = \"A/A: the same cells repeatedly\"\n[factors]\n\
             server = [\"{server}\"]\nworkload = [\"select-only\", \"tpcb-like\"]\nscale = [10]\nclients = [{cpus}]\n\
             [run]\nduration = \"{}\"\nrepeats = {}\n",
            self.duration, self.runs
        )
    }
}
