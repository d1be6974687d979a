//! The scripts of workloads that have several: their figures next to those of the whole.

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
    let of_metric = runs(trials, |trial| script_figure(metric, trial, contexts)).values;
    let tps = runs(trials, |trial| Some(summary(script, trial, contexts)?.tps)).values;
    let class = stats::Cell::new(&of_metric).and_then(|cell| cell.with_spread(metric.spread()).class());
    let n = of_metric.len();
    let sample = Sample::new(of_metric);
    Some(view::ScriptPoint {
        script: script.clone(),
        metric: metric.to_string(),
        n,
        mean: sample.as_ref().and_then(Sample::geometric_mean),
        min: sample.as_ref().map(Sample::minimum),
        max: sample.as_ref().map(Sample::maximum),
        tps: Sample::new(tps).as_ref().and_then(Sample::geometric_mean),
        class: class.map(|class| class.to_string()),
        verdict: None,
    })
}

/// A latency of a script in a trial.
pub(super) fn script_figure(
    metric: &Metric,
    trial: &Trial,
    contexts: &BTreeMap<String, TrialContext>,
) -> Option<f64> {
    let Metric::Script { script, latency: Some(figure) } = metric else { return None };
    figure.value(summary(script, trial, contexts)?.latency.as_ref()?)
}

fn summary<'a>(
    script: &str,
    trial: &Trial,
    contexts: &'a BTreeMap<String, TrialContext>,
) -> Option<&'a ScriptSummary> {
    contexts.get(&trial.id)?.scripts.iter().find(|of| of.script == script)
}
