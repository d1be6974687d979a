//! Journals that nobody is left to carry out: settings that a killed pgdyno has not put back.

use model::server::Dsn;

use super::ExternalServer;
use super::journal::{Change, Journal, Place};
use super::settings::{PutBack, alter_system};
use crate::error::Error;
use host::Cache;
use host::Progress;

/// The settings of one server that a pgdyno has changed, and what became of them.
#[derive(Debug)]
pub struct Restored {
    /// The server's name in its campaign.
    pub server: String,
    /// How it was reached, without secrets.
    pub conninfo: String,
    /// The statements that put the settings back.
    pub by_hand: Vec<String>,
    /// What has been put back; else why it has not.
    pub outcome: Result<PutBack, Error>,
}

impl Restored {
    /// What to tell the user.
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

/// Puts back the settings that killed pgdynos have changed on servers that they did not own. A server that can't be
/// reached keeps its journal. To be called before a run, after [`sweep`](crate::sweep).
///
/// # Errors
/// The cache can't be read. What can't be put back is in the outcome.
pub fn restore_settings(cache: &Cache, progress: &dyn Progress) -> Result<Vec<Restored>, Error> {
    let mut restored = Vec::new();
    for (key, _) in Journal::all(cache)? {
        // Whoever lives carries out its own.
        let Some(place) = Place::take(cache, &key)? else { continue };
        // It may have been carried out meanwhile.
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
