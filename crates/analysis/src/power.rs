//! Statistical power: runs needed to detect a change at a given noise, and changes that a number of runs detects.

use std::ops::RangeInclusive;

mod aa;
mod noise;
mod power_check;
mod selected;
mod sessions;

use std::collections::BTreeSet;

use model::merit::Merit;
use serde::Serialize;
use stats::{Layout, SequentialPower};

use crate::metric::Metric;

pub use aa::{AaCell, DetectableChange, aa_cells};
pub use noise::{CellNoise, median_noise, noise_of, noise_on, trials_on};
pub use power_check::{ALPHA, POWER, PowerCheck, power_check};
pub(crate) use power_check::{MAX_NEEDED, sequential_runs_needed};
pub use selected::{NoiseError, SelectedNoise};
pub use sessions::{ExpectedSessions, expected_sessions};

/// Numbers of runs a side for which an answer states the smallest change.
pub const RUNS: [usize; 4] = [3, 5, 10, 20];
/// Runs a side of a comparison that is looked at after each run: a campaign's default.
pub const SEQUENTIAL_RUNS: RangeInclusive<usize> = 5..=20;
/// Default effects, as shares.
pub const DEFAULT_EFFECTS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// Parameters of a power calculation.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Changes to detect, as shares: 0.05 is 5%, up or down.
    pub effects: Vec<f64>,
    /// Share of such changes that is detected.
    pub power: f64,
    /// The level of a comparison: the share of false alarms.
    pub alpha: f64,
}

/// The answer: `pgdyno power --format json`, schema 2.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Version of the document.
    pub schema: u32,
    /// Level of a comparison: the share of false alarms.
    pub alpha: f64,
    /// Share of changes that is detected.
    pub power: f64,
    /// Source of the noise, in words.
    pub source: String,
    /// The median and the largest noise of the cells that are not unstable, of each metric if there are several, or the
    /// given one.
    pub noises: Vec<NoiseAnswer>,
    /// Answers for each cell.
    pub cells: Vec<CellAnswer>,
}

/// Answers at one noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseAnswer {
    /// `median`, `worst` or `given`, with the metric if there are several.
    pub of: String,
    /// Standard deviation of the logarithms of the figures.
    pub noise: f64,
    /// Runs needed for each effect.
    pub effects: Vec<EffectAnswer>,
    /// The smallest change for each of [`RUNS`].
    pub detectable: Vec<Detectable>,
    /// The smallest change that a comparison of up to 20 runs a side detects which ends when it shows a change; null if
    /// there is none.
    pub sequential_find: Option<f64>,
}

/// Runs needed to detect a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectAnswer {
    /// The change, as a share.
    pub effect: f64,
    /// Runs a side of one comparison; null if more than a million are needed.
    pub runs: Option<usize>,
    /// Mean number of runs a side, from 5, of a comparison that ends when it shows the change; null if 20 may not be enough.
    pub sequential_runs: Option<f64>,
}

/// The smallest change that a number of runs detects.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Detectable {
    /// Runs a side.
    pub runs: usize,
    /// Smallest change, as a share; null if none is detected.
    pub effect: Option<f64>,
}

/// Answers for a measured cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellAnswer {
    /// The cell as text.
    pub cell: String,
    /// The metric that it is judged by.
    pub metric: String,
    /// Id of its run.
    pub run: String,
    /// Number of its runs.
    pub runs: usize,
    /// Standard deviation of the logarithms of their figures.
    pub noise: f64,
    /// Class of the cell, such as `WIDE`.
    pub class: Option<String>,
    /// Reason why no number of runs helps; null if one does.
    pub unstable: Option<String>,
    /// Runs a side for each effect; null if no number helps.
    pub effects: Option<Vec<EffectAnswer>>,
}

impl Answer {
    /// Whether there is a noise at which a number of runs helps.
    pub fn has_figures(&self) -> bool {
        !self.noises.is_empty()
    }

    /// The cells that the noises leave out, as they are unstable: those with the largest noise first.
    pub fn left_out(&self) -> Vec<&CellAnswer> {
        let mut cells: Vec<&CellAnswer> = self.cells.iter().filter(|cell| cell.unstable.is_some()).collect();
        cells.sort_by(|a, b| b.noise.total_cmp(&a.noise));
        cells
    }
}

impl Question {
    /// The answer for a noise given by the user.
    pub fn at(&self, noise: f64) -> Answer {
        self.answer("given".to_owned(), vec![self.of_noise("given".to_owned(), noise)], Vec::new())
    }

    /// The answer for the noise of these cells, which are from `source`.
    pub fn of_cells(&self, source: String, cells: &[CellNoise]) -> Answer {
        let merits: BTreeSet<Merit> = cells.iter().map(|cell| cell.merit).collect();
        let mut noises = Vec::new();
        // The noise of one figure says nothing about another's.
        for merit in &merits {
            let of_merit = || cells.iter().filter(|cell| cell.merit == *merit);
            let stable = of_merit().filter(|cell| cell.unstable().is_none());
            let worst = stable.max_by(|a, b| a.log_sd.total_cmp(&b.log_sd)).map(|cell| cell.log_sd);
            for (of, noise) in [("median", median_noise(of_merit())), ("worst", worst)] {
                let of = match merits.len() {
                    1 => of.to_owned(),
                    _ => format!("{of}, {}", Metric::of(*merit)),
                };
                noises.extend(noise.map(|noise| self.of_noise(of, noise)));
            }
        }
        self.answer(source, noises, cells.iter().map(|cell| self.of_cell(cell)).collect())
    }

    fn answer(&self, source: String, noises: Vec<NoiseAnswer>, cells: Vec<CellAnswer>) -> Answer {
        Answer { schema: 2, alpha: self.alpha, power: self.power, source, noises, cells }
    }

    fn of_noise(&self, of: String, noise: f64) -> NoiseAnswer {
        let detectable = |runs| Detectable {
            runs,
            effect: stats::smallest_effect(noise, runs, Layout::Independent, self.alpha, self.power),
        };
        NoiseAnswer {
            of,
            noise,
            effects: self.effects(noise),
            detectable: RUNS.map(detectable).to_vec(),
            sequential_find: SequentialPower::smallest_effect(
                noise,
                *SEQUENTIAL_RUNS.end(),
                Layout::Independent,
                self.alpha,
                self.power,
            ),
        }
    }

    fn effects(&self, noise: f64) -> Vec<EffectAnswer> {
        let answer = |&effect: &f64| {
            let layout = Layout::Independent;
            let sequential = SequentialPower::new(noise, effect, layout, self.alpha, SEQUENTIAL_RUNS);
            let enough = sequential.filter(|found| found.min_power >= self.power);
            EffectAnswer {
                effect,
                runs: stats::runs_for_effect(noise, effect, layout, self.alpha, self.power),
                sequential_runs: enough.map(|found| found.mean_runs),
            }
        };
        self.effects.iter().map(answer).collect()
    }

    fn of_cell(&self, cell: &CellNoise) -> CellAnswer {
        let unstable = cell.unstable();
        CellAnswer {
            cell: cell.cell.to_string(),
            metric: Metric::of(cell.merit).to_string(),
            run: cell.run.clone(),
            runs: cell.figures.n,
            noise: cell.log_sd,
            class: cell.figures.class().map(|class| class.to_string()),
            effects: unstable.is_none().then(|| self.effects(cell.log_sd)),
            unstable,
        }
    }
}
