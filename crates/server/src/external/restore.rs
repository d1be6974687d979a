//! Abandoned journals: settings that a killed pgdyno has not restored.

use model::server::Dsn;

use super::ExternalServer;
use super::journal::{Change, Journal, Place};
use super::settings::{PutBack, alter_system};
use crate::error::Error;
use host::Cache;
use host::Progress;

/// Settings of one server that a pgdyno has changed, with the outcome of restoring them.
#[derive(Debug)]
pub struct Restored {
    /// Name of the server in its campaign.
    pub server: String,
    /// Connection string, without secrets.
    pub conninfo: String,
    /// Statements that restore the settings.
    pub by_hand: Vec<String>,
    /// Restored settings, or the cause of the failure.
    pub outcome: Result<PutBack, Error>,
}

impl Restored {
    /// Message for the user.
    pub fn notice(&self) -> String {
        let Self { server, conninfo, by_hand, outcome } = self;
        let what = format!("settings that a killed pgdyno had changed on the server {server} ({conninfo})");
        match outcome {
            Ok(done) => format!("{what}: {done}"),
            Err(error) => format!(
                "{what} could not be put back: {error}. To try again: pgdyno server restore; where the server asks \
                 for a password, give it by PGPASSWORD or the password file. By hand: {}; SELECT pg_reload_conf();",
                by_hand.join("; ")
            ),
        }
    }
}

/// Restores the settings that killed pgdyno processes have changed on servers that they did not own. A server that
/// can't be reached keeps its journal. Call this before a run, after [`sweep`](crate::sweep).
///
/// # Errors
/// The cache can't be read. Settings that can't be restored are in the outcome.
pub fn restore_settings(cache: &Cache, progress: &dyn Progress) -> Result<Vec<Restored>, Error> {
    let mut restored = Vec::new();
    for (key, _) in Journal::all(cache)? {
        // A living process restores its own.
        let Some(place) = Place::take(cache, &key)? else { continue };
        // It may have been restored meanwhile.
        let Some(journal) = place.read()? else { continue };
        progress.step(&format!("{}: putting back settings", journal.server), 0, None);
        restored.push(Restored {
            outcome: carry_out(cache, &key, place, &journal),
            server: journal.server,
            conninfo: journal.conninfo,
            by_hand: by_hand(&journal.settings),
        });
    }
    Ok(restored)
}

fn carry_out(cache: &Cache, key: &str, place: Place, journal: &Journal) -> Result<PutBack, Error> {
    let dsn = Dsn { conninfo: journal.conninfo.clone(), may_set: true };
    let (server, done) = ExternalServer::connect_to(cache, &journal.server, &dsn, Some((key, place)))?;
    if server.identity == journal.identity {
        return Ok(done.unwrap_or_default());
    }
    let [is, was] = [&server.identity, &journal.identity]
        .map(|identity| identity.system.clone().unwrap_or_else(|| "not known".to_owned()));
    Err(Error::External {
        server: server.called().to_owned(),
        why: format!("another server answers there now: its system identifier is {is}, and was {was}"),
    })
}

fn by_hand(settings: &[Change]) -> Vec<String> {
    settings.iter().map(|change| alter_system(&change.name, change.before.as_deref())).collect()
}
