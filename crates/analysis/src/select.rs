//! Selections: the run and the trials that a command line names.

mod any;
mod one_cell;
mod runs;
mod selector;

pub use any::trials_of_any;
pub use one_cell::{OneCellError, trials_of_one_cell};
pub use runs::{ReadError, RunSelection, select_run};
pub(crate) use selector::varied;
pub use selector::{SelectError, Selector, SelectorError};
