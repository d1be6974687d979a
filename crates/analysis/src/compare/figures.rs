//! Figures of the compared trials, and the verdicts on them.

use std::collections::HashMap;

use model::metrics::Kind;
use model::record::Trial;
use store::Store;

use super::matching::Shared;
use super::{CompareError, MetricRows, Request};
use crate::judgement::{Row, Runs, is_usable, judge_cells, runs};
use crate::metric::{Metric, metrics_like};

/// Figures of a trial, one per metric, with the kinds found for these.
type Figures = Vec<(Option<f64>, Option<Kind>)>;

/// All metrics of the request and its gates, each a separate matrix.
pub(super) fn of_metrics(
    store: &Store,
    request: &Request,
    shared: &[Vec<Shared<'_>>],
) -> Result<Vec<MetricRows>, CompareError> {
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in request.metrics.iter().chain(request.gates.iter().map(|gate| &gate.metric)) {
        if !metrics.contains(metric) {
            metrics.push(metric.clone());
        }
    }
    let mut figures: HashMap<&str, Figures> = HashMap::new();
    let mut collected: Vec<String> = Vec::new();
    for trial in shared.iter().flatten().flat_map(|cell| cell.a.iter().chain(&cell.b)) {
        if !is_usable(trial) || figures.contains_key(trial.id.as_str()) {
            continue;
        }
        let of_trial = match metrics.iter().any(Metric::needs_record) {
            false => metrics.iter().map(|metric| (metric.head_value(trial), None)).collect(),
            true => {
                let record = store.load(&trial.id)?;
                collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                collected.sort_unstable();
                collected.dedup();
                metrics.iter().map(|metric| (metric.value(&record), metric.kind(&record))).collect()
            }
        };
        figures.insert(&trial.id, of_trial);
    }
    let found = metrics.into_iter().enumerate().map(|(at, metric)| {
        let all = || figures.values().filter_map(|figures| figures.get(at));
        if !figures.is_empty() && all().all(|(figure, _)| figure.is_none()) {
            return Err(CompareError::NoFigure { known: metrics_like(&metric, &collected), metric });
        }
        let kind = all().find_map(|(_, kind)| *kind);
        let figure = |trial: &Trial| figures.get(trial.id.as_str())?.get(at)?.0;
        Ok(MetricRows { kind, rows: rows(shared, figure), metric })
    });
    found.collect()
}

fn rows(shared: &[Vec<Shared<'_>>], figure: impl Fn(&Trial) -> Option<f64>) -> Vec<Row> {
    let mut cells: Vec<(usize, usize, Runs, Runs)> = Vec::new();
    for (pair, of_pair) in shared.iter().enumerate() {
        for (cell, Shared { a, b, .. }) in of_pair.iter().enumerate() {
            cells.push((pair, cell, runs(a, &figure), runs(b, &figure)));
        }
    }
    judge_cells(cells)
}
