//! Whether a cell needs another repeat, with the reason that the bundle states.

use model::plan::{Order, Repeats, RunSettings};
use stats::{Comparison, Reason, Spread};

/// The reason for another repeat of a cell with these results, regardless of comparisons.
pub(crate) fn reason_for_cell(figures: &[f64], spread: Spread, repeats: &Repeats) -> Option<String> {
    // Without a wanted width, every interval is narrow enough.
    let half_width = repeats.until_ci.unwrap_or(f64::INFINITY);
    let (wanted, reason) = stats::runs_for_cell(figures, half_width, spread)?;
    let n = figures.len();
    if wanted <= n {
        return None;
    }
    let max_runs = wanted.min(repeats.max as usize);
    match reason {
        // Invalid trials are repeated by the schedule.
        Reason::TooFew => None,
        Reason::Unstable => {
            let cell = stats::Cell::new(figures)?.with_spread(spread);
            let log_sd = cell.log_sd.unwrap_or_default() * 100.0;
            let how = match (cell.is_wide(), cell.mode_ratio().filter(|_| cell.has_modes())) {
                (_, Some(ratio)) => format!("two modes {:.1} % apart", (ratio - 1.0) * 100.0),
                (_, None) => format!("a spread of {log_sd:.1} %"),
            };
            Some(format!("unstable, with {how} after {n} runs: up to {max_runs}"))
        }
        Reason::Precision => {
            let width =
                stats::Logs::new(figures.iter().copied()).and_then(|logs| stats::known_within(&logs))?;
            Some(format!(
                "the mean is known to ± {:.1} % after {n} runs: up to {max_runs} for ± {:.1} %",
                width * 100.0,
                half_width * 100.0
            ))
        }
    }
}

/// The results of a cell by repeat, with the number of the repeat.
pub(crate) type Results = [(u32, f64)];

/// A comparison of a cell with its baseline.
pub(crate) struct Pair<'a> {
    pub(crate) baseline: &'a Results,
    pub(crate) variant: &'a Results,
    /// The spreads at which its figures are noisy and wide.
    pub(crate) spread: Spread,
    /// Whether time is counted in instructions.
    pub(crate) is_counted: bool,
}

/// Whether each of these comparisons is decided: all of them together are the matrix that their verdicts are adjusted
/// for. The verdicts are those that `pgdyno compare` will give. A pair without comparable results can't be decided.
pub(crate) fn decided(pairs: &[Pair<'_>], run: &RunSettings) -> Vec<bool> {
    let compare = |Pair { baseline, variant, spread, is_counted }: &Pair<'_>| {
        let figures = |results: &Results| results.iter().map(|(_, figure)| *figure).collect::<Vec<f64>>();
        let comparison = Comparison::with_spread(&figures(baseline), &figures(variant), *spread)?;
        let in_blocks: Vec<(f64, f64)> = match run.order {
            Order::Sequential | Order::Paired | Order::Bisect => Vec::new(),
            Order::RandomizedBlocks => baseline
                .iter()
                .filter_map(|(block, a)| {
                    let (_, b) = variant.iter().find(|(other, _)| other == block)?;
                    Some((*a, *b))
                })
                .collect(),
        };
        let margin = stats::margin(run.effect, *is_counted);
        Some(comparison.with_margin(margin).in_blocks(&in_blocks).sequential())
    };
    let comparisons: Vec<Option<Comparison>> = pairs.iter().map(compare).collect();
    let known: Vec<Comparison> = comparisons.iter().flatten().cloned().collect();
    let mut verdicts = stats::verdicts(&known).into_iter();
    comparisons
        .iter()
        .map(|of| of.as_ref().and_then(|_| verdicts.next()).is_none_or(|of| !of.is_open()))
        .collect()
}

/// The reason for another repeat of a cell whose comparison with another cell, which has the level `against`, is open.
pub(crate) fn reason_for_pair(n: usize, against: &str, run: &RunSettings) -> String {
    format!(
        "neither a difference from {against} nor one within {:.1} % is certain after {n} runs: up to {}",
        run.effect * 100.0,
        run.repeats.max
    )
}
