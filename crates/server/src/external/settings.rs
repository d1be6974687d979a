//! Settings of a running server: `ALTER SYSTEM`, a reload, and a check that they are in force.
//!
//! Source: PostgreSQL manual, "ALTER SYSTEM", "pg_settings", "pg_file_settings".

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use model::secret::{mask_known, mask_setting};
use wire::blocking::{Session, SessionError};
use wire::{quote_identifier, quote_literal};

use super::journal::Change;
use crate::control::Control;
use crate::error::Error;
use host::process::wait_until;

/// Time limit of a server to reload its files.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings that are lists of names. `ALTER SYSTEM` quotes the names one by one, so that a value can't be restored as
/// it was written.
const LISTS: [&str; 4] =
    ["local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"];

/// Restored settings, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredSettings {
    /// Settings with their former values.
    pub settings: Vec<String>,
    /// Settings that others have changed meanwhile, which are left alone.
    pub left: Vec<String>,
}

impl fmt::Display for RestoredSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, left } = self;
        if settings.is_empty() {
            write!(f, "nothing to restore")?
        } else {
            write!(f, "restored {}", settings.join(", "))?
        }
        if left.is_empty() {
            Ok(())
        } else {
            write!(f, "; not restored, since others have changed them: {}", left.join(", "))
        }
    }
}

impl Control {
    /// Determines the changes, with former values. Nothing is changed yet.
    ///
    /// # Errors
    /// A setting that needs a restart, or can't be set; a role that may not.
    pub(super) fn changes(&self, requested: &BTreeMap<String, String>) -> Result<Vec<Change>, Error> {
        let mut session = self.session()?;
        self.check_privileges(&mut session)?;
        let file = self.auto_conf(&mut session)?;
        let mut changes = Vec::new();
        for (name, value) in requested {
            let refuse = |why: String| Err(Error::Setting { name: name.clone(), why });
            let known: Option<(String, String)> = session
                .query_opt(&format!(
                    "SELECT name, context FROM pg_settings WHERE lower(name) = lower({})",
                    quote_literal(name)
                ))
                .map_err(|error| self.error("query the settings", &error))?;
            let Some((name, context)) = known else {
                return refuse(format!("the server {} has no such setting", self.display_name));
            };
            match context.as_str() {
                "postmaster" => {
                    return refuse(format!(
                        "it needs a restart, and pgdyno does not restart the server {}, which it does not own; \
                         set it by hand before the campaign, or use a server of pgdyno's own",
                        self.display_name
                    ));
                }
                "internal" => {
                    return refuse("it is read-only".to_owned());
                }
                _ if LISTS.contains(&name.as_str()) => {
                    return refuse(
                        "it is a list of names, which pgdyno does not set on a server that it does not own"
                            .to_owned(),
                    );
                }
                _ => {}
            }
            changes.push(Change {
                before: file.get(&name.to_lowercase()).cloned(),
                name,
                set: value.clone(),
            });
        }
        Ok(changes)
    }

    /// Makes changes, and checks that they are in force for new sessions.
    pub(super) fn change(&self, changes: &[Change]) -> Result<(), Error> {
        let mut session = self.session()?;
        for Change { name, set, .. } in changes {
            self.alter_system(&mut session, name, Some(set))?;
        }
        self.reload(&mut session)?;
        // Some settings apply to sessions that begin after the reload.
        let mut session = self.session()?;
        for change in changes {
            self.check(&mut session, change)?;
        }
        Ok(())
    }

    /// Restores changed settings, unless others have changed them since.
    pub(super) fn restore_settings(&self, changes: &[Change]) -> Result<RestoredSettings, Error> {
        let mut session = self.session()?;
        let mut outcome = RestoredSettings::default();
        let file = self.auto_conf(&mut session)?;
        for Change { name, before, set } in changes {
            let current = file.get(&name.to_lowercase());
            if current != before.as_ref() && current != Some(set) {
                outcome.left.push(name.clone());
                continue;
            }
            if current != before.as_ref() {
                self.alter_system(&mut session, name, before.as_deref())?;
            }
            outcome.settings.push(name.clone());
        }
        // Even if the file is already restored: the process that did it may have died before the reload.
        self.reload(&mut session)?;
        let file = self.auto_conf(&mut session)?;
        for Change { name, before, .. } in changes {
            if !outcome.left.contains(name) && file.get(&name.to_lowercase()) != before.as_ref() {
                let why = "postgresql.auto.conf does not have its former value: someone else has changed it";
                return Err(self.failed(format!("restore the setting {name}"), why.to_owned()));
            }
        }
        Ok(outcome)
    }

    /// Sets a value in `postgresql.auto.conf`, or removes it. The error does not have the value, which may be a secret.
    fn alter_system(&self, session: &mut Session, name: &str, value: Option<&str>) -> Result<(), Error> {
        let failed = |error: SessionError| self.error(format!("change the setting {name}"), &error);
        session.execute(&alter_system(name, value)).map_err(failed)
    }

    fn check_privileges(&self, session: &mut Session) -> Result<(), Error> {
        let (is_allowed, role): (bool, String) = session
            .query_one(
                "SELECT has_function_privilege('pg_reload_conf()', 'execute') \
                 AND has_function_privilege('pg_show_all_file_settings()', 'execute') \
                 AND has_table_privilege('pg_file_settings', 'select'), current_user",
            )
            .map_err(|error| self.error("query the role's privileges", &error))?;
        if is_allowed {
            return Ok(());
        }
        Err(Error::External {
            server: self.display_name.clone(),
            why: format!(
                "the role {role} may not change and restore settings; connect as a superuser, or grant it \
                 EXECUTE on pg_reload_conf() and pg_show_all_file_settings(), SELECT on pg_file_settings, and (from \
                 PostgreSQL 15) ALTER SYSTEM on the parameters"
            ),
        })
    }

    /// Content of `postgresql.auto.conf`, by name in lower case. Of several lines for one setting, the last counts.
    fn auto_conf(&self, session: &mut Session) -> Result<BTreeMap<String, String>, Error> {
        let rows: Vec<(String, String)> = session
            .query(
                "SELECT lower(name), coalesce(setting, '') FROM pg_file_settings \
                 WHERE sourcefile ~ '[/\\\\]postgresql[.]auto[.]conf$' AND name IS NOT NULL ORDER BY seqno",
            )
            .map_err(|error| self.error("read pg_file_settings", &error))?;
        Ok(rows.into_iter().collect())
    }

    /// Makes the server reload its files, and waits until it has: the postmaster does so before it notifies the
    /// sessions.
    fn reload(&self, session: &mut Session) -> Result<(), Error> {
        let load_time = |session: &mut Session| -> Result<f64, Error> {
            session
                .query_one("SELECT extract(epoch FROM pg_conf_load_time())")
                .map_err(|error| self.error("query the load time of the settings", &error))
        };
        let before = load_time(session)?;
        let signalled: bool = session
            .query_one("SELECT pg_reload_conf()")
            .map_err(|error| self.error("reload the settings", &error))?;
        let mut failure = None;
        let reloaded = wait_until(RELOAD_TIMEOUT, || match load_time(session) {
            Ok(now) => now > before,
            Err(error) => {
                failure = Some(error);
                true
            }
        });
        match failure {
            Some(error) => Err(error),
            None if signalled && reloaded => Ok(()),
            None => {
                let why = "the configuration files were not read again";
                Err(self.failed("reload the settings", why.to_owned()))
            }
        }
    }

    fn check(&self, session: &mut Session, change: &Change) -> Result<(), Error> {
        let Change { name, set, .. } = change;
        let shown = mask_setting(name, set);
        let secret = if shown == *set { Vec::new() } else { vec![set.clone()] };
        let refuse = |why: String| Err(Error::Setting { name: name.clone(), why });
        let row: Option<(String, bool, Option<String>)> = session
            .query_opt(&format!(
                "SELECT source, coalesce(sourcefile ~ '[/\\\\]postgresql[.]auto[.]conf$', true), \
                 (SELECT string_agg(error, '; ') FROM pg_file_settings f WHERE lower(f.name) = lower(s.name)) \
                 FROM pg_settings s WHERE name = {}",
                quote_literal(name)
            ))
            .map_err(|error| self.error("query the settings", &error))?;
        let Some((source, from_own_file, error)) = row else {
            return refuse("the server no longer has it".to_owned());
        };
        if let Some(error) = error {
            return refuse(format!(
                "the server {} rejects \"{shown}\": {}",
                self.display_name,
                mask_known(&error, &secret)
            ));
        }
        let file = self.auto_conf(session)?;
        if file.get(&name.to_lowercase()) != Some(set) {
            return refuse(format!(
                "\"{shown}\" is not in postgresql.auto.conf: someone else has changed it"
            ));
        }
        if source != "configuration file" || !from_own_file {
            return refuse(format!(
                "\"{shown}\" is not in force on the server {}: its value comes from \"{source}\", which overrides \
                 ALTER SYSTEM (command line: how the server is started; user, database: ALTER ROLE and ALTER \
                 DATABASE; client: options of the connection string)",
                self.display_name
            ));
        }
        Ok(())
    }
}

/// Statement that sets a value in `postgresql.auto.conf`, or removes it.
pub(super) fn alter_system(name: &str, value: Option<&str>) -> String {
    let parts: Vec<String> = name.split('.').map(quote_identifier).collect();
    let name = parts.join(".");
    match value {
        Some(value) => format!("ALTER SYSTEM SET {name} TO {}", quote_literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_quoted() {
        assert_eq!(
            alter_system("auto_explain.log_level", Some(r"it's \ here")),
            r#"ALTER SYSTEM SET "auto_explain"."log_level" TO E'it''s \\ here'"#
        );
        assert_eq!(alter_system("work_mem", None), r#"ALTER SYSTEM RESET "work_mem""#);
    }
}
