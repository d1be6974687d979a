//! Whether a campaign can detect its intended effect at the known noise.

use model::cell::{Cell, RecordedCell};
use model::merit::Merit;
use model::plan::{Plan, Repeats};
use serde::Serialize;
use stats::TwoStages;

use super::noise::{CellNoise, median_noise};
use plaintext::figures::counted;

/// The level of a single comparison.
pub const ALPHA: f64 = 0.01;
/// The share of changes that a comparison must detect.
pub const POWER: f64 = 0.95;

/// Power of a plan's comparisons in its noisiest cell that is not unstable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerCheck {
    /// The effect that the campaign is meant to detect, as a share.
    pub effect: f64,
    /// Largest number of runs a side of a comparison.
    pub runs: u32,
    /// Whether these are in two stages, the second depending on the first.
    pub in_two_stages: bool,
    /// The noise of that cell, the standard deviation of logarithms; null if all are unstable.
    pub noise: Option<f64>,
    /// The smallest change detected there; null for fewer than three runs, which have no verdict.
    pub smallest_effect: Option<f64>,
    /// Runs a side that detect `effect` there; null if more than a million are needed.
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
    let effect = plan.run.effect;
    let mut worst: Option<f64> = None;
    let (mut short, mut unstable) = (0, Vec::new());
    let runs = Runs::new(&plan.run.repeats);
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
        in_two_stages: runs.in_two_stages,
        noise: worst,
        smallest_effect: worst.and_then(|noise| runs.smallest_effect(noise)),
        runs_needed: worst.and_then(|noise| stats::runs_for_effect(noise, effect, ALPHA, POWER)),
        cells: plan.cells.len(),
        short,
        unstable,
    })
}

fn is_like(known: &RecordedCell, cell: &Cell) -> bool {
    is_of_kind(known, cell) && known.workload == cell.workload && known.clients == cell.clients
}

/// Whether both are counted, emulated or timed: the noise of one kind does not tell that of another.
fn is_of_kind(known: &RecordedCell, cell: &Cell) -> bool {
    known.acceleration == cell.acceleration
}

/// Runs a side of a comparison.
struct Runs {
    max: u32,
    in_two_stages: bool,
}

impl Runs {
    fn new(repeats: &Repeats) -> Self {
        let stage = stats::STAGE as u32;
        // The second stage ends at ten; additional runs are for single cells.
        let max = repeats.max.min(2 * stage).max(repeats.min);
        Self { max, in_two_stages: repeats.min <= stage && max == 2 * stage && repeats.min != repeats.max }
    }

    fn smallest_effect(&self, noise: f64) -> Option<f64> {
        match self.in_two_stages {
            true => TwoStages::smallest_effect(noise, ALPHA, POWER),
            false => stats::smallest_effect(noise, self.max as usize, ALPHA, POWER),
        }
    }
}

impl PowerCheck {
    /// A warning; `None` if the campaign can detect its effect.
    pub fn warning(&self) -> Option<String> {
        let mut lines = Vec::new();
        if let Some(noise) = self.noise.filter(|_| self.short > 0) {
            let percent = |share: f64| format!("{}%", (share * 1000.0).round() / 10.0);
            let effect = percent(self.effect);
            let up_to = if self.in_two_stages { "up to " } else { "" };
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
