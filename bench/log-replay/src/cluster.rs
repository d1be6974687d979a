//! Servers that log what both programs need.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use host::{Cache, NoProgress, ServerUser};
use tempfile::TempDir;

/// The role that owns everything. pgreplay connects as the recorded role, to the recorded database.
const ROLE: &str = "app";
const DATABASE: &str = "postgres";
/// Of all servers, of which one runs at a time.
pub(crate) const PORT: &str = "5432";
/// The only one that pgreplay reads.
pub(crate) const PREFIX: &str = "%m|%u|%d|%c|";
const SETTINGS: &str = "
listen_addresses = ''
port = 5432
shared_buffers = 128MB
fsync = off
autovacuum = off
logging_collector = on
log_destination = 'stderr,csvlog,jsonlog'
log_directory = 'log'
log_filename = 'server.log'
log_line_prefix = '%m|%u|%d|%c|'
log_statement = all
log_connections = on
log_disconnections = on
log_parameter_max_length_on_error = -1
lc_messages = C
log_timezone = UTC
";

/// A directory for servers, and their programs.
pub(crate) struct Machine {
    programs: PathBuf,
    user: ServerUser,
    directory: TempDir,
}

/// A running server.
pub(crate) struct Cluster<'a> {
    machine: &'a Machine,
    name: String,
}

impl Machine {
    pub(crate) fn new(version: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let user = ServerUser::choose()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let sockets = directory.path().join("sockets");
        fs::create_dir(&sockets)?;
        user.chown(&sockets)?;
        let installation = server::install(&Cache::open()?, version, &NoProgress)?;
        Ok(Self { programs: installation.directory().join("bin"), user, directory })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Its log for stderr.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.log_as(name, "log")
    }

    /// Its log with this extension: `log`, `csv` or `json`.
    pub(crate) fn log_as(&self, name: &str, extension: &str) -> PathBuf {
        self.path(name).join("log/server").with_extension(extension)
    }

    /// The same place for servers of another version.
    pub(crate) fn of_version(self, version: &str) -> Result<Self> {
        let installation = server::install(&Cache::open()?, version, &NoProgress)?;
        Ok(Self { programs: installation.directory().join("bin"), ..self })
    }

    /// Initializes and starts a server.
    pub(crate) fn initialize(&self, name: &str) -> Result<Cluster<'_>> {
        let data = self.path(name);
        fs::create_dir(&data)?;
        self.user.chown(&data)?;
        self.run("initdb", &["-D", name, "-A", "trust", "-U", ROLE, "--no-sync", "--locale=C"])?;
        let settings = data.join("postgresql.conf");
        fs::write(&settings, fs::read_to_string(&settings)? + SETTINGS)?;
        self.start(name)
    }

    /// Starts a copy of a server that was stopped, with an empty log.
    pub(crate) fn copy(&self, from: &str, name: &str) -> Result<Cluster<'_>> {
        let copied = Command::new("cp").arg("-a").arg(self.path(from)).arg(self.path(name)).status()?;
        ensure!(copied.success(), "cannot copy the data directory");
        fs::remove_dir_all(self.path(name).join("log"))?;
        self.start(name)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        Ok(fs::remove_dir_all(self.path(name))?)
    }

    fn start(&self, name: &str) -> Result<Cluster<'_>> {
        let options = format!("-k {}", self.path("sockets").display());
        self.run("pg_ctl", &["-D", name, "-l", "/dev/null", "-o", &options, "-w", "start"])?;
        Ok(Cluster { machine: self, name: name.to_owned() })
    }

    fn run(&self, program: &str, args: &[&str]) -> Result<()> {
        let mut command = Command::new(self.programs.join(program));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        self.user.apply_to(&mut command);
        let status = command.status().with_context(|| format!("cannot start {program}"))?;
        ensure!(status.success(), "{program} {args:?} failed");
        Ok(())
    }
}

impl Cluster<'_> {
    pub(crate) fn sockets(&self) -> PathBuf {
        self.machine.path("sockets")
    }

    /// Has a program connect to it.
    pub(crate) fn connect(&self, command: &mut Command) {
        command
            .env("PGHOST", self.sockets())
            .env("PGUSER", ROLE)
            .env("PGDATABASE", DATABASE)
            .env("PGPORT", PORT);
    }

    /// Runs a script by `pgdyno bench`.
    pub(crate) fn bench(&self, program: &Path, script: &str, args: &[&str]) -> Result<()> {
        let file = self.machine.path("script.sql");
        fs::write(&file, script)?;
        let mut command = Command::new(program);
        command.arg("bench").arg(&file).args(args).args(["--quiet", "--allow-concurrent"]);
        self.connect(&mut command);
        crate::usage::measured(&mut command).map(drop)
    }

    pub(crate) fn stop(self) -> Result<()> {
        self.machine.run("pg_ctl", &["-D", &self.name, "-m", "fast", "-w", "stop"])
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        // After `stop` there is none.
        let file = self.machine.path(&self.name).join("postmaster.pid");
        if file.exists() {
            let _ = self.machine.run("pg_ctl", &["-D", &self.name, "-m", "immediate", "stop"]);
        }
    }
}
