//! What else differs between two sides, beside the factors by which they are compared.

use std::collections::{BTreeMap, HashMap};

use diagnose::{Facts, Undeclared, undeclared};
use model::cell::Cell;
use model::factor::Factor;
use model::record::{Environment, Trial};
use store::{Store, StoreError};

use super::matching::Shared;
use crate::analyse::{Surroundings, facts_of};

/// Facts of one trial for each server, settings, kernel and host of each run: they are the same in the others.
#[derive(Default)]
pub(super) struct Known(HashMap<Place, Facts>);

/// What a trial's surroundings hang on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    run: String,
    server: String,
    settings: Vec<(String, String)>,
    kernel: Option<String>,
    host: Option<String>,
}

impl Place {
    fn of(trial: &Trial) -> Self {
        let Cell { server, settings, kernel, host, .. } = &trial.cell;
        Self {
            run: trial.run.id.clone(),
            server: server.clone(),
            settings: settings.values.clone().into_iter().collect(),
            kernel: kernel.clone(),
            host: host.clone(),
        }
    }
}

impl Known {
    /// What differs in the shared cells, each difference once.
    pub(super) fn differences(
        &mut self,
        store: &Store,
        shared: &[Shared<'_>],
    ) -> Result<Vec<Undeclared>, StoreError> {
        let mut found: Vec<Undeclared> = Vec::new();
        for Shared { a, b, .. } in shared {
            let (Some(a), Some(b)) = (a.first(), b.first()) else { continue };
            let (of_a, of_b) = (self.facts(store, a)?.clone(), self.facts(store, b)?.clone());
            for difference in undeclared((&a.cell, &of_a), (&b.cell, &of_b)) {
                let asked_for = is_asked_for(&difference.what, &Factor::varied([&a.cell, &b.cell]));
                if !asked_for && !found.contains(&difference) {
                    found.push(difference);
                }
            }
        }
        Ok(found)
    }

    fn facts(&mut self, store: &Store, trial: &Trial) -> Result<&Facts, StoreError> {
        let place = Place::of(trial);
        if !self.0.contains_key(&place) {
            let store::Surroundings { environment, settings, .. } = store.surroundings().of(&trial.id)?;
            let mut facts = of_machine(&environment);
            facts.extend(of_trial(trial));
            let surroundings = Surroundings { environment, settings, ..Surroundings::default() };
            facts.extend(facts_of(trial, &surroundings));
            self.0.insert(place.clone(), facts);
        }
        Ok(&self.0[&place])
    }
}

/// The machine's facts. What a server says of itself is told by its settings and builds.
fn of_machine(environment: &Environment) -> Facts {
    let machine = Environment { server: Default::default(), ..environment.clone() };
    let mut facts: Facts =
        machine.flatten().into_iter().map(|(name, value)| (format!("machine {name}"), value)).collect();
    if let Some(host) = &environment.hostname {
        facts.insert("machine hostname".to_owned(), host.clone());
    }
    facts
}

fn of_trial(trial: &Trial) -> BTreeMap<String, String> {
    let engine = trial.summary.as_ref().and_then(|summary| summary.driver_engine.clone());
    let all = [
        ("pgdyno", Some(trial.run.pgdyno_version.clone())),
        ("driver's event loop", engine),
        ("server's programs", trial.server_build.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Whether a difference is what another level of these factors is about. The guard itself knows of settings.
fn is_asked_for(what: &str, factors: &[Factor]) -> bool {
    match what {
        "server's programs" => factors.contains(&Factor::Server),
        "machine kernel" | "machine kernel_version" => {
            factors.contains(&Factor::Kernel) || factors.contains(&Factor::Host)
        }
        "machine hostname" => factors.contains(&Factor::Host),
        _ => false,
    }
}
