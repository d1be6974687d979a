//! Trials selected by any of several selectors.

use std::collections::BTreeSet;

use model::record::Trial;
use store::StoreReader;

use super::{SelectError, Selector};

/// The trials that any of the selectors selects, oldest first; without selectors, all trials of the store. A campaign
/// selects all its runs.
///
/// # Errors
/// A selector selects nothing.
pub fn trials_of_any<'a>(
    reader: &'a StoreReader,
    selectors: &[Selector],
) -> Result<Vec<&'a Trial>, SelectError> {
    let everything = [Selector::default()];
    let selectors = if selectors.is_empty() { &everything } else { selectors };
    let mut ids = BTreeSet::new();
    for selector in selectors {
        let trials = selector.trials_of_all_runs(reader)?;
        ids.extend(trials.iter().map(|trial| trial.id.as_str()));
    }
    Ok(reader.trials().iter().filter(|trial| ids.contains(trial.id.as_str())).collect())
}
