//! Scalability with the number of clients, in a few figures.

use stats::{Cell, Sweep};

use super::view::{Row, Scalability, Step, Usl};

/// The fewest numbers of clients of a sweep.
const MIN_LEVELS: usize = 3;

/// Scalability of a column, from the geometric means in a panel's rows. `None` for fewer than three numbers of clients with one.
pub(crate) fn fit(rows: &[Row], column: usize) -> Option<Scalability> {
    let means: Vec<(u32, f64)> =
        rows.iter().filter_map(|row| Some((row.clients?, row.points[column].as_ref()?.mean?))).collect();
    if means.len() < MIN_LEVELS {
        return None;
    }
    let sweep = Sweep::new(means)?;
    let (peak_clients, peak) = sweep.peak();
    Some(Scalability {
        knee: sweep.knee(),
        peak_clients,
        peak,
        steepest: sweep.steepest_step().map(|step| Step {
            from: step.from,
            to: step.to,
            change: step.ratio - 1.0,
        }),
        usl: sweep.usl().filter(stats::Usl::fits).map(|law| Usl {
            lambda: law.lambda,
            sigma: law.sigma,
            kappa: law.kappa,
            peak_clients: law.peak_clients(),
            rms: law.rms,
        }),
        unstable: rows.iter().filter(|row| is_unstable(row, column)).filter_map(|row| row.clients).collect(),
    })
}

fn is_unstable(row: &Row, column: usize) -> bool {
    let runs = row.points[column].iter().flat_map(|point| &point.runs);
    let figures: Vec<f64> =
        runs.filter(|run| run.validity != "invalid").filter_map(|run| run.figure).collect();
    Cell::new(&figures).is_some_and(|cell| cell.is_unstable())
}
