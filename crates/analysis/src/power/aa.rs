//! A/A test: trials of the same cell, compared with each other.

use model::cell::Cell;
use model::factor::Factor;
use model::merit::Merit;
use model::record::Trial;
use serde::Serialize;
use stats::{Comparison, Layout};

use super::{ALPHA, POWER, RUNS};
use crate::judgement::is_usable;
use crate::metric::Metric;

/// A cell compared with itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AaCell {
    /// Workload and clients.
    pub cell: String,
    /// Number of usable trials.
    pub runs: usize,
    /// Median of their throughputs.
    pub median_tps: f64,
    /// Standard deviation of the logarithms of throughputs: 0.02 is about 2%.
    pub noise: f64,
    /// Class of the cell, such as `WIDE`.
    pub class: Option<String>,
    /// The ratio of every other trial to the rest, less 1.
    pub difference: Option<f64>,
    /// Its p value.
    pub p: Option<f64>,
    /// The smallest change that a number of runs detects.
    pub detectable: Vec<DetectableChange>,
}

/// The smallest change that a number of runs detects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetectableChange {
    /// Runs a side.
    pub runs: usize,
    /// The change, as a share; null if none is detected.
    pub change: Option<f64>,
}

/// Compares cells with themselves; those with too few usable trials are omitted.
pub fn aa_cells(cells: &[Cell], trials: &[Trial]) -> Vec<AaCell> {
    cells.iter().filter_map(|cell| aa_cell(cell, trials)).collect()
}

fn aa_cell(cell: &Cell, trials: &[Trial]) -> Option<AaCell> {
    let usable = trials.iter().filter(|trial| trial.cell == *cell && is_usable(trial));
    let merit = Merit::of(&cell.clone().into());
    let figures: Vec<f64> = usable.filter_map(|trial| merit.value(trial.summary.as_ref()?)).collect();
    let all = stats::Cell::new(&figures)?.with_spread(Metric::of(merit).spread());
    let noise = all.log_sd?;
    let every_other = |from: usize| figures.iter().skip(from).step_by(2).copied().collect::<Vec<f64>>();
    let estimate =
        Comparison::new(&every_other(0), &every_other(1)).and_then(|comparison| comparison.estimate);
    let detectable = |runs| DetectableChange {
        runs,
        change: stats::smallest_effect(noise, runs, Layout::Independent, ALPHA, POWER),
    };
    Some(AaCell {
        cell: format!("{}, {} clients", Factor::Workload.level(cell), cell.clients),
        runs: all.n,
        median_tps: all.median,
        noise,
        class: all.class().map(|class| class.to_string()),
        difference: estimate.as_ref().map(|estimate| estimate.ratio - 1.0),
        p: estimate.as_ref().map(|estimate| estimate.p),
        detectable: RUNS.map(detectable).to_vec(),
    })
}
