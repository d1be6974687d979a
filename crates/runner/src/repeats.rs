//! Whether a cell needs another repeat, with the reason that the bundle states.

use model::plan::Repeats;
use stats::{Reason, Spread};

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
                stats::Logs::new(figures.iter().copied()).and_then(|logs| stats::ci_half_width(&logs))?;
            Some(format!(
                "the mean is known to ± {:.1} % after {n} runs: up to {max_runs} for ± {:.1} %",
                width * 100.0,
                half_width * 100.0
            ))
        }
    }
}

/// The reason for another repeat of a cell in its comparison with another cell, which has the level `against`.
pub(crate) fn reason_for_pair(
    figures: &[f64],
    other: &[f64],
    against: &str,
    repeats: &Repeats,
) -> Option<String> {
    let wanted = stats::runs_for_comparison(figures, other)?.min(repeats.max as usize);
    (figures.len() < wanted && figures.len() >= stats::STAGE).then(|| {
        format!("it may differ from {against} after {} runs: second stage, up to {wanted}", stats::STAGE)
    })
}
