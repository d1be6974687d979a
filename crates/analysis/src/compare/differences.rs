//! Differences between two sides other than the compared factors.

use std::collections::{BTreeMap, HashMap};

use diagnose::{Facts, KernelOptions, Undeclared, kernel_differences, undeclared};
use model::factor::Factor;
use model::factor::settings::SettingsVariant;
use model::record::Trial;
use store::StoreReader;

use super::matching::Shared;
use crate::context::{TrialContext, kernel_options};
use crate::facts::{facts_of, facts_of_machine};
use crate::layout::column_levels;

/// Facts of one trial per place: the other trials there have the same. Kernel options by configuration hash.
#[derive(Default)]
pub(super) struct FactsCache {
    facts: HashMap<ContextKey, Facts>,
    options: HashMap<String, Option<KernelOptions>>,
}

/// The key of a trial's context: its run, its machine, and its levels of the factors that determine server and machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ContextKey {
    run: String,
    agent: Option<String>,
    levels: Vec<String>,
    settings: Option<SettingsVariant>,
}

impl ContextKey {
    fn from_trial(trial: &Trial) -> Self {
        Self {
            run: trial.run.id.clone(),
            agent: trial.agent.clone(),
            levels: column_levels(&trial.cell),
            settings: trial.cell.settings.known().cloned(),
        }
    }
}

/// Differences between two sides other than the compared factors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// Differences that no factor explains.
    pub undeclared: Vec<Undeclared>,
    /// Differences due to the kernel, if the sides differ in kernel or host.
    pub of_kernel: Vec<Undeclared>,
    /// Options in which the kernels' configurations differ: first those that matter to a server.
    pub kernel_options: Vec<Undeclared>,
}

/// The fact with the hash of the kernel's configuration.
const CONFIG: &str = "machine kernel.config";

impl FactsCache {
    /// Differences in the shared cells, each once. Trials whose context can't be read are left out of the reader, and
    /// others of their cell take their place.
    pub(super) fn differences(&mut self, reader: &StoreReader, shared: &[Shared<'_>]) -> Differences {
        let mut found = Differences::default();
        for Shared { a, b, .. } in shared {
            let (Some((a, of_a)), Some((b, of_b))) = (self.any_facts(reader, a), self.any_facts(reader, b))
            else {
                continue;
            };
            let factors = Factor::varied([&a.cell, &b.cell]);
            let (of_a, of_b) = ((&a.cell, &of_a), (&b.cell, &of_b));
            let mut others = undeclared(of_a, of_b);
            others.retain(|difference| !is_explained_by(&difference.what, &factors));
            add(&mut found.undeclared, others);
            add(&mut found.of_kernel, kernel_differences(of_a, of_b));
            if let (Some(old), Some(new)) = (of_a.1.get(CONFIG), of_b.1.get(CONFIG))
                && old != new
            {
                let (old, new) = (self.options(reader, old, a), self.options(reader, new, b));
                if let (Some(old), Some(new)) = (old, new) {
                    add(&mut found.kernel_options, changed(&old, &new));
                }
            }
        }
        found
    }

    /// Facts of the first trial that can be read.
    fn any_facts<'t>(&mut self, reader: &StoreReader, trials: &[&'t Trial]) -> Option<(&'t Trial, Facts)> {
        trials.iter().find_map(|trial| Some((*trial, self.facts(reader, trial)?.clone())))
    }

    fn facts(&mut self, reader: &StoreReader, trial: &Trial) -> Option<&Facts> {
        let key = ContextKey::from_trial(trial);
        if !self.facts.contains_key(&key) {
            let store::StoredContext { environment, settings, .. } = reader.context(&trial.id)?;
            let mut facts = facts_of_machine(&environment);
            facts.extend(trial_facts(trial));
            let contexts = TrialContext { environment, settings, ..TrialContext::default() };
            facts.extend(facts_of(trial, &contexts));
            self.facts.insert(key.clone(), facts);
        }
        self.facts.get(&key)
    }

    /// The configuration with this hash, which is that of this trial's kernel.
    fn options(&mut self, reader: &StoreReader, hash: &str, trial: &Trial) -> Option<KernelOptions> {
        if !self.options.contains_key(hash) {
            self.options.insert(hash.to_owned(), kernel_options(reader, &trial.id)?);
        }
        self.options.get(hash)?.clone()
    }
}

fn add(found: &mut Vec<Undeclared>, others: Vec<Undeclared>) {
    for other in others {
        if !found.contains(&other) {
            found.push(other);
        }
    }
}

fn changed(old: &KernelOptions, new: &KernelOptions) -> Vec<Undeclared> {
    let change = |option: String| Undeclared {
        before: old.value(&option).to_owned(),
        after: new.value(&option).to_owned(),
        what: option,
    };
    KernelOptions::differing(&[old, new]).into_iter().map(change).collect()
}

fn trial_facts(trial: &Trial) -> BTreeMap<String, String> {
    let engine = trial.summary.as_ref().and_then(|summary| summary.driver_engine.clone());
    let all = [
        ("pgdyno", Some(trial.run.pgdyno_version.clone())),
        ("driver's event loop", engine),
        ("server's programs", trial.server_build.clone()),
        ("machine agent", trial.agent.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Whether these factors explain a difference. The guard itself covers settings and kernels.
fn is_explained_by(what: &str, factors: &[Factor]) -> bool {
    match what {
        "server's programs" => factors.contains(&Factor::Server),
        "machine hostname" | "machine agent" => factors.contains(&Factor::Host),
        _ => false,
    }
}
