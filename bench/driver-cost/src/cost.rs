//! The cost of a transaction to two load drivers that alternate.
//!
//! The cost of starting, connecting and preparing is that of a run of one transaction per client, and is subtracted; at
//! a thousand clients it is as much as many thousand transactions. pgbench connects within its run time: a run is
//! longer by that, so that the load lasts as long as requested.

use std::time::Duration;

use anyhow::Result;

use crate::interrupt::Interrupt;
use crate::peer::{Peer, Report, Run};
use crate::process::{self, Execution};
use crate::servers::Setup;

/// The extent of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    pub(crate) with_syscalls: bool,
}

/// The costs of both drivers in one setup.
pub(crate) struct Cell {
    pub(crate) setup: Setup,
    /// By round, in the order of the peers.
    pub(crate) costs: Vec<[Cost; 2]>,
    /// System calls per transaction, in the order of the peers, if they are counted.
    pub(crate) syscalls: Option<[f64; 2]>,
}

/// The result of one measurement.
pub(crate) struct Cost {
    /// Transactions per second, connecting not included.
    pub(crate) tps: f64,
    /// CPU time per transaction, user and system, in microseconds.
    pub(crate) cpu_us: f64,
    /// Context switches per transaction.
    pub(crate) switches: f64,
    /// Peak resident size.
    pub(crate) peak_bytes: Option<f64>,
}

impl Cell {
    pub(crate) fn measure(
        peers: [&Peer; 2],
        setup: Setup,
        length: Length,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let cost = |peer| measure(peer, &setup, length.seconds, interrupt);
        let [first, second] = peers;
        // The very first run reads the tables, so that no round does.
        run_baseline(first, &setup, interrupt)?;
        let mut costs = Vec::new();
        for round in 0..length.rounds {
            costs.push(if round % 2 == 0 {
                [cost(first)?, cost(second)?]
            } else {
                let second = cost(second)?;
                [cost(first)?, second]
            });
        }
        let syscalls = if length.with_syscalls {
            Some([count(first, &setup, interrupt)?, count(second, &setup, interrupt)?])
        } else {
            None
        };
        Ok(Self { setup, costs, syscalls })
    }
}

fn measure(peer: &Peer, setup: &Setup, seconds: u32, interrupt: &Interrupt) -> Result<Cost> {
    let (baseline, baseline_report) = run_baseline(peer, setup, interrupt)?;
    let seconds = seconds + whole_seconds(&baseline);
    let words = peer.words(setup, Run::Seconds(seconds));
    let execution = process::run(&words, Duration::from_secs(seconds.into()), interrupt)?;
    let report = peer.parse(&execution.output)?;
    let transactions = report.transactions - baseline_report.transactions;
    Ok(Cost {
        tps: report.tps,
        cpu_us: (execution.cpu_us - baseline.cpu_us) / transactions,
        switches: (execution.switches - baseline.switches) / transactions,
        peak_bytes: execution.peak_bytes,
    })
}

/// Runs one transaction per client: the cost of starting, connecting and preparing.
fn run_baseline(peer: &Peer, setup: &Setup, interrupt: &Interrupt) -> Result<(Execution, Report)> {
    let words = peer.words(setup, Run::Baseline);
    let execution = process::run(&words, Duration::ZERO, interrupt)?;
    let report = peer.parse(&execution.output)?;
    Ok((execution, report))
}

/// System calls per transaction, in separate short runs, because counting costs time.
fn count(peer: &Peer, setup: &Setup, interrupt: &Interrupt) -> Result<f64> {
    let counted = |run| -> Result<(f64, Execution, Report)> {
        let words = peer.words(setup, run);
        let (calls, execution) = process::run_counted(&words, Duration::from_secs(1), interrupt)?;
        let report = peer.parse(&execution.output)?;
        Ok((calls, execution, report))
    };
    let (baseline_calls, baseline, baseline_report) = counted(Run::Baseline)?;
    let (calls, _, report) = counted(Run::Seconds(1 + whole_seconds(&baseline)))?;
    Ok((calls - baseline_calls) / (report.transactions - baseline_report.transactions))
}

/// Elapsed time, to the nearest second.
fn whole_seconds(execution: &Execution) -> u32 {
    execution.elapsed.as_secs_f64().round() as u32
}
