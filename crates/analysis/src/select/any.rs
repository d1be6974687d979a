//! Trials selected by any of several selectors.

use std::collections::BTreeSet;

use model::record::Trial;
use store::Store;

use super::{SelectError, Selector};

/// The trials that any of the selectors selects, oldest first; without selectors, all trials of the store. A campaign
/// selects all its runs.
///
/// # Errors
/// A selector selects nothing.
pub fn trials_of_any<'a>(
    store: &Store,
    all: &'a [Trial],
    selectors: &[Selector],
) -> Result<Vec<&'a Trial>, SelectError> {
    let everything = [Selector::default()];
    let selectors = if selectors.is_empty() { &everything } else { selectors };
    let mut ids = BTreeSet::new();
    for selector in selectors {
        let trials = selector.trials_of_all_runs(store, all)?;
        ids.extend(trials.iter().map(|trial| trial.id.as_str()));
    }
    Ok(all.iter().filter(|trial| ids.contains(trial.id.as_str())).collect())
}
