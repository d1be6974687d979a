//! Noise of the cells measured on a machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::cell::{Level, RecordedCell};
use model::merit::Merit;
use model::record::Trial;
use stats::{Class, Sample};
use store::StoreReader;

use crate::judgement::is_usable;
use crate::metric::Metric;

/// The noise of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellNoise {
    /// The cell.
    pub cell: RecordedCell,
    /// The run of its trials: the latest with three usable trials of the cell.
    pub run: String,
    /// Figures of its trials.
    pub figures: stats::Cell,
    /// The figure that the cell is judged by.
    pub merit: Merit,
    /// The standard deviation of the logarithms of that figure: 0.02 is 2%.
    pub log_sd: f64,
}

impl CellNoise {
    /// Why no number of runs helps: their spread, or their modes. `None` if the cell is not unstable.
    pub fn unstable(&self) -> Option<String> {
        match self.figures.class()? {
            Class::Modes => {
                let apart = self.figures.mode_ratio().unwrap_or(1.0) - 1.0;
                Some(format!("two modes, {:.1}% apart", apart * 100.0))
            }
            Class::Wide => Some(format!("a spread of {:.1}%", self.log_sd * 100.0)),
            Class::Stable | Class::Noisy => None,
        }
    }
}

/// The noise of cells, each from its latest run with at least three usable trials, including suspect ones. Cells
/// without such a run are omitted, and so are paired trials, whose short loads are noisier than those that are compared one by one.
pub fn noise_of(trials: &[&Trial]) -> Vec<CellNoise> {
    let mut by_cell: BTreeMap<&RecordedCell, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| is_usable(trial) && trial.paired.is_none()) {
        let figure = trial.summary.as_ref().and_then(|summary| Merit::of(&trial.cell).value(summary));
        if let Some(figure) = figure {
            by_cell.entry(&trial.cell).or_default().entry(&trial.run.id).or_default().push(figure);
        }
    }
    let noise = |(cell, runs): (&RecordedCell, BTreeMap<&str, Vec<f64>>)| {
        // Ids sort by time.
        let (run, figures) = runs.into_iter().rfind(|(_, figures)| figures.len() >= stats::MIN_RUNS)?;
        let merit = Merit::of(cell);
        let figures = stats::Cell::new(&figures)?.with_spread(Metric::of(merit).spread());
        Some(CellNoise { cell: cell.clone(), run: run.to_owned(), merit, log_sd: figures.log_sd?, figures })
    };
    by_cell.into_iter().filter_map(noise).collect()
}

/// The noise of all cells of a store that were measured on the host of this name.
pub fn noise_on(reader: &StoreReader, host: &str) -> Vec<CellNoise> {
    noise_of(&trials_on(reader, host))
}

/// The trials of a store that were measured on the host of this name.
pub fn trials_on<'r>(reader: &'r StoreReader, host: &str) -> Vec<&'r Trial> {
    // A run has one host, unless the factor `host` says otherwise.
    let mut hosts: BTreeMap<(&str, &Level<Option<String>>), bool> = BTreeMap::new();
    for trial in reader.trials() {
        if let Entry::Vacant(vacant) = hosts.entry((trial.run.id.as_str(), &trial.cell.host))
            && let Some(environment) = reader.environment(&trial.id)
        {
            vacant.insert(environment.hostname.as_deref() == Some(host));
        }
    }
    let is_here = |trial: &&Trial| {
        !reader.is_left_out(&trial.id) && hosts.get(&(trial.run.id.as_str(), &trial.cell.host)) == Some(&true)
    };
    reader.trials().iter().filter(is_here).collect()
}

/// The median noise of the cells that are not unstable; `None` if there are none.
pub fn median_noise<'a>(cells: impl IntoIterator<Item = &'a CellNoise>) -> Option<f64> {
    let stable = cells.into_iter().filter(|cell| cell.unstable().is_none());
    Sample::new(stable.map(|cell| cell.log_sd)).map(|sample| sample.median())
}
