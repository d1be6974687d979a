//! One measurement of either driver. The CPU time of both is that of the whole process, connecting included, as the
//! kernel tells it when the process has been waited for.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use driver::{Next, Process};
use model::message::{Connection, Endpoint, Load, Outcome, Reply, Request};
use model::workload::{Protocol, Workload};
use tempfile::NamedTempFile;

use crate::DRIVER;

/// How much longer than it should a driver may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The kernel's event at each system call, and the program that counts it.
const SYSCALLS: &str = "raw_syscalls:sys_enter";
const PERF: &str = "perf";

/// Which of the two.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Pgbench,
    Pgdyno,
}

/// The two drivers.
pub(crate) struct Peers {
    pub(crate) pgbench: String,
    pub(crate) scale: u32,
    pub(crate) seconds: u32,
}

/// What one measurement brought.
pub(crate) struct Cost {
    /// Transactions per second, connecting not included.
    pub(crate) tps: f64,
    /// CPU time of the driver for one transaction, user and system, in microseconds.
    pub(crate) cpu_us: f64,
    transactions: f64,
}

impl Peers {
    /// What pgbench says it is.
    pub(crate) fn pgbench_version(&self) -> Result<String> {
        let version = run(&[&self.pgbench, "--version"])
            .context("no peer to compare with: install pgbench, or name one with --pgbench")?;
        Ok(version.trim().to_owned())
    }

    /// One measurement.
    pub(crate) fn measure(&self, who: Who, connection: &Connection, clients: u32) -> Result<Cost> {
        self.run(who, connection, clients, &[])
    }

    /// System calls of the driver for one transaction, in a run of its own, as being counted costs time.
    pub(crate) fn syscalls(&self, who: Who, connection: &Connection, clients: u32) -> Result<f64> {
        let file = NamedTempFile::new()?;
        let name = file.path().to_str().context("the temporary directory has no plain name")?;
        let through = [PERF, "stat", "-x", ",", "-e", SYSCALLS, "-o", name, "--"];
        let cost = self.run(who, connection, clients, &through)?;
        let text = fs::read_to_string(file.path())?;
        let count = text.lines().find(|line| line.contains(SYSCALLS)).and_then(|line| line.split(',').next());
        let count: Option<f64> = count.and_then(|count| count.parse().ok());
        Ok(count.with_context(|| format!("no count in what {PERF} says: {text}"))? / cost.transactions)
    }

    /// Runs a driver, by way of the command `through` if there is one.
    fn run(&self, who: Who, connection: &Connection, clients: u32, through: &[&str]) -> Result<Cost> {
        let before_us = children_cpu_us()?;
        let (transactions, tps) = match who {
            Who::Pgbench => self.run_pgbench(connection, clients, through)?,
            Who::Pgdyno => self.run_pgdyno(connection, clients, through)?,
        };
        let cpu_us = children_cpu_us()? - before_us;
        Ok(Cost { tps, cpu_us: cpu_us / transactions, transactions })
    }

    /// Transactions, and transactions per second.
    fn run_pgbench(&self, connection: &Connection, clients: u32, through: &[&str]) -> Result<(f64, f64)> {
        let (Endpoint::Unix { directory: host, port } | Endpoint::Tcp { host, port }) = &connection.endpoint;
        let (port, clients, seconds) = (port.to_string(), clients.to_string(), self.seconds.to_string());
        let address = ["-h", host, "-p", &port, "-U", &connection.user, &connection.database];
        let load = ["-n", "-S", "-M", "prepared", "-j", "1", "-c", &clients, "-T", &seconds];
        let report = run(&[through, &[&self.pgbench], &load, &address].concat())?;
        let figure = |label: &str| -> Result<f64> {
            let after = report.lines().find_map(|line| line.strip_prefix(label));
            let word = after.and_then(|rest| rest.split_whitespace().next());
            let figure = word.and_then(|word| word.parse().ok());
            figure.with_context(|| format!("no \"{label}\" in what pgbench says: {report}"))
        };
        Ok((figure("number of transactions actually processed:")?, figure("tps =")?))
    }

    /// Transactions, and transactions per second.
    fn run_pgdyno(&self, connection: &Connection, clients: u32, through: &[&str]) -> Result<(f64, f64)> {
        let load = Load {
            connection: connection.clone(),
            workload: Workload::SelectOnly,
            scale: self.scale,
            protocol: Protocol::Prepared,
            clients,
            threads: 1,
            seed: 1,
            warmup_us: 0,
            duration_us: u64::from(self.seconds) * 1_000_000,
            interval_us: 1_000_000,
        };
        let outcome = run_driver(load, through)?;
        if outcome.failed_transactions > 0 {
            bail!("{} transactions failed", outcome.failed_transactions);
        }
        let transactions = (outcome.window_transactions + outcome.drain_transactions) as f64;
        Ok((transactions, outcome.window_transactions as f64 / outcome.window_us as f64 * 1e6))
    }
}

/// Whether system calls can be counted here.
pub(crate) fn counts_syscalls() -> bool {
    run(&[PERF, "stat", "-e", SYSCALLS, "--", "true"]).is_ok()
}

/// Runs a command, which Ctrl-C does not reach; gives what it prints.
fn run(words: &[&str]) -> Result<String> {
    let [program, arguments @ ..] = words else { bail!("no command") };
    let output = Command::new(program)
        .args(arguments)
        .process_group(0)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a load in a process of this program, to the end of that process.
fn run_driver(load: Load, through: &[&str]) -> Result<Outcome> {
    let itself = format!("/proc/{}/exe", std::process::id());
    let words = [through, &[&itself, DRIVER]].concat();
    let [program, arguments @ ..] = &words[..] else { bail!("no command") };
    let mut process = Process::spawn(Path::new(program), arguments)?;
    process.send(&Request::Run(Box::new(load)))?;
    let mut outcome = None;
    loop {
        match process.next(PATIENCE)? {
            Next::Reply(Reply::Finished(finished)) => outcome = Some(finished),
            Next::Reply(Reply::Failed { message }) => bail!("{message}"),
            Next::Reply(Reply::ClientDied(death)) => bail!("client {} died: {}", death.client, death.message),
            Next::Reply(_) => {}
            Next::TimedOut => bail!("the driver is silent"),
            Next::Exited { status, stderr } => {
                return outcome.ok_or_else(|| anyhow!("the driver ended with {status}: {stderr}"));
            }
        }
    }
}

/// CPU time of all processes that were started and waited for, user and system, in microseconds.
fn children_cpu_us() -> Result<f64> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure, to which the pointer is valid.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot read the CPU time of processes");
    }
    // SAFETY: it is filled where the call succeeds.
    let usage = unsafe { usage.assume_init() };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Ok(us(usage.ru_utime) + us(usage.ru_stime))
}
