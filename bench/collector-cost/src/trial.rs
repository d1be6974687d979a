//! One trial, run as a user would, and what it took.

use std::fmt;
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use model::units::Span;
use store::Store;

use crate::collectors::Collectors;

/// What is common to all trials.
pub(crate) struct Bench<'a> {
    pub(crate) pgdyno: PathBuf,
    /// For the campaign's file.
    pub(crate) directory: &'a Path,
    pub(crate) store: &'a Store,
    pub(crate) interrupted: &'a AtomicBool,
}

/// What the clients do, and beside what.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) server: String,
    pub(crate) workload: &'static str,
    pub(crate) scale: u32,
    pub(crate) clients: u32,
    pub(crate) duration: Span,
    /// pgdyno's default where it is none.
    pub(crate) waits_hz: Option<f64>,
}

/// What came of one trial.
pub(crate) struct Trial {
    /// Transactions per second in the window.
    pub(crate) tps: f64,
    /// All that the driver saw succeed.
    pub(crate) transactions: f64,
    /// CPU time of pgdyno, driver and server, user and system, in microseconds.
    pub(crate) cpu_us: f64,
    /// Nothing where they were off.
    pub(crate) collectors: Collectors,
}

/// Of one trial, with what starting and ending takes subtracted.
pub(crate) struct Cost {
    /// Transactions per second in the window.
    pub(crate) tps: f64,
    /// CPU time for one transaction, in microseconds.
    pub(crate) cpu_us: f64,
    pub(crate) collectors: Collectors,
}

impl Trial {
    pub(crate) fn beyond(self, bare: &Self) -> Cost {
        let cpu_us = (self.cpu_us - bare.cpu_us) / (self.transactions - bare.transactions);
        Cost { tps: self.tps, cpu_us, collectors: self.collectors }
    }

    /// Of several that were meant to be the same, of which there is at least one.
    pub(crate) fn mean(trials: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| trials.iter().map(figure).sum::<f64>() / trials.len() as f64;
        Self {
            tps: mean(|trial| trial.tps),
            transactions: mean(|trial| trial.transactions),
            cpu_us: mean(|trial| trial.cpu_us),
            collectors: Collectors::default(),
        }
    }
}

impl Bench<'_> {
    /// Runs a campaign of one trial.
    pub(crate) fn run(&self, load: &Load, with_collectors: bool) -> Result<Trial> {
        crate::check(self.interrupted)?;
        let campaign = self.directory.join("campaign.toml");
        fs::write(&campaign, load.campaign(with_collectors)).context("cannot write the campaign")?;
        let known: Vec<String> = self.store.trials()?.into_iter().map(|trial| trial.id).collect();
        let before = cpu_us_of_children()?;
        let ran = Command::new(&self.pgdyno)
            .arg("run")
            .arg(&campaign)
            .arg("--store")
            .arg(self.store.root())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.pgdyno.display()))?;
        let cpu_us = cpu_us_of_children()? - before;
        crate::check(self.interrupted)?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            bail!("{} failed ({}): {}", self.pgdyno.display(), ran.status, said.trim());
        }
        let mut new = self.store.trials()?.into_iter().filter(|trial| !known.contains(&trial.id));
        let id = new.next().context("the run has left no bundle")?.id;
        let record = self.store.load(&id)?;
        let summary = record.trial.summary.as_ref();
        let tps = summary.with_context(|| format!("there was no load in trial {id}"))?.tps;
        let transactions = record.trial.accounting.driver_transactions;
        let transactions =
            transactions.with_context(|| format!("trial {id} has no number of transactions"))? as f64;
        Ok(Trial { tps, transactions, cpu_us, collectors: Collectors::of(&record) })
    }
}

impl Load {
    /// Nothing but the load and the collectors is to be at work: no vacuum, no checkpoint, no reading of blocks.
    fn campaign(&self, with_collectors: bool) -> String {
        let Self { server, workload, scale, clients, duration, waits_hz } = self;
        let collect = match (with_collectors, waits_hz) {
            (false, _) => "metrics = false\nwaits_hz = 0\nstatements = false\n".to_owned(),
            (true, None) => String::new(),
            (true, Some(hz)) => format!("waits_hz = {hz:?}\n"),
        };
        format!(
            "name = \"collector-cost\"\n\
             [factors]\nserver = [\"{server}\"]\nsettings = [\"quiet\"]\nworkload = [\"{workload}\"]\n\
             scale = [{scale}]\nclients = [{clients}]\nprotocol = [\"prepared\"]\ntransport = [\"unix\"]\n\
             cache = [\"warm\"]\n\
             [run]\nduration = \"{duration}\"\nwarmup = \"1s\"\nrepeats = 1\n\
             [settings.quiet]\nautovacuum = false\nshared_buffers = \"512MB\"\nmax_wal_size = \"16GB\"\n\
             checkpoint_timeout = \"1h\"\n\
             [collect]\n{collect}"
        )
    }
}

impl fmt::Display for Load {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, workload, scale, clients, .. } = self;
        write!(to, "PostgreSQL {server}, {workload}, scale {scale}, {clients} clients, prepared, unix")
    }
}

/// CPU time of all processes that were started and waited for, and of those that they waited for: pgdyno waits for
/// its driver and for the server's first process, which waits for the others.
fn cpu_us_of_children() -> Result<f64> {
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

#[cfg(test)]
mod tests {
    use model::plan::{Collect, Plan};
    use model::spec::Campaign;

    use super::*;

    fn plan(waits_hz: Option<f64>, with_collectors: bool) -> Plan {
        let load = Load {
            server: "18".to_owned(),
            workload: "tpcb-like",
            scale: 7,
            clients: 64,
            duration: Span::from_us(1_500_000),
            waits_hz,
        };
        Plan::of(&Campaign::parse(&load.campaign(with_collectors)).unwrap(), 1).unwrap()
    }

    #[test]
    fn the_two_campaigns_differ_in_their_collectors_alone() {
        let (on, off) = (plan(None, true), plan(None, false));
        let plain = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\nclients = [1]\n";
        let by_default = Plan::of(&Campaign::parse(plain).unwrap(), 1);
        assert_eq!(on.collect, by_default.unwrap().collect);
        let none = Collect { metrics: false, waits_hz: 0.0, statements: false, buffers: false };
        assert_eq!(off.collect, none);
        assert_eq!((&on.cells, &on.trials), (&off.cells, &off.trials));
        assert_eq!((on.trials.len(), on.cells[0].clients, on.cells[0].scale), (1, 64, 7));
        assert_eq!(plan(Some(100.0), true).collect.waits_hz, 100.0);
    }

    #[test]
    fn what_starting_and_ending_takes_is_no_transactions() {
        let trial = |transactions, cpu_us| Trial {
            tps: 1000.0,
            transactions,
            cpu_us,
            collectors: Collectors::default(),
        };
        let bare = Trial::mean(&[trial(90.0, 2_000_000.0), trial(110.0, 2_200_000.0)]);
        let cost = trial(5100.0, 2_600_000.0).beyond(&bare);
        assert_eq!((cost.tps, cost.cpu_us), (1000.0, 100.0));
    }
}
