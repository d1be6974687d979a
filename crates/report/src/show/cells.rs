//! Several trials: a line for each of their cells.

use std::collections::BTreeMap;

use model::record::Trial;
use serde::Serialize;
use store::StoreReader;

use analysis::context::{contexts, has_figures_beyond_head};
use analysis::overview;
use analysis::overview::explain_answers;
use analysis::overview::view::{FigurePoint, Point, ScriptPoint, View};
use plaintext::figures::counted;

/// The cells of some trials.
#[derive(Clone, Debug)]
pub(super) struct CellsReport {
    pub(super) view: View,
    pub(super) lines: Vec<CellLine>,
    /// Notes on the trials, one sentence per line.
    pub(super) sentences: Vec<String>,
}

/// A cell with the figures of its runs. A factor is null if imported trials do not contain it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellLine {
    /// Index of its panel in the report: cells of one panel differ only in server and clients.
    #[serde(skip)]
    pub(super) panel: usize,
    /// The server with its settings, as labelled in the report.
    pub server: String,
    /// The workload.
    pub workload: Option<String>,
    /// pgbench's scale factor; null on a database of the user's own, too.
    pub scale: Option<u32>,
    /// Name of the database of the user's own that it runs on; null for generated tables.
    pub dataset: Option<String>,
    /// How statements are sent.
    pub protocol: Option<String>,
    /// How clients connect.
    pub transport: Option<String>,
    /// Other conditions of its panel, such as `cache cold`.
    pub conditions: Vec<String>,
    /// Number of clients.
    pub clients: Option<u32>,
    /// Number of trials that the figures are computed from.
    pub n: usize,
    /// The figure that the cell is judged by, as a metric of `compare`: `tps`, `latency.p99`.
    pub metric: String,
    /// Its unit here.
    pub unit: &'static str,
    /// Geometric mean of the trials' figures.
    pub mean: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Geometric mean of the figure next to it, such as the mean latency; null if there is none.
    pub secondary: Option<f64>,
    /// `STABLE`, `NOISY`, `UNSTABLE-WIDE` or `UNSTABLE-MODES`; null with fewer than 3 trials.
    pub class: Option<String>,
    /// The ratio of geometric means to the first server's, less 1; null for the first one.
    pub change: Option<f64>,
    /// The lower end of its 95% interval.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
    /// The lower end of its interval by sessions of pairs, with 99% confidence at any number of them; null without common
    /// sessions.
    pub ci99_low: Option<f64>,
    /// The upper end.
    pub ci99_high: Option<f64>,
    /// Number of common sessions with the first server, which decide; null without any.
    pub sessions: Option<usize>,
    /// Verdict of the change; null as above.
    pub verdict: Option<&'static str>,
    /// Its scripts, if its workload has several.
    pub scripts: Vec<ScriptPoint>,
    /// The figures that queries of its workload's own return; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigurePoint>,
    /// Its trials.
    pub trials: Vec<TrialLine>,
}

/// A trial of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialLine {
    /// Its id.
    pub id: String,
    /// Number of the repeat.
    pub repeat: u32,
    /// `valid`, `suspect` or `invalid`.
    pub validity: &'static str,
    /// The gates that decided its validity.
    pub reasons: Vec<String>,
    /// The cell's figure.
    pub figure: Option<f64>,
    /// Transactions per second.
    pub tps: Option<f64>,
}

impl CellsReport {
    pub(super) fn new(reader: &StoreReader, trials: &[&Trial]) -> Self {
        let beyond_heads: Vec<&Trial> =
            trials.iter().copied().filter(|trial| has_figures_beyond_head(&trial.cell)).collect();
        let contexts = contexts(reader, &beyond_heads);
        let trials: Vec<Trial> = trials.iter().copied().cloned().collect();
        let mut view = overview(&trials, &contexts);
        explain_answers(&mut view, reader);
        let mut lines = Vec::new();
        for (at, panel) in view.panels.iter().enumerate() {
            for row in &panel.rows {
                for (column, point) in view.columns.iter().zip(&row.points) {
                    let Some(point) = point else { continue };
                    let verdict = point.verdict.as_ref();
                    lines.push(CellLine {
                        panel: at,
                        server: column.label.clone(),
                        workload: panel.workload.clone(),
                        scale: panel.scale,
                        dataset: panel.dataset.clone(),
                        protocol: panel.protocol.clone(),
                        transport: panel.transport.clone(),
                        conditions: panel.conditions.clone(),
                        clients: row.clients,
                        n: point.n,
                        metric: panel.figure.metric.clone(),
                        unit: panel.figure.unit,
                        mean: point.mean,
                        min: point.min,
                        max: point.max,
                        secondary: point.secondary,
                        class: point.class.clone(),
                        change: verdict.and_then(|verdict| verdict.change),
                        ci95_low: verdict.and_then(|verdict| verdict.ci95_low),
                        ci95_high: verdict.and_then(|verdict| verdict.ci95_high),
                        ci99_low: verdict.and_then(|verdict| verdict.ci99_low),
                        ci99_high: verdict.and_then(|verdict| verdict.ci99_high),
                        sessions: verdict.and_then(|verdict| verdict.sessions),
                        verdict: verdict.map(|verdict| verdict.verdict),
                        scripts: point.scripts.clone(),
                        figures: point.figures.clone(),
                        trials: trials_of(point),
                    });
                }
            }
        }
        let sentences = sentences(&view, &lines);
        Self { view, lines, sentences }
    }
}

fn trials_of(point: &Point) -> Vec<TrialLine> {
    let reasons = |trial: &analysis::overview::view::Trial| {
        let found = trial.findings.iter().filter(|finding| finding.validity == trial.validity);
        found.filter(|finding| finding.validity != "valid").map(|finding| finding.gate.clone()).collect()
    };
    let trial = |trial: &analysis::overview::view::Trial| TrialLine {
        id: trial.id.clone(),
        repeat: trial.repeat,
        validity: trial.validity,
        reasons: reasons(trial),
        figure: trial.figure,
        tps: trial.tps,
    };
    point.runs.iter().map(trial).collect()
}

/// Numbers of invalid and suspect trials with their gates, and notes.
fn sentences(view: &View, lines: &[CellLine]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for (validity, what) in [("invalid", "invalid, not used"), ("suspect", "suspect, used")] {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let with_validity =
            lines.iter().flat_map(|line| &line.trials).filter(|trial| trial.validity == validity);
        let mut n = 0;
        for trial in with_validity {
            n += 1;
            let reason = trial.reasons.first().map_or("no reason recorded", String::as_str);
            *reasons.entry(reason).or_default() += 1;
        }
        if n > 0 {
            let reasons: Vec<String> = reasons.into_iter().map(|(gate, n)| format!("{gate} {n}")).collect();
            sentences.push(format!("{} {what}: {}", counted(n, "trial"), reasons.join(", ")));
        }
    }
    sentences.extend(view.notes.iter().map(|&note| note.to_owned()));
    sentences
}
