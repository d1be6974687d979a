//! The overview of a stored run.

use model::record::Trial;
use store::{Store, StoreError};

use super::overview;
use super::view::View;
use crate::context::{contexts, read_kernel_options};
use crate::select::{ReadError, RunSelection, select_run};

/// Overview of the selected run, read from the store.
///
/// # Errors
/// The store or one of the run's bundles can't be read, or no run matches the selection.
pub fn read(store: &Store, selection: &RunSelection) -> Result<View, ReadError> {
    let trials = store.trials()?;
    let id = select_run(trials.iter().map(|trial| &trial.run), selection)?;
    Ok(view(store, trials, &id)?)
}

/// Overview of the run with this id, read from the store; `None` if it has no trial.
///
/// # Errors
/// The store or one of the run's bundles can't be read.
pub fn read_run(store: &Store, id: &str) -> Result<Option<View>, StoreError> {
    let trials = store.trials()?;
    if !trials.iter().any(|trial| trial.run.id == id) {
        return Ok(None);
    }
    view(store, trials, id).map(Some)
}

fn view(store: &Store, trials: Vec<Trial>, run: &str) -> Result<View, StoreError> {
    let trials: Vec<Trial> = trials.into_iter().filter(|trial| trial.run.id == run).collect();
    let mut contexts = contexts(store, &trials.iter().collect::<Vec<_>>())?;
    read_kernel_options(store, &mut contexts)?;
    Ok(overview(&trials, &contexts))
}
