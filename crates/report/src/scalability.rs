//! Growth of throughput with the clients, as a table.

use analysis::overview::view::{Column, Panel, Usl};
use plaintext::figures;
use plaintext::table::Table;

/// The figures of a panel's sweeps, one row per column; none if there is no sweep.
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

/// Legend of the table.
pub(crate) const LEGEND: &str = "knee: fewest clients with 95% of the peak; steepest step: greatest loss; law: shown where it fits (λ one client, \
     σ contention, κ coherency)";
