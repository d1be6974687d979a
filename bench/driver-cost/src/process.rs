//! One command, run to its end, and its resource usage as counted by the kernel.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use processes::Usage;
use tempfile::{NamedTempFile, tempfile};

use crate::interrupt::Interrupt;

/// Interval at which a running command is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit of a command, in addition to its requested length.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The kernel's event at each system call, and the program that counts it.
const SYSCALLS: &str = "raw_syscalls:sys_enter";
const PERF: &str = "perf";

/// The output and resource usage of a command, its children included.
pub(crate) struct Execution {
    pub(crate) output: String,
    /// Time from its start to its end.
    pub(crate) elapsed: Duration,
    /// CPU time, user and system, in microseconds.
    pub(crate) cpu_us: f64,
    /// Context switches, voluntary and not.
    pub(crate) switches: f64,
    /// Peak resident size, if the command ran long enough to be sampled.
    pub(crate) peak_bytes: Option<f64>,
}

/// Runs a command that takes at least `takes` by itself. Ctrl-C does not reach it: this process ends it.
pub(crate) fn run(words: &[String], takes: Duration, interrupt: &Interrupt) -> Result<Execution> {
    let [program, arguments @ ..] = words else { bail!("no command") };
    let (mut stdout, mut stderr) = (tempfile()?, tempfile()?);
    let before = Usage::of_children()?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut peak_bytes = None;
    let ended = wait(&mut child, start + takes + TIMEOUT, interrupt, &mut peak_bytes);
    if ended.is_err() {
        // It may have ended by itself in between.
        let _ = child.kill();
        let _ = child.wait();
    }
    let command = words.join(" ");
    let status = ended.with_context(|| format!("in {command}"))?;
    let (elapsed, after) = (start.elapsed(), Usage::of_children()?);
    if !status.success() {
        bail!("{command} failed ({status}): {}", read_text(&mut stderr)?.trim());
    }
    let output = read_text(&mut stdout)?;
    let (cpu_us, switches) = (after.cpu_us - before.cpu_us, after.switches - before.switches);
    Ok(Execution { output, elapsed, cpu_us, switches, peak_bytes })
}

/// Number of system calls of a command, and its output and resource usage, perf's own included.
pub(crate) fn run_counted(
    words: &[String],
    takes: Duration,
    interrupt: &Interrupt,
) -> Result<(f64, Execution)> {
    let file = NamedTempFile::new()?;
    let name = file.path().to_str().context("the path of the temporary directory is not UTF-8")?;
    let perf = [PERF, "stat", "-x", ",", "-e", SYSCALLS, "-o", name, "--"].map(str::to_owned);
    let execution = run(&[&perf, words].concat(), takes, interrupt)?;
    let text = fs::read_to_string(file.path())?;
    let count = text.lines().find(|line| line.contains(SYSCALLS)).and_then(|line| line.split(',').next());
    let count = count.and_then(|count| count.parse().ok());
    Ok((count.with_context(|| format!("no count in the output of {PERF}: {text}"))?, execution))
}

/// Whether system calls can be counted here.
pub(crate) fn can_count_syscalls(interrupt: &Interrupt) -> bool {
    run_counted(&["true".to_owned()], Duration::ZERO, interrupt).is_ok()
}

fn wait(
    child: &mut Child,
    deadline: Instant,
    interrupt: &Interrupt,
    peak_bytes: &mut Option<f64>,
) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        interrupt.check()?;
        if Instant::now() > deadline {
            bail!("did not end within {TIMEOUT:?} after its planned end");
        }
        // The last sample counts: earlier ones may be from before the process executed the program.
        *peak_bytes = peak_of(child.id()).or(*peak_bytes);
        thread::sleep(POLL_INTERVAL);
    }
}

/// Peak resident size of a process and of its children now alive, by `VmHWM` in `/proc/<pid>/status`; None if it is
/// just ending.
fn peak_of(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    // A kernel without this file does not list children.
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let of_children = children.split_whitespace().filter_map(|child| peak_of(child.parse().ok()?));
    Some(kilobytes * 1024.0 + of_children.sum::<f64>())
}

fn read_text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
