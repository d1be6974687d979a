//! A history for a spreadsheet: one row per cell and step, figures in full precision.

use model::factor::Factor;
use stats::Sample;

use analysis::history::{History, Series};
use plaintext::table::Table;

/// The columns are the same for every history: each factor has one, which is empty if the history is over it. Figures
/// of a change point are in the row of the first step after it.
pub(super) fn table(history: &History) -> Table {
    let heads = ["metric", "control", "over", "step", "place"];
    let figures = [
        "n",
        "suspect",
        "invalid",
        "median",
        "minimum",
        "maximum",
        "verdict",
        "change_before",
        "within_before",
        "within_after",
        "ratio",
        "ci95_low",
        "ci95_high",
        "p",
        "accepted",
    ];
    let mut table = Table::new(heads.into_iter().chain(Factor::ALL.map(Factor::name)).chain(figures));
    for series in &history.series {
        for (place, step) in history.steps.iter().enumerate() {
            let level = |factor: Factor| {
                let level = series.cell.iter().find(|(of, _)| *of == factor);
                level.map(|(_, level)| level.clone()).unwrap_or_default()
            };
            let mut fields = vec![
                history.metric.to_string(),
                history.control.clone().unwrap_or_default(),
                history.over.to_string(),
                step.label.clone(),
                (place + 1).to_string(),
            ];
            fields.extend(Factor::ALL.map(level));
            fields.extend(of_point(series, place));
            fields.extend(of_change(history, series, place));
            table.push(fields);
        }
    }
    table
}

fn of_point(series: &Series, place: usize) -> [String; 6] {
    let runs = &series.points[place];
    let sample = Sample::new(runs.values.iter().copied());
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        runs.values.len().to_string(),
        runs.suspect.to_string(),
        runs.invalid.to_string(),
        number(series.medians[place]),
        number(sample.as_ref().map(Sample::minimum)),
        number(sample.as_ref().map(Sample::maximum)),
    ]
}

fn of_change(history: &History, series: &Series, place: usize) -> [String; 9] {
    let Some(at) = series.changes.iter().position(|change| change.after == place) else {
        return Default::default();
    };
    let change = &series.changes[at];
    let label = |at: usize| history.steps[at].label.clone();
    let interval = change.effect.confidence_interval(0.95);
    let bound =
        |of: &dyn Fn(&stats::Interval) -> f64| interval.as_ref().map(|interval| of(interval).to_string());
    let accepted = series.accepted[at].map(|at| history.accepted[at].note.clone());
    [
        history.name_of(change).to_owned(),
        label(change.before),
        label(change.within.0),
        label(change.within.1),
        change.effect.ratio.to_string(),
        bound(&|interval| interval.low).unwrap_or_default(),
        bound(&|interval| interval.high).unwrap_or_default(),
        change.p.to_string(),
        accepted.unwrap_or_default(),
    ]
}
