//! Background workloads as a table, trial by trial.

use analysis::overview::view::{Column, Latency, Panel};
use plaintext::table::{GAP, Table};

/// One row for each background workload of each trial of a panel; none if there are none.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let mut table = Table::new([
        "background",
        "",
        "#clients",
        "#repeat",
        "#count",
        "#failed",
        "#tps",
        "#mean ms",
        "#p95 ms",
        "#p99 ms",
    ]);
    for (row, at, trial) in panel.trials() {
        for of in &trial.background {
            let ms = |figure: fn(&Latency) -> Option<f64>| {
                let us = of.latency.as_ref().and_then(figure);
                us.map_or(GAP.to_owned(), |us| format!("{:.3}", us / 1e3))
            };
            table.push(vec![
                of.workload.clone(),
                columns[at].label.clone(),
                row.clients.map_or(GAP.to_owned(), |clients| clients.to_string()),
                trial.repeat.to_string(),
                of.transactions.to_string(),
                of.failed.to_string(),
                format!("{:.2}", of.tps),
                ms(|latency| latency.mean_us),
                ms(|latency| latency.p95_us),
                ms(|latency| latency.p99_us),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}
