//! The figures that queries of workloads' own return after each trial, as a table.

use analysis::overview::view::{Column, Panel};
use plaintext::figures;
use plaintext::table::{GAP, Table};

/// One row for each own figure of each cell of a panel; none if its workload has none.
pub(crate) fn table(panel: &Panel, columns: &[Column]) -> Option<Table> {
    let mut heads = vec!["figure", "", "#clients", "#n", "#mean", "#min – max", "class"];
    let points = || {
        let rows = panel.rows.iter().flat_map(|row| row.points.iter().enumerate().map(move |at| (row, at)));
        rows.filter_map(|(row, (at, point))| Some((row, at, point.as_ref()?)))
    };
    let with_verdicts = points().any(|(_, at, _)| at > 0);
    heads.extend(with_verdicts.then_some(["#Δ", "verdict"]).into_iter().flatten());
    let mut table = Table::new(heads);
    let or_gap = |text: Option<String>| text.unwrap_or_else(|| GAP.to_owned());
    for (row, at, point) in points() {
        for of in &point.figures {
            let range = of.min.zip(of.max).map(|ends| [ends.0, ends.1].map(figures::tps).join(" – "));
            let mut fields = vec![
                of.metric.clone(),
                columns[at].label.clone(),
                or_gap(row.clients.map(|clients| clients.to_string())),
                of.n.to_string(),
                or_gap(of.mean.map(figures::tps)),
                or_gap(range),
                or_gap(of.class.as_ref().map(|class| class.trim_start_matches("UNSTABLE-").to_owned())),
            ];
            if with_verdicts {
                let verdict = of.verdict.as_ref();
                fields.push(
                    verdict.and_then(|verdict| verdict.change).map(figures::change).unwrap_or_default(),
                );
                fields.push(verdict.map_or("", |verdict| verdict.verdict).to_owned());
            }
            table.push(fields);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}
