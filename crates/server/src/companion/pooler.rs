//! PgBouncer between clients and a server, with a configuration of its own.
//!
//! Clients authenticate with a password generated for each start, of which its file has the SCRAM verifier; PgBouncer runs as the
//! server's user, and connects to the server through its socket. Source: pgbouncer(1) and pgbouncer.ini(5).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use host::IoContext;
use host::process::{LOG_TAIL_LINES, POLL_INTERVAL, last_lines, spawn, wait_until};
use model::message::{Connection, Endpoint};
use model::secret::mask;
use model::topology::{Companion as Kind, Topology};
use model::workload::{Protocol, Transport};
use rustix::process::{Pid, Signal};
use wire::blocking::Session;
use wire::{ConnectParams, random_password, stored_password};

use crate::cluster::Cluster;
use crate::control::{APPLICATION_NAME, CONNECT_TIMEOUT};
use crate::error::{Error, sql_text};
use crate::launch::{LOG_MODE, free_port, log_text, read_log};
use crate::server::Server;

/// The database of its console.
pub(super) const CONSOLE: &str = "pgbouncer";
const PROGRAM: &str = "pgbouncer";
/// Where Debian installs it, which is not in every user's `PATH`.
const SYSTEM_DIRECTORY: &str = "/usr/sbin";
/// The first version that keeps prepared statements of clients which share server connections.
const PREPARED_STATEMENTS: (u32, u32) = (1, 21);
/// The first version with a limit of such statements that is not 0.
const PREPARED_BY_DEFAULT: (u32, u32) = (1, 24);
/// Time limit of a start, and of answers.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts with other ports, if another process takes the free one first.
const PORT_ATTEMPTS: u32 = 5;

/// The installed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pgbouncer {
    program: PathBuf,
    /// Its version, such as `1.18.0`.
    pub version: String,
}

/// The installed PgBouncer.
///
/// # Errors
/// There is none, or it does not run.
pub fn pgbouncer() -> Result<Pgbouncer, Error> {
    let failed = |why: String| Error::Companion { companion: PROGRAM.to_owned(), why };
    let in_system = Path::new(SYSTEM_DIRECTORY).join(PROGRAM);
    let program = host::tools::find(PROGRAM).or_else(|| Some(in_system).filter(|place| place.is_file()));
    let program = program.ok_or_else(|| {
        let why = "was not found in PATH or /usr/sbin; install it (Debian: apt-get install pgbouncer; its own service may be \
                   stopped), or leave out the topologies `pgbouncer-transaction` and `pgbouncer-session`";
        failed(why.to_owned())
    })?;
    let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let output = output.doing("run", &program)?;
    let text = String::from_utf8_lossy(&output.stdout);
    // `PgBouncer 1.18.0`
    let version = text.lines().next().and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned);
    match version {
        Some(version) => Ok(Pgbouncer { program, version }),
        None => Err(failed(format!(
            "{} does not report its version ({}): {}",
            program.display(),
            output.status,
            last_lines(&String::from_utf8_lossy(&output.stderr), LOG_TAIL_LINES)
        ))),
    }
}

impl Pgbouncer {
    /// Its first two numbers; of an unknown version, those of the oldest.
    fn release(&self) -> (u32, u32) {
        let mut numbers = self.version.split('.').map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// Checks that clients of a topology can use a protocol.
    ///
    /// # Errors
    /// They can't, with the reason.
    pub fn check_protocol(&self, topology: Topology, protocol: Protocol) -> Result<(), Error> {
        let is_shared = topology == Topology::PgbouncerTransaction;
        if !is_shared || protocol != Protocol::Prepared || self.release() >= PREPARED_STATEMENTS {
            return Ok(());
        }
        let why = format!(
            "{} does not know prepared statements of clients that share server connections (`{}`), as 1.21 and later do: choose \
             `protocol = [\"extended\"]` or `[\"simple\"]` for these cells, or install a newer PgBouncer",
            self.version,
            topology.as_str()
        );
        Err(Error::Companion { companion: PROGRAM.to_owned(), why })
    }
}

/// The most connections of a pooler.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolerLimits {
    /// From clients, without pgdyno's own.
    pub(super) clients: u32,
    /// To the server.
    pub(super) servers: u32,
}

/// A running PgBouncer. It is killed when dropped, and has no state that remains.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    /// Its directory, in that of the server's cluster.
    directory: PathBuf,
    sockets: PathBuf,
    port: u16,
    password: Password,
    /// Offset up to which its log was returned.
    log_taken: u64,
}

/// A password that is never printed.
struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Pooler {
    /// Starts it in front of a server, and waits until it accepts clients.
    pub(super) fn start(
        server: &Server,
        topology: Topology,
        settings: &BTreeMap<String, String>,
        limits: PoolerLimits,
        transport: Transport,
    ) -> Result<Self, Error> {
        let installed = pgbouncer()?;
        let failed = |why: String| Error::Companion { companion: PROGRAM.to_owned(), why };
        let cluster = server
            .cluster()
            .ok_or_else(|| failed("has no server: this is a bug in pgdyno, please report it".to_owned()))?;
        let directory = cluster.directory().join(PROGRAM);
        fs::remove_dir_all(&directory)
            .or_else(|error| (error.kind() == std::io::ErrorKind::NotFound).then_some(()).ok_or(error))
            .doing("remove", &directory)?;
        // It stays pgdyno's own, so that no process of the server's user can replace a file in it.
        DirBuilder::new().mode(0o755).create(&directory).doing("create the directory", &directory)?;
        let password = random_password().map_err(|error| failed(error.to_string()))?;
        let users = format!(
            "\"{}\" \"{}\"\n",
            crate::USER,
            stored_password(&password, crate::USER, true).replace('"', "\"\"")
        );
        write_private(cluster, &directory.join("users.txt"), &users)?;
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            let text = configuration(&Configuration {
                server,
                topology,
                settings,
                limits,
                transport,
                directory: &directory,
                port,
                is_prepared: (PREPARED_STATEMENTS..PREPARED_BY_DEFAULT).contains(&installed.release()),
            })?;
            let file = directory.join("pgbouncer.ini");
            write_private(cluster, &file, &text)?;
            let child = launch(&installed, cluster, &file, &directory)?;
            let mut pooler = Self {
                child,
                directory: directory.clone(),
                sockets: server.sockets().to_owned(),
                port,
                password: Password(password.clone()),
                log_taken: 0,
            };
            match pooler.wait_until_ready() {
                Ok(()) => return Ok(pooler),
                Err(log) if attempt < PORT_ATTEMPTS && log.contains("Address already in use") => attempt += 1,
                Err(log) => {
                    return Err(failed(format!(
                        "{} did not start; check its settings (`pgbouncer.…`). Last lines of its log:\n{log}",
                        installed.version
                    )));
                }
            }
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let ended = self.exited().is_some();
            let error = match self.console() {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if ended || Instant::now() > end {
                let log = self.log(0).unwrap_or_default();
                return Err(format!("{}\n({error})", mask(&last_lines(&log, LOG_TAIL_LINES))));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if it has ended.
    pub(super) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// A connection to a database through it.
    pub(super) fn connection(&self, transport: Transport, database: &str) -> Connection {
        let endpoint = match transport {
            Transport::Unix => {
                Endpoint::Unix { directory: self.sockets.display().to_string(), port: self.port }
            }
            Transport::Tcp => Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: self.port },
        };
        Connection {
            endpoint,
            user: crate::USER.to_owned(),
            database: database.to_owned(),
            password: Some(self.password.0.clone()),
        }
    }

    /// A session with its console.
    fn console(&self) -> Result<Session, Error> {
        let password = Some(self.password.0.as_str());
        let mut params = ConnectParams::new(
            self.sockets.display().to_string(),
            self.port,
            crate::USER,
            CONSOLE,
            password.map(str::to_owned),
        );
        params.application_name = Some(APPLICATION_NAME.to_owned());
        params.connect_timeout = Some(CONNECT_TIMEOUT);
        let failed = |error| Error::Companion {
            companion: PROGRAM.to_owned(),
            why: format!("does not answer: {}", sql_text(&error)),
        };
        let mut session = Session::connect(&params).map_err(failed)?;
        session.set_timeout(START_TIMEOUT).map_err(failed)?;
        Ok(session)
    }

    /// Closes its connections to the server, as soon as no transaction uses them.
    pub(super) fn close_server_connections(&self) -> Result<(), Error> {
        let mut console = self.console()?;
        for statement in ["PAUSE", "RESUME"] {
            console.execute(statement).map_err(|error| Error::Companion {
                companion: PROGRAM.to_owned(),
                why: format!("refuses {statement}: {}", sql_text(&error)),
            })?;
        }
        Ok(())
    }

    pub(super) fn set_cpu_affinity(&self, cpus: &[u32]) -> Result<(), Error> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        Ok(host::pin_to_cpus(pid, cpus).doing("set the CPU affinity of the pooler in", &self.directory)?)
    }

    /// Its log since the last call.
    pub(super) fn take_log(&mut self) -> Option<String> {
        let text = self.log(self.log_taken)?;
        self.log_taken += text.len() as u64;
        Some(text)
    }

    fn log(&self, from: u64) -> Option<String> {
        Some(log_text(&read_log(&log_file(&self.directory), from).ok()?))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        wait_until(START_TIMEOUT, || self.exited().is_some());
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("pgbouncer.log")
}

/// Starts the program as the server's user.
fn launch(installed: &Pgbouncer, cluster: &Cluster, file: &Path, directory: &Path) -> Result<Child, Error> {
    let log = log_file(directory);
    let mut options = OpenOptions::new();
    let log_file = options.create(true).append(true).mode(LOG_MODE).open(&log).doing("write", &log)?;
    let mut command = Command::new(&installed.program);
    command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.arg(file).current_dir("/").stdin(Stdio::null());
    command.stdout(log_file.try_clone().doing("write", &log)?).stderr(log_file);
    cluster.user().apply_to(&mut command);
    Ok(spawn(command, Signal::KILL).doing("run", &installed.program)?)
}

/// Writes a file that only the server's user can read.
fn write_private(cluster: &Cluster, path: &Path, text: &str) -> Result<(), Error> {
    host::files::write_private(path, text.as_bytes()).doing("write", path)?;
    Ok(cluster.user().chown(path)?)
}

/// What its configuration is made of.
struct Configuration<'a> {
    server: &'a Server,
    topology: Topology,
    settings: &'a BTreeMap<String, String>,
    limits: PoolerLimits,
    transport: Transport,
    directory: &'a Path,
    port: u16,
    /// Whether prepared statements have to be allowed.
    is_prepared: bool,
}

/// The text of `pgbouncer.ini`. The campaign's settings override those that pgdyno does not need.
fn configuration(of: &Configuration<'_>) -> Result<String, Error> {
    let mut settings: BTreeMap<&str, String> = BTreeMap::from([
        ("default_pool_size", of.limits.servers.to_string()),
        // pgdyno's own sessions are with the console.
        ("max_client_conn", (of.limits.clients + 20).to_string()),
    ]);
    if of.is_prepared {
        settings.insert("max_prepared_statements", "200".to_owned());
    }
    for (name, value) in of.settings {
        let refuse =
            |why: &str| Err(Error::Setting { name: format!("{PROGRAM}.{name}"), why: why.to_owned() });
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return refuse("a name may contain only letters, digits and `_`");
        }
        if Kind::Pgbouncer.sets(name) {
            return refuse("pgdyno sets it itself, to connect clients and server");
        }
        if value.contains(['\n', '\r', '\0']) {
            return refuse("its value contains a line break");
        }
        settings.insert(name, value.clone());
    }
    let mode = if of.topology == Topology::PgbouncerSession { "session" } else { "transaction" };
    let address = if of.transport == Transport::Tcp { "127.0.0.1" } else { "" };
    let sockets = of.server.sockets().display();
    settings.extend([
        ("listen_addr", address.to_owned()),
        ("listen_port", of.port.to_string()),
        ("unix_socket_dir", sockets.to_string()),
        ("auth_type", "scram-sha-256".to_owned()),
        ("auth_file", of.directory.join("users.txt").display().to_string()),
        ("admin_users", crate::USER.to_owned()),
        ("pool_mode", mode.to_owned()),
    ]);
    let mut text = format!(
        "; Written by pgdyno at each start.\n[databases]\n{0} = host='{2}' port={1} dbname={0}\n[pgbouncer]\n",
        crate::DATABASE,
        of.server.port(),
        sockets.to_string().replace('\'', "''"),
    );
    for (name, value) in settings {
        let _ = writeln!(text, "{name} = {value}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_statements_of_shared_connections_need_a_version() {
        let check = |version: &str, topology, protocol| {
            let installed = Pgbouncer { program: PathBuf::new(), version: version.to_owned() };
            installed.check_protocol(topology, protocol).map_err(|error| error.to_string())
        };
        let (shared, own) = (Topology::PgbouncerTransaction, Topology::PgbouncerSession);
        assert!(check("1.18.0", shared, Protocol::Prepared).unwrap_err().contains("1.18.0 does not know"));
        assert_eq!(check("1.18.0", shared, Protocol::Extended), Ok(()));
        assert_eq!(check("1.18.0", own, Protocol::Prepared), Ok(()));
        assert_eq!(check("1.21.0", shared, Protocol::Prepared), Ok(()));
        assert_eq!(check("2.0", shared, Protocol::Prepared), Ok(()));
    }
}
