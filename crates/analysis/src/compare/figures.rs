//! Figures of the compared trials, and the verdicts on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::merit::Merit;
use model::metrics::Kind;
use model::record::Trial;
use store::StoreReader;

use super::advice::advice_on_metric;
use super::matching::Shared;
use super::{CompareError, MetricRows, Request};
use crate::design::{Campaigns, Sessions};
use crate::judgement::{CellPair, Row, SessionKey, is_usable, judge_cells, runs};
use crate::margin::MetricMargin;
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
    fn metrics(&self, shared: &Shared<'_>) -> Vec<Metric> {
        let mut metrics = self.request.metrics.clone();
        if metrics.is_empty() {
            metrics = merits(shared);
            metrics.extend(Metric::of_parts(shared.level()));
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
            let metrics = self.metrics(cell);
            for trial in cell.a.iter().chain(&cell.b) {
                if !is_usable(trial) || self.figures.contains_key(&trial.id) {
                    continue;
                }
                let needs_record =
                    |metric: &Metric| metric.needs_record() && metric.head_value(trial).is_none();
                let of_trial: Figures = match metrics.iter().any(needs_record) {
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

    /// The rows of all metrics, in these cells of each pair of sides. Each metric is a matrix of its own, but those of
    /// scripts, phases and workloads' own queries are one: none of them is what the cell is judged by, and each is one more
    /// chance of a false alarm. `trials` are all in the store.
    pub(super) fn rows<'a>(
        self,
        shared: &[&[Shared<'a>]],
        trials: &[&Trial],
    ) -> Result<Vec<MetricRows>, CompareError> {
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in shared.iter().copied().flatten().flat_map(|cell| self.metrics(cell)) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let mut campaigns = Campaigns::default();
        // For each cell with sessions, its metrics and those that decide it.
        let mut paired: Vec<(Vec<Metric>, Vec<Metric>)> = Vec::new();
        for cell in shared.iter().copied().flatten() {
            if let Some(sessions) = cell.sessions() {
                paired.push((self.metrics(cell), sessions.deciding(&mut campaigns)));
            }
        }
        let decided_together = |metric: &Metric| -> usize {
            let of_cell = |(metrics, deciding): &(Vec<Metric>, Vec<Metric>)| match metric.is_of_part() {
                true => metrics.iter().filter(|metric| metric.is_of_part()).count(),
                false if metrics.contains(metric) => deciding.len(),
                false => 0,
            };
            paired.iter().map(of_cell).sum()
        };
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        for metric in metrics {
            if self.is_missing(&metric) {
                if self.is_asked_for(&metric, shared) {
                    let collected: Vec<String> = self.collected.iter().cloned().collect();
                    return Err(CompareError::NoFigure { known: metrics_like(&metric, &collected), metric });
                }
                continue;
            }
            let cells = self.cells(&metric, shared, trials, &mut campaigns, decided_together(&metric));
            match metric.is_of_part() {
                true => parts.push((metric, cells)),
                false => others.push(vec![(metric, cells)]),
            }
        }
        others.push(parts);
        Ok(others.into_iter().flat_map(|family| self.judge(family, shared.len(), trials)).collect())
    }

    /// Whether no trial has it.
    fn is_missing(&self, metric: &Metric) -> bool {
        let all = || self.figures.values().filter_map(|figures| figures.get(metric));
        all().next().is_some() && all().all(|(figure, _)| figure.is_none())
    }

    /// Whether it is named by the request, or is what a cell is judged by.
    fn is_asked_for(&self, metric: &Metric, shared: &[&[Shared<'_>]]) -> bool {
        let mut cells = shared.iter().copied().flatten();
        self.request.metrics.contains(metric)
            || self.request.gates.iter().any(|gate| gate.metric == *metric)
            || cells.any(|cell| merits(cell).first() == Some(metric))
    }

    /// The rows of metrics that are one matrix.
    fn judge(
        &self,
        family: Vec<(Metric, Vec<CellPair>)>,
        pairs: usize,
        trials: &[&Trial],
    ) -> Vec<MetricRows> {
        let (metrics, cells): (Vec<Metric>, Vec<Vec<CellPair>>) = family.into_iter().unzip();
        let numbers: Vec<usize> = cells.iter().map(Vec::len).collect();
        let mut judged = judge_cells(cells.into_iter().flatten().collect()).into_iter();
        let rows = |(metric, n): (Metric, usize)| {
            let rows: Vec<Row> = judged.by_ref().take(n).collect();
            let of_pair = |pair| advice_on_metric(rows.iter().filter(|row| row.pair == pair), trials);
            MetricRows {
                kind: self.figures.values().find_map(|figures| figures.get(&metric)?.1),
                advice: (0..pairs).map(of_pair).collect(),
                rows,
                metric,
            }
        };
        metrics.into_iter().zip(numbers).map(rows).collect()
    }

    /// The cells that a metric is compared in, of which so many are compared by sessions.
    fn cells<'a>(
        &self,
        metric: &Metric,
        shared: &[&[Shared<'a>]],
        trials: &[&Trial],
        campaigns: &mut Campaigns<'a>,
        paired: usize,
    ) -> Vec<CellPair> {
        let figure = |trial: &Trial| self.figures.get(&trial.id)?.get(metric)?.0;
        let gates = self.request.gates.iter().filter(|gate| gate.metric == *metric);
        let margin = MetricMargin::new(metric, &self.request.margins, gates.map(|gate| gate.bound));
        // Figures that are only in bundles would have to be read for all sessions of the store.
        let head = |trial: &Trial| metric.head_value(trial).filter(|_| !metric.needs_record());
        let others = OtherSessions { trials, figure: &head };
        let mut cells = Vec::new();
        for (pair, of_pair) in shared.iter().enumerate() {
            for (cell, shared) in of_pair.iter().enumerate() {
                if !self.metrics(shared).contains(metric) {
                    continue;
                }
                let sessions = shared.sessions();
                let [of_a, of_b] = match &sessions {
                    Some(sessions) => sessions.trials.each_ref(),
                    None => [&shared.a, &shared.b],
                };
                let (a, b) = (runs(of_a, figure), runs(of_b, figure));
                let of_both = || shared.a.iter().chain(&shared.b).copied().map(|trial| &trial.run);
                let margin = margin.of(campaigns.smallest_effect(of_both()), &a, &b);
                let mut design = campaigns.design(of_both(), a.figures(), b.figures());
                design.sessions = Sessions::new(a.figures(), b.figures(), &others.of(shared));
                let paired = sessions.map(|sessions| {
                    let deciding = sessions.deciding(campaigns);
                    sessions.compare(metric, figure, margin, &deciding, paired)
                });
                cells.push(CellPair { pair, cell, a, b, margin, metric: metric.clone(), design, paired });
            }
        }
        cells
    }
}

/// What a cell is judged by, and the metrics next to it.
fn merits(shared: &Shared<'_>) -> Vec<Metric> {
    let merit = Merit::of(shared.level());
    match shared.sessions() {
        Some(_) => {
            let is_counted =
                shared.a.iter().any(|trial| Metric::ServerInstructions.head_value(trial).is_some());
            let is_known = |metric: &Metric| is_counted || *metric != Metric::ServerInstructions;
            Metric::paired(merit).into_iter().filter(is_known).collect()
        }
        None => [Metric::of(merit)].into_iter().chain(Metric::secondary(merit)).collect(),
    }
}

/// All trials of the store, with what their heads say of a metric: other sessions of compared cells show how much sessions
/// differ.
struct OtherSessions<'a> {
    trials: &'a [&'a Trial],
    figure: &'a dyn Fn(&Trial) -> Option<f64>,
}

impl OtherSessions<'_> {
    /// The figures of usable trials of the same cells and campaigns, by session; none of the compared sessions.
    fn of(&self, shared: &Shared<'_>) -> Vec<Vec<f64>> {
        let compared: Vec<&Trial> = shared.a.iter().chain(&shared.b).copied().collect();
        let is_session_of =
            |trial: &Trial, of: &Trial| (&of.run.id, &of.agent) == (&trial.run.id, &trial.agent);
        let is_like = |trial: &&&Trial| {
            is_usable(trial)
                && !compared.iter().any(|of| is_session_of(trial, of))
                && compared.iter().any(|of| of.run.campaign == trial.run.campaign && of.cell == trial.cell)
        };
        let mut sessions: BTreeMap<SessionKey, Vec<f64>> = BTreeMap::new();
        for trial in self.trials.iter().filter(is_like) {
            if let Some(figure) = (self.figure)(trial) {
                sessions.entry(SessionKey::new(trial)).or_default().push(figure);
            }
        }
        sessions.into_values().collect()
    }
}
