//! Comparison of two cells by their common sessions: in each, the load alternated between a server of one cell and a server of
//! the other.

use std::collections::{BTreeMap, BTreeSet};

use model::merit::Merit;
use model::metrics::Better;
use model::paired::PairedFigure;
use model::record::Trial;
use stats::{DecidingFigure, Interval, PairedSequence, deciding, session_log_ratio};

use super::{Row, is_usable};
use crate::design::Campaigns;
use crate::layout::clients_of;
use crate::metric::Metric;

/// The common sessions of two cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonSessions<'a> {
    /// The trials of the usable sessions, the baseline's and the other, in the order of the sessions.
    usable: Vec<[&'a Trial; 2]>,
    /// Number of sessions of which a side is invalid.
    invalid: usize,
    /// All trials of these sessions, by side.
    pub(crate) trials: [Vec<&'a Trial>; 2],
}

/// An attempt at a session: its run, its number and the number of the attempt.
pub(crate) type Attempt<'a> = (&'a str, u32, u32);

/// The attempt that a trial of a run in pairs belongs to.
pub(crate) fn attempt(trial: &Trial) -> Attempt<'_> {
    (&trial.run.id, trial.repeat, trial.attempt)
}

/// The runs in pairs among those of some trials. A trial that failed early has no slices: its run shows that it is one of a session.
pub(crate) fn paired_runs<'a>(trials: impl Iterator<Item = &'a Trial>) -> BTreeSet<&'a str> {
    trials.filter(|trial| trial.paired.is_some()).map(|trial| trial.run.id.as_str()).collect()
}

impl<'a> CommonSessions<'a> {
    /// The sessions of which each of two cells has a trial; `None` without any. A session of which a side is invalid does not
    /// count: its pairs are incomplete.
    pub(crate) fn new(a: &[&'a Trial], b: &[&'a Trial]) -> Option<Self> {
        let runs = paired_runs(a.iter().chain(b).copied());
        let mut attempts: BTreeMap<Attempt<'a>, [Option<&'a Trial>; 2]> = BTreeMap::new();
        for (side, trials) in [a, b].into_iter().enumerate() {
            for trial in trials.iter().filter(|trial| runs.contains(trial.run.id.as_str())) {
                attempts.entry(attempt(trial)).or_default()[side] = Some(trial);
            }
        }
        // By session: a later usable attempt counts instead of an earlier one.
        let mut sessions: BTreeMap<(&str, u32), Option<[&Trial; 2]>> = BTreeMap::new();
        let mut common = Self::default();
        for ((run, session, _), trials) in attempts {
            let [Some(a), Some(b)] = trials else { continue };
            common.trials[0].push(a);
            common.trials[1].push(b);
            let usable = sessions.entry((run, session)).or_default();
            let is_complete = |trial: &Trial| is_usable(trial) && trial.paired.is_some();
            if is_complete(a) && is_complete(b) {
                *usable = Some([a, b]);
            }
        }
        common.invalid = sessions.values().filter(|usable| usable.is_none()).count();
        common.usable = sessions.into_values().flatten().collect();
        (!common.trials[0].is_empty()).then_some(common)
    }

    /// The metrics that decide, by the campaigns of these sessions; the one that matters most first.
    pub(crate) fn deciding(&self, campaigns: &mut Campaigns<'a>) -> Vec<Metric> {
        let Some(trial) = self.trials[1].first() else { return Vec::new() };
        let with_cpu = campaigns.cpu_decides(self.trials.iter().flatten().map(|trial| &trial.run));
        Metric::deciding(Merit::of(&trial.cell), with_cpu)
    }

    /// The comparison of a metric by these sessions, which decides if it is one of `deciding`, and of `comparisons` that are
    /// decided together; `margin` is the largest ratio at which cells are equivalent. The ratio of a session is that of its pairs if slices measure the metric, else that
    /// of the figures of its two trials.
    pub(crate) fn compare(
        &self,
        metric: &Metric,
        figure: impl Fn(&Trial) -> Option<f64>,
        margin: f64,
        deciding: &[Metric],
        comparisons: usize,
    ) -> PairedComparison {
        let of_pairs = metric.paired_figure();
        let log_ratio = |[a, b]: &[&Trial; 2]| match of_pairs {
            Some(of_pairs) => session_log_ratio(&pairs(of_pairs, a, b)?),
            None => session_log_ratio(&[(figure(a)?, figure(b)?)]),
        };
        let mut sequence = PairedSequence::new(margin, comparisons);
        let mut numbers = Vec::new();
        for trials in &self.usable {
            if let Some(log_ratio) = log_ratio(trials) {
                sequence.add(log_ratio);
                numbers.push(trials[0].repeat);
            }
        }
        PairedComparison {
            decides: deciding.contains(metric),
            numbers,
            sequence,
            comparisons,
            invalid: self.invalid,
            session_seconds: self.session_seconds(),
            paused_cpu: [0, 1].map(|side| self.paused_cpu(side)),
        }
    }

    /// The trials of its usable sessions.
    pub(crate) fn usable(&self) -> impl Iterator<Item = [&'a Trial; 2]> {
        self.usable.iter().copied()
    }

    /// The median duration of a session.
    pub(crate) fn session_seconds(&self) -> Option<f64> {
        let seconds = |[a, b]: &[&Trial; 2]| {
            let started = a.started?.min(b.started?);
            Some(a.ended?.max(b.ended?).duration_since(started).as_secs_f64())
        };
        stats::Sample::new(self.usable.iter().filter_map(seconds)).map(|sample| sample.median())
    }

    /// The share of the CPU time of a side's servers that they used while the other side had the load.
    fn paused_cpu(&self, side: usize) -> Option<f64> {
        let slices =
            || self.usable.iter().filter_map(|trials| trials[side].paired.as_ref()).flat_map(|of| &of.slices);
        let known = || slices().filter_map(|slice| Some((slice.server_cpu_us?, slice.paused_cpu_us?)));
        let (running, paused) = known().fold((0, 0), |all, slice| (all.0 + slice.0, all.1 + slice.1));
        (running > 0).then(|| paused as f64 / running as f64)
    }
}

/// The values of a figure in the pairs of a session.
fn pairs(figure: PairedFigure, a: &Trial, b: &Trial) -> Option<Vec<(f64, f64)>> {
    Some(figure.pairs([a.paired.as_ref()?, b.paired.as_ref()?], [clients_of(a)?, clients_of(b)?]))
}

/// Comparison of a metric of two cells by their common sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedComparison {
    /// Whether the cells are judged by this metric, alone or with others: sessions are added until that is decided.
    pub decides: bool,
    /// Numbers of the sessions in their runs, in the order of the ratios.
    pub numbers: Vec<u32>,
    /// The ratios of the sessions, with their interval and verdict.
    pub sequence: PairedSequence,
    /// Number of comparisons that are decided together, this one included.
    pub comparisons: usize,
    /// Number of sessions that do not count, as a side is invalid.
    pub invalid: usize,
    /// The median duration of a session, in seconds; `None` if unknown.
    pub session_seconds: Option<f64>,
    /// For each side, the CPU time of its servers while the other one had the load, as a share of that during its own load;
    /// `None` if unknown.
    pub paused_cpu: [Option<f64>; 2],
}

impl PairedComparison {
    /// The interval of the ratio, with 99% confidence for all numbers of sessions and all comparisons together.
    pub fn interval(&self) -> Option<Interval> {
        self.sequence.interval()
    }

    /// Time of the sessions that are left until a decision, in seconds.
    pub fn seconds_left(&self) -> Option<f64> {
        Some(self.sequence.sessions_left()? as f64 * self.session_seconds?)
    }
}

/// The place of the row by which two cells are judged, or which keeps them open: of the rows of those metrics that decide, the one
/// that matters most first. If there is no verdict by that one whatever the figures, no other stands in for it.
pub(crate) fn deciding_row<'r>(rows: impl Iterator<Item = (&'r Row, &'r Metric)>) -> usize {
    let figure = |(at, (row, metric)): (usize, (&'r Row, &'r Metric))| {
        let sequence = &row.judged.paired.as_ref()?.sequence;
        Some((at, DecidingFigure { sequence, higher_is_better: metric.better() == Better::Higher }))
    };
    let (places, figures): (Vec<usize>, Vec<DecidingFigure<'r>>) =
        rows.enumerate().filter_map(figure).unzip();
    match places.first() {
        Some(0) => places[deciding(&figures)],
        _ => 0,
    }
}
