//! Trials of a single cell, for explanations and profiles.

use model::record::Status;
use store::StoreReader;

use super::{RunSelection, SelectError, Selector, varied};

/// Error of selecting the trials of one cell.
#[derive(Debug, thiserror::Error)]
pub enum OneCellError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// All trials of the cell are invalid.
    #[error(
        "all trials of {selector} are invalid (`pgdyno store show {id}` shows why); select one by its id to explain it"
    )]
    Unusable {
        /// The selector.
        selector: String,
        /// Id of the last trial.
        id: String,
    },
    /// Several cells are selected.
    #[error("{selector} selects {count} cells: specify a level of{known}")]
    SeveralCells {
        /// Number of cells.
        count: usize,
        /// The selector.
        selector: String,
        /// Factors in which the cells differ, one per line.
        known: String,
    },
}

/// The ids of the trials of one cell to explain together: the named ones; else the usable ones with the named levels;
/// for a selector without levels, the latest usable one.
///
/// # Errors
/// There are none, they are invalid, or they belong to several cells.
pub fn trials_of_one_cell(
    reader: &StoreReader,
    default: &RunSelection,
    what: &Selector,
) -> Result<Vec<String>, OneCellError> {
    let mut trials = what.trials(reader, default)?;
    let last = trials.last().copied();
    if !what.is_by_id() {
        trials.retain(|trial| trial.validity.status != Status::Invalid);
        if what.levels().is_empty() {
            return Ok(trials.last().copied().or(last).map(|trial| trial.id.clone()).into_iter().collect());
        }
    }
    let mut cells: Vec<_> = trials.iter().map(|trial| &trial.cell).collect();
    cells.sort();
    cells.dedup();
    match (cells.len(), last) {
        (0, Some(last)) => Err(OneCellError::Unusable { selector: what.to_string(), id: last.id.clone() }),
        (0 | 1, _) => Ok(trials.iter().map(|trial| trial.id.clone()).collect()),
        (count, _) => {
            Err(OneCellError::SeveralCells { count, selector: what.to_string(), known: varied(&trials) })
        }
    }
}
