//! The runner's side of the pipes.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::message::{Reply, Request, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::DriverError;

/// How much of the child's standard error is kept: its end, in bytes.
const STDERR_CAPACITY: usize = 64 * 1024;

/// How much of a line that is no reply is shown, in characters.
const LINE_SHOWN: usize = 200;

/// How long a child may live on after it has closed its output before it is killed.
const EXIT_LIMIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// A driver process. Dropped, it is killed.
///
/// The kernel kills it when the process that started it ends, however that happens. Signals of the terminal do not reach it,
/// as it is in a process group of its own: the runner decides.
#[derive(Debug)]
pub struct Process {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<io::Result<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// What comes next from a driver process.
#[derive(Debug)]
pub enum Next {
    /// It says something.
    Reply(Reply),
    /// It said nothing in that time.
    TimedOut,
    /// It is gone.
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to its standard error.
        stderr: String,
    },
}

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts `program` with `args`, which have to make it call [`serve`](crate::serve) on its standard input and
    /// output.
    pub fn spawn(program: &Path, args: &[&str]) -> Result<Self, DriverError> {
        let refused = |source| DriverError::Spawn { program: program.display().to_string(), source };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = host::process::spawn(command, Signal::KILL).map_err(refused)?;
        let (Some(requests), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(refused(io::Error::other("it has no pipes")));
        };
        let (sender, replies) = channel();
        // Both threads end with the pipes that they read.
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

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for something.
    pub fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        let mut line = serde_json::to_vec(request).map_err(|error| DriverError::Send(error.into()))?;
        line.push(b'\n');
        self.requests.write_all(&line).map_err(DriverError::Send)
    }

    /// Waits for what comes next, no longer than `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<Next, DriverError> {
        match self.replies.recv_timeout(timeout) {
            Ok(line) => reply(&line.map_err(DriverError::Wait)?).map(Next::Reply),
            Err(RecvTimeoutError::Timeout) => Ok(Next::TimedOut),
            Err(RecvTimeoutError::Disconnected) => self.exited(),
        }
    }

    /// Kills the process; [`next`](Self::next) then brings what it said before, and its end.
    pub fn kill(&mut self) -> Result<(), DriverError> {
        self.child.kill().map_err(DriverError::Wait)
    }

    /// Waits for the end of a child that has closed its output.
    fn exited(&mut self) -> Result<Next, DriverError> {
        if !self.ends_soon() {
            self.kill()?;
        }
        let status = self.child.wait().map_err(DriverError::Wait)?;
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok(Next::Exited { status, stderr })
    }

    fn ends_soon(&mut self) -> bool {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return true;
        }
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return false };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        let mut ends = [PollFd::new(&process, PollFlags::IN)];
        matches!(poll(&mut ends, Some(&EXIT_LIMIT)), Ok(1))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Neither fails but for a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reply(line: &str) -> Result<Reply, DriverError> {
    let reply = serde_json::from_str(line).map_err(|error| DriverError::NoReply {
        problem: error.to_string(),
        line: line.chars().take(LINE_SHOWN).collect(),
    })?;
    match reply {
        Reply::Hello { version: theirs } if theirs != VERSION => {
            Err(DriverError::Version { theirs, ours: VERSION })
        }
        reply => Ok(reply),
    }
}

/// The end of what comes.
fn tail(mut input: impl Read) -> String {
    let mut kept = VecDeque::new();
    let mut buffer = [0; 4096];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                kept.extend(&buffer[..read]);
                let excess = kept.len().saturating_sub(STDERR_CAPACITY);
                kept.drain(..excess);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}
