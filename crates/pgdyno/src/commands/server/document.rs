//! `pgdyno server list` as a versioned document and as a table.

use report::table::Table;
use serde::Serialize;
use target::standing::{self, StandingServer};
use target::{Cache, Installation, TargetError, Template};

/// Everything in the cache.
#[derive(Debug, Serialize)]
pub(super) struct ListDocument {
    format: u32,
    cache: String,
    installations: Vec<InstallationEntry>,
    templates: Vec<TemplateEntry>,
    servers: Vec<ServerEntry>,
}

#[derive(Debug, Serialize)]
struct InstallationEntry {
    version: String,
    source: String,
    archive: String,
    sha512: String,
    installed: String,
    directory: String,
}

#[derive(Debug, Serialize)]
struct TemplateEntry {
    version: String,
    scale: u32,
    bytes: u64,
    directory: String,
}

#[derive(Debug, Serialize)]
struct ServerEntry {
    name: String,
    version: String,
    /// Null where it does not run.
    pid: Option<u32>,
    /// Null where it does not run.
    uri: Option<String>,
    port: u16,
    scale: Option<u32>,
    socket_directory: Option<String>,
    data_directory: String,
    log: String,
}

impl ListDocument {
    pub(super) fn of(cache: &Cache) -> Result<Self, TargetError> {
        Ok(Self {
            format: 1,
            cache: cache.directory().display().to_string(),
            installations: cache.installed()?.iter().map(InstallationEntry::of).collect(),
            templates: target::templates(cache)?.iter().map(TemplateEntry::of).collect(),
            servers: standing::list(cache)?.iter().map(ServerEntry::of).collect(),
        })
    }

    /// One row each, so that it is one table in every format.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(["what", "version", "#scale", "state", "#port", "directory"]);
        let mut row =
            |what: &str, version: &str, scale: Option<u32>, state: String, port: Option<u16>, at: &str| {
                let number = |n: Option<String>| n.unwrap_or_default();
                table.push(vec![
                    what.to_owned(),
                    version.to_owned(),
                    number(scale.map(|n| n.to_string())),
                    state,
                    number(port.map(|n| n.to_string())),
                    at.to_owned(),
                ]);
            };
        for entry in &self.installations {
            row("installation", &entry.version, None, entry.source.clone(), None, &entry.directory);
        }
        for entry in &self.templates {
            let megabytes = format!("{} MB", entry.bytes / 1_000_000);
            row("template", &entry.version, Some(entry.scale), megabytes, None, &entry.directory);
        }
        for entry in &self.servers {
            let (state, port) = match entry.pid {
                Some(pid) => (format!("running ({pid})"), Some(entry.port)),
                None => ("stopped".to_owned(), None),
            };
            row(
                &format!("server {}", entry.name),
                &entry.version,
                entry.scale,
                state,
                port,
                &entry.data_directory,
            );
        }
        table
    }
}

impl InstallationEntry {
    fn of(installation: &Installation) -> Self {
        Self {
            version: installation.version().to_string(),
            source: installation.source().to_owned(),
            archive: installation.archive().to_owned(),
            sha512: installation.sha512().to_owned(),
            installed: installation.installed().to_string(),
            directory: installation.directory().display().to_string(),
        }
    }
}

impl TemplateEntry {
    fn of(template: &Template) -> Self {
        Self {
            version: template.version().to_string(),
            scale: template.scale(),
            bytes: template.bytes(),
            directory: template.directory().display().to_string(),
        }
    }
}

impl ServerEntry {
    fn of(server: &StandingServer) -> Self {
        Self {
            name: server.name().to_owned(),
            version: server.version().to_owned(),
            pid: server.pid(),
            uri: server.pid().map(|_| uri(server)),
            port: server.port(),
            scale: server.scale(),
            socket_directory: server.socket_directory().map(|directory| directory.display().to_string()),
            data_directory: server.data_directory().display().to_string(),
            log: server.log().display().to_string(),
        }
    }
}

/// How to connect by TCP.
pub(super) fn uri(server: &StandingServer) -> String {
    format!("postgresql://{}@127.0.0.1:{}/{}", target::USER, server.port(), database(server))
}

/// The database to look at: the one with pgbench's tables, where there are any.
pub(super) fn database(server: &StandingServer) -> &'static str {
    match server.scale() {
        Some(_) => target::DATABASE,
        None => "postgres",
    }
}
