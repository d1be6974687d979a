//! A server of an application's own that logs everything, as `pgdyno replay` needs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use host::{Cache, NoProgress, ServerUser};
use serde_json::Value;
use tempfile::TempDir;

/// A server of its own that logs everything, with a collector, which pgdyno's servers do not have.
pub(crate) struct Application {
    programs: PathBuf,
    user: ServerUser,
    directory: TempDir,
}

/// The server's database and role.
pub(crate) const DATABASE: &str = "postgres";
const USER: &str = "app_owner";
const SETTINGS: &str = "\
fsync = off
autovacuum = off
listen_addresses = ''
shared_buffers = 32MB
logging_collector = on
log_destination = 'stderr,csvlog,jsonlog'
log_directory = '../logs'
log_filename = 'server.log'
log_min_duration_statement = 0
log_connections = on
log_disconnections = on
log_parameter_max_length_on_error = -1
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %q%e %u@%d/%a '
";

impl Application {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let user = ServerUser::choose().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["data", "logs", "socket"] {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            user.chown(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let installation = server::install(&Cache::open().unwrap(), "18", &NoProgress).unwrap();
        let application = Self { programs: installation.directory().join("bin"), user, directory };
        application.run("initdb", &["-D", "data", "-A", "trust", "-U", USER, "--no-sync", "--locale=C"]);
        let settings = fs::read_to_string(application.path("data/postgresql.conf")).unwrap() + SETTINGS;
        fs::write(application.path("data/postgresql.conf"), settings).unwrap();
        let options = format!("-k {}", application.path("socket").display());
        application.run("pg_ctl", &["-D", "data", "-l", "logs/start", "-o", &options, "-w", "start"]);
        application
    }

    /// Runs one of the server's programs.
    pub(crate) fn run(&self, program: &str, args: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        self.user.apply_to(&mut command);
        assert!(command.status().unwrap().success(), "{program} {args:?}");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn log(&self, extension: &str) -> String {
        self.path(&format!("logs/server.{extension}")).to_str().unwrap().to_owned()
    }

    /// The csvlog, once it is complete: the server's collector writes it a moment later.
    pub(crate) fn log_until(&self, is_complete: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + super::TIMEOUT;
        loop {
            let log = fs::read_to_string(self.log("csv")).unwrap();
            if is_complete(&log) {
                return log;
            }
            assert!(Instant::now() < end, "{log}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs pgdyno with the connection to the server.
    pub(crate) fn pgdyno(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts pgdyno with the connection to the server.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.args(args).current_dir(self.directory.path());
        command.env("PGHOST", self.path("socket")).env("PGUSER", USER).env("PGDATABASE", DATABASE);
        command.env("PGDYNO_QUEUE", self.directory.path()).env_remove("PGPORT");
        command
    }

    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let output = self.pgdyno(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Reads a log into a trace. Returns what is in it.
    pub(crate) fn read(&self, extension: &str, more: &[&str]) -> Value {
        let (log, trace) = (self.log(extension), self.trace(extension));
        let mut args = vec!["replay", "read", &log, "-o", &trace, "--format", "json"];
        args.extend(more);
        serde_json::from_str(&self.succeed(&args)).unwrap()
    }

    pub(crate) fn trace(&self, extension: &str) -> String {
        self.path(&format!("{extension}.pgdt")).to_str().unwrap().to_owned()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-D", "data", "-m", "immediate", "stop"]);
    }
}
