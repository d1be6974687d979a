//! Disk space that data sets will need, estimated before anything starts.

use std::fmt::Write as _;

use model::dataset::DatabaseKind;

use crate::dataset::content::Content;
use crate::dataset::size::template_bytes;
use crate::dataset::template;
use crate::error::Error;
use crate::programs::installation::Installation;
use host::Cache;
use host::IoContext;

/// A data set that will be used.
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a> {
    /// The server's programs.
    pub installation: &'a Installation,
    /// Options for `initdb`.
    pub initdb: &'a [String],
    /// Its content.
    pub content: &'a Content,
    /// Number of simultaneous copies.
    pub copies: u32,
}

/// Required and free disk space. What trials write is not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskNeed {
    /// Maximum of bytes written at the same time: the sum of the parts.
    pub need: u64,
    /// Free bytes on the cache's file system, for this user.
    pub free: u64,
    /// Parts of the need, largest first.
    pub parts: Vec<DiskPart>,
}

/// A part of the required space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPart {
    /// Purpose.
    pub what: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Bytes that the sort for the primary key of accounts writes, if it does not fit into memory or has several workers: 2
/// MB per unit of scale, measured at scale 30.
const SORTING_BYTES_PER_SCALE: u64 = 2_000_000;

/// Estimates the additional space for these data sets: missing templates, the sort for the primary keys of the largest
/// one, and copies, which need almost nothing if the file system shares blocks.
///
/// # Errors
/// The file system can't be queried.
pub fn disk_need(cache: &Cache, datasets: &[Dataset]) -> Result<DiskNeed, Error> {
    let directory = cache.directory();
    let shares_blocks = shares_blocks(cache)?;
    let mut parts = Vec::new();
    let mut sorting = 0;
    for Dataset { installation, initdb, content, copies } in datasets {
        let bytes = template_bytes(initdb, content);
        let dataset = format!("PostgreSQL {}, {content}", installation.version());
        if !template::exists(cache, installation, initdb, content) {
            let is_dump = content.own.as_ref().is_some_and(|own| own.kind == DatabaseKind::Dump);
            let least = if is_dump { ", at least" } else { "" };
            parts.push(DiskPart { what: format!("{dataset}: the data set{least}"), bytes });
            if content.has_pgbench_tables() {
                sorting = sorting.max(SORTING_BYTES_PER_SCALE * u64::from(content.scale));
            }
        }
        if *copies > 0 && !shares_blocks {
            let what = format!("{dataset}: copies for trials ({copies})");
            parts.push(DiskPart { what, bytes: bytes * u64::from(*copies) });
        }
    }
    if sorting > 0 {
        parts.push(DiskPart { what: "sorting while keys are added".to_owned(), bytes: sorting });
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let stat = rustix::fs::statvfs(directory).doing("query the free space of", directory)?;
    Ok(DiskNeed {
        need: parts.iter().map(|part| part.bytes).sum(),
        free: stat.f_bavail * stat.f_frsize,
        parts,
    })
}

impl DiskNeed {
    /// Whether it fits.
    ///
    /// # Errors
    /// It does not: names the parts with their sizes, and how to free space.
    pub fn check(&self, cache: &Cache) -> Result<(), Error> {
        if self.need <= self.free {
            return Ok(());
        }
        let mut text = format!(
            "the data sets need {} on the file system of {}, where {} are free:",
            size(self.need),
            cache.directory().display(),
            size(self.free)
        );
        for part in &self.parts {
            let _ = write!(text, "\n  {:>9}  {}", size(part.bytes), part.what);
        }
        text += "\nFree some space (`pgdyno dataset list` shows the data sets, `pgdyno dataset remove NAME` removes \
                 one), use smaller scales, or set PGDYNO_CACHE to a directory on a larger file system";
        Err(Error::DiskNeed(text))
    }
}

/// Whether files on the cache's file system can share their blocks.
fn shares_blocks(cache: &Cache) -> Result<bool, Error> {
    let directory = cache.clusters();
    let file = || tempfile::tempfile_in(&directory).doing("create a file in", &directory);
    let (from, to) = (file()?, file()?);
    Ok(rustix::fs::ioctl_ficlone(&to, &from).is_ok())
}

fn size(bytes: u64) -> String {
    match bytes {
        10_000_000_000.. => format!("{:.0} GB", bytes as f64 / 1e9),
        1_000_000_000.. => format!("{:.1} GB", bytes as f64 / 1e9),
        _ => format!("{:.0} MB", bytes as f64 / 1e6),
    }
}
