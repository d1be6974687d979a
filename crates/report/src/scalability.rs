//! How throughput grows with the clients, in a few figures; and how a terminal shows them.

use stats::{Cell, Sweep};

use crate::figures;
use crate::table::Table;
use crate::view::{Column, Panel, Row, Scalability, Step, Usl};

/// The fewest numbers of clients that are a sweep.
const LEAST_LEVELS: usize = 3;

/// What the rows of a panel tell of this column: of medians, as the rows show them. None of fewer than three numbers of
/// clients that have one.
pub(crate) fn of(rows: &[Row], column: usize) -> Option<Scalability> {
    let medians: Vec<(u32, f64)> =
        rows.iter().filter_map(|row| Some((row.clients?, row.points[column].as_ref()?.median?))).collect();
    if medians.len() < LEAST_LEVELS {
        return None;
    }
    let sweep = Sweep::of(medians)?;
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
    let tps: Vec<f64> = runs.filter(|run| run.validity != "invalid").filter_map(|run| run.tps).collect();
    Cell::of(&tps).is_some_and(|cell| cell.is_unstable())
}

/// The figures of a panel's sweeps, one row a column; none where there is no sweep.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let mut table =
        Table::new(["more clients", "#knee", "#peak", "steepest step", "law (USL)", "unstable at"]);
    for (column, sweep) in columns.iter().zip(&panel.scalability) {
        let Some(sweep) = sweep else { continue };
        let gap = || "–".to_owned();
        let unstable: Vec<String> = sweep.unstable.iter().map(u32::to_string).collect();
        table.push(vec![
            column.label.clone(),
            sweep.knee.to_string(),
            format!("{} at {}", figures::tps(sweep.peak), sweep.peak_clients),
            sweep.steepest.as_ref().map_or_else(gap, |step| {
                format!("{} → {}: {}", step.from, step.to, figures::change(step.change))
            }),
            sweep.usl.as_ref().map_or_else(gap, law),
            if unstable.is_empty() { gap() } else { unstable.join(", ") },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// `λ 14,294/s σ 2.1% κ 0.013%`
fn law(usl: &Usl) -> String {
    let (sigma, kappa) = (usl.sigma * 100.0, usl.kappa * 100.0);
    format!("λ {} σ {sigma:.2}% κ {kappa:.3}%", figures::tps(usl.lambda))
}

/// What the table's words mean.
pub(crate) const LEGEND: &str = "knee: fewest clients with 95% of the peak; steepest step: greatest loss; law: shown where it fits (λ one client, \
     σ contention, κ coherency)";
