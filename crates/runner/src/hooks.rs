//! Hooks: the user's own commands around a campaign and its trials.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use model::cell::Cell;
use model::factor::Factor;
use model::message::{Connection, Endpoint};
use rustix::process::{Pid, Signal, kill_process_group};

/// How often to look whether a command has ended, or the user wants to stop.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// How long the output of a command that has ended may take to end.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// What a hook is told by its environment, each as `PGDYNO_…`.
#[derive(Clone, Default)]
pub(crate) struct Told(Vec<(String, String)>);

impl Told {
    /// Of a campaign.
    pub(crate) fn campaign(name: &str, run: &str) -> Self {
        Self(vec![("PGDYNO_CAMPAIGN".to_owned(), name.to_owned()), ("PGDYNO_RUN".to_owned(), run.to_owned())])
    }

    /// Of a trial as well: each factor's level.
    pub(crate) fn with_cell(mut self, cell: &Cell) -> Self {
        for factor in Factor::ALL {
            self.0.push((format!("PGDYNO_{}", factor.name().to_uppercase()), factor.level(cell)));
        }
        self
    }

    /// One more.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((format!("PGDYNO_{name}"), value.to_string()));
        self
    }

    /// How to connect to the tested database, by the variables that libpq reads: `psql` alone does it. Of a server that
    /// is given by a connection string, that is told as `PGDYNO_CONNINFO`, and the rest as always.
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
}

/// Runs a hook by the shell and waits for its end. It is killed, with what it has started, where the user wants to stop.
///
/// # Errors
/// It can't be run, fails, or was killed; with what it wrote last.
pub(crate) fn run(command: &str, told: &Told, interrupt: &AtomicBool) -> Result<(), String> {
    let failed = |why: String| Err(format!("the hook `{command}` {why}"));
    let child = Command::new("sh")
        .args(["-c", command])
        .envs(told.0.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!("can't be run: {error}")),
    };
    let outputs = [child.stdout.take().map(reader), child.stderr.take().map(reader)];
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if interrupt.load(Ordering::Relaxed) => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return failed("was ended by the user".to_owned());
            }
            Ok(None) => thread::sleep(LOOK_AROUND),
            Err(error) => return failed(format!("can't be waited for: {error}")),
        }
    };
    if status.success() {
        return Ok(());
    }
    // What it has left running may hold on to its output.
    let said: String = outputs
        .into_iter()
        .flatten()
        .filter_map(|output| output.recv_timeout(LAST_WORDS_WITHIN).ok())
        .collect();
    failed(match said.trim() {
        "" => format!("failed ({status}) without a word"),
        said => format!("failed ({status}): {}", last(said)),
    })
}

/// Reads to the end beside the command, so that it never waits for us.
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
fn last(text: &str) -> String {
    const MOST: usize = 5;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MOST)..].join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_now(command: &str) -> Result<(), String> {
        run(command, &Told::campaign("c", "r").with("TRIAL", 7), &AtomicBool::new(false))
    }

    #[test]
    fn a_hook_is_told_by_its_environment_and_fails_with_its_last_words() {
        assert_eq!(run_now("test $PGDYNO_CAMPAIGN = c -a $PGDYNO_TRIAL = 7"), Ok(()));
        let error = run_now("echo one; echo two >&2; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && error.contains("one · two"), "{error}");
        assert!(run_now("exit 1").unwrap_err().ends_with("without a word"));
    }

    #[test]
    fn a_hook_ends_when_the_user_wants_to_stop() {
        let error = run("sleep 600", &Told::default(), &AtomicBool::new(true)).unwrap_err();
        assert!(error.contains("ended by the user"), "{error}");
    }
}
