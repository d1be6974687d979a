//! `pgdyno doctor --noise`: an A/A test. The same cells are measured again and again; what they differ in is noise.

use analysis::power::{ALPHA, POWER};
use anyhow::Context;
use clap::Args;
use model::factor::Factor;
use model::plan::Plan;
use model::record::{Run, Status, Trial};
use model::spec::Campaign;
use model::units::Span;
use plaintext::table::{Format, Table};
use serde::Serialize;
use stats::{Cell, Comparison};
use store::Store;

use crate::campaign_run::CampaignRun;
use crate::exit::Exit;
use crate::output::{note, print, print_json};

/// How the noise is measured.
#[derive(Debug, Args)]
pub(crate) struct NoiseArgs {
    /// With --noise: trials of each cell, of which every other one is compared with the rest
    #[arg(long, default_value_t = 10, value_name = "N", requires = "noise", value_parser = clap::value_parser!(u32).range(6..=1000))]
    runs: u32,

    /// With --noise: length of a trial's measured window
    #[arg(long, default_value = "5s", value_name = "TIME", requires = "noise")]
    duration: Span,

    /// With --noise: the server, a major or full version
    #[arg(long, default_value = "18", value_name = "VERSION", requires = "noise")]
    server: String,
}

/// Numbers of runs a side for which the smallest change is told.
const SIDES: [usize; 4] = [3, 5, 10, 20];

/// `doctor --noise --format json`, schema 1.
#[derive(Serialize)]
struct NoiseDocument {
    schema: u32,
    alpha: f64,
    power: f64,
    cells: Vec<NoisyCell>,
}

/// What one cell's trials say of the machine.
#[derive(Serialize)]
struct NoisyCell {
    cell: String,
    runs: usize,
    median_tps: f64,
    /// Standard deviation of the logarithms: 0.02 is about 2 %.
    noise: f64,
    class: Option<String>,
    /// Every other run against the rest, ratio less 1.
    difference: Option<f64>,
    p: Option<f64>,
    detectable: Vec<Detectable>,
}

/// The smallest change that is found with so many runs a side.
#[derive(Serialize)]
struct Detectable {
    runs: usize,
    /// As a share; null where no change is.
    change: Option<f64>,
}

pub(super) fn run(args: &NoiseArgs, format: Format) -> anyhow::Result<Exit> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let text = format!(
        "name = \"noise\"\ndescription = \"A/A: the same cells again and again\"\n[factors]\n\
         server = [\"{}\"]\nworkload = [\"select-only\", \"tpcb-like\"]\nscale = [10]\nclients = [{cpus}]\n\
         [run]\nduration = \"{}\"\nrepeats = {}\n",
        args.server, args.duration, args.runs
    );
    let plan = Campaign::parse(&text)
        .and_then(|campaign| Plan::of(&campaign, 1))
        .map_err(|error| crate::exit::Usage(format!("error: {error}")))?;
    // Only what is printed is of interest.
    let directory = tempfile::tempdir().context("could not make a directory for the trials")?;
    let store = Store::open(directory.path())?;
    let run = Run {
        id: store::new_id(),
        campaign: plan.campaign.clone(),
        campaign_toml: text,
        seed: Some(plan.run.seed),
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        tags: Vec::new(),
        notes: None,
    };
    note(&report::plan::headline(&plan));
    CampaignRun { plan: &plan, run: &run, trials: &[], strict: false }.measure(&store)?;
    let trials = store.trials()?;
    let cells: Vec<NoisyCell> = plan.cells.iter().filter_map(|cell| noisy(cell, &trials)).collect();
    if cells.is_empty() {
        note("no trial is usable\n");
        return Ok(Exit::InvalidMeasurement);
    }
    match format {
        Format::Json => print_json(&NoiseDocument { schema: 1, alpha: ALPHA, power: POWER, cells })?,
        Format::Table => print(&format!("{}\n{}", table(&cells).render(format), legend()))?,
        format => print(&table(&cells).render(format))?,
    }
    Ok(Exit::Ok)
}

fn noisy(cell: &model::cell::Cell, trials: &[Trial]) -> Option<NoisyCell> {
    let usable = |trial: &&Trial| trial.cell == *cell && trial.validity.status != Status::Invalid;
    let tps: Vec<f64> =
        trials.iter().filter(usable).filter_map(|trial| trial.summary.as_ref()).map(|s| s.tps).collect();
    let all = Cell::of(&tps)?;
    let noise = all.log_sd?;
    let every_other = |from: usize| tps.iter().skip(from).step_by(2).copied().collect::<Vec<f64>>();
    let welch = Comparison::of(&every_other(0), &every_other(1)).and_then(|comparison| comparison.welch);
    let detectable = SIDES
        .into_iter()
        .map(|runs| Detectable { runs, change: stats::smallest_effect(noise, runs, ALPHA, POWER) })
        .collect();
    Some(NoisyCell {
        cell: format!("{}, {} clients", Factor::Workload.level(cell), cell.clients),
        runs: all.n,
        median_tps: all.median,
        noise,
        class: all.class().map(|class| class.to_string()),
        difference: welch.as_ref().map(|welch| welch.ratio - 1.0),
        p: welch.as_ref().map(|welch| welch.p),
        detectable,
    })
}

fn table(cells: &[NoisyCell]) -> Table {
    let per_cent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut heads: Vec<String> =
        ["cell", "#runs", "#median tps", "#noise", "class", "#A/A", "#p"].map(str::to_owned).into();
    heads.extend(SIDES.map(|runs| format!("#seen with {runs}")));
    let mut table = Table::new(heads);
    for cell in cells {
        let mut row = vec![
            cell.cell.clone(),
            cell.runs.to_string(),
            format!("{:.0}", cell.median_tps),
            per_cent(cell.noise),
            cell.class.clone().unwrap_or_default(),
            cell.difference.map(|share| format!("{:+.1} %", share * 100.0)).unwrap_or_default(),
            cell.p.map(|p| format!("{p:.2}")).unwrap_or_default(),
        ];
        row.extend(
            cell.detectable.iter().map(|found| found.change.map(per_cent).unwrap_or_else(|| "–".to_owned())),
        );
        table.push(row);
    }
    table
}

fn legend() -> &'static str {
    "noise: how much equal trials spread. A/A: every other trial against the rest, which should be near 0.\n\
     seen with n: the smallest change that 95 of 100 comparisons of n runs a side find here, with one false alarm in 100.\n"
}
