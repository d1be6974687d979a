//! Facts of a trial about its server and its machine.

use diagnose::Facts;
use model::record::{Environment, Trial};

use crate::context::TrialContext;

/// Facts of a trial's server: the settings in force, and its build.
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

/// Facts of the machine. The server's own facts are covered by settings and build.
pub(crate) fn facts_of_machine(environment: &Environment) -> Facts {
    let machine = Environment { server: Default::default(), ..environment.clone() };
    let mut facts: Facts =
        machine.flatten().into_iter().map(|(name, value)| (format!("machine {name}"), value)).collect();
    if let Some(host) = &environment.hostname {
        facts.insert("machine hostname".to_owned(), host.clone());
    }
    facts
}
