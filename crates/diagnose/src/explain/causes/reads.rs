//! Waiting for blocks that are not in shared buffers: from the disk, or from the kernel's page cache.

use super::super::budget::{Budget, Component, ComponentTime};
use super::super::case::Case;
use super::super::confidence::Confidence;
use super::cause::{Cause, MIN_SHARE, ms, percent};

/// The share of bytes from the disk from which reads count as the disk's: a block from a disk takes some ten times as
/// long as one from the page cache, so that about half of the time is then the disk's.
const MIN_FROM_DISK: f64 = 0.10;

/// Roles whose reads `pg_stat_database` counts for the tested database.
const READERS: [&str; 4] = ["load", "beside", "parallel worker", "io worker"];

/// Whether a part of the latency is waiting for a block: for the read itself, or for another session that reads it.
pub(super) fn is_read(part: &ComponentTime) -> bool {
    const PREFIXES: [&str; 4] = ["DataFileRead", "DataFilePrefetch", "AioIo", "AioUring"];
    let of = part.of.as_deref().unwrap_or_default();
    match part.component {
        Component::Io | Component::LwLock => PREFIXES.iter().any(|prefix| of.starts_with(prefix)),
        Component::OtherWait => of == "IPC:BufferIo",
        _ => false,
    }
}

/// Waiting for reads.
struct Reads {
    us: f64,
    blocks: Option<f64>,
    /// The share of the bytes read that came from a disk; none if unknown.
    from_disk: Option<f64>,
}

impl Reads {
    /// None if they are too small a part of the latency.
    fn new(case: &Case, budget: &Budget) -> Option<Self> {
        let us: f64 = budget.parts.iter().filter(|part| is_read(part)).map(|part| part.us).sum();
        if us / budget.latency_us < MIN_SHARE {
            return None;
        }
        let blocks = case.growth("pg.database.blks_read", None).filter(|blocks| *blocks > 0.0);
        let block_size = case.setting("block_size").and_then(|size| size.parse().ok()).unwrap_or(8192.0);
        // Of the sessions, if they are known; otherwise all that the machine read, which may be too much.
        let of_role = |role: &str| case.growth("role.read_bytes", Some(role));
        let bytes = match of_role("load") {
            Some(_) => Some(READERS.into_iter().filter_map(of_role).sum::<f64>()),
            None => case.growth("vm.pgpgin_bytes", None),
        };
        let from_disk = blocks.zip(bytes).map(|(blocks, bytes)| (bytes / (blocks * block_size)).min(1.0));
        Some(Self { us, blocks, from_disk })
    }

    fn is_from_disk(&self) -> bool {
        self.from_disk.is_none_or(|share| share >= MIN_FROM_DISK)
    }

    fn evidence(&self, case: &Case) -> Vec<String> {
        let mut evidence = vec![format!("waiting for reads: {} per transaction", ms(self.us))];
        if let Some(blocks) = self.blocks {
            evidence.push(format!("{:.2} blocks read per transaction", case.per_transaction(blocks)));
        }
        evidence.push(match self.from_disk {
            Some(share) => {
                format!("{} of these bytes came from a disk, the rest from the page cache", percent(share))
            }
            None => "unknown: how much of this came from a disk, and how much from the page cache".to_owned(),
        });
        evidence
    }
}

pub(super) fn disk(case: &Case, budget: &Budget) -> Option<Cause> {
    let reads = Reads::new(case, budget).filter(Reads::is_from_disk)?;
    let share = reads.us / budget.latency_us;
    let sentence = match reads.from_disk {
        Some(_) => format!("transactions wait for reads from disk: {} of latency", percent(share)),
        None => {
            format!(
                "transactions wait for reads, from disk or from the page cache: {} of latency",
                percent(share)
            )
        }
    };
    let next = "use more shared_buffers or memory, a smaller data set, or a faster disk";
    let mut cause = Cause::of_latency(budget, "disk-reads", share, sentence, reads.evidence(case), next);
    if reads.from_disk.is_none() {
        cause.confidence = Confidence::Low;
    }
    Some(cause)
}

pub(super) fn page_cache(case: &Case, budget: &Budget) -> Option<Cause> {
    let reads = Reads::new(case, budget).filter(|reads| !reads.is_from_disk())?;
    let share = reads.us / budget.latency_us;
    let sentence =
        format!("transactions wait for reads from the kernel's page cache: {} of latency", percent(share));
    let next =
        "raise shared_buffers, so that the server itself keeps these blocks; a faster disk changes nothing";
    Some(Cause::of_latency(budget, "cached-reads", share, sentence, reads.evidence(case), next))
}
