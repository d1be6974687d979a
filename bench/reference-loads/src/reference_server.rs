//! The server under load, of this process and gone with it, and pgdyno's campaigns on it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use collect::ServerCpu;
use host::{Cache, NoProgress};
use model::message::Endpoint;
use model::record::{Status, TrialRecord};
use model::workload::Transport;
use server::{Cluster, Server};
use store::Store;
use tempfile::TempDir;

/// Nothing of the server runs during a load that would not run in all rounds, and nobody waits for a disk.
const SETTINGS: [(&str, &str); 6] = [
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "8GB"),
    // Files of WAL are reused after each checkpoint, and not created during a load.
    ("min_wal_size", "8GB"),
    ("shared_buffers", "1GB"),
    ("synchronous_commit", "off"),
];
/// Clients connect without a password, over TCP.
const RULES: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";

/// A server on a CPU of its own, unless there is one CPU only.
pub(crate) struct ReferenceServer {
    server: Server,
    port: u16,
    cpu: ServerCpu,
    pgdyno: PathBuf,
    directory: TempDir,
}

impl ReferenceServer {
    /// Starts a server without data, and has this process and those that it will start run on another CPU.
    pub(crate) fn start(version: &str, pgdyno: PathBuf) -> Result<Self> {
        let cache = Cache::open()?;
        server::sweep(&cache)?;
        let installation = server::install(&cache, version, &NoProgress)?;
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = BTreeMap::from(settings);
        let server = Cluster::empty(&cache, &installation, &[])?.with_rules(RULES).start(&settings)?;
        let Endpoint::Tcp { port, .. } = server.endpoint(Transport::Tcp) else {
            bail!("the server does not listen on TCP");
        };
        let mut out = stdout();
        write!(out, "PostgreSQL {}", installation.version())?;
        match host::halves_of_cpus()
            .as_ref()
            .map(|halves| halves.each_ref().map(|half| half.first().copied()))
        {
            Some([Some(servers), Some(clients)]) if servers != clients => {
                server.set_cpu_affinity(&[servers])?;
                host::pin_to_cpus(None, &[clients]).context("cannot choose the CPU of the clients")?;
                writeln!(out, " on CPU {servers}, clients on CPU {clients}")?;
            }
            _ => writeln!(out, " and clients share a CPU: what a client computes is taken from the server")?,
        }
        let cpu = ServerCpu::new(server.pid())
            .context("cannot read the CPU time of the server: is there no /proc?")?;
        let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
        Ok(Self { server, port, cpu, pgdyno, directory })
    }

    /// For files of clients.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> String {
        self.port.to_string()
    }

    /// CPU time of all its processes since its start, in microseconds.
    pub(crate) fn cpu_us(&mut self) -> Result<f64> {
        self.cpu.read().context("the kernel does not report the CPU time of the server")
    }

    /// Executes a statement in a database.
    pub(crate) fn execute(&self, database: &str, statement: &str) -> Result<()> {
        Ok(self.server.session(database)?.execute(statement)?)
    }

    /// Makes a database anew, as a copy of a template, and writes all to disk.
    pub(crate) fn create(&self, database: &str, template: &str) -> Result<()> {
        self.execute("postgres", &format!("DROP DATABASE IF EXISTS {database}"))?;
        self.execute("postgres", &format!("CREATE DATABASE {database} TEMPLATE {template}"))?;
        Ok(self.server.checkpoint()?)
    }

    /// Writes all to disk, and runs a campaign of one trial on it. The campaign's factors and workloads are given; its server is
    /// `reference`.
    pub(crate) fn campaign(&self, factors: &str) -> Result<TrialRecord> {
        self.server.checkpoint()?;
        let text = format!(
            "name = \"reference\"\n[servers.reference]\ndsn = \"host=127.0.0.1 port={} user=postgres\"\n\
             [run]\nrepeats = 1\nretries = 0\n\
             [factors]\nserver = [\"reference\"]\ntransport = [\"tcp\"]\nwarmup = [\"100ms\"]\n{factors}",
            self.port()
        );
        let directory = tempfile::tempdir_in(self.directory())?;
        let (file, root) = (directory.path().join("campaign.toml"), directory.path().join("store"));
        fs::write(&file, text).context("cannot write the campaign")?;
        let output = Command::new(&self.pgdyno)
            .arg("run")
            .arg(&file)
            .arg("--store")
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.pgdyno.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pgdyno run failed ({}): {errors}", output.status);
        let store = Store::existing(&root)?;
        let trials = store.trials()?;
        let [trial] = trials.as_slice() else {
            bail!("pgdyno made {} trials, not one: {errors}", trials.len())
        };
        if trial.validity.status == Status::Invalid {
            bail!("the trial of pgdyno is invalid: {:?}", trial.validity.findings);
        }
        Ok(store.load(&trial.id)?)
    }
}
