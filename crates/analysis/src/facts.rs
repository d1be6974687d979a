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

/// Facts of the machine. The server's own facts are covered by settings and build; of the mounted filesystems only the
/// one of the data matters, which has facts of its own.
pub(crate) fn facts_of_machine(environment: &Environment) -> Facts {
    let machine = Environment { server: Default::default(), mounts: Vec::new(), ..environment.clone() };
    let mut facts: Facts =
        machine.flatten().into_iter().map(|(name, value)| (format!("machine {name}"), value)).collect();
    if let Some(host) = &environment.hostname {
        facts.insert("machine hostname".to_owned(), host.clone());
    }
    facts
}

#[cfg(test)]
mod tests {
    use model::environment::Mount;

    use super::*;

    #[test]
    fn only_the_mount_of_the_data_is_a_fact() {
        let facts = |options: &str, elsewhere: Option<&str>| {
            facts_of_machine(&Environment {
                data_filesystem: Some("ext4".to_owned()),
                data_mount_options: Some(options.to_owned()),
                mounts: elsewhere
                    .iter()
                    .map(|point| Mount { point: (*point).to_owned(), ..mount() })
                    .collect(),
                ..Environment::default()
            })
        };
        assert_eq!(facts("rw", None), facts("rw", Some("/run/user/1000")));
        assert_ne!(facts("rw", None), facts("rw,noatime", None));
    }

    fn mount() -> Mount {
        Mount {
            point: "/".to_owned(),
            source: "tmpfs".to_owned(),
            filesystem: "tmpfs".to_owned(),
            options: "rw".to_owned(),
        }
    }
}
