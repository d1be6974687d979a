//! One long trial, run as a user would, with its collectors stopped and continued.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use model::record::TrialRecord;
use store::Store;

use crate::blocks::Switch;

/// Time between the first message about the load and the first block.
const SETTLING_TIME_US: i64 = 3_000_000;
/// Seconds of the load before and after the blocks.
const EXTRA_SECONDS: u32 = 8;

/// Default reading rates of the collectors, per second.
pub(crate) const METRICS_HZ: f64 = 1.0;
pub(crate) const WAITS_HZ: f64 = 20.0;

/// The load, and the rate of the collectors.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) server: String,
    pub(crate) workload: &'static str,
    pub(crate) scale: u32,
    pub(crate) clients: u32,
    /// Length of all blocks.
    pub(crate) seconds: u32,
    /// Reading rate of the collectors, as a multiple of the default.
    pub(crate) times: u32,
}

/// Runs a campaign of one trial, and switches its collectors. Returns the trial and the actual times of the switches by
/// `CLOCK_MONOTONIC`, with one more at the end of the last block.
pub(crate) fn run(
    pgdyno: &Path,
    directory: &Path,
    store: &Store,
    load: &Load,
    switches: &[Switch],
    interrupted: &AtomicBool,
) -> Result<(TrialRecord, Vec<Switch>)> {
    let campaign = directory.join("campaign.toml");
    fs::write(&campaign, load.campaign()).context("cannot write the campaign")?;
    let known: Vec<String> = store.trials()?.into_iter().map(|trial| trial.id).collect();
    let child = Command::new(pgdyno)
        .arg("run")
        .arg(&campaign)
        .arg("--store")
        .arg(store.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", pgdyno.display()))?;
    let mut running = Running { child, output: Vec::new() };
    running.wait_for_trial_start()?;
    // Its preparation is short: the bundle has the start of the load, and blocks that begin before it are left out.
    let begun_us = now_us() + SETTLING_TIME_US;
    let end = Switch { at_us: i64::from(load.seconds) * 1_000_000, on: true };
    let mut switched = Vec::new();
    for switch in switches.iter().chain([&end]) {
        sleep_until(begun_us + switch.at_us, interrupted)?;
        running.signal(if switch.on { libc::SIGCONT } else { libc::SIGSTOP })?;
        switched.push(Switch { at_us: now_us(), on: switch.on });
    }
    running.end()?;
    let mut new = store.trials()?.into_iter().filter(|trial| !known.contains(&trial.id));
    let id = new.next().context("the run produced no bundle")?.id;
    Ok((store.load(&id)?, switched))
}

/// A running pgdyno, continued and interrupted when dropped.
struct Running {
    child: Child,
    output: Vec<String>,
}

impl Running {
    fn wait_for_trial_start(&mut self) -> Result<()> {
        let stderr = self.child.stderr.take().context("pgdyno has no standard error")?;
        let mut lines = BufReader::new(stderr).lines().map_while(std::io::Result::ok);
        for line in lines.by_ref() {
            let begins = line.contains("trial 1/1");
            self.output.push(line);
            if begins {
                // It keeps writing, and must not block for lack of a reader.
                thread::spawn(move || lines.for_each(drop));
                return Ok(());
            }
        }
        let status = self.child.wait()?;
        bail!("pgdyno ended before its load ({status}): {}", self.output.join("\n"))
    }

    fn signal(&mut self, signal: libc::c_int) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("pgdyno ended before its load was over ({status})");
        }
        // SAFETY: kill has no preconditions; the process is our child, and has not been waited for yet.
        if unsafe { libc::kill(self.child.id() as libc::pid_t, signal) } != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot signal pgdyno");
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            bail!("pgdyno failed ({status})");
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal(libc::SIGCONT);
            let _ = self.signal(libc::SIGINT);
            let _ = self.child.wait();
        }
    }
}

fn now_us() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, to which the pointer is valid; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

fn sleep_until(at_us: i64, interrupted: &AtomicBool) -> Result<()> {
    const STEP_US: i64 = 100_000;
    loop {
        crate::check(interrupted)?;
        match u64::try_from((at_us - now_us()).min(STEP_US)) {
            Ok(left_us @ 1..) => thread::sleep(Duration::from_micros(left_us)),
            _ => return Ok(()),
        }
    }
}

impl Load {
    /// Only the load and the collectors may run: no vacuum, no checkpoint, no reading of blocks.
    fn campaign(&self) -> String {
        let Self { server, workload, scale, clients, seconds, times } = self;
        let (metrics_hz, waits_hz) = (f64::from(*times) * METRICS_HZ, f64::from(*times) * WAITS_HZ);
        let duration = seconds + EXTRA_SECONDS;
        format!(
            "name = \"collector-cost\"\n\
             [factors]\nserver = [\"{server}\"]\nsettings = [\"quiet\"]\nworkload = [\"{workload}\"]\n\
             scale = [{scale}]\nclients = [{clients}]\nprotocol = [\"prepared\"]\ntransport = [\"unix\"]\n\
             cache = [\"warm\"]\n\
             [run]\nduration = \"{duration}s\"\nwarmup = \"1s\"\nrepeats = 1\nretries = 0\n\
             [settings.quiet]\nautovacuum = false\nshared_buffers = \"512MB\"\nmax_wal_size = \"16GB\"\n\
             checkpoint_timeout = \"1h\"\n\
             [collect]\nmetrics_hz = {metrics_hz:?}\nwaits_hz = {waits_hz:?}\n"
        )
    }
}

impl fmt::Display for Load {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, workload, scale, clients, times, .. } = self;
        write!(to, "PostgreSQL {server}, {workload}, scale {scale}, {clients} clients, prepared, unix, ")?;
        write!(to, "collectors at {times} times their default rates")
    }
}

#[cfg(test)]
mod tests {
    use model::plan::Plan;
    use model::spec::Campaign;

    use super::*;

    #[test]
    fn the_campaign_collects_what_campaigns_do_by_default() {
        let load = Load {
            server: "18".to_owned(),
            workload: "tpcb-like",
            scale: 7,
            clients: 64,
            seconds: 480,
            times: 1,
        };
        let plan = |text: &str| Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        let plain = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n";
        let ours = plan(&load.campaign());
        assert_eq!(ours.collect, plan(plain).collect);
        assert_eq!((ours.trials.len(), ours.cells[0].clients, ours.cells[0].scale), (1, 64, 7));
        let often = plan(&Load { times: 10, ..load }.campaign()).collect;
        assert_eq!((often.metrics_hz, often.waits_hz), (10.0, 200.0));
    }
}
