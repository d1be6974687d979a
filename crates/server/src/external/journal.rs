//! The journal: what must be restored on a server that pgdyno does not own, on disk before anything is changed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use host::Cache;
use host::IoContext;
use host::Lock;
use host::files::entries;

/// Version of the journal's format, raised with each change.
const FORMAT: u32 = 1;

/// Identity of a server: its cluster and its address. Copies of a data directory have the same cluster identifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// `system_identifier` of `pg_control_system()`; none if the role may not query it.
    pub(super) system: Option<String>,
    pub(super) host: String,
    pub(super) port: u16,
}

/// Changes to restore on one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    format: u32,
    /// Name of the server in its campaign.
    pub(super) server: String,
    /// Connection string, without secrets.
    pub(super) conninfo: String,
    pub(super) identity: Identity,
    pub(super) begun: Timestamp,
    pub(super) settings: Vec<Change>,
}

/// A setting in `postgresql.auto.conf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) name: String,
    /// Former value; none if it was not there.
    pub(super) before: Option<String>,
    /// Value that pgdyno sets.
    pub(super) set: String,
}

/// File of a server's journal, locked. Only the holder changes that server's settings.
#[derive(Debug)]
pub(super) struct JournalFile {
    file: PathBuf,
    _owner: Lock,
}

impl Journal {
    pub(super) fn new(server: &str, conninfo: &str, identity: &Identity, settings: Vec<Change>) -> Self {
        Self {
            format: FORMAT,
            server: server.to_owned(),
            conninfo: conninfo.to_owned(),
            identity: identity.clone(),
            begun: Timestamp::now(),
            settings,
        }
    }

    /// All journals of a cache, with their keys, whether in use or not.
    pub(super) fn all(cache: &Cache) -> Result<Vec<(String, Self)>, Error> {
        let mut journals = Vec::new();
        for (name, file) in entries(&cache.journals())? {
            if let Some(key) = name.strip_suffix(".json")
                && let Some(journal) = read(&file)?
            {
                journals.push((key.to_owned(), journal));
            }
        }
        Ok(journals)
    }
}

impl Identity {
    /// Checks that the server at this address is still the same.
    ///
    /// # Errors
    /// Another one runs there now.
    pub(super) fn check(&self, system: Option<String>, server: &str) -> Result<(), Error> {
        if system == self.system {
            return Ok(());
        }
        let [is, was] = [system.as_deref(), self.system.as_deref()].map(|system| system.unwrap_or("unknown"));
        Err(Error::External {
            server: server.to_owned(),
            why: format!(
                "another server runs at this address now: its system identifier is {is}, and was {was}"
            ),
        })
    }

    /// Name of its journal.
    pub(super) fn key(&self) -> String {
        let system = self.system.as_deref().unwrap_or("unknown");
        let allowed = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
        let host: String = self.host.chars().map(allowed).collect();
        // A file's name has at most 255 bytes.
        let start = host.len().saturating_sub(200);
        format!("{system}-{}-{}", &host[start..], self.port)
    }
}

impl JournalFile {
    /// Locks the file of a server's journal; none if another pgdyno holds the lock.
    pub(super) fn try_lock(cache: &Cache, key: &str) -> Result<Option<Self>, Error> {
        let owner = Lock::try_exclusive(&cache.lock_file(&format!("journal-{key}")))?;
        let file = cache.journals().join(format!("{key}.json"));
        Ok(owner.map(|owner| Self { file, _owner: owner }))
    }

    /// Changes still to restore.
    pub(super) fn read(&self) -> Result<Option<Journal>, Error> {
        read(&self.file)
    }

    /// Writes the journal to disk.
    pub(super) fn write(&self, journal: &Journal) -> Result<(), Error> {
        let directory = self.directory();
        let text = serde_json::to_vec_pretty(journal).doing("write", &self.file)?;
        let mut file = tempfile::Builder::new()
            .prefix(".journal-")
            .tempfile_in(directory)
            .doing("create a file in", directory)?;
        file.write_all(&text).doing("write", &self.file)?;
        file.as_file().sync_all().doing("sync", &self.file)?;
        file.persist(&self.file).map_err(|error| error.error).doing("rename to", &self.file)?;
        self.sync()
    }

    /// Removes the journal: everything has been restored.
    pub(super) fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Ok(Err(error).doing("remove", &self.file)?),
            _ => self.sync(),
        }
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(File::open(self.directory())
            .and_then(|directory| directory.sync_all())
            .doing("sync", self.directory())?)
    }

    fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }
}

fn read(file: &Path) -> Result<Option<Journal>, Error> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.doing("read", file)?,
    };
    let journal: Journal = serde_json::from_slice(&text).doing("read", file)?;
    if journal.format != FORMAT {
        let why = format!("it has format {}, but this pgdyno reads format {FORMAT}", journal.format);
        return Ok(Err(io::Error::other(why)).doing("read", file)?);
    }
    Ok(Some(journal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_journal_is_a_valid_file_name() {
        let identity = Identity { system: None, host: format!("/run/{}", "d".repeat(300)), port: 5432 };
        let key = identity.key();
        assert!(key.len() < 240 && key.ends_with("-5432") && !key.contains('/'), "{key}");
    }
}
