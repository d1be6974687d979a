//! Figures of the compared trials, and the verdicts on them.

use std::collections::{BTreeSet, HashMap};

use model::metrics::Kind;
use model::record::Trial;
use store::StoreReader;

use super::matching::Shared;
use super::{CompareError, MetricRows, Request};
use crate::judgement::{CellPair, Row, is_usable, judge_cells, runs};
use crate::margin::{Effects, MetricMargin};
use crate::metric::{Metric, metrics_like};

/// Figures of a trial, one per metric, with the kinds found for these.
type Figures = Vec<(Option<f64>, Option<Kind>)>;

/// Figures of trials, read once each.
pub(super) struct FiguresCache {
    /// The metrics of the request and its gates.
    metrics: Vec<Metric>,
    /// By trial.
    figures: HashMap<String, Figures>,
    /// Names of all collected metrics.
    collected: BTreeSet<String>,
}

impl FiguresCache {
    pub(super) fn new(request: &Request) -> Self {
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in request.metrics.iter().chain(request.gates.iter().map(|gate| &gate.metric)) {
            if !metrics.contains(metric) {
                metrics.push(metric.clone());
            }
        }
        Self { metrics, figures: HashMap::new(), collected: BTreeSet::new() }
    }

    /// Reads the usable trials of these cells. Those that can't be read are left out of the reader.
    pub(super) fn read(&mut self, reader: &StoreReader, shared: &[Shared<'_>]) {
        let metrics = &self.metrics;
        for trial in shared.iter().flat_map(|cell| cell.a.iter().chain(&cell.b)) {
            if !is_usable(trial) || self.figures.contains_key(&trial.id) {
                continue;
            }
            let of_trial = match metrics.iter().any(Metric::needs_record) {
                false => metrics.iter().map(|metric| (metric.head_value(trial), None)).collect(),
                true => {
                    let Some(record) = reader.load(&trial.id) else { continue };
                    self.collected.extend(record.metrics.0.iter().map(|series| series.metric.clone()));
                    metrics.iter().map(|metric| (metric.value(&record), metric.kind(&record))).collect()
                }
            };
            self.figures.insert(trial.id.clone(), of_trial);
        }
    }

    /// The rows of all metrics, each a separate matrix, in these cells of each pair of sides.
    pub(super) fn rows(
        self,
        shared: &[&[Shared<'_>]],
        request: &Request,
    ) -> Result<Vec<MetricRows>, CompareError> {
        let Self { metrics, figures, collected } = self;
        let mut effects = Effects::default();
        let found = metrics.into_iter().enumerate().map(|(at, metric)| {
            let all = || figures.values().filter_map(|figures| figures.get(at));
            if !figures.is_empty() && all().all(|(figure, _)| figure.is_none()) {
                let collected: Vec<String> = collected.iter().cloned().collect();
                return Err(CompareError::NoFigure { known: metrics_like(&metric, &collected), metric });
            }
            let kind = all().find_map(|(_, kind)| *kind);
            let figure = |trial: &Trial| figures.get(&trial.id)?.get(at)?.0;
            let gates = request.gates.iter().filter(|gate| gate.metric == metric);
            let margin = MetricMargin::new(&metric, &request.margins, gates.map(|gate| gate.bound));
            Ok(MetricRows { kind, rows: rows(shared, figure, margin, &mut effects), metric })
        });
        found.collect()
    }
}

fn rows<'a>(
    shared: &[&'a [Shared<'_>]],
    figure: impl Fn(&Trial) -> Option<f64>,
    margin: MetricMargin,
    effects: &mut Effects<'a>,
) -> Vec<Row> {
    let mut cells = Vec::new();
    for (pair, of_pair) in shared.iter().enumerate() {
        for (cell, shared) in of_pair.iter().enumerate() {
            let (a, b) = (runs(&shared.a, &figure), runs(&shared.b, &figure));
            let of_both = shared.a.iter().chain(&shared.b).map(|trial| &trial.run);
            let margin = margin.of(effects.smallest(of_both), &a, &b);
            cells.push(CellPair { pair, cell, a, b, margin });
        }
    }
    judge_cells(cells)
}
