//! A server that pgdyno does not own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use host::{Cache, NoProgress};
use server::StopMode;
use server::instance::{self, Instance, Start};

/// A server that pgdyno does not own, which other hosts reach by TCP; stopped when dropped.
pub(crate) struct Theirs {
    directory: tempfile::TempDir,
    pub(crate) server: Instance,
}

impl Theirs {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let installation = server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap();
        let settings = [("fsync", "off"), ("autovacuum", "off")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let start = Start {
            name: "theirs",
            installation: &installation,
            template: None,
            settings: &settings,
            port: None,
            tcp: true,
        };
        let server = instance::start(&Cache::at(directory.path()).unwrap(), &start, &NoProgress).unwrap();
        Self { directory, server }
    }

    /// A campaign of trials on it.
    pub(crate) fn campaign(&self, factors: &str, run: &str) -> String {
        format!(
            "name = 'hosts'\n[factors]\nserver = ['theirs']\n{factors}\n[servers.theirs]\n\
             dsn = 'host=127.0.0.1 port={} user=postgres passfile={}'\n[run]\n{run}\n",
            self.server.port(),
            self.server.password_file().unwrap().display()
        )
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let cache = Cache::at(self.directory.path()).unwrap();
        let _ = instance::stop(&cache, "theirs", StopMode::Immediate);
        let _ = instance::remove(&cache, "theirs");
    }
}
