//! `history --format json`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use stats::ChangePoint;

use super::text::{gates_in_words, is_accepted, sentence, title};
use analysis::history::{History, Series, Shift, Tested};

/// Version of the document, raised when readers of the older version would misread it.
const SCHEMA: u32 = 1;

/// A history as data, schema 1. Indices are those of `steps`, `cells` and `accepted`, from 0.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(export_to = "history.ts", rename = "History"))]
pub struct Document {
    schema: u32,
    metric: String,
    /// `higher`, `lower` or `neither`.
    #[cfg_attr(test, ts(type = "'higher' | 'lower' | 'neither'"))]
    better: &'static str,
    control: Option<String>,
    over: &'static str,
    selector: String,
    /// `version`, `git`, `time` or `first-seen`.
    order: &'static str,
    steps: Vec<StepDocument>,
    trials: TrialsDocument,
    cells: Vec<CellDocument>,
    shifts: Vec<ShiftDocument>,
    accepted: Vec<AcceptedDocument>,
    sentence: String,
    gates: Vec<GateDocument>,
    /// Outcomes of the gates, in sentences.
    #[serde(rename = "said")]
    sentences: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryStep")
)]
struct StepDocument {
    /// Argument of `--accept`, `--withdraw` and `--without`.
    key: String,
    label: String,
    #[cfg_attr(test, ts(type = "string | null"))]
    began: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryTrials")
)]
struct TrialsDocument {
    selected: usize,
    runs: usize,
    campaigns: Vec<String>,
    /// Number of invalid trials by gate.
    invalid: BTreeMap<String, usize>,
    suspect: BTreeMap<String, usize>,
    /// Labels of steps that were left out.
    without: Vec<String>,
    without_step: usize,
    without_control: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryCell")
)]
struct CellDocument {
    cell: BTreeMap<&'static str, String>,
    /// `yes`, or the reason why not: `few-points`, `no-ratio`, `no-figure`, `invalid`.
    tested: &'static str,
    /// One for each step.
    points: Vec<PointDocument>,
    changes: Vec<ChangeDocument>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryPoint")
)]
struct PointDocument {
    n: usize,
    median: Option<f64>,
    values: Vec<f64>,
    trials: Vec<String>,
    suspect: usize,
    invalid: usize,
    without_figure: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryChange")
)]
struct ChangeDocument {
    before: usize,
    after: usize,
    within_before: usize,
    within_after: usize,
    /// Ratio of the geometric means of the points after and before.
    ratio: f64,
    ci95_low: Option<f64>,
    ci95_high: Option<f64>,
    p: f64,
    verdict: &'static str,
    accepted: Option<usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryShift")
)]
struct ShiftDocument {
    before: usize,
    after: usize,
    /// Geometric mean over the cells.
    ratio: f64,
    smallest: f64,
    largest: f64,
    verdict: &'static str,
    cells: Vec<usize>,
    /// Whether it is accepted in all its cells.
    is_accepted: bool,
    #[serde(rename = "said")]
    title: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "Acceptance")
)]
struct AcceptedDocument {
    id: String,
    before: String,
    after: String,
    fell: bool,
    cells: Vec<BTreeMap<String, String>>,
    note: String,
    by: Option<String>,
    #[cfg_attr(test, ts(type = "string"))]
    at: Timestamp,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryGate")
)]
struct GateDocument {
    gate: String,
    newest: Option<usize>,
    is_hit: bool,
    hit: Vec<HitDocument>,
    /// Cells that were not searched for changes.
    undecided: Vec<usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(
    test,
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(export_to = "history.ts", rename = "HistoryHit")
)]
struct HitDocument {
    cell: usize,
    /// Index among the cell's changes.
    change: usize,
}

impl Document {
    /// Document of a history.
    pub fn new(history: &History) -> Self {
        Self {
            schema: SCHEMA,
            metric: history.metric.to_string(),
            better: history.metric.better().as_str(),
            control: history.control.clone(),
            over: history.over.name(),
            selector: history.selector.clone(),
            order: history.order.name(),
            steps: history
                .steps
                .iter()
                .map(|step| StepDocument {
                    key: step.key.clone(),
                    label: step.label.clone(),
                    began: step.began,
                })
                .collect(),
            trials: TrialsDocument {
                selected: history.trials.trials,
                runs: history.trials.runs,
                campaigns: history.trials.campaigns.clone(),
                invalid: history.trials.invalid.iter().cloned().collect(),
                suspect: history.trials.suspect.iter().cloned().collect(),
                without: history.trials.without.clone(),
                without_step: history.trials.without_step,
                without_control: history.trials.without_control,
            },
            cells: history.series.iter().map(|series| cell(history, series)).collect(),
            shifts: history.shifts.iter().map(|of| shift(history, of)).collect(),
            accepted: accepted(history),
            sentence: sentence(history),
            gates: gates(history),
            sentences: gates_in_words(history),
        }
    }
}

fn cell(history: &History, series: &Series) -> CellDocument {
    CellDocument {
        cell: series.cell.iter().map(|(factor, level)| (factor.name(), level.clone())).collect(),
        tested: match series.tested {
            Tested::Yes => "yes",
            Tested::FewPoints => "few-points",
            Tested::NoRatio => "no-ratio",
            Tested::Emulated => "emulated",
            Tested::NoFigure => "no-figure",
            Tested::Invalid => "invalid",
        },
        points: series
            .points
            .iter()
            .zip(&series.medians)
            .map(|(runs, median)| PointDocument {
                n: runs.values.len(),
                median: *median,
                values: runs.values.clone(),
                trials: runs.trials.clone(),
                suspect: runs.suspect,
                invalid: runs.invalid,
                without_figure: runs.without,
            })
            .collect(),
        changes: series
            .changes
            .iter()
            .zip(&series.accepted)
            .map(|(change, accepted)| of_change(history, change, *accepted))
            .collect(),
    }
}

fn of_change(history: &History, change: &ChangePoint, accepted: Option<usize>) -> ChangeDocument {
    let interval = change.effect.confidence_interval(0.95);
    ChangeDocument {
        before: change.before,
        after: change.after,
        within_before: change.within.0,
        within_after: change.within.1,
        ratio: change.effect.ratio,
        ci95_low: interval.as_ref().map(|interval| interval.low),
        ci95_high: interval.as_ref().map(|interval| interval.high),
        p: change.p,
        verdict: history.name_of(change),
        accepted,
    }
}

fn shift(history: &History, shift: &Shift) -> ShiftDocument {
    let event = &shift.event;
    ShiftDocument {
        before: event.before,
        after: event.after,
        ratio: event.ratio,
        smallest: event.smallest,
        largest: event.largest,
        verdict: shift.outcome.name(history.metric.better()),
        cells: event.changes.iter().map(|(series, _)| *series).collect(),
        is_accepted: is_accepted(history, shift),
        title: title(history, shift),
    }
}

fn accepted(history: &History) -> Vec<AcceptedDocument> {
    let acceptance = |acceptance: &model::acceptance::Acceptance| AcceptedDocument {
        id: acceptance.id.clone(),
        before: acceptance.before.clone(),
        after: acceptance.after.clone(),
        fell: acceptance.fell,
        cells: acceptance.cells.clone(),
        note: acceptance.note.clone(),
        by: acceptance.by.clone(),
        at: acceptance.at,
    };
    history.accepted.iter().map(acceptance).collect()
}

fn gates(history: &History) -> Vec<GateDocument> {
    let gate = |outcome: &analysis::history::GateOutcome| GateDocument {
        gate: outcome.gate.to_string(),
        newest: history.newest,
        is_hit: !outcome.hit.is_empty(),
        hit: outcome.hit.iter().map(|(cell, change)| HitDocument { cell: *cell, change: *change }).collect(),
        undecided: outcome.undecided.clone(),
    };
    history.gates.iter().map(gate).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ts_rs::{Config, TS};

    use super::Document;

    /// Like the test of the view and detail in the crate `analysis`; `BLESS=1` writes the file instead.
    #[test]
    fn generated_types_of_the_page_are_those_of_the_program() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/data/generated/history.ts");
        let new = tempfile::tempdir().unwrap();
        Document::export_all(&Config::new().with_out_dir(new.path()).with_large_int("number")).unwrap();
        let text = fs::read_to_string(new.path().join("history.ts")).unwrap();
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, text).unwrap();
        } else {
            let known = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(known, text, "{} is stale: run `make generated`", path.display());
        }
    }
}
