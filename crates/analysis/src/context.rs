//! The context of a trial: its machine, settings, kernel configuration, profiles and spans, read from the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnose::KernelOptions;
use model::record::{Environment, Setting, Trial};
use store::{Part, Store, StoreError};

use crate::profile::{Kind, TrialProfile};
use crate::spans::{Spans, spans};

/// Context of a trial: what its bundle has in addition to its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialContext {
    /// The machine.
    pub environment: Environment,
    /// The server's settings, usually shared with other trials.
    pub settings: Arc<Vec<Setting>>,
    /// Options of its kernel; `None` if unknown, or if all trials have the same.
    pub kernel_options: Option<Arc<KernelOptions>>,
    /// Its profiles.
    pub profiles: Vec<TrialProfile>,
    /// Its transactions, if the workload stores them.
    pub spans: Option<Spans>,
}

/// Reads the contexts of these trials, by id.
///
/// # Errors
/// The store can't be read.
pub fn contexts(store: &Store, trials: &[&Trial]) -> Result<BTreeMap<String, TrialContext>, StoreError> {
    let mut contexts = BTreeMap::new();
    let mut reader = store.contexts();
    // Imported trials have no context.
    for trial in trials.iter().filter(|trial| trial.imported.is_none()) {
        let store::StoredContext { environment, settings, has_spans } = reader.read(&trial.id)?;
        let mut of_trial = TrialContext { environment, settings, ..TrialContext::default() };
        // Loading parts of bundles is slow, and most trials have neither.
        if has_spans {
            of_trial.spans = spans(&store.load_parts(&trial.id, &[Part::Spans, Part::Metrics])?);
        }
        if trial.profile.is_some() {
            let record = store.load_parts(&trial.id, &[Part::Stacks, Part::Series])?;
            of_trial.profiles =
                Kind::ALL.iter().filter_map(|kind| TrialProfile::from_record(&record, *kind)).collect();
        }
        contexts.insert(trial.id.clone(), of_trial);
    }
    Ok(contexts)
}

/// Adds the kernel options to each context, unless all are the same: each configuration is read once, from the first
/// bundle that has it.
///
/// # Errors
/// The store can't be read.
pub fn read_kernel_options(
    store: &Store,
    contexts: &mut BTreeMap<String, TrialContext>,
) -> Result<(), StoreError> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for (id, known) in &*contexts {
        if let Some(config) = &known.environment.kernel_facts.config {
            first.entry(config.sha256.clone()).or_insert_with(|| id.clone());
        }
    }
    if first.len() < 2 {
        return Ok(());
    }
    let mut options: BTreeMap<String, Arc<KernelOptions>> = BTreeMap::new();
    for (hash, id) in first {
        if let Some(read) = kernel_options(store, &id)? {
            options.insert(hash, Arc::new(read));
        }
    }
    for known in contexts.values_mut() {
        let config = known.environment.kernel_facts.config.as_ref();
        known.kernel_options = config.and_then(|config| options.get(&config.sha256)).cloned();
    }
    Ok(())
}

/// Kernel options of a trial; `None` if its bundle does not have them.
pub(crate) fn kernel_options(store: &Store, id: &str) -> Result<Option<KernelOptions>, StoreError> {
    Ok(store.log(id, "kernel-config")?.map(|text| KernelOptions::parse(&text)))
}
