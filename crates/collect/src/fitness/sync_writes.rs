//! Latency of small writes that are flushed to disk, as each commit waits for.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use model::fitness::SyncWrites;

/// Size of a page, and of most writes to the WAL.
const BYTES: usize = 8192;
/// Number of writes timed, if time permits.
const WRITES: usize = 200;

/// Times writes to a temporary file that has its full size from the start, as a WAL segment has. None if it can't be
/// written.
pub(super) fn time(directory: &Path, time_limit: Duration) -> Option<SyncWrites> {
    let mut latencies = latencies(directory, time_limit).ok()?;
    latencies.sort_unstable();
    let count = latencies.len();
    // The smallest value that this share of all values does not exceed.
    let percentile = |share: f64| {
        let rank = (share * count as f64).ceil() as usize;
        latencies.get(rank.max(1) - 1).map(|latency| latency.as_secs_f64() * 1e6)
    };
    Some(SyncWrites {
        count: count.try_into().ok()?,
        p50_us: percentile(0.5)?,
        p99_us: percentile(0.99)?,
        max_us: percentile(1.0)?,
    })
}

fn latencies(directory: &Path, time_limit: Duration) -> io::Result<Vec<Duration>> {
    let mut file = tempfile::tempfile_in(directory)?;
    let page = [b'x'; BYTES];
    for _ in 0..WRITES {
        file.write_all(&page)?;
    }
    file.sync_all()?;
    io::Seek::rewind(&mut file)?;
    let begin = Instant::now();
    let mut latencies = Vec::with_capacity(WRITES);
    while latencies.len() < WRITES && begin.elapsed() < time_limit {
        let write = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        latencies.push(write.elapsed());
    }
    Ok(latencies)
}
