//! Runs the real program on real servers, and inspects the processes and trials that it leaves.

// Each test file uses only a part of this.
#![allow(dead_code)]

pub(crate) mod application;
pub(crate) mod nats;
pub(crate) mod pgbench;
pub(crate) mod serve;
pub(crate) mod theirs;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::record::Trial;
use store::Store;
use tempfile::TempDir;

/// Longer than any step takes on a slow machine: a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(240);

/// A directory with a campaign, and the store next to it.
pub(crate) struct Bench {
    directory: TempDir,
}

/// Xorshift generator of what is killed, and when: the same for the same seed, which is not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A running pgdyno.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    received: Vec<String>,
}

impl Bench {
    pub(crate) fn new(campaign: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("campaign.toml"), campaign).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command.args(args).current_dir(self.path()).env_remove("PGDYNO_STORE");
        // Tests run at the same time, and must not wait for each other.
        command.env("PGDYNO_QUEUE", self.path());
        command
    }

    /// Runs pgdyno to its end.
    pub(crate) fn pgdyno(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts `pgdyno run campaign.toml`.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&["run", "campaign.toml"])
    }

    /// Starts pgdyno.
    pub(crate) fn start_with(&self, args: &[&str]) -> Running {
        self.start_command(self.command(args))
    }

    /// Starts a command of pgdyno.
    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Running { child, lines, received: Vec::new() }
    }

    pub(crate) fn store(&self) -> Store {
        Store::existing(&self.path().join(".pgdyno")).unwrap()
    }

    pub(crate) fn trials(&self) -> Vec<Trial> {
        self.store().trials().unwrap()
    }
}

/// The histograms of an interval log that have this tag, merged.
pub(crate) fn merged(log: &str, tag: &str) -> Histogram<u64> {
    let mut merged = Histogram::new(3).unwrap();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        if interval.tag().is_some_and(|of| of.as_str() == tag) {
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            merged.add(histogram).unwrap();
        }
    }
    merged
}

/// A process, distinguished from a later one with the same id by its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) command: String,
    pub(crate) parent: i32,
    start_time: String,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name in parentheses: state, parent, …, and start time as the 20th field.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let command =
            String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ");
        (fields[0] != "Z").then(|| Self {
            pid,
            command,
            parent: fields[1].parse().unwrap_or(0),
            start_time: fields[19].to_owned(),
        })
    }

    fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start_time == self.start_time)
    }
}

/// A process and all its descendants, parents before children.
pub(crate) fn process_tree(root: i32) -> Vec<Process> {
    let all: Vec<Process> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut process_tree: Vec<Process> = all.iter().filter(|process| process.pid == root).cloned().collect();
    let mut next = 0;
    while next < process_tree.len() {
        let parent = process_tree[next].pid;
        process_tree.extend(all.iter().filter(|process| process.parent == parent).cloned());
        next += 1;
    }
    process_tree
}

/// Waits until every process of a tree is gone.
pub(crate) fn wait_until_gone(process_tree: &[Process]) {
    wait_until(&format!("these are gone: {process_tree:#?}"), || !process_tree.iter().any(Process::is_alive));
}

/// Waits until `condition` returns true; panics with `what` if it takes too long.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The command by which a hook waits until a test creates a file; not for ever, so that a test ends that fails before.
pub(crate) fn until_exists(name: &str) -> String {
    format!("for i in $(seq 6000); do [ -e {name} ] && break; sleep 0.05; done; [ -e {name} ]")
}

pub(crate) fn signal(pid: i32, signal: libc::c_int) {
    // SAFETY: kill has no preconditions; the process is one that the test started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal} to {pid}");
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// pgdyno and all its descendants.
    pub(crate) fn process_tree(&self) -> Vec<Process> {
        process_tree(self.pid())
    }

    /// The first of the process tree, parents before children, whose command line contains `text`.
    pub(crate) fn process(&self, text: &str) -> Process {
        let process_tree = self.process_tree();
        let found = process_tree.iter().find(|process| process.command.contains(text));
        found.cloned().unwrap_or_else(|| panic!("{text:?} is not among {process_tree:#?}"))
    }

    /// Waits for a line on standard error that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => {
                    let found = line.contains(text);
                    self.received.push(line);
                    if found {
                        return;
                    }
                }
                Err(error) => panic!("{text:?} was not printed ({error}); output: {:#?}", self.received),
            }
        }
    }

    /// Waits for the end: exit code (none after a signal) and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        self.received.extend(self.lines.iter());
        (status.code(), self.received.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text with its continuation lines joined.
pub(crate) fn joined(text: &str) -> String {
    text.replace("\n  ", " ")
}

/// Everything a command printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Directory of a bundle.
pub(crate) fn bundle(bench: &Bench, id: &str) -> PathBuf {
    bench.path().join(".pgdyno/trials").join(id)
}
