//! The CPU time of a program.

use std::ops::Add;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use processes::Usage as ProcessUsage;

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
    let before = ProcessUsage::of_children()?;
    let from = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    let (after, elapsed_s) = (ProcessUsage::of_children()?, from.elapsed().as_secs_f64());
    Ok(Usage { cpu_s: (after.cpu_us - before.cpu_us) / 1e6, elapsed_s })
}
