//! `pgdyno server list` as a versioned document and as a table.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use host::Cache;
use plaintext::table::Table;
use serde::Serialize;
use server::instance::{self, Instance};
use server::{Installation, Template};

use crate::cache_paths;

/// Everything in the cache.
#[derive(Debug, Serialize)]
pub struct List {
    format: u32,
    cache: String,
    installations: Vec<InstallationEntry>,
    templates: Vec<TemplateEntry>,
    servers: Vec<ServerEntry>,
}

#[derive(Debug, Serialize)]
struct InstallationEntry {
    /// Name that identifies it even if others have the same version.
    name: String,
    version: String,
    source: &'static str,
    /// Null if it was not downloaded.
    archive: Option<String>,
    /// Null if it was not downloaded.
    sha512: Option<String>,
    /// Null if it was not built here.
    build: Option<BuildEntry>,
    installed: String,
    directory: String,
}

/// Source and options of a build.
#[derive(Debug, Serialize)]
struct BuildEntry {
    location: String,
    #[serde(rename = "ref")]
    git_ref: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patches: Vec<String>,
    content: String,
    arguments: Vec<String>,
    cflags: String,
    compiler: String,
    log: String,
}

#[derive(Debug, Serialize)]
struct TemplateEntry {
    server: String,
    version: String,
    scale: u32,
    bytes: u64,
    directory: String,
}

#[derive(Debug, Serialize)]
struct ServerEntry {
    name: String,
    version: String,
    /// Null if it is not running.
    pid: Option<u32>,
    /// Null if it is not running.
    uri: Option<String>,
    port: u16,
    scale: Option<u32>,
    socket_directory: Option<String>,
    data_directory: String,
    log: String,
}

impl List {
    /// Reads the list from the cache.
    ///
    /// # Errors
    /// The cache can't be read.
    pub fn read(cache: &Cache) -> Result<Self, server::Error> {
        Ok(Self {
            format: 1,
            cache: cache.directory().display().to_string(),
            installations: server::installed(cache)?.iter().map(InstallationEntry::new).collect(),
            templates: server::templates(cache)?.iter().map(TemplateEntry::new).collect(),
            servers: instance::list(cache)?.iter().map(ServerEntry::new).collect(),
        })
    }

    /// The table for a terminal of this width.
    pub fn fitted(&self, width: usize) -> String {
        cache_paths::fitted(self.table(), &self.cache, width)
    }

    /// One row per entry, so that every format has one table.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["what", "server", "#scale", "state", "#port", "directory"]);
        let mut row =
            |what: &str, server: &str, scale: Option<u32>, state: String, port: Option<u16>, at: &str| {
                let number = |n: Option<String>| n.unwrap_or_default();
                table.push(vec![
                    what.to_owned(),
                    server.to_owned(),
                    number(scale.map(|n| n.to_string())),
                    state,
                    number(port.map(|n| n.to_string())),
                    at.to_owned(),
                ]);
            };
        for entry in &self.installations {
            row("installation", &entry.name, None, entry.state(), None, &entry.directory);
        }
        for entry in &self.templates {
            let megabytes = format!("{} MB", entry.bytes / 1_000_000);
            row("template", &entry.server, Some(entry.scale), megabytes, None, &entry.directory);
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
    fn new(installation: &Installation) -> Self {
        Self {
            name: installation.identity().to_owned(),
            version: installation.version().to_string(),
            source: installation.origin().name(),
            archive: installation.archive().map(str::to_owned),
            sha512: installation.sha512().map(str::to_owned),
            build: installation.build().map(|build| BuildEntry {
                location: build.location.display().to_string(),
                git_ref: build.git_ref.clone(),
                patches: build.patches.iter().map(|patch| patch.display().to_string()).collect(),
                content: build.content.clone(),
                arguments: build.arguments.clone(),
                cflags: build.cflags.clone(),
                compiler: build.compiler.clone(),
                log: installation.build_log().unwrap_or_default().display().to_string(),
            }),
            installed: installation.installed().to_string(),
            directory: installation.directory().display().to_string(),
        }
    }

    /// Source of the installation.
    fn state(&self) -> String {
        let Some(BuildEntry { location, git_ref, patches, .. }) = &self.build else {
            return self.source.to_owned();
        };
        let mut state = format!("built from {location}");
        state.extend(git_ref.iter().flat_map(|git_ref| [" ", git_ref]));
        state.extend(patches.iter().flat_map(|patch| [" with ", patch]));
        state
    }
}

impl TemplateEntry {
    fn new(template: &Template) -> Self {
        Self {
            server: template.server().to_owned(),
            version: template.version().to_string(),
            scale: template.scale(),
            bytes: template.bytes(),
            directory: template.directory().display().to_string(),
        }
    }
}

impl ServerEntry {
    fn new(server: &Instance) -> Self {
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

/// URI for the user who started the server: over TCP with the password file if it listens there, else by the socket.
fn uri(server: &Instance) -> String {
    let (user, port, database) = (server::USER, server.port(), database(server));
    match (server.password_file(), server.socket_directory()) {
        (Some(file), _) => {
            format!("postgresql://{user}@127.0.0.1:{port}/{database}?passfile={}", parameter(&file))
        }
        (None, Some(sockets)) => {
            format!("postgresql://{user}@/{database}?host={}&port={port}", parameter(&sockets))
        }
        (None, None) => format!("postgresql://{user}@/{database}?port={port}"),
    }
}

/// A path as the value of a parameter of a URI.
fn parameter(path: &Path) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().copied().map(encode).collect()
}

/// Database to connect to: the one with pgbench's tables, if there is one.
fn database(server: &Instance) -> &'static str {
    match server.scale() {
        Some(_) => server::DATABASE,
        None => "postgres",
    }
}

/// How to connect to a running server, to read its log and to stop it; ends in a line for a shell.
pub fn how_to_connect(server: &Instance) -> String {
    let (database, port) = (database(server), server.port());
    let mut text = format!(
        "PostgreSQL {} runs as process {}. To connect, as the user who started it:\n  psql '{}'\n",
        server.version(),
        server.pid().map_or_else(|| "?".to_owned(), |pid| pid.to_string()),
        uri(server)
    );
    let host = match (server.password_file(), server.socket_directory()) {
        (Some(file), sockets) => {
            if let Some(sockets) = sockets {
                text += &format!(
                    "Through its socket:\n  psql -h {} -p {port} -U {} {database}\n",
                    sockets.display(),
                    server::USER
                );
            }
            format!("127.0.0.1 PGPASSFILE={}", file.display())
        }
        (None, Some(sockets)) => sockets.display().to_string(),
        (None, None) => String::new(),
    };
    text += &format!(
        "Log: {}\nTo stop: pgdyno server stop {}\n\nexport PGHOST={host} PGPORT={port} PGUSER={} PGDATABASE={database}\n",
        server.log().display(),
        server.name(),
        server::USER
    );
    text
}
