//! Starting `postgres` on a data directory, and waiting until it accepts connections.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::secret::mask;
use model::units::Size;
use model::version::Major;
use rustix::process::Signal;
use wire::blocking::Session;
use wire::{NoRandomNumbers, quote_literal, random_password, stored_password};

use crate::access::{Access, AccessFiles, has_scram, write_files};
use crate::control::socket_params;
use crate::data::initdb::SETTINGS_FILE;
use crate::error::{Error, sql_text};
use crate::limits::Group;
use crate::process::end_all;
use crate::programs::installation::Installation;
use host::IoContext;
use host::ServerUser;
use host::files::{read_regular, write_regular};
use host::process::{LOG_TAIL_LINES, POLL_INTERVAL, enter_cgroups, last_lines, spawn, spawn_detached};

/// Time limit of a start, which includes recovery if the server was killed.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Attempts with other ports, if another process takes the free one first.
const PORT_ATTEMPTS: u32 = 5;
/// Mode of logs, as PostgreSQL's own default: they have statements, and thus passwords.
pub(crate) const LOG_MODE: u32 = 0o600;

/// Settings through which pgdyno reaches the server and its log.
const OWN_SETTINGS: [&str; 10] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "unix_socket_directories",
];

/// Settings that make the log report events of the server, in the format that `collect::server_log` reads. Each
/// cluster's own settings override them. They cost nothing unless there is an event: manual, "Error Reporting and
/// Logging".
const LOG_SETTINGS: [(&str, &str); 7] = [
    // Time, process, SQLSTATE, kind of process (from 13 on), application.
    ("log_line_prefix", "%m [%p] %e <%b> <%a> "),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_checkpoints", "on"),
    ("log_autovacuum_min_duration", "0"),
    ("log_temp_files", "0"),
    // Waits longer than deadlock_timeout, after which the server checks for deadlocks anyway.
    ("log_lock_waits", "on"),
];

/// Parameters of a start.
pub(crate) struct Launch<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) user: &'a ServerUser,
    /// pgdyno's own directory, outside the data directory, for the access files.
    pub(crate) home: &'a Path,
    pub(crate) data: &'a Path,
    pub(crate) sockets: &'a Path,
    pub(crate) log: &'a Path,
    pub(crate) settings: &'a BTreeMap<String, String>,
    /// Required port; none for any free one.
    pub(crate) port: Option<u16>,
    /// Clients that may connect.
    pub(crate) access: Access<'a>,
    /// Whether the server outlives this process.
    pub(crate) detached: bool,
    /// Control groups that it runs in; none for those of this process.
    pub(crate) group: Option<&'a Group>,
}

/// Reason that a server does not accept connections.
#[derive(Debug, thiserror::Error)]
enum NotReady {
    #[error("it ended immediately ({0})")]
    Ended(ExitStatus),
    #[error("its state can't be read ({0})")]
    Unobservable(#[source] io::Error),
    #[error("its password could not be set ({0})")]
    Password(String),
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
    #[error("it was not ready within {} s ({last})", START_TIMEOUT.as_secs())]
    TimedOut { last: String },
}

/// A server that accepts connections.
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// Password over TCP, generated for this start; none for a server that does not listen there.
    pub(crate) password: Option<String>,
    /// Offset of this start in the log file.
    pub(crate) log_from: u64,
}

impl Launch<'_> {
    /// Starts the server and waits until it accepts connections.
    pub(crate) fn run(&self) -> Result<Launched, Error> {
        self.write_settings()?;
        let files = write_files(self.home, self.user, self.major(), self.access)?;
        let mut attempt = 1;
        loop {
            match self.attempt(self.port.map_or_else(free_port, Ok)?, &files) {
                Err(Error::Start { log, .. })
                    if self.port.is_none() && attempt < PORT_ATTEMPTS && port_was_taken(&log) =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn major(&self) -> Major {
        self.installation.version().major()
    }

    fn attempt(&self, port: u16, files: &AccessFiles) -> Result<Launched, Error> {
        let mut options = OpenOptions::new();
        let log = options.create(true).append(true).mode(LOG_MODE).open(self.log).doing("write", self.log)?;
        // Logs of earlier releases could be read by all.
        log.set_permissions(Permissions::from_mode(LOG_MODE)).doing("close to others", self.log)?;
        let log_from = log.metadata().doing("inspect", self.log)?.len();
        let mut postgres = self.installation.command("postgres", self.user);
        postgres
            .arg("-D")
            .arg(self.data)
            .args([
                "-c",
                if self.access.listens() { "listen_addresses=127.0.0.1" } else { "listen_addresses=" },
            ])
            .args(["-c", &format!("port={port}")])
            .args(["-c", &format!("hba_file={}", files.hba.display())])
            .args(["-c", &format!("ident_file={}", files.ident.display())])
            .arg("-c")
            // A list, so that a comma in the path must be quoted.
            .arg(format!("unix_socket_directories=\"{}\"", self.sockets.display()))
            .args(["-c", "logging_collector=off", "-c", "log_destination=stderr"])
            .current_dir(self.data)
            .stdin(Stdio::null())
            .stdout(log.try_clone().doing("write", self.log)?)
            .stderr(log);
        enter_cgroups(&mut postgres, self.group.map_or_else(|| Ok(Vec::new()), Group::procs_files)?);
        let child = if self.detached {
            spawn_detached(postgres)
        } else {
            // On SIGQUIT the postmaster ends all its children at once; after SIGKILL they would stay until they next
            // check for it.
            spawn(postgres, Signal::QUIT)
        };
        let child = child.doing("run", &self.installation.program("postgres"))?;
        let mut launched = Launched { child, port, password: None, log_from };
        let ready = self.wait_until_ready(&mut launched);
        if let Err(error) = ready.and_then(|()| self.set_password(&mut launched)) {
            if let Ok(None) = launched.child.try_wait() {
                end_all(self.data)?;
                let _ = launched.child.wait();
            }
            return Err(Error::Start {
                version: self.installation.version().to_string(),
                directory: self.data.to_owned(),
                why: format!("{error}{}", self.out_of_memory()),
                log: mask(&last_lines(
                    &log_text(&read_log(self.log, log_from).unwrap_or_default()),
                    LOG_TAIL_LINES,
                )),
            });
        }
        Ok(launched)
    }

    /// Effects of its memory limit; empty if that did not cause the failure.
    fn out_of_memory(&self) -> String {
        let limits = self.group.map(Group::in_force);
        match limits
            .and_then(|limits| Some((limits.oom_kills.filter(|kills| *kills > 0)?, limits.memory_bytes?)))
        {
            None => String::new(),
            Some((_, bytes)) => format!(
                "; the kernel killed its processes because it ran out of memory: its limit of {} is too small (lower \
                 shared_buffers, or raise the limit)",
                Size::from_bytes(bytes)
            ),
        }
    }

    fn wait_until_ready(&self, launched: &mut Launched) -> Result<(), NotReady> {
        let end = Instant::now() + START_TIMEOUT;
        let mut last = "it did not report that it is ready".to_owned();
        while Instant::now() < end {
            match launched.child.try_wait() {
                Ok(Some(status)) => return Err(NotReady::Ended(status)),
                Ok(None) => {}
                Err(error) => return Err(NotReady::Unobservable(error)),
            }
            if self.is_ready(launched.child.id()) {
                match Session::connect(&socket_params(self.sockets, launched.port, crate::USER)) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = sql_text(&error),
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(NotReady::TimedOut { last })
    }

    /// Generates and sets the password of a server that listens on TCP.
    fn set_password(&self, launched: &mut Launched) -> Result<(), NotReady> {
        if !self.access.has_password() {
            return Ok(());
        }
        let password = random_password()?;
        let stored = quote_literal(&stored_password(&password, crate::USER, has_scram(self.major())));
        // A standby that commits wait for is not there yet.
        let statement =
            format!("SET synchronous_commit = local; ALTER ROLE {} PASSWORD {stored}", crate::USER);
        Session::connect(&socket_params(self.sockets, launched.port, crate::USER))
            .and_then(|mut session| session.execute(&statement))
            .map_err(|error| NotReady::Password(sql_text(&error)))?;
        launched.password = Some(password);
        Ok(())
    }

    /// The postmaster writes its state to line 8 of `postmaster.pid`, from PostgreSQL 10 on; before, only a connection
    /// shows it.
    fn is_ready(&self, pid: u32) -> bool {
        let Ok(text) = read_regular(&self.data.join("postmaster.pid")) else { return false };
        let mut lines = text.lines().map(str::trim);
        let is_ours = lines.next() == Some(&pid.to_string());
        let has_status = self.installation.version().major() >= Major::new(10);
        is_ours && (!has_status || lines.nth(6) == Some("ready"))
    }

    fn write_settings(&self) -> Result<(), Error> {
        let file = self.data.join(SETTINGS_FILE);
        let text = log_settings() + &settings_text(self.settings)?;
        Ok(self.user.run_as(|| write_regular(&file, text.as_bytes()))?.doing("write", &file)?)
    }
}

/// Bytes of a log file from an offset on.
pub(crate) fn read_log(log: &Path, from: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut file = File::open(log).doing("read", log)?;
    file.seek(SeekFrom::Start(from)).doing("read", log)?;
    file.read_to_end(&mut bytes).doing("read", log)?;
    Ok(bytes)
}

/// Bytes of a log as text. Clients may have sent arbitrary bytes.
pub(crate) fn log_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> Result<u16, Error> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .doing("find a free port on", &PathBuf::from("127.0.0.1"))?)
}

fn port_was_taken(log: &str) -> bool {
    log.contains("Address already in use")
}

/// Of two lines for one setting the server takes the later one: these come first, so that the user's override them.
fn log_settings() -> String {
    LOG_SETTINGS.map(|(name, value)| format!("{name} = '{value}'\n")).concat()
}

/// Settings in the syntax of `postgresql.conf`.
fn settings_text(settings: &BTreeMap<String, String>) -> Result<String, Error> {
    let mut text = String::new();
    for (name, value) in settings {
        let refuse = |why: &str| Err(Error::Setting { name: name.clone(), why: why.to_owned() });
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(is_allowed) {
            return refuse("a name may contain only letters, digits, `_` and `.`");
        }
        if OWN_SETTINGS.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse("pgdyno sets it itself, to connect to the server and read its log");
        }
        if value.contains(['\n', '\r', '\0']) {
            return refuse("its value contains a line break");
        }
        let _ = writeln!(text, "{name} = '{}'", value.replace('\\', "\\\\").replace('\'', "''"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &str) -> Result<String, Error> {
        settings_text(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn settings_are_quoted_as_the_server_reads_them() {
        assert_eq!(text("shared_buffers", "2GB").unwrap(), "shared_buffers = '2GB'\n");
        assert_eq!(text("search_path", r"a'b\c").unwrap(), "search_path = 'a''b\\\\c'\n");
    }

    #[test]
    fn settings_with_invalid_names_or_values_and_pgdynos_own_are_refused() {
        for (name, value) in
            [("a b", "1"), ("", "1"), ("work_mem", "1\nport=1"), ("Port", "1"), ("hba_file", "x")]
        {
            let message = text(name, value).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn the_last_lines_of_a_log_are_returned() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("", 2), "(it is empty)");
    }
}
