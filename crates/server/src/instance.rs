//! Instances: servers that users start and stop by name. They outlive the command that started them, and keep their
//! data until they are removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::cluster::DATA;
use crate::data::copy::{Stamps, mirror_tree};
use crate::data::initdb::initdb;
use crate::dataset::template::Template;
use crate::error::Error;
use crate::launch::{Launch, Launched};
use crate::process::{end_all, postmaster, wait_for_exit};
use crate::programs::installation::Installation;
use crate::server::StopMode;
use crate::sockets;
use host::Cache;
use host::IoContext;
use host::Lock;
use host::Progress;
use host::files::{create_public_directory, entries, remove_tree, write_private};
use host::process::signal;

const RECORD: &str = "server.json";
const PASSWORD_FILE: &str = "pgpass";
const FAST_STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// A server with its own directory in the cache, running or not.
#[derive(Clone, Debug)]
pub struct Instance {
    name: String,
    home: PathBuf,
    record: Record,
    pid: Option<u32>,
}

/// `server.json`: the parameters of the last start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    version: String,
    /// Identity of its programs; earlier records have none and were of downloaded versions.
    #[serde(default)]
    identity: Option<String>,
    port: u16,
    scale: Option<u32>,
    settings: BTreeMap<String, String>,
    /// Whether it listens on 127.0.0.1; earlier records have none.
    #[serde(default)]
    tcp: bool,
}

/// Parameters of a start.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Name: the version as the user writes it.
    pub name: &'a str,
    /// Version to run.
    pub installation: &'a Installation,
    /// Data set of a new server; without one it is empty.
    pub template: Option<&'a Template>,
    /// Server settings.
    pub settings: &'a BTreeMap<String, String>,
    /// Port, also in the socket's name; none for a free one.
    pub port: Option<u16>,
    /// Whether it listens on 127.0.0.1, with a password.
    pub tcp: bool,
}

impl Instance {
    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Full version of the last start.
    pub fn version(&self) -> &str {
        &self.record.version
    }

    /// Process ID of the postmaster; none if it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Port in the socket's name, and on 127.0.0.1 if it listens there.
    pub fn port(&self) -> u16 {
        self.record.port
    }

    /// Password file for connections over TCP; none if it does not listen there. Only its owner can read it.
    pub fn password_file(&self) -> Option<PathBuf> {
        self.record.tcp.then(|| self.home.join(PASSWORD_FILE))
    }

    /// Scale of pgbench's tables; none without them.
    pub fn scale(&self) -> Option<u32> {
        self.record.scale
    }

    /// PostgreSQL's data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.home.join(DATA)
    }

    /// Directory of the Unix-domain socket.
    pub fn socket_directory(&self) -> Option<PathBuf> {
        sockets::find(&self.home)
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.home.join("server.log")
    }
}

/// All instances, by name.
///
/// # Errors
/// The cache can't be read.
pub fn list(cache: &Cache) -> Result<Vec<Instance>, Error> {
    let found = entries(&cache.servers())?;
    // A directory without a record was never started.
    Ok(found.into_iter().filter_map(|(name, home)| read(name, home).ok()).collect())
}

/// Starts a server that outlives this process. An existing one of that name keeps its data; a running one is left
/// alone, if it already is as requested.
///
/// # Errors
/// It runs or exists otherwise than requested; the server does not start.
pub fn start(cache: &Cache, start: &Start<'_>, progress: &dyn Progress) -> Result<Instance, Error> {
    let name = start.name;
    let home = cache.servers().join(name);
    let _lock = Lock::exclusive(&lock_file(cache, name))?;
    let _in_use = start.installation.in_use(cache)?;
    let existing = read(name.to_owned(), home.clone()).ok();
    if let Some(server) = &existing {
        check_scale(server, start)?;
        if server.pid.is_some() {
            let same_port = start.port.is_none_or(|port| port == server.port());
            let same_transport = !start.tcp || server.record.tcp;
            let same_settings = start.settings.is_empty() || *start.settings == server.record.settings;
            return if same_port && same_settings && same_transport {
                Ok(server.clone())
            } else {
                Err(Error::Instance(format!(
                    "the server {name} already runs with another port, with other settings or without TCP; stop it first: \
                     `pgdyno server stop {name}`"
                )))
            };
        }
    } else {
        make(cache, start, &home, progress)?;
    }
    run(cache, start, &home, existing.and_then(|server| server.scale()))?;
    read(name.to_owned(), home)
}

/// Stops an instance.
///
/// # Errors
/// No instance of that name runs, or it does not end.
pub fn stop(cache: &Cache, name: &str, mode: StopMode) -> Result<Instance, Error> {
    let home = cache.servers().join(name);
    let _lock = Lock::exclusive(&lock_file(cache, name))?;
    let mut server = read(name.to_owned(), home).map_err(|_| none_such(name))?;
    let Some(pid) = server.pid else {
        return Err(Error::Instance(format!("the server {name} is not running")));
    };
    let data = server.data_directory();
    if mode == StopMode::Fast {
        signal(pid, Signal::INT);
        wait_for_exit(&data, FAST_STOP_TIMEOUT);
    }
    end_all(&data)?;
    server.pid = None;
    Ok(server)
}

/// Deletes a stopped instance with its data. Returns whether there was one.
///
/// # Errors
/// It runs, or its files can't be removed.
pub fn remove(cache: &Cache, name: &str) -> Result<bool, Error> {
    let home = cache.servers().join(name);
    if !home.is_dir() {
        return Ok(false);
    }
    let _lock = Lock::exclusive(&lock_file(cache, name))?;
    if postmaster(&home.join(DATA)).is_some() {
        return Err(Error::InUse {
            what: format!("the server {name}"),
            by: format!("its clients (`pgdyno server stop {name}` stops it)"),
        });
    }
    sockets::remove(&home)?;
    remove_tree(&home)?;
    Ok(true)
}

/// Name of an instance that runs on an installation, if there is one.
pub(crate) fn running_on(cache: &Cache, identity: &str) -> Result<Option<String>, Error> {
    let runs_on = |server: &Instance| {
        let version = server.record.identity.as_deref().unwrap_or(&server.record.version);
        server.pid.is_some() && version == identity
    };
    Ok(list(cache)?.into_iter().find(runs_on).map(|server| server.name))
}

fn check_scale(server: &Instance, start: &Start<'_>) -> Result<(), Error> {
    let requested = start.template.map(Template::scale);
    if requested.is_none() || requested == server.scale() {
        return Ok(());
    }
    let has = server.scale().map_or("no pgbench tables".to_owned(), |scale| format!("scale {scale}"));
    Err(Error::Instance(format!(
        "the server {0} exists with {has}; to create it again, stop and remove it first: `pgdyno server remove {0}`",
        server.name
    )))
}

/// Creates the directory of a new server. It is ignored without its record, which the first start writes.
fn make(cache: &Cache, start: &Start<'_>, home: &Path, progress: &dyn Progress) -> Result<(), Error> {
    sockets::remove(home)?;
    remove_tree(home)?;
    create_public_directory(home)?;
    sockets::make(home, cache.user())?;
    let data = home.join(DATA);
    match start.template {
        Some(template) => {
            let what = format!("server {}: copying its data", start.name);
            mirror_tree(template.directory(), &data, cache.user(), &mut Stamps::new(), &what, progress)
                .map(drop)
        }
        None => initdb(start.installation, &[], cache.user(), &data, &home.join("initdb.log")),
    }
}

fn run(cache: &Cache, start: &Start<'_>, home: &Path, scale: Option<u32>) -> Result<(), Error> {
    let sockets = sockets::find_or_make(home, cache.user())?;
    cache.user().take_over(&home.join(DATA))?;
    let Launched { child: _, port, password, .. } = Launch {
        installation: start.installation,
        user: cache.user(),
        home,
        data: &home.join(DATA),
        sockets: &sockets,
        log: &home.join("server.log"),
        settings: start.settings,
        port: start.port,
        access: if start.tcp { Access::Tcp } else { Access::Socket },
        detached: true,
        group: None,
    }
    .run()?;
    write_password(home, password.as_deref(), port)?;
    let record = Record {
        format: 1,
        version: start.installation.version().to_string(),
        identity: Some(start.installation.identity().to_owned()),
        port,
        scale: start.template.map(Template::scale).or(scale),
        settings: start.settings.clone(),
        tcp: start.tcp,
    };
    let file = home.join(RECORD);
    let text = serde_json::to_string_pretty(&record).doing("write", &file)?;
    // Settings may have passwords.
    Ok(write_private(&file, (text + "\n").as_bytes()).doing("write", &file)?)
}

/// Writes the password over TCP as a password file of libpq; removes that of an earlier start.
fn write_password(home: &Path, password: Option<&str>, port: u16) -> Result<(), Error> {
    let file = home.join(PASSWORD_FILE);
    let Some(password) = password else {
        let _ = fs::remove_file(&file);
        return Ok(());
    };
    let line = format!("127.0.0.1:{port}:*:{}:{password}\n", crate::USER);
    Ok(write_private(&file, line.as_bytes()).doing("write", &file)?)
}

fn read(name: String, home: PathBuf) -> Result<Instance, Error> {
    let file = home.join(RECORD);
    let text = fs::read(&file).doing("read", &file)?;
    let record = serde_json::from_slice(&text).doing("read", &file)?;
    let pid = postmaster(&home.join(DATA));
    Ok(Instance { name, home, record, pid })
}

fn none_such(name: &str) -> Error {
    Error::Instance(format!("there is no server {name}; `pgdyno server list` lists the servers"))
}

fn lock_file(cache: &Cache, name: &str) -> PathBuf {
    cache.lock_file(&format!("server-{name}"))
}
