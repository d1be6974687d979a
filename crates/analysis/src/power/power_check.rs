//! Whether a campaign can detect its intended effect at the known noise.

use model::cell::{Cell, RecordedCell};
use model::merit::Merit;
use model::plan::{Order, Plan, RunSettings};
use serde::Serialize;
use stats::{Layout, SequentialPower};

use super::noise::{CellNoise, median_noise};
use plaintext::figures::counted;

/// The level of a single comparison.
pub const ALPHA: f64 = 0.01;
/// The share of changes that a comparison must detect.
pub const POWER: f64 = 0.95;

/// Power of a plan's comparisons in its noisiest cell that is not unstable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerCheck {
    /// The effect that the campaign is meant to detect, as a share.
    pub effect: f64,
    /// Largest number of runs a side of a comparison.
    pub runs: u32,
    /// Whether their number depends on the results.
    pub is_adaptive: bool,
    /// The noise of that cell, the standard deviation of logarithms; null if all are unstable.
    pub noise: Option<f64>,
    /// The smallest change detected there; null for fewer than three runs, which have no verdict.
    pub smallest_effect: Option<f64>,
    /// Runs a side that detect `effect` there, as many as needed or up to so many; null if too many are needed.
    pub runs_needed: Option<usize>,
    /// Number of cells of the plan.
    pub cells: usize,
    /// Number of cells that can't detect `effect`.
    pub short: usize,
    /// Cells that were unstable when last measured: no number of runs helps.
    pub unstable: Vec<String>,
}

/// The power of a plan, by the noise of cells with the same workload and number of clients, else by the median, of cells
/// with the same acceleration; `None` if it compares nothing or no noise is known.
pub fn power_check(plan: &Plan, known: &[CellNoise]) -> Option<PowerCheck> {
    plan.run.compare?;
    // Sessions are added until they decide.
    if plan.run.order.is_paired() {
        return None;
    }
    let effect = plan.run.effect;
    let mut worst: Option<f64> = None;
    let (mut short, mut unstable) = (0, Vec::new());
    let runs = Runs::new(&plan.run);
    for cell in &plan.cells {
        // The noise of one figure says nothing about another's.
        let merit = Merit::of(&cell.clone().into());
        let of_merit = || known.iter().filter(move |known| known.merit == merit);
        let like: Vec<&CellNoise> = of_merit().filter(|known| is_like(&known.cell, cell)).collect();
        let of_like = median_noise(like.iter().copied());
        if of_like.is_none() && !like.is_empty() {
            unstable.push(cell.to_string());
            continue;
        }
        let of_kind = || median_noise(of_merit().filter(|known| is_of_kind(&known.cell, cell)));
        let Some(noise) = of_like.or_else(of_kind) else { continue };
        short += usize::from(!runs.smallest_effect(noise).is_some_and(|smallest| smallest <= effect));
        worst = Some(worst.map_or(noise, |worst| worst.max(noise)));
    }
    if worst.is_none() && unstable.is_empty() {
        return None;
    }
    Some(PowerCheck {
        effect,
        runs: runs.max,
        is_adaptive: runs.is_adaptive,
        noise: worst,
        smallest_effect: worst.and_then(|noise| runs.smallest_effect(noise)),
        runs_needed: worst.and_then(|noise| runs.runs_needed(noise, effect)),
        cells: plan.cells.len(),
        short,
        unstable,
    })
}

pub(super) fn is_like(known: &RecordedCell, cell: &Cell) -> bool {
    is_of_kind(known, cell) && known.workload == cell.workload && known.clients == cell.clients
}

/// Whether both are counted, emulated or timed: the noise of one kind does not tell that of another.
fn is_of_kind(known: &RecordedCell, cell: &Cell) -> bool {
    known.acceleration == cell.acceleration
}

/// Runs a side of a comparison, compared as the verdict will.
struct Runs {
    max: u32,
    is_adaptive: bool,
    layout: Layout,
}

impl Runs {
    fn new(run: &RunSettings) -> Self {
        let layout = match run.order {
            Order::RandomizedBlocks | Order::Paired | Order::Bisect => Layout::Blocks,
            Order::Sequential => Layout::Independent,
        };
        Self { max: run.repeats.max, is_adaptive: run.repeats.min < run.repeats.max, layout }
    }

    fn smallest_effect(&self, noise: f64) -> Option<f64> {
        let max = self.max as usize;
        match self.is_adaptive {
            true => SequentialPower::smallest_effect(noise, max, self.layout, ALPHA, POWER),
            false => stats::smallest_effect(noise, max, self.layout, ALPHA, POWER),
        }
    }

    /// The number that detects an effect, at most as many as a campaign can have; the maximum, if it depends on the
    /// results.
    fn runs_needed(&self, noise: f64, effect: f64) -> Option<usize> {
        match self.is_adaptive {
            true => sequential_runs_needed(noise, effect, self.layout),
            false => stats::runs_for_effect(noise, effect, self.layout, ALPHA, POWER),
        }
    }
}

/// The number of runs a side that detects an effect if their number depends on the results, at most [`MAX_NEEDED`].
pub(crate) fn sequential_runs_needed(noise: f64, effect: f64, layout: Layout) -> Option<usize> {
    let is_enough = |max: usize| {
        SequentialPower::smallest_effect(noise, max, layout, ALPHA, POWER)
            .is_some_and(|smallest| smallest <= effect)
    };
    let (mut low, mut high) = (stats::MIN_RUNS, is_enough(MAX_NEEDED).then_some(MAX_NEEDED)?);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// The largest number of runs that is searched for: more than a campaign's repeats.
pub(crate) const MAX_NEEDED: usize = 1000;

impl PowerCheck {
    /// A warning; `None` if the campaign can detect its effect.
    pub fn warning(&self) -> Option<String> {
        let mut lines = Vec::new();
        if let Some(noise) = self.noise.filter(|_| self.short > 0) {
            let percent = |share: f64| format!("{}%", (share * 1000.0).round() / 10.0);
            let effect = percent(self.effect);
            let up_to = if self.is_adaptive { "up to " } else { "" };
            let finds = match self.smallest_effect {
                Some(smallest) => format!("only changes above {} are detected", percent(smallest)),
                None => "there is no verdict".to_owned(),
            };
            let needs = match self.runs_needed {
                Some(runs) => format!("{effect} needs {runs}"),
                None => format!("{effect} cannot be detected"),
            };
            let cells = match self.cells {
                1 => String::new(),
                cells if cells == self.short => format!(" (in the noisiest of {cells} cells)"),
                cells => format!(" (in the noisiest cell; {} of {cells} fall short)", self.short),
            };
            lines.push(format!(
                "with {up_to}{} a side and {} noise, {finds}; {needs}{cells}",
                counted(self.runs as usize, "run"),
                percent(noise)
            ));
        }
        if let Some(first) = self.unstable.first() {
            let more = match self.unstable.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            lines.push(format!(
                "unstable when last measured, so that no number of runs shows a change within the noise: {first}{more}; \
                 measured all the same, which can show a larger one (`pgdyno doctor` looks for what disturbs the machine)"
            ));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
