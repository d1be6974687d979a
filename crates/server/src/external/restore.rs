//! Abandoned journals: settings that a killed pgdyno has not restored.

use model::server::Dsn;

use super::ExternalServer;
use super::journal::{Change, Journal, JournalFile};
use super::settings::{RestoredSettings, alter_system};
use crate::error::Error;
use host::Cache;
use host::Progress;

/// Settings of one server that a pgdyno has changed, with the outcome of restoring them.
#[derive(Debug)]
pub struct Restoration {
    /// Name of the server in its campaign.
    pub server: String,
    /// Connection string, without secrets.
    pub conninfo: String,
    /// Statements that restore the settings.
    pub statements: Vec<String>,
    /// Restored settings, or the cause of the failure.
    pub outcome: Result<RestoredSettings, Error>,
}

impl Restoration {
    /// Message for the user.
    pub fn notice(&self) -> String {
        let Self { server, conninfo, statements, outcome } = self;
        let what = format!("settings that a killed pgdyno had changed on the server {server} ({conninfo})");
        match outcome {
            Ok(restored) => format!("{what}: {restored}"),
            Err(error) => format!(
                "{what} could not be restored: {error}. To try again, run `pgdyno server restore`; if the server \
                 requires a password, set PGPASSWORD or use the password file. To restore them yourself: {}; SELECT \
                 pg_reload_conf();",
                statements.join("; ")
            ),
        }
    }
}

/// Restores the settings that killed pgdyno processes have changed on servers that they did not own. A server that
/// can't be reached keeps its journal. Call this before a run, after [`sweep`](crate::sweep).
///
/// # Errors
/// The cache can't be read. Settings that can't be restored are in the outcome.
pub fn restore_settings(cache: &Cache, progress: &dyn Progress) -> Result<Vec<Restoration>, Error> {
    let mut restored = Vec::new();
    for (key, _) in Journal::all(cache)? {
        // A living process restores its own.
        let Some(journal_file) = JournalFile::try_lock(cache, &key)? else { continue };
        // It may have been restored meanwhile.
        let Some(journal) = journal_file.read()? else { continue };
        progress.step(&format!("{}: restoring settings", journal.server), 0, None);
        restored.push(Restoration {
            outcome: restore(cache, &key, journal_file, &journal),
            server: journal.server,
            conninfo: journal.conninfo,
            statements: restore_statements(&journal.settings),
        });
    }
    Ok(restored)
}

fn restore(
    cache: &Cache,
    key: &str,
    journal_file: JournalFile,
    journal: &Journal,
) -> Result<RestoredSettings, Error> {
    let dsn = Dsn { conninfo: journal.conninfo.clone(), can_change_settings: true };
    let (server, restored) =
        ExternalServer::connect_to(cache, &journal.server, &dsn, Some((key, journal_file)))?;
    journal.identity.check(server.identity.system.clone(), server.display_name())?;
    Ok(restored.unwrap_or_default())
}

fn restore_statements(settings: &[Change]) -> Vec<String> {
    settings.iter().map(|change| alter_system(&change.name, change.before.as_deref())).collect()
}
