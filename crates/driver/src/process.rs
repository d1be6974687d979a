//! The runner's side of the pipes.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use host::process::withhold_variables;
use model::message::{Reply, Request, VERSION};
use model::secret::is_secret_name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::DriverError;

/// Bytes kept of the end of the child's standard error.
const MAX_STDERR_BYTES: usize = 64 * 1024;

/// Characters shown of a line that is not a reply.
const MAX_LINE_CHARS: usize = 200;

/// Time that a child has to exit after it has closed its output, before it is killed.
const EXIT_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// A driver process, killed when dropped.
///
/// The kernel kills it when its parent process ends for any reason. Signals of the terminal do not reach it, because it
/// has its own process group: the runner decides.
#[derive(Debug)]
pub struct Process {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<io::Result<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// The next event of a driver process.
#[derive(Debug)]
pub enum ProcessEvent {
    /// It sent a reply.
    Reply(Reply),
    /// It sent nothing within the timeout.
    TimedOut,
    /// It has exited.
    Exited {
        /// Its exit status.
        status: ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
}

impl Process {
    /// Starts `program` with `args`, which must make it call [`serve`](crate::serve) on its standard input and output.
    pub fn spawn(program: &Path, args: &[&str]) -> Result<Self, DriverError> {
        let spawn_error = |source| DriverError::Spawn { program: program.display().to_string(), source };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        withhold_variables(&mut command, is_secret_name);
        let mut child = host::process::spawn(command, Signal::KILL).map_err(spawn_error)?;
        let (Some(requests), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(spawn_error(io::Error::other("it has no pipes")));
        };
        let (sender, replies) = channel();
        // Both threads end when the pipes that they read are closed.
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || tail(errors));
        Ok(Self { child, requests, replies, stderr: Some(stderr) })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request.
    pub fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        let mut line = serde_json::to_vec(request).map_err(|error| DriverError::Send(error.into()))?;
        line.push(b'\n');
        self.requests.write_all(&line).map_err(DriverError::Send)
    }

    /// Begins a slice of a load in slices.
    pub fn resume(&mut self) -> Result<(), DriverError> {
        self.send(&Request::Resume)
    }

    /// Ends the slice, of which the process then sends a [`Reply::Paused`].
    pub fn pause(&mut self) -> Result<(), DriverError> {
        self.send(&Request::Pause)
    }

    /// Waits for the next event, no longer than `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        match self.replies.recv_timeout(timeout) {
            Ok(line) => parse_reply(&line.map_err(DriverError::Wait)?).map(ProcessEvent::Reply),
            Err(RecvTimeoutError::Timeout) => Ok(ProcessEvent::TimedOut),
            Err(RecvTimeoutError::Disconnected) => self.exited(),
        }
    }

    /// Kills the process; [`next`](Self::next) then returns its remaining replies and its exit.
    pub fn kill(&mut self) -> Result<(), DriverError> {
        self.child.kill().map_err(DriverError::Wait)
    }

    /// Waits for the exit of a child that has closed its output.
    fn exited(&mut self) -> Result<ProcessEvent, DriverError> {
        if !self.exits_in_time() {
            self.kill()?;
        }
        let status = self.child.wait().map_err(DriverError::Wait)?;
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok(ProcessEvent::Exited { status, stderr })
    }

    fn exits_in_time(&mut self) -> bool {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return true;
        }
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return false };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        let mut ends = [PollFd::new(&process, PollFlags::IN)];
        matches!(poll(&mut ends, Some(&EXIT_TIMEOUT)), Ok(1))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the child has already been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse_reply(line: &str) -> Result<Reply, DriverError> {
    let reply = serde_json::from_str(line).map_err(|error| DriverError::InvalidReply {
        problem: error.to_string(),
        line: line.chars().take(MAX_LINE_CHARS).collect(),
    })?;
    match reply {
        Reply::Hello { version } if version != VERSION => {
            Err(DriverError::Version { driver: version, runner: VERSION })
        }
        reply => Ok(reply),
    }
}

/// Reads a process's standard error to its end, and returns the last part.
pub fn tail(mut input: impl Read) -> String {
    let mut kept = VecDeque::new();
    let mut buffer = [0; 4096];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                kept.extend(&buffer[..read]);
                let excess = kept.len().saturating_sub(MAX_STDERR_BYTES);
                kept.drain(..excess);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}
