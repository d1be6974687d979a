//! The CPU time of a program.

use std::mem::MaybeUninit;
use std::ops::Add;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Resources that a program used.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// CPU time, user and system, in seconds.
    pub(crate) cpu_s: f64,
    pub(crate) elapsed_s: f64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu_s: self.cpu_s + other.cpu_s, elapsed_s: self.elapsed_s + other.elapsed_s }
    }
}

/// Runs a program.
pub(crate) fn measured(command: &mut Command) -> Result<Usage> {
    let before_s = of_children_s()?;
    let from = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Usage { cpu_s: of_children_s()? - before_s, elapsed_s: from.elapsed().as_secs_f64() })
}

/// CPU time of the child processes that have ended.
fn of_children_s() -> Result<f64> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure, to which the pointer is valid.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot read the CPU time of processes");
    }
    // SAFETY: it is filled, because the call has succeeded.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}
