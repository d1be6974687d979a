//! The page's counterpart on a terminal: the results of one trial, or of several cells side by side.

mod cells;
mod cells_text;
mod load_hosts;
mod phases;
mod statements;
mod trial;
mod trial_text;

use serde::Serialize;
use store::StoreReader;

pub use cells::CellLine;
pub use trial::TrialReport;

use crate::chart::Terminal;
use analysis::overview::view::Answer;
use analysis::phase::{PhaseError, phase_of};
use analysis::select::RunSelection;
use analysis::select::{SelectError, Selector};
use cells::CellsReport;
use plaintext::table::Format;

/// The results of a selector's trials.
#[derive(Clone, Debug)]
pub struct Shown(What);

#[derive(Clone, Debug)]
enum What {
    /// It selects one trial.
    Trial(Box<TrialReport>),
    /// It selects several, of one cell or more.
    Cells(Box<CellsReport>),
}

/// The results of a selector's trials, in the run `default` unless the selector names their source.
///
/// # Errors
/// It selects nothing, or the one trial that it selects can't be read.
pub fn show(reader: &StoreReader, what: &Selector, default: &RunSelection) -> Result<Shown, SelectError> {
    Ok(Shown(match what.trials(reader, default)?.as_slice() {
        [one] => {
            let record = reader.load(&one.id).ok_or_else(|| reader.error(&one.id))?;
            What::Trial(Box::new(TrialReport::new(&record)))
        }
        several => What::Cells(Box::new(CellsReport::new(reader, several))),
    }))
}

/// The results of one phase of a selector's trial.
///
/// # Errors
/// It does not select one trial, this can't be read, or has no such phase.
pub fn show_phase(
    reader: &StoreReader,
    what: &Selector,
    default: &RunSelection,
    phase: &str,
) -> Result<Shown, PhaseError> {
    let trials = what.trials(reader, default)?;
    let [one] = trials.as_slice() else { return Err(PhaseError::SeveralTrials(trials.len())) };
    let record = reader.load(&one.id).ok_or_else(|| SelectError::from(reader.error(&one.id)))?;
    Ok(Shown(What::Trial(Box::new(TrialReport::new(&phase_of(&record, phase)?)))))
}

impl Shown {
    /// The results as text: with charts on a terminal, as figures only in a file. `Csv` and `Markdown` are one table;
    /// JSON is [`Shown::document`].
    pub fn text(&self, format: Format, terminal: Option<Terminal>) -> String {
        match (&self.0, format) {
            (What::Trial(trial), Format::Table | Format::Json) => trial_text::page(trial, terminal),
            (What::Trial(trial), format) => trial_text::long(trial).render(format),
            (What::Cells(cells), Format::Table | Format::Json) => cells_text::page(cells, terminal),
            (What::Cells(cells), format) => cells_text::long(cells).render(format),
        }
    }

    /// The results as JSON.
    pub fn document(&self) -> Document<'_> {
        let (trial, cells) = match &self.0 {
            What::Trial(trial) => (Some(trial.as_ref()), None),
            What::Cells(cells) => (None, Some(cells)),
        };
        Document {
            schema: 1,
            trial,
            answers: cells.map(|cells| cells.view.answers.as_slice()),
            cells: cells.map(|cells| cells.lines.as_slice()),
        }
    }
}

/// `show --format json`, schema 1. A missing value is null, never zero.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    schema: u32,
    /// The trial, if one is selected.
    trial: Option<&'a TrialReport>,
    /// The answers, if several trials are selected.
    answers: Option<&'a [Answer]>,
    /// The cells, if several trials are selected.
    cells: Option<&'a [CellLine]>,
}
