//! Programs that benchmarks start: where they are, and what they used.

use std::env;
use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The program of this name in the directory of the running one.
///
/// # Errors
/// There is no such program; the message says how to build it.
pub fn sibling_program(name: &str) -> Result<PathBuf> {
    let this = env::current_exe().context("cannot determine the path of this program")?;
    let program = this.with_file_name(name);
    program.is_file().then_some(program).with_context(|| {
        let directory = this.parent().unwrap_or(&this).display();
        format!("there is no {name} in {directory}: run cargo build --release -p {name}")
    })
}

/// Resources that processes used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// CPU time, user and system, in microseconds.
    pub cpu_us: f64,
    /// Context switches, voluntary and involuntary.
    pub switches: f64,
}

impl Usage {
    /// Of all child processes that have been waited for, and of theirs.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn of_children() -> Result<Self> {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the kernel fills the structure, to which the pointer is valid.
        if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error()).context("cannot read the CPU time of processes");
        }
        // SAFETY: it is filled, because the call has succeeded.
        let usage = unsafe { usage.assume_init() };
        let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
        Ok(Self {
            cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
        })
    }
}
