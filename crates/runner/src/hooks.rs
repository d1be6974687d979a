//! Hooks: the user's own commands around a campaign and its trials.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use model::cell::Cell;
use model::factor::Factor;
use model::message::{Connection, Endpoint};
use model::secret::{is_secret_name, mask_known, secrets};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

/// Interval between checks for the end of a hook and for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for reading the output of a hook that has ended: processes that it started may keep the output open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A hook that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("the hook `{command}` {problem}")]
pub struct HookError {
    pub(crate) command: String,
    #[source]
    pub(crate) problem: Problem,
}

/// Failure of a hook.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("can't be run: {0}")]
    Start(#[source] io::Error),
    #[error("can't be waited for: {0}")]
    Wait(#[source] io::Error),
    #[error("was ended by the user")]
    Interrupted,
    #[error("failed ({0}) without output")]
    Silent(ExitStatus),
    #[error("failed ({status}): {output}")]
    Failed {
        status: ExitStatus,
        /// The end of its output, in one line.
        output: String,
    },
}

/// The environment variables that a hook gets in addition to pgdyno's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookEnv(Vec<(String, String)>);

impl HookEnv {
    /// The variables of a campaign's hooks.
    pub(crate) fn new(campaign: &str, run: &str) -> Self {
        Self::default().with("CAMPAIGN", campaign).with("RUN", run)
    }

    /// Adds a variable for each factor, with the cell's level.
    pub(crate) fn with_cell(mut self, cell: &Cell) -> Self {
        for factor in Factor::ALL {
            self = self.with(&factor.name().to_uppercase(), factor.level(cell));
        }
        self
    }

    /// Adds the variable `PGDYNO_<name>`.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((format!("PGDYNO_{name}"), value.to_string()));
        self
    }

    /// Adds libpq's variables, so that `psql` without arguments connects to the tested database. For a server given by
    /// a connection string, host and port are in `PGDYNO_CONNINFO`.
    pub(crate) fn with_connection(mut self, connection: &Connection) -> Self {
        let mut libpq = |name: &str, value: String| self.0.push((name.to_owned(), value));
        libpq("PGUSER", connection.user.clone());
        libpq("PGDATABASE", connection.database.clone());
        if let Some(password) = &connection.password {
            libpq("PGPASSWORD", password.clone());
        }
        let (host, port) = match &connection.endpoint {
            Endpoint::Unix { directory, port } => (directory, port),
            Endpoint::Tcp { host, port } => (host, port),
            Endpoint::Conninfo { conninfo } => return self.with("CONNINFO", conninfo),
        };
        libpq("PGHOST", host.clone());
        libpq("PGPORT", port.to_string());
        self
    }

    /// Adds the socket of a standby or subscriber: `PGDYNO_REPLICA_HOST` and `PGDYNO_REPLICA_PORT`.
    pub(crate) fn with_replica(self, connection: &Connection) -> Self {
        match &connection.endpoint {
            Endpoint::Unix { directory, port } => {
                self.with("REPLICA_HOST", directory).with("REPLICA_PORT", port)
            }
            Endpoint::Tcp { .. } | Endpoint::Conninfo { .. } => self,
        }
    }
}

/// Runs a hook in a shell and waits for its end. An interrupt kills it, with everything it started.
///
/// # Errors
/// It can't be run, fails or is killed. Command and output are without the secrets of the command and of the environment.
pub(crate) fn run(command: &str, env: &HookEnv, interrupt: &AtomicBool) -> Result<(), HookError> {
    let known = known_secrets(command, env);
    wait(command, env, &known, interrupt)
        .map_err(|problem| HookError { command: mask_known(command, &known), problem })
}

/// Makes a shell run the command on its standard input: everybody can read the command lines of processes.
const RUN_INPUT: &str = "pgdyno_hook=$(cat) && exec </dev/null && eval \"$pgdyno_hook\"";

fn wait(command: &str, env: &HookEnv, known: &[String], interrupt: &AtomicBool) -> Result<(), Problem> {
    let mut child = Command::new("sh")
        .args(["-c", RUN_INPUT])
        .envs(env.0.iter().map(|(name, value)| (name, value)))
        .stdin(input(command).map_err(Problem::Start)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(Problem::Start)?;
    let outputs = [child.stdout.take().map(reader), child.stderr.take().map(reader)];
    let status = loop {
        match child.try_wait().map_err(Problem::Wait)? {
            Some(status) => break status,
            None if interrupt.load(Ordering::Relaxed) => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(Problem::Interrupted);
            }
            None => thread::sleep(POLL_INTERVAL),
        }
    };
    if status.success() {
        return Ok(());
    }
    let output: String =
        outputs.into_iter().flatten().filter_map(|output| output.recv_timeout(OUTPUT_TIMEOUT).ok()).collect();
    Err(match output.trim() {
        "" => Problem::Silent(status),
        output => Problem::Failed { status, output: last_lines(&mask_known(output, known)) },
    })
}

/// A file in memory with this text.
fn input(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"hook", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Secrets in a hook's command and in its environment, which its output may repeat.
fn known_secrets(command: &str, env: &HookEnv) -> Vec<String> {
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables = own.chain(env.0.iter().cloned()).filter(|(name, _)| is_secret_name(name));
    let written = secrets(command).into_iter().map(|secret| command[secret].to_owned());
    written.chain(variables.map(|(_, value)| value)).collect()
}

/// Reads the output to its end in a thread, so that the hook never blocks on a full pipe.
fn reader(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, text) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

/// The end of a text, in one line.
fn last_lines(text: &str) -> String {
    const MAX_LINES: usize = 5;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_LINES)..].join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_now(command: &str) -> Result<(), String> {
        let env = HookEnv::new("c", "r").with("TRIAL", 7);
        run(command, &env, &AtomicBool::new(false)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_hook_has_its_environment_and_fails_with_the_end_of_its_output() {
        assert_eq!(run_now("test $PGDYNO_CAMPAIGN = c -a $PGDYNO_TRIAL = 7"), Ok(()));
        let error = run_now("echo one; echo two >&2; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && error.contains("one · two"), "{error}");
        assert!(run_now("exit 1").unwrap_err().ends_with("(exit status: 1) without output"));
        assert_eq!(
            run_now("cat; x=$(cat <<'END'\na \"b\"\nEND\n)\ntest \"$x\" = 'a \"b\"'"),
            Ok(()),
            "no input"
        );
    }

    #[test]
    fn no_secret_of_a_hook_is_in_its_error_or_on_a_command_line() {
        let mut connection = Connection {
            endpoint: Endpoint::Unix { directory: "/tmp".to_owned(), port: 5432 },
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: None,
        };
        connection.password = Some("from-connection".to_owned());
        let env = HookEnv::new("c", "r").with_connection(&connection);
        let command = "TOKEN=in-command; echo $TOKEN $PGPASSWORD password=in-output; tr '\\0' ' ' </proc/$$/cmdline; exit 1";
        let error = run(command, &env, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("`TOKEN=(masked); echo"), "{error}");
        assert!(error.contains(": (masked) (masked) password=(masked)"), "{error}");
        assert!(error.contains("sh -c pgdyno_hook") && error.matches("TOKEN").count() == 2, "{error}");
    }

    #[test]
    fn an_interrupt_ends_a_hook() {
        let error = run("sleep 600", &HookEnv::default(), &AtomicBool::new(true)).unwrap_err().to_string();
        assert!(error.contains("ended by the user"), "{error}");
    }
}
