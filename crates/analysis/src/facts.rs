//! Facts of a trial: what its server and its machine say of themselves.

use diagnose::Facts;
use model::record::{Environment, Trial};

use crate::context::TrialContext;

/// What a trial says of its server: the settings in force, and how it was built.
pub(crate) fn facts_of(trial: &Trial, known: &TrialContext) -> Facts {
    let mut facts = diagnose::facts_of_settings(&known.settings);
    let config = known.environment.server.pg_config.as_ref();
    for (name, key) in [("build CFLAGS", "CFLAGS"), ("build configure", "CONFIGURE")] {
        if let Some(value) = config.and_then(|config| config.get(key)) {
            facts.insert(name.to_owned(), value.clone());
        }
    }
    // `version()` ends in "…, compiled by gcc (GCC) 7.5.0, 64-bit".
    let compiler = trial.server_banner.as_ref().and_then(|banner| banner.split_once("compiled by "));
    if let Some((compiler, _)) = compiler.and_then(|(_, rest)| rest.rsplit_once(',')) {
        facts.insert("build CC".to_owned(), compiler.to_owned());
    }
    facts
}

/// The machine's facts. What a server says of itself is told by its settings and builds.
pub(crate) fn facts_of_machine(environment: &Environment) -> Facts {
    let machine = Environment { server: Default::default(), ..environment.clone() };
    let mut facts: Facts =
        machine.flatten().into_iter().map(|(name, value)| (format!("machine {name}"), value)).collect();
    if let Some(host) = &environment.hostname {
        facts.insert("machine hostname".to_owned(), host.clone());
    }
    facts
}
