//! Size of a template before it is filled.

use crate::data::initdb::wal_segment_bytes;
use crate::dataset::content::Content;

/// Size of `initdb`'s files and the tested database, without tables and WAL.
const BASE_BYTES: u64 = 34_000_000;
/// Size of pgbench's tables and keys for each unit of scale: 1640 pages of accounts and 274 of their key.
pub const BYTES_PER_SCALE: u64 = 15_700_000;
/// Size of the tables of the star schema for each unit of scale, with the indexes of the workload `analytic`: 16.8 MB were measured
/// from scale 1 to 10 (13, 18).
const STAR_BYTES_PER_SCALE: u64 = 17_500_000;
/// Maximum number of WAL segments that remain in a template.
const WAL_SEGMENTS: u64 = 2;

/// Bytes of a template, rather too many than too few: measured were 62 to 65 MB at scale 1 (9.6, 13, 18), 204 MB at
/// scale 10 and 1615 MB at scale 100 (15), for which this returns 83, 225 and 1638 MB.
///
/// The data of a workload's setup are unknown in advance, and not counted. Those of a dump are counted as its file.
pub(crate) fn template_bytes(initdb: &[String], content: &Content) -> u64 {
    if let Some(own) = &content.own {
        // A base backup is copied, with the WAL in it; a dump has no indexes, and may be compressed.
        return BASE_BYTES + WAL_SEGMENTS * wal_segment_bytes(initdb) + own.bytes.unwrap_or_default();
    }
    let scale = if content.has_pgbench_tables() { u64::from(content.scale) } else { 0 };
    let has_star = content.setup.as_ref().is_some_and(|setup| setup.star_tables);
    let of_star = if has_star { STAR_BYTES_PER_SCALE * u64::from(content.scale) } else { 0 };
    BASE_BYTES + WAL_SEGMENTS * wal_segment_bytes(initdb) + BYTES_PER_SCALE * scale + of_star
}
