//! Figures of the compared trials, and the verdicts on them.

use std::collections::{BTreeSet, HashMap};

use model::cell::RecordedCell;
use model::merit::Merit;
use model::metrics::Kind;
use model::record::Trial;
use store::StoreReader;

use super::advice::advice;
use super::matching::Shared;
use super::{CompareError, MetricRows, Request};
use crate::judgement::{CellPair, is_usable, judge_cells, runs};
use crate::margin::{Effects, MetricMargin};
use crate::metric::{Metric, metrics_like};

/// Figures of a trial by metric, with the kinds found for these.
type Figures = HashMap<Metric, (Option<f64>, Option<Kind>)>;

/// Figures of trials, read once each.
pub(super) struct FiguresCache<'r> {
    request: &'r Request,
    /// By trial.
    figures: HashMap<String, Figures>,
    /// Names of all collected metrics.
    collected: BTreeSet<String>,
}

impl<'r> FiguresCache<'r> {
    pub(super) fn new(request: &'r Request) -> Self {
        Self { request, figures: HashMap::new(), collected: BTreeSet::new() }
    }

    /// The metrics that are compared in a cell, in display order.
    fn metrics(&self, cell: &RecordedCell) -> Vec<Metric> {
        let mut metrics = self.request.metrics.clone();
        if metrics.is_empty() {
            let merit = Merit::of(cell);
            metrics.push(Metric::of(merit));
            metrics.extend(Metric::beside(merit));
        }
        metrics.extend(self.request.gates.iter().map(|gate| gate.metric.clone()));
        let mut distinct: Vec<Metric> = Vec::new();
        metrics.into_iter().for_each(|metric| {
            if !distinct.contains(&metric) {
                distinct.push(metric);
            }
        });
        distinct
    }

    /// Reads the usable trials of these cells. Those that can't be read are left out of the reader.
    pub(super) fn read(&mut self, reader: &StoreReader, shared: &[Shared<'_>]) {
        for cell in shared {
            let metrics = self.metrics(cell.level());
            for trial in cell.a.iter().chain(&cell.b) {
                if !is_usable(trial) || self.figures.contains_key(&trial.id) {
                    continue;
                }
                let of_trial: Figures = match metrics.iter().any(Metric::needs_record) {
                    false => {
                        let value = |metric: &Metric| (metric.clone(), (metric.head_value(trial), None));
                        metrics.iter().map(value).collect()
                    }
                    true => {
                        let Some(record) = reader.load(&trial.id) else { continue };
                        self.collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                        let value =
                            |metric: &Metric| (metric.clone(), (metric.value(&record), metric.kind(&record)));
                        metrics.iter().map(value).collect()
                    }
                };
                self.figures.insert(trial.id.clone(), of_trial);
            }
        }
    }

    /// The rows of all metrics, each a separate matrix, in these cells of each pair of sides.
    /// `trials` are all in the store.
    pub(super) fn rows(
        self,
        shared: &[&[Shared<'_>]],
        trials: &[&Trial],
    ) -> Result<Vec<MetricRows>, CompareError> {
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in shared.iter().copied().flatten().flat_map(|cell| self.metrics(cell.level())) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let mut effects = Effects::default();
        metrics.into_iter().map(|metric| self.of_metric(metric, shared, trials, &mut effects)).collect()
    }

    fn of_metric<'a>(
        &self,
        metric: Metric,
        shared: &[&'a [Shared<'_>]],
        trials: &[&Trial],
        effects: &mut Effects<'a>,
    ) -> Result<MetricRows, CompareError> {
        let all = || self.figures.values().filter_map(|figures| figures.get(&metric));
        if all().next().is_some() && all().all(|(figure, _)| figure.is_none()) {
            let collected: Vec<String> = self.collected.iter().cloned().collect();
            return Err(CompareError::NoFigure { known: metrics_like(&metric, &collected), metric });
        }
        let kind = all().find_map(|(_, kind)| *kind);
        let figure = |trial: &Trial| self.figures.get(&trial.id)?.get(&metric)?.0;
        let gates = self.request.gates.iter().filter(|gate| gate.metric == metric);
        let margin = MetricMargin::new(&metric, &self.request.margins, gates.map(|gate| gate.bound));
        let mut cells = Vec::new();
        for (pair, of_pair) in shared.iter().enumerate() {
            for (cell, shared) in of_pair.iter().enumerate() {
                if !self.metrics(shared.level()).contains(&metric) {
                    continue;
                }
                let (a, b) = (runs(&shared.a, figure), runs(&shared.b, figure));
                let of_both = shared.a.iter().chain(&shared.b).map(|trial| &trial.run);
                let margin = margin.of(effects.smallest(of_both), &a, &b);
                cells.push(CellPair { pair, cell, a, b, margin, metric: metric.clone() });
            }
        }
        let rows = judge_cells(cells);
        let of_pair = |pair| advice(rows.iter().filter(|row| row.pair == pair), trials);
        Ok(MetricRows { kind, advice: (0..shared.len()).map(of_pair).collect(), rows, metric })
    }
}
