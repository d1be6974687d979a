//! iibench: a process for each client, each with a table of its own, all at once.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use processes::Usage;

use crate::reference_server::ReferenceServer;
use crate::usage;

/// The database of its tables.
pub(crate) const DATABASE: &str = "reference";
/// How to get it.
pub(crate) const ADVICE: &str =
    "iibench.py is in github.com/mdcallag/mytools, and needs Debian's python3-psycopg2";
/// Interval at which its processes are observed, and so the precision of its times.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The program, and how many of it run at once.
pub(crate) struct Iibench {
    pub(crate) python: PathBuf,
    pub(crate) script: PathBuf,
    pub(crate) clients: u32,
}

/// What all of its processes did in a load.
pub(crate) struct Played {
    /// From the start of the first of the processes that work to the end of the last one, in seconds. What it prints
    /// itself is rounded up to a whole second.
    pub(crate) elapsed_s: f64,
    /// CPU time from then on, in microseconds: without the start of the interpreter.
    pub(crate) client_us: f64,
    /// CPU time of the server, in microseconds.
    pub(crate) server_us: f64,
    /// What each process wrote.
    pub(crate) outputs: Vec<Vec<Line>>,
}

/// A line of output, and when it came.
pub(crate) struct Line {
    pub(crate) at: Instant,
    pub(crate) text: String,
}

impl Iibench {
    /// Runs a load to its end.
    pub(crate) fn play(&self, server: &mut ReferenceServer, args: &[&str]) -> Result<Played> {
        let (client_us, server_us) = (Usage::of_children()?.cpu_us, server.cpu_us()?);
        let processes = (1..=self.clients).map(|number| self.start(server, number, args));
        let mut processes = processes.collect::<Result<Vec<Process>>>()?;
        while processes.iter().any(|process| !process.has_exited) {
            thread::sleep(POLL_INTERVAL);
            for process in processes.iter_mut().filter(|process| !process.has_exited) {
                process.observe().with_context(|| format!("in iibench {}", args.join(" ")))?;
            }
        }
        let begun = processes.iter().filter_map(|process| process.begun).min();
        let ended = processes.iter().filter_map(|process| process.ended).max();
        let (begun, ended) = begun.zip(ended).context(
            "the processes of iibench can't be observed: the kernel has no /proc/PID/task/TID/children",
        )?;
        let startup_us: f64 = processes.iter().map(|process| process.startup_us).sum();
        Ok(Played {
            elapsed_s: ended.duration_since(begun).as_secs_f64(),
            client_us: Usage::of_children()?.cpu_us - client_us - startup_us,
            server_us: server.cpu_us()? - server_us,
            outputs: processes.iter_mut().map(|process| std::mem::take(&mut process.lines)).collect(),
        })
    }

    fn start(&self, server: &ReferenceServer, number: u32, args: &[&str]) -> Result<Process> {
        let errors = server.directory().join(format!("iibench-{number}.log"));
        let mut child = Command::new(&self.python)
            .arg(
                fs::canonicalize(&self.script)
                    .with_context(|| format!("there is no {}: {ADVICE}", self.script.display()))?,
            )
            .args(["--dbms=postgres", "--db_host=127.0.0.1", "--db_user=postgres", "--secs_per_report=1"])
            .args([&format!("--db_name={DATABASE}"), &format!("--table_name=sale{number}")])
            .args(args)
            .env("PGPORT", server.port())
            // So that lines come when they are written.
            .env("PYTHONUNBUFFERED", "1")
            // It writes files.
            .current_dir(server.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).context("cannot create a temporary file")?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.python.display()))?;
        let (send, received) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for text in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                    if send.send(Line { at: Instant::now(), text }).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Process {
            child,
            received,
            errors,
            lines: Vec::new(),
            begun: None,
            startup_us: 0.0,
            ended: None,
            has_exited: false,
        })
    }
}

/// One iibench, with the processes that it starts for statements. It ends with this.
struct Process {
    child: Child,
    received: Receiver<Line>,
    /// File of what it writes to standard error.
    errors: PathBuf,
    lines: Vec<Line>,
    /// Start of the processes that work.
    begun: Option<Instant>,
    /// CPU time until then, in microseconds.
    startup_us: f64,
    /// Their end.
    ended: Option<Instant>,
    has_exited: bool,
}

impl Process {
    fn observe(&mut self) -> Result<()> {
        let (pid, now) = (self.child.id(), Instant::now());
        let is_working = !usage::running_children(pid).is_empty();
        if is_working && self.begun.is_none() {
            self.begun = Some(now);
            self.startup_us = usage::of_process_us(pid).unwrap_or_default();
        }
        if !is_working && self.begun.is_some() {
            self.ended.get_or_insert(now);
        }
        self.lines.extend(self.received.try_iter());
        // It waits for ever for a process that has failed.
        if self.lines.iter().any(|line| line.text.contains("error"))
            || read(&self.errors).contains("Traceback")
        {
            bail!("it failed: {}", self.output());
        }
        if let Some(status) = self.child.try_wait()? {
            self.lines.extend(self.received.iter());
            self.has_exited = true;
            ensure!(status.success(), "it failed ({status}): {}", self.output());
        }
        Ok(())
    }

    fn output(&self) -> String {
        let mut output: String = self.lines.iter().map(|line| format!("{}\n", line.text)).collect();
        output += &read(&self.errors);
        output
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_exited {
            return;
        }
        for child in usage::running_children(self.child.id()) {
            // SAFETY: kill has no preconditions; the process is a child of one that has not been waited for.
            unsafe { libc::kill(child as libc::pid_t, libc::SIGKILL) };
        }
        // It may have ended by itself in between.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
