//! `pgdyno power`: the number of runs that a comparison needs.

use std::ops::RangeInclusive;

use analysis::power::{ALPHA, DEFAULT_EFFECTS, POWER, Question, SelectedNoise};
use analysis::select::Selector;
use clap::Args;
use model::units::{ParseShareError, Share};
use plaintext::table::Format;
use report::power::text;
use runner::HostContext;

use crate::completion;
use crate::exit::Exit;
use crate::output::{FormatArg, note, print, print_json, terminal};
use crate::store_arg::{RunArg, StoreArg};

/// Compute how many runs detect a change, at the noise of this machine
///
/// Noise is the spread of a cell's runs, in the metric that it is judged by: throughput, p99 at a rate. By default, the noise is that of all cells measured on this host, each from its
/// latest run with at least three usable trials; a selector names others, and --noise gives a value. Prints, for the
/// median and the worst cell, the runs a side that detect a change in one comparison and by as many runs as needed, and
/// the smallest change that a number of runs detects. Unstable cells, which more runs do not help, are left out of these and
/// named first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pgdyno power                                  at the noise of all cells measured here
  pgdyno power --effect 3% clients=16           of the latest run's cells with 16 clients
  pgdyno power --noise 2%
  pgdyno power --campaign versions --format json | jq '.noises[] | {of, noise, effects}'")]
pub(crate) struct PowerArgs {
    /// Only these trials: a selector as in `pgdyno compare` (FACTOR=LEVEL, run:ID, campaign:NAME, tag:NAME, latest, or
    /// ids)
    #[arg(value_name = "SELECTOR", add = completion::selectors())]
    selector: Option<Selector>,

    #[command(flatten)]
    run: RunArg,

    /// Noise to assume instead of measured noise
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["selector", "RunArg"])]
    noise: Option<Share>,

    /// Change to detect, up or down; may be repeated [default: 1%, 2%, 5%, 10%]
    #[arg(long = "effect", value_name = "SHARE")]
    effects: Vec<Share>,

    /// Share of changes to detect
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = below_one)]
    power: f64,

    /// Level of a comparison, the share of false alarms; for a matrix, 5% divided by its comparisons is a safe choice
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = level)]
    alpha: f64,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    store: StoreArg,
}

const _: () = assert!(ALPHA == 0.01 && POWER == 0.95, "the defaults above are the same");

impl PowerArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let effects: Vec<f64> = self.effects.iter().map(|Share(effect)| *effect).collect();
        let question = Question {
            effects: if effects.is_empty() { DEFAULT_EFFECTS.to_vec() } else { effects },
            power: self.power,
            alpha: self.alpha,
        };
        let (answer, reading) = match self.noise {
            Some(Share(noise)) => (question.at(noise), None),
            None => {
                let reading = self.store.read()?;
                let host = HostContext::detect().hostname;
                let noise = SelectedNoise::read(&reading, self.selector.as_ref(), self.run.named(), &host)?;
                (question.of_cells(noise.source, &noise.cells), Some(reading))
            }
        };
        match (self.format.get(), &reading) {
            (Format::Json, Some(reading)) => reading.print_json(&answer)?,
            (Format::Json, None) => print_json(&answer)?,
            (format, _) => print(&text(&answer, format, terminal()))?,
        }
        if !answer.has_figures() {
            note("every cell is unstable: find the cause before comparing anything\n");
        }
        Ok(Exit::Ok)
    }
}

/// Error of a share.
#[derive(Debug, thiserror::Error)]
enum ShareError {
    /// Not a share.
    #[error(transparent)]
    Invalid(#[from] ParseShareError),
    /// Outside the range.
    #[error("expected {0}")]
    OutOfRange(&'static str),
}

fn below_one(text: &str) -> Result<f64, ShareError> {
    share(text, 0.0..=1.0 - f64::EPSILON, "less than 100%")
}

fn level(text: &str) -> Result<f64, ShareError> {
    share(text, 1e-6..=1.0 - f64::EPSILON, "at least 0.0001% and less than 100%")
}

fn share(text: &str, range: RangeInclusive<f64>, expected: &'static str) -> Result<f64, ShareError> {
    let Share(share) = text.parse()?;
    if range.contains(&share) { Ok(share) } else { Err(ShareError::OutOfRange(expected)) }
}
