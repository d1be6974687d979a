//! The cost of a transaction to two load drivers that alternate.
//!
//! The cost of starting, connecting and preparing is that of a run of one transaction per client, and is subtracted; at
//! a thousand clients it is as much as many thousand transactions. pgbench connects within its run time: a run is
//! longer by that, so that the load lasts as long as requested.

use std::time::Duration;

use anyhow::Result;
use model::message::Connection;
use model::workload::Transport;

use crate::interrupt::Interrupt;
use crate::peer::{Peer, Report, Run};
use crate::process::{self, Ran};
use crate::servers::Kind;

/// The server under load, and the number of clients.
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    pub(crate) clients: u32,
    pub(crate) connection: Connection,
}

/// The extent of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    pub(crate) with_syscalls: bool,
}

/// The costs of both drivers at one place.
pub(crate) struct Cell {
    pub(crate) place: Place,
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
        place: Place,
        length: Length,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let cost = |peer| measure(peer, &place, length.seconds, interrupt);
        let [first, second] = peers;
        // The very first run reads the tables, so that no round does.
        bare(first, &place, interrupt)?;
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
            Some([count(first, &place, interrupt)?, count(second, &place, interrupt)?])
        } else {
            None
        };
        Ok(Self { place, costs, syscalls })
    }
}

fn measure(peer: &Peer, place: &Place, seconds: u32, interrupt: &Interrupt) -> Result<Cost> {
    let (took, less) = bare(peer, place, interrupt)?;
    let seconds = seconds + whole_seconds(&took);
    let words = peer.words(&place.connection, place.clients, Run::Seconds(seconds));
    let ran = process::run(&words, Duration::from_secs(seconds.into()), interrupt)?;
    let report = Report::read(&ran.output)?;
    let transactions = report.transactions - less.transactions;
    Ok(Cost {
        tps: report.tps,
        cpu_us: (ran.cpu_us - took.cpu_us) / transactions,
        switches: (ran.switches - took.switches) / transactions,
        peak_bytes: ran.peak_bytes,
    })
}

fn bare(peer: &Peer, place: &Place, interrupt: &Interrupt) -> Result<(Ran, Report)> {
    let words = peer.words(&place.connection, place.clients, Run::Bare);
    let ran = process::run(&words, Duration::ZERO, interrupt)?;
    let report = Report::read(&ran.output)?;
    Ok((ran, report))
}

/// System calls per transaction, in separate short runs, because counting costs time.
fn count(peer: &Peer, place: &Place, interrupt: &Interrupt) -> Result<f64> {
    let counted = |run| -> Result<(f64, Ran, Report)> {
        let words = peer.words(&place.connection, place.clients, run);
        let (calls, ran) = process::run_counted(&words, Duration::from_secs(1), interrupt)?;
        let report = Report::read(&ran.output)?;
        Ok((calls, ran, report))
    };
    let (less_calls, took, less) = counted(Run::Bare)?;
    let (calls, _, report) = counted(Run::Seconds(1 + whole_seconds(&took)))?;
    Ok((calls - less_calls) / (report.transactions - less.transactions))
}

/// Elapsed time, to the nearest second.
fn whole_seconds(ran: &Ran) -> u32 {
    ran.elapsed.as_secs_f64().round() as u32
}
