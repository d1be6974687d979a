//! The queue alone: agents that take blocks and say that they are complete.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use fleet::message::{Attempt, Ending, Event, QueuedBlock, What};
use fleet::requirement::Requirement;
use fleet::{Connection, ConnectionOptions, FleetError, Login};
use jiff::Timestamp;
use model::units::Span;
use runner::blocks::{Block, BlockContent, BlockTrial};

use crate::nats::Nats;

/// Trials of a block.
const TRIALS: u32 = 4;

#[derive(Args)]
pub(crate) struct Options {
    /// Agents, each with a connection of its own
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    agents: u32,
    /// Blocks, of four trials each
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    blocks: u32,
    /// Bytes of each trial's bundle
    #[arg(long, default_value_t = 20_000)]
    bytes: usize,
    /// Connections that queue the blocks
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    coordinators: u32,
}

pub(crate) fn measure(options: &Options) -> Result<String> {
    let nats = Nats::start()?;
    let run = store::new_id();
    let connect = |name: &str| {
        Connection::open(&ConnectionOptions {
            url: nats.url(),
            login: Login::Url,
            ca: None,
            certificate: None,
            fleet: "pgdyno".to_owned(),
            name: name.to_owned(),
        })
    };
    let begun = Instant::now();
    let (before, _) = nats.counts()?;
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let queue = || -> Result<(), FleetError> {
            let connection = connect("coordinator")?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= u64::from(options.blocks) {
                    return Ok(());
                }
                connection.queue_block(&block(&run, number), None, Span::from_us(30_000_000).duration())?;
            }
        };
        let threads: Vec<_> = (0..options.coordinators).map(|_| scope.spawn(queue)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(queued) => queued.map_err(anyhow::Error::from),
            Err(_) => bail!("a coordinator has failed"),
        })
    })?;
    let queued = begun.elapsed().as_secs_f64();
    let (after, _) = nats.counts()?;
    let per_queued = (after - before) as f64 / f64::from(options.blocks);

    let bundle = vec![7; options.bytes];
    let begun = Instant::now();
    let (before, cpu_before) = nats.counts()?;
    let complete = AtomicU64::new(0);
    let mut shares: Vec<u64> = thread::scope(|scope| {
        let (complete, bundle, connect) = (&complete, &bundle, &connect);
        let agent = |number: u32| -> Result<u64, FleetError> {
            let connection = connect(&format!("agent {number}"))?;
            let mut own = 0;
            while complete.load(Ordering::Relaxed) < u64::from(options.blocks) {
                let has_taken = u64::from(take_one(&connection, number, bundle)?);
                own += has_taken;
                complete.fetch_add(has_taken, Ordering::Relaxed);
            }
            Ok(own)
        };
        let threads: Vec<_> = (0..options.agents).map(|number| scope.spawn(move || agent(number))).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(own) => own.map_err(anyhow::Error::from),
                Err(_) => bail!("an agent has failed"),
            })
            .collect::<Result<_>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let (after, cpu_after) = nats.counts()?;
    shares.sort_unstable();
    let blocks = f64::from(options.blocks);
    Ok(format!(
        "{} blocks of {TRIALS} trials, {} agents, bundles of {} bytes\n\
         queued: {:.0} blocks a second, {per_queued:.1} messages each\n\
         complete: {:.0} blocks a second, {:.1} messages each, {:.2} ms of the NATS server's CPU time each\n\
         blocks of an agent: {} to {}",
        options.blocks,
        options.agents,
        options.bytes,
        blocks / queued,
        blocks / seconds,
        (after - before) as f64 / blocks,
        1e3 * (cpu_after - cpu_before) / blocks,
        shares.first().copied().unwrap_or(0),
        shares.last().copied().unwrap_or(0),
    ))
}

fn block(run: &str, number: u64) -> QueuedBlock {
    let trial = |position: u32| BlockTrial { position, cell: position as usize, repeat: 1, reason: None };
    QueuedBlock {
        run: run.to_owned(),
        block: Block {
            name: format!("block-{number}"),
            content: BlockContent::Trials((0..TRIALS).map(trial).collect()),
        },
        job_sha256: String::new(),
        requirement: Requirement::default(),
        round: 0,
        id: format!("{run}-{number}"),
    }
}

/// Takes a block, if there is one, and sends what an agent sends for it.
fn take_one(connection: &Connection, number: u32, bundle: &[u8]) -> Result<bool, FleetError> {
    let Some(delivery) = connection.take(None, &|_| true)? else { return Ok(false) };
    let QueuedBlock { run, block, .. } = delivery.block(None)?;
    let attempt = Attempt { id: store::new_id(), agent: number.to_string(), machine: number.to_string() };
    let event = |id: &str, what: What| {
        connection.publish_event(&run, &block.name, id, &Event { at: Timestamp::now(), what })
    };
    connection.block_state(&run, &block.name)?;
    event(&format!("{}-begun", attempt.id), What::Begun(attempt.clone()))?;
    for _ in 0..TRIALS {
        let trial = store::new_id();
        let sha256 = connection.put_bundle(&run, &trial, bundle)?;
        event(&trial, What::Trial { attempt: attempt.id.clone(), trial: trial.clone(), sha256 })?;
    }
    let how = Ending::Complete;
    event(&format!("{}-ended", attempt.id), What::Ended { attempt: attempt.id.clone(), how })?;
    delivery.done(connection)?;
    Ok(true)
}
