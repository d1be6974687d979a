//! A comparison for a spreadsheet: one row per metric and cell, figures in full precision.

use model::cell::UNKNOWN;
use model::factor::Factor;

use analysis::compare::{Compared, Pair};
use analysis::judgement::Row;
use plaintext::table::Table;

/// The columns are the same for every comparison: each factor has one, which is empty if the selectors fix it.
pub(super) fn table(compared: &Compared) -> Table {
    let figures = [
        "n_a",
        "n_b",
        "suspect_a",
        "suspect_b",
        "invalid_a",
        "invalid_b",
        "class_a",
        "class_b",
        "median_a",
        "median_b",
        "ratio",
        "ci95_low",
        "ci95_high",
        "ci99_low",
        "ci99_high",
        "sessions",
        "p",
        "p_holm",
        "verdict",
    ];
    let factors = Factor::ALL.map(Factor::name);
    let heads = ["metric", "baseline", "variant"].into_iter().chain(factors).chain(figures);
    let mut table = Table::new(heads);
    for of in &compared.metrics {
        for row in &of.rows {
            let pair = &compared.pairs[row.pair];
            let mut fields = vec![
                of.metric.to_string(),
                compared.sides[0].selector.clone(),
                compared.sides[pair.variant].selector.clone(),
            ];
            fields.extend(Factor::ALL.map(|factor| level(pair, row, factor)));
            fields.extend(row_figures(row));
            fields.push(row.judged.outcome.name(of.metric.better()).to_owned());
            table.push(fields);
        }
    }
    table
}

fn level(pair: &Pair, row: &Row, factor: Factor) -> String {
    let levels = &pair.cells[row.cell];
    let known = levels.iter().find(|(of, level)| *of == factor && level != UNKNOWN);
    known.map(|(_, level)| level.clone()).unwrap_or_default()
}

fn row_figures(row: &Row) -> Vec<String> {
    let Row { a, b, judged, .. } = row;
    let comparison = judged.comparison.as_ref();
    let estimate = comparison.and_then(|comparison| comparison.estimate);
    let (ci95, ci99) = match judged.paired {
        None => (row.interval(), estimate.and_then(|estimate| estimate.confidence_interval(0.99))),
        Some(_) => (None, row.interval()),
    };
    let class = |class: Option<stats::Class>| class.map(|class| class.to_string()).unwrap_or_default();
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    vec![
        a.values.len().to_string(),
        b.values.len().to_string(),
        a.suspect.to_string(),
        b.suspect.to_string(),
        a.invalid.to_string(),
        b.invalid.to_string(),
        class(comparison.and_then(|comparison| comparison.a.class())),
        class(comparison.and_then(|comparison| comparison.b.class())),
        number(comparison.map(|comparison| comparison.a.median)),
        number(comparison.map(|comparison| comparison.b.median)),
        number(row.ratio()),
        number(ci95.map(|interval| interval.low)),
        number(ci95.map(|interval| interval.high)),
        number(ci99.map(|interval| interval.low)),
        number(ci99.map(|interval| interval.high)),
        judged.paired.as_ref().map(|paired| paired.sequence.sessions().to_string()).unwrap_or_default(),
        number(estimate.map(|estimate| estimate.p)),
        number(judged.p_holm),
    ]
}
