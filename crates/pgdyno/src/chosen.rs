//! Trials for other programs: which of the store's are meant, and Ctrl-C while they are gone through.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use analysis::select::Selector;
use anyhow::Context;
use model::record::Trial;
use signal_hook::consts::{SIGINT, SIGTERM};
use store::Store;

/// The trials that any of these selects, oldest first; all of the store where there is none.
///
/// # Errors
/// One of them selects nothing.
pub(crate) fn chosen<'a>(
    store: &Store,
    all: &'a [Trial],
    selectors: &[Selector],
) -> anyhow::Result<Vec<&'a Trial>> {
    let of_all = [Selector::default()];
    let selectors = if selectors.is_empty() { of_all.as_slice() } else { selectors };
    let mut ids = BTreeSet::new();
    for selector in selectors {
        let trials = selector.trials_of_all_runs(store, all)?;
        ids.extend(trials.iter().map(|trial| trial.id.as_str()));
    }
    Ok(all.iter().filter(|trial| ids.contains(trial.id.as_str())).collect())
}

/// Whether the user has had enough.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for signals. The second one ends the process.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&asked)))
                .context("could not watch for Ctrl-C")?;
        }
        Ok(Self(asked))
    }

    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
