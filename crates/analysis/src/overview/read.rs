//! The overview of a stored run.

use std::collections::BTreeMap;

use model::record::Trial;
use store::{StoreError, StoreReader};

use super::view::View;
use super::{explain_answers, overview};
use crate::context::{TrialContext, contexts, read_kernel_options};
use crate::left_out::left_out;
use crate::select::{ReadError, RunSelection, select_run};

/// Overview of the selected run, without the trials that can't be read.
///
/// # Errors
/// No run matches the selection, or none of its trials can be read.
pub fn read(reader: &StoreReader, selection: &RunSelection) -> Result<View, ReadError> {
    let id = select_run(reader.trials().iter().map(|trial| &trial.run), selection)?;
    read_run(reader, &id)?.ok_or(ReadError::Empty)
}

/// Overview of the run with this id; `None` if it has no trial.
///
/// # Errors
/// None of its trials can be read.
pub fn read_run(reader: &StoreReader, id: &str) -> Result<Option<View>, ReadError> {
    let of_run: Vec<&Trial> = reader.trials().iter().filter(|trial| trial.run.id == id).collect();
    match of_run.is_empty() {
        true => Ok(None),
        false => Ok(Some(read_trials(reader, &of_run, &mut BTreeMap::new())?)),
    }
}

/// Overview of these trials. `known` has the contexts that are known already, and gets the others.
///
/// # Errors
/// None of the trials can be read.
pub fn read_trials(
    reader: &StoreReader,
    of_run: &[&Trial],
    known: &mut BTreeMap<String, TrialContext>,
) -> Result<View, StoreError> {
    let unknown: Vec<&Trial> =
        of_run.iter().copied().filter(|trial| !known.contains_key(&trial.id)).collect();
    known.extend(contexts(reader, &unknown));
    read_kernel_options(reader, known);
    let readable = of_run.iter().filter(|trial| !reader.is_left_out(&trial.id));
    let trials: Vec<Trial> = readable.copied().cloned().collect();
    if let Some(first) = of_run.first().filter(|_| trials.is_empty()) {
        return Err(reader.error(&first.id));
    }
    let mut view = overview(&trials, known);
    explain_answers(&mut view, reader);
    Ok(View { left_out: left_out(reader.left_out()), ..view })
}
