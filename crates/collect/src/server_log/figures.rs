//! Numbers at known places of a message.

use std::collections::BTreeMap;

/// A number in a message: its name, place and unit.
pub(super) struct Figure {
    /// Its name, with the unit at the end.
    name: &'static str,
    /// Start of the line that contains it; empty for any line.
    line: &'static str,
    place: Place,
    unit: Unit,
}

/// Text next to a number.
enum Place {
    After(&'static str),
    Before(&'static str),
}

/// Unit of a number in a message.
enum Unit {
    Count,
    Percent,
    Seconds,
    Milliseconds,
    Bytes,
    Kilobytes,
    Megabytes,
}

use Place::{After, Before};
use Unit::{Bytes, Count, Kilobytes, Megabytes, Milliseconds, Percent, Seconds};

const fn figure(name: &'static str, line: &'static str, place: Place, unit: Unit) -> Figure {
    Figure { name, line, place, unit }
}

/// Figures of `checkpoint complete` (`LogCheckpointEnd` in xlog.c).
pub(super) const CHECKPOINT: [Figure; 15] = [
    figure("buffers", "", After(": wrote "), Count),
    figure("buffers_share", "", After(" buffers ("), Percent),
    // From 18 on.
    figure("slru_buffers", "", Before(" SLRU buffers"), Count),
    // Before 10, then from 10 on.
    figure("wal_added", "", Before(" transaction log file(s) added"), Count),
    figure("wal_added", "", Before(" WAL file(s) added"), Count),
    figure("wal_removed", "", Before(" removed"), Count),
    figure("wal_recycled", "", Before(" recycled"), Count),
    figure("write_us", "", After("write="), Seconds),
    figure("sync_us", "", After(" sync="), Seconds),
    figure("total_us", "", After("total="), Seconds),
    figure("sync_files", "", After("sync files="), Count),
    figure("longest_us", "", After("longest="), Seconds),
    figure("average_us", "", After("average="), Seconds),
    figure("distance_bytes", "", After("distance="), Kilobytes),
    figure("estimate_bytes", "", After("estimate="), Kilobytes),
];

/// Figures of `checkpoints are occurring too frequently` (checkpointer.c).
pub(super) const TOO_FREQUENT: [Figure; 2] = [
    figure("apart_us", "", Before(" second apart"), Seconds),
    figure("apart_us", "", Before(" seconds apart"), Seconds),
];

/// Figures of `automatic vacuum` and `automatic analyze` (vacuumlazy.c, analyze.c).
pub(super) const AUTOVACUUM: [Figure; 30] = [
    figure("index_scans", "index scans:", After("index scans: "), Count),
    figure("pages_removed", "pages:", Before(" removed"), Count),
    figure("pages_remain", "pages:", Before(" remain"), Count),
    // Before 15, then from 15 on.
    figure("pages_skipped_pins", "pages:", Before(" skipped due to pins"), Count),
    figure("pages_skipped_frozen", "pages:", Before(" skipped frozen"), Count),
    figure("pages_scanned", "pages:", Before(" scanned"), Count),
    figure("tuples_removed", "tuples:", Before(" removed"), Count),
    figure("tuples_remain", "tuples:", Before(" remain"), Count),
    figure("tuples_dead", "tuples:", Before(" are dead"), Count),
    figure("pages_frozen", "frozen:", After("frozen: "), Count),
    figure("tuples_frozen", "frozen:", Before(" tuples frozen"), Count),
    figure("buffers_hit", "buffer usage:", Before(" hits"), Count),
    // Before 18, then from 18 on.
    figure("buffers_missed", "buffer usage:", Before(" misses"), Count),
    figure("buffers_missed", "buffer usage:", Before(" reads"), Count),
    figure("buffers_dirtied", "buffer usage:", Before(" dirtied"), Count),
    figure("read_bytes_per_second", "avg read rate:", After("avg read rate: "), Megabytes),
    figure("write_bytes_per_second", "avg read rate:", After("avg write rate: "), Megabytes),
    figure("wal_records", "WAL usage:", Before(" records"), Count),
    figure("wal_full_page_images", "WAL usage:", Before(" full page images"), Count),
    figure("wal_bytes", "WAL usage:", Before(" bytes"), Bytes),
    figure("wal_buffers_full", "WAL usage:", Before(" buffers full"), Count),
    figure("read_us", "I/O timings:", After("read: "), Milliseconds),
    figure("write_us", "I/O timings:", After("write: "), Milliseconds),
    figure("delay_us", "delay time:", After("delay time: "), Milliseconds),
    // Before 10, then from 10 on.
    figure("system_us", "system usage:", After("CPU "), Seconds),
    figure("user_us", "system usage:", Before("u sec"), Seconds),
    figure("elapsed_us", "system usage:", After("elapsed "), Seconds),
    figure("user_us", "system usage:", After("user: "), Seconds),
    figure("system_us", "system usage:", After("system: "), Seconds),
    figure("elapsed_us", "system usage:", After("elapsed: "), Seconds),
];

/// Figures of `temporary file` (fd.c).
pub(super) const TEMPORARY_FILE: [Figure; 1] = [figure("bytes", "", After("\", size "), Bytes)];

/// Figures of `still waiting for`, `acquired` (proc.c).
pub(super) const LOCK_WAIT: [Figure; 1] = [figure("waited_us", "", After(" after "), Milliseconds)];

/// Finds figures in a text.
pub(super) fn read(figures: &[Figure], text: &str) -> BTreeMap<String, f64> {
    let found = |figure: &Figure| {
        let is_its_line = |line: &&str| line.trim_start().starts_with(figure.line);
        let number = text.lines().filter(is_its_line).find_map(|line| figure.place.number(line))?;
        Some((figure.name.to_owned(), figure.unit.base(number)))
    };
    figures.iter().filter_map(found).collect()
}

impl Place {
    fn number(&self, line: &str) -> Option<f64> {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        match self {
            After(mark) => line.match_indices(mark).find_map(|(at, mark)| {
                let from = &line[at + mark.len()..];
                from[..from.find(|c| !is_of_number(c)).unwrap_or(from.len())].parse().ok()
            }),
            Before(mark) => line.match_indices(mark).find_map(|(at, _)| {
                let until = &line[..at];
                until[until.trim_end_matches(is_of_number).len()..].parse().ok()
            }),
        }
    }
}

impl Unit {
    /// Converts a number to the units of figures: microseconds, bytes, shares of 1.
    fn base(&self, number: f64) -> f64 {
        match self {
            Count | Bytes => number,
            // Messages have one decimal.
            Percent => (number * 10.0).round() / 1e3,
            Seconds => (number * 1e6).round(),
            Milliseconds => (number * 1e3).round(),
            Kilobytes => (number * 1024.0).round(),
            Megabytes => (number * 1_048_576.0).round(),
        }
    }
}
