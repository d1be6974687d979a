//! The overview of a stored run.

use model::record::Trial;
use store::StoreReader;

use super::overview;
use super::view::View;
use crate::context::{contexts, read_kernel_options};
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
    let mut contexts = contexts(reader, &of_run);
    read_kernel_options(reader, &mut contexts);
    let readable = of_run.iter().filter(|trial| !reader.is_left_out(&trial.id));
    let trials: Vec<Trial> = readable.copied().cloned().collect();
    match of_run.first() {
        None => Ok(None),
        Some(first) if trials.is_empty() => Err(reader.error(&first.id).into()),
        Some(_) => Ok(Some(View { left_out: left_out(reader.left_out()), ..overview(&trials, &contexts) })),
    }
}
