//! The server under load: the null server, or a PostgreSQL owned by pgdyno, as in a campaign. Either ends with this
//! process.

use std::io::{BufRead, BufReader, Write, stderr};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result};
use host::{Cache, Progress};
use model::message::{Connection, Endpoint};
use model::workload::Transport;
use server::Server;
use tempfile::TempDir;

use crate::interrupt::Interrupt;

/// Kind of server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Real,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Real => "real",
        }
    }
}

/// The server under load, and the number of clients.
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    pub(crate) clients: u32,
    /// pgbench's scale factor.
    pub(crate) scale: u32,
    pub(crate) connection: Connection,
}

/// A running server.
pub(crate) enum Loaded {
    Null(NullServer),
    Real(Box<Server>),
}

impl Loaded {
    /// Starts a server; a real one of this version, with the data set of this scale.
    pub(crate) fn start(
        kind: Kind,
        version: &str,
        scale: u32,
        max_clients: u32,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Ok(match kind {
            Kind::Null => Self::Null(NullServer::start()?),
            Kind::Real => Self::Real(Box::new(real(version, scale, max_clients, interrupt)?)),
        })
    }

    /// Connection parameters.
    pub(crate) fn connection(&self, transport: Transport) -> Connection {
        match self {
            Self::Null(server) => server.connection(transport),
            Self::Real(server) => server.connection(transport),
        }
    }
}

/// Starts a server of this version on a copy of the template of this scale.
fn real(version: &str, scale: u32, max_clients: u32, interrupt: &Interrupt) -> Result<Server> {
    let cache = Cache::open()?;
    server::sweep(&cache)?;
    let progress = Console { interrupt, last: Mutex::default() };
    let installation = server::install(&cache, version, &progress)?;
    let template = server::template(&cache, &installation, &[], &scale.into(), None, &progress)?;
    let settings = [
        ("max_connections", (max_clients + 20).to_string()),
        // The data set of the default scale fits, and no maintenance runs during the load.
        ("shared_buffers", "256MB".to_owned()),
        ("autovacuum", "off".to_owned()),
        ("fsync", "off".to_owned()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
    // pgbench connects without a password, over both transports.
    let rules = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
    Ok(template.clone_cluster(&cache, &progress)?.with_rules(rules).start(&settings)?)
}

/// A null server in a separate process, which ends with its standard input, and so with this process.
pub(crate) struct NullServer {
    child: Child,
    sockets: TempDir,
    port: u16,
}

impl NullServer {
    fn start() -> Result<Self> {
        let program = crate::sibling_program("null-server")?;
        let sockets = TempDir::new()?;
        let mut child = Command::new(&program)
            .arg("--directory")
            .arg(sockets.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.as_mut() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.split_whitespace().last().and_then(|word| word.parse().ok());
        let port = port.with_context(|| format!("no port in the output of the null server: \"{line}\""))?;
        Ok(Self { child, sockets, port })
    }

    fn connection(&self, transport: Transport) -> Connection {
        let port = self.port;
        let endpoint = match transport {
            Transport::Unix => Endpoint::Unix { directory: self.sockets.path().display().to_string(), port },
            Transport::Tcp => Endpoint::Tcp { host: "127.0.0.1".to_owned(), port },
        };
        let user = server::USER.to_owned();
        Connection { endpoint, user, database: server::DATABASE.to_owned(), password: None }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may already have been ended by others.
        let _ = self.child.wait();
    }
}

/// Prints each step once.
struct Console<'a> {
    interrupt: &'a Interrupt,
    last: Mutex<String>,
}

impl Progress for Console<'_> {
    fn step(&self, what: &str, _: u64, _: Option<u64>) {
        let Ok(mut last) = self.last.lock() else { return };
        if *last != what {
            // Nobody may be reading stderr.
            let _ = writeln!(stderr(), "{what}");
            what.clone_into(&mut last);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    fn notice(&self, text: &str) {
        let _ = writeln!(stderr(), "{text}");
    }
}
