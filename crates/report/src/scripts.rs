//! The scripts of cells whose workload has several, as a table.

use analysis::overview::view::{Column, Panel};
use plaintext::figures;
use plaintext::table::{GAP, Table};

/// One row for each script of each cell of a panel; none if no workload has several scripts.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let of_panel = || {
        panel
            .rows
            .iter()
            .flat_map(|row| row.points.iter().enumerate().map(move |(at, point)| (row, at, point)))
    };
    let cells: Vec<_> = of_panel().filter_map(|(row, at, point)| Some((row, at, point.as_ref()?))).collect();
    let first = cells.iter().find_map(|(.., point)| point.scripts.first())?;
    let latency = if first.metric.contains(".p99") { "#p99 ms" } else { "#mean ms" };
    let mut heads = vec!["script", "", "#clients", "#n", "#TPS", latency, "#min – max", "class"];
    let with_verdicts = cells.iter().any(|(_, at, _)| *at > 0);
    heads.extend(with_verdicts.then_some(["#Δ", "verdict"]).into_iter().flatten());
    let mut table = Table::new(heads);
    let or_gap = |text: Option<String>| text.unwrap_or_else(|| GAP.to_owned());
    let ms = |us: f64| format!("{:.3}", us / 1e3);
    for (row, at, point) in cells {
        for of in &point.scripts {
            let mut fields = vec![
                of.script.clone(),
                columns[at].label.clone(),
                or_gap(row.clients.map(|clients| clients.to_string())),
                of.n.to_string(),
                or_gap(of.tps.map(figures::tps)),
                or_gap(of.mean.map(ms)),
                or_gap(of.min.zip(of.max).map(|(min, max)| format!("{} – {}", ms(min), ms(max)))),
                or_gap(of.class.as_ref().map(|class| class.trim_start_matches("UNSTABLE-").to_owned())),
            ];
            if with_verdicts {
                let verdict = of.verdict.as_ref();
                let change = verdict.and_then(|verdict| verdict.change);
                fields.push(change.map(figures::change).unwrap_or_default());
                fields.push(verdict.map_or("", |verdict| verdict.verdict).to_owned());
            }
            table.push(fields);
        }
    }
    Some(table)
}
