//! `pgdyno power`: how many runs it takes.

use analysis::power::{ALPHA, CellNoise, DEFAULT_EFFECTS, POWER, Question, noise_of, noise_on};
use analysis::select::Selector;
use clap::Args;
use model::units::Share;
use plaintext::table::Format;
use report::power::text;
use runner::HostContext;
use store::Store;

use crate::exit::{Exit, Usage};
use crate::output::{FormatArg, note, print, print_json};
use crate::store_arg::{RunArg, StoreArg};

/// Say how many runs it takes to find a change, at the noise of this machine
///
/// The noise is how much the runs of a cell spread. It is that of the cells of the store that were measured on this host,
/// each from its latest run with at least three usable trials; or of those that are selected; or it is given. Told are the
/// runs a side that find a change of throughput, by one comparison and in two stages, and the smallest change that some
/// runs find, for the median and the worst of the cells. Unstable cells are named: no number of runs helps these.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno power                                  at the noise of all cells that were measured here
  pgdyno power --effect 3% clients=16           of the latest run's cells with 16 clients
  pgdyno power --noise 2%
  pgdyno power --campaign versions --format json | jq '.noises[] | {of, noise, effects}'")]
pub(crate) struct PowerArgs {
    /// Of these trials only: a selector as in `pgdyno compare` (FACTOR=LEVEL, run:ID, campaign:NAME, tag:NAME, latest, or
    /// ids)
    #[arg(value_name = "SELECTOR")]
    selector: Option<Selector>,

    #[command(flatten)]
    run: RunArg,

    /// At this noise, whatever was measured
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["selector", "RunArg"])]
    noise: Option<Share>,

    /// The change of throughput that is to be found, up or down; may be given several times [default: 1%, 2%, 5%, 10%]
    #[arg(long = "effect", value_name = "SHARE")]
    effects: Vec<Share>,

    /// The share of changes that is to be found
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = below_one)]
    power: f64,

    /// The level of a comparison: the share of false alarms; of a matrix, 5% divided by its comparisons is on the safe side
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = level)]
    alpha: f64,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

const _: () = assert!(ALPHA == 0.01 && POWER == 0.95, "the defaults above say the same");

fn below_one(text: &str) -> Result<f64, String> {
    match text.parse::<Share>().map_err(|error| error.to_string())?.0 {
        share if share < 1.0 => Ok(share),
        _ => Err("nothing is that sure: expected less than 100%".to_owned()),
    }
}

fn level(text: &str) -> Result<f64, String> {
    match below_one(text)? {
        alpha if alpha >= 1e-6 => Ok(alpha),
        _ => Err("expected at least 0.0001%".to_owned()),
    }
}

impl PowerArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let effects = match self.effects.is_empty() {
            true => DEFAULT_EFFECTS.to_vec(),
            false => self.effects.iter().map(|Share(effect)| *effect).collect(),
        };
        let question = Question { effects, power: self.power, alpha: self.alpha };
        let answer = match self.noise {
            Some(Share(noise)) => question.at(noise),
            None => {
                let (source, cells) = self.cells()?;
                question.of_cells(source, &cells)
            }
        };
        match self.format.get() {
            Format::Json => print_json(&answer)?,
            format => print(&text(&answer, format))?,
        }
        if !answer.has_figures() {
            note("every cell is unstable: find out why before anything is compared\n");
        }
        Ok(Exit::Ok)
    }

    /// The cells whose noise is meant, and what they are.
    fn cells(&self) -> anyhow::Result<(String, Vec<CellNoise>)> {
        let store = Store::existing(&self.store.root())?;
        let run = self.run.named();
        let (source, cells) = match (&self.selector, run) {
            (None, None) => {
                let host = HostContext::detect().hostname;
                (format!("the cells measured on {host}"), noise_on(&store, &host)?)
            }
            (selector, run) => {
                let all = store.trials()?;
                let trials =
                    selector.clone().unwrap_or_default().trials(&store, &all, &run.unwrap_or_default())?;
                let source = match selector {
                    Some(selector) => format!("the cells of {selector}"),
                    None => format!("the cells of run {}", trials[0].run.id),
                };
                (source, noise_of(&trials))
            }
        };
        match cells.is_empty() {
            false => Ok((source, cells)),
            true => Err(Usage(format!(
                "error: no noise is known: of {source}, none has a run with 3 usable trials; run a campaign with \
                 `repeats = 3` or more, or say --noise 2% (`pgdyno doctor --noise` measures it)"
            ))
            .into()),
        }
    }
}
