//! The figures of the trials that are compared, and the verdicts on them.

use std::collections::HashMap;

use model::machine::Acceleration;
use model::metrics::Kind;
use model::record::{Status, Trial};
use stats::{COUNTED_MARGIN, MARGIN};
use store::Store;

use super::judge::{Outcome, judge};
use super::matching::Shared;
use super::{CompareError, OfMetric, Request, Row, Runs};
use crate::metric::Metric;

/// The figures of a trial, one for each metric, and the kinds that these were found to be.
type Figures = Vec<(Option<f64>, Option<Kind>)>;

/// All metrics that are asked for, by request or by gates, each a matrix of its own.
pub(super) fn of_metrics(
    store: &Store,
    request: &Request,
    shared: &[Vec<Shared<'_>>],
) -> Result<Vec<OfMetric>, CompareError> {
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
            false => metrics.iter().map(|metric| (metric.of_head(trial), None)).collect(),
            true => {
                let record = store.load(&trial.id)?;
                collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                collected.sort_unstable();
                collected.dedup();
                metrics.iter().map(|metric| (metric.of(&record), metric.kind(&record))).collect()
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
        Ok(OfMetric { kind, rows: rows(shared, figure), metric })
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
    judged(cells)
}

/// The rows of some cells, each with its pair, its place in that, and the runs of both sides. All of them together are the
/// matrix over which p is adjusted.
pub(crate) fn judged(cells: Vec<(usize, usize, Runs, Runs)>) -> Vec<Row> {
    let is_emulated =
        |a: &Runs, b: &Runs| [a, b].into_iter().any(|runs| runs.acceleration == Acceleration::Tcg);
    // What has no verdict is no comparison, and none that p is adjusted for.
    let sample = |(_, _, a, b): &'_ (usize, usize, Runs, Runs)| match is_emulated(a, b) {
        true => (Vec::new(), Vec::new()),
        false => (a.values.clone(), b.values.clone()),
    };
    let samples: Vec<(Vec<f64>, Vec<f64>)> = cells.iter().map(sample).collect();
    let counted = |(_, _, a, b): &(usize, usize, Runs, Runs)| {
        [a, b].into_iter().all(|runs| runs.acceleration == Acceleration::Icount)
    };
    let margin = |cell| if counted(cell) { COUNTED_MARGIN } else { MARGIN };
    let pairs = samples.iter().zip(&cells).map(|((a, b), cell)| (a.as_slice(), b.as_slice(), margin(cell)));
    let judged = judge(&pairs.collect::<Vec<_>>());
    cells
        .into_iter()
        .zip(judged)
        .map(|((pair, cell, a, b), mut judged)| {
            if [&a, &b].into_iter().any(|runs| runs.values.is_empty() && runs.without == 0) {
                judged.outcome = Outcome::Invalid;
            } else if is_emulated(&a, &b) {
                judged.outcome = Outcome::Emulated;
            }
            Row { pair, cell, a, b, judged }
        })
        .collect()
}

pub(crate) fn is_usable(trial: &Trial) -> bool {
    trial.validity.status != Status::Invalid
}

pub(crate) fn runs(trials: &[&Trial], figure: impl Fn(&Trial) -> Option<f64>) -> Runs {
    let mut runs = Runs {
        acceleration: trials.first().map_or(Acceleration::None, |trial| trial.cell.acceleration),
        ..Runs::default()
    };
    for trial in trials {
        match (is_usable(trial), figure(trial)) {
            (false, _) => runs.invalid += 1,
            (true, None) => runs.without += 1,
            (true, Some(value)) => {
                runs.suspect += usize::from(trial.validity.status == Status::Suspect);
                runs.trials.push(trial.id.clone());
                runs.values.push(value);
            }
        }
    }
    runs
}

/// What to take instead of a metric that no trial has.
pub(crate) fn metrics_like(metric: &Metric, collected: &[String]) -> String {
    const SHOWN: usize = 12;
    let Metric::Collected { name, of } = metric else {
        return match metric.needs_record() && collected.is_empty() {
            true => "nothing was collected beside their loads".to_owned(),
            false => "what it is made of was not measured".to_owned(),
        };
    };
    if collected.contains(name) {
        let of = of.as_ref().map(|of| format!(" of \"{of}\"")).unwrap_or_default();
        return format!("it was collected, but not{of} over the whole window, or it was reset in it");
    }
    let source = name.split('.').next().unwrap_or_default();
    let like: Vec<&str> = collected
        .iter()
        .filter(|known| known.split('.').next() == Some(source))
        .map(String::as_str)
        .collect();
    match (like.as_slice(), collected) {
        (_, []) => "nothing was collected beside their loads".to_owned(),
        ([], _) => format!("{} others were collected, as docs/metrics.md has them", collected.len()),
        (like, _) => {
            let more = if like.len() > SHOWN { ", …" } else { "" };
            format!("of {source} there are {}{more}", like[..like.len().min(SHOWN)].join(", "))
        }
    }
}
