//! Figures next to what a cell is judged by: of its parts, which are scripts and phases, and of its workload's own queries.

use std::collections::BTreeMap;

use model::record::Trial;
use stats::Sample;

use super::view;
use crate::context::TrialContext;
use crate::judgement::runs;
use crate::metric::{Metric, ScriptSummary};

/// The figures of the script that a metric is about, in a cell with these trials; `None` if no trial has them.
pub(super) fn script(
    metric: &Metric,
    trials: &[&Trial],
    contexts: &BTreeMap<String, TrialContext>,
) -> Option<view::ScriptPoint> {
    let Metric::Script { script, .. } = metric else { return None };
    trials.iter().find_map(|trial| summary(script, trial, contexts))?;
    let tps = runs(trials, |trial| Some(summary(script, trial, contexts)?.tps)).values;
    let Figures { n, mean, min, max, class } =
        Figures::new(metric, trials, |trial| part_figure(metric, trial, contexts));
    Some(view::ScriptPoint {
        script: script.clone(),
        metric: metric.to_string(),
        n,
        mean,
        min,
        max,
        tps: Sample::new(tps).as_ref().and_then(Sample::geometric_mean),
        class,
        verdict: None,
    })
}

/// The figures of the phase that a metric is about, in a cell with these trials.
pub(super) fn phase(metric: &Metric, trials: &[&Trial]) -> Option<view::PhasePoint> {
    let Metric::Phase { phase, .. } = metric else { return None };
    let Figures { n, mean, min, max, class } = Figures::new(metric, trials, |trial| metric.head_value(trial));
    Some(view::PhasePoint {
        phase: phase.clone(),
        metric: metric.to_string(),
        n,
        mean,
        min,
        max,
        class,
        verdict: None,
    })
}

/// A figure of the workload's own, in a cell with these trials.
pub(super) fn own_figure(metric: &Metric, trials: &[&Trial]) -> view::FigurePoint {
    let Figures { n, mean, min, max, class } = Figures::new(metric, trials, |trial| metric.head_value(trial));
    view::FigurePoint { metric: metric.to_string(), n, mean, min, max, class, verdict: None }
}

/// Figures of a part, over trials.
struct Figures {
    n: usize,
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    class: Option<String>,
}

impl Figures {
    fn new(metric: &Metric, trials: &[&Trial], figure: impl Fn(&Trial) -> Option<f64>) -> Self {
        let values = runs(trials, figure).values;
        let class = stats::Cell::new(&values).and_then(|cell| cell.with_spread(metric.spread()).class());
        let n = values.len();
        let sample = Sample::new(values);
        Self {
            n,
            mean: sample.as_ref().and_then(Sample::geometric_mean),
            min: sample.as_ref().map(Sample::minimum),
            max: sample.as_ref().map(Sample::maximum),
            class: class.map(|class| class.to_string()),
        }
    }
}

/// What a script or phase is judged by, or a figure of the workload's own, in a trial.
pub(super) fn part_figure(
    metric: &Metric,
    trial: &Trial,
    contexts: &BTreeMap<String, TrialContext>,
) -> Option<f64> {
    match metric {
        Metric::Script { script, latency: Some(figure) } => {
            figure.value(summary(script, trial, contexts)?.latency.as_ref()?)
        }
        Metric::Phase { .. } | Metric::Own(_) => metric.head_value(trial),
        _ => None,
    }
}

fn summary<'a>(
    script: &str,
    trial: &Trial,
    contexts: &'a BTreeMap<String, TrialContext>,
) -> Option<&'a ScriptSummary> {
    contexts.get(&trial.id)?.scripts.iter().find(|of| of.script == script)
}
