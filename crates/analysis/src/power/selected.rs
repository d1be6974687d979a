//! Noise of the cells selected by a command line.

use store::StoreReader;

use super::{CellNoise, noise_of, noise_on};
use crate::select::{RunSelection, SelectError, Selector};

/// Noise of selected cells; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedNoise {
    /// The selection as text.
    pub source: String,
    /// The cells.
    pub cells: Vec<CellNoise>,
}

/// Error of selecting cells with a known noise.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// Nothing is selected.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// No selected cell has enough trials.
    #[error(
        "the noise is unknown: none of {from} has a run with 3 usable trials; run a campaign with `repeats = 3` or more, or \
         use --noise 2% (`pgdyno doctor --noise` measures it)"
    )]
    Unknown {
        /// The selection as text.
        from: String,
    },
}

impl SelectedNoise {
    /// The noise of the selected cells; without a selector and a run, of all cells measured on the host.
    ///
    /// # Errors
    /// Nothing is selected, or no cell has three usable trials.
    pub fn read(
        reader: &StoreReader,
        selector: Option<&Selector>,
        run: Option<RunSelection>,
        host: &str,
    ) -> Result<Self, NoiseError> {
        let (source, cells) = if selector.is_none() && run.is_none() {
            (format!("the cells measured on {host}"), noise_on(reader, host))
        } else {
            let everything = Selector::default();
            let trials = selector.unwrap_or(&everything).trials(reader, &run.unwrap_or_default())?;
            let of_run = trials.first().map(|trial| format!("run {}", trial.run.id));
            let selection = selector.map(ToString::to_string).or(of_run).unwrap_or_default();
            (format!("the cells of {selection}"), noise_of(&trials))
        };
        if cells.is_empty() {
            return Err(NoiseError::Unknown { from: source });
        }
        Ok(Self { source, cells })
    }
}
