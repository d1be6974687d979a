//! Block accesses and writes in a trial's window, as counted by the server.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System": `pg_statio_user_tables`, `pg_stat_user_tables`,
//! `pg_stat_bgwriter`, `pg_stat_checkpointer`, `pg_stat_io`; docs/metrics-postgres.md has which of them in which major.

use model::record::TrialRecord;

/// A figure of block accesses or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockFigure {
    /// Accesses to blocks of user tables and their indexes, in shared buffers or not, per second.
    LogicalReads,
    /// Accesses to blocks that were not in shared buffers, per second.
    PhysicalReads,
    /// Share of accesses whose block was in shared buffers, 0 to 1.
    HitRatio,
    /// Buffers written by any of the server's processes, per second.
    Writes,
    /// Rows of user tables fetched by index scans, per second: in the workload `blocks`, blocks.
    Visited,
}

const HITS: [&str; 2] = ["pg.table.heap_blks_hit", "pg.table.index_blks_hit"];
const READS: [&str; 2] = ["pg.table.heap_blks_read", "pg.table.index_blks_read"];
const WRITES: [&str; 3] =
    ["pg.checkpoint.buffers_written", "pg.bgwriter.buffers_written", "pg.backend.buffers_written"];

impl BlockFigure {
    /// Description of the figure.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::LogicalReads => "accesses to blocks of user tables and indexes per second",
            Self::PhysicalReads => "reads of such blocks not found in shared buffers per second",
            Self::HitRatio => "share of block accesses found in shared buffers",
            Self::Writes => "buffers written per second, by all processes of the server",
            Self::Visited => "rows fetched by index scans per second (in the workload blocks: blocks)",
        }
    }

    /// Value in a span after the load's start; `None` if it can't be determined.
    pub(crate) fn value(self, record: &TrialRecord, from_us: i64, to_us: i64) -> Option<f64> {
        let sum = |metrics: &[&str]| -> Option<f64> {
            metrics.iter().map(|metric| growth(record, metric, from_us, to_us)).sum()
        };
        let seconds = Some((to_us - from_us) as f64 / 1e6).filter(|seconds| *seconds > 0.0)?;
        match self {
            Self::LogicalReads => Some((sum(&HITS)? + sum(&READS)?) / seconds),
            Self::PhysicalReads => Some(sum(&READS)? / seconds),
            Self::HitRatio => {
                let (hits, reads) = (sum(&HITS)?, sum(&READS)?);
                (hits + reads > 0.0).then(|| hits / (hits + reads))
            }
            Self::Writes => Some(sum(&WRITES)? / seconds),
            Self::Visited => Some(sum(&["pg.table.index_tuples_fetched"])? / seconds),
        }
    }
}

/// Growth of a counter, over all its series; `None` if one of them is unknown, or there are none.
fn growth(record: &TrialRecord, metric: &str, from_us: i64, to_us: i64) -> Option<f64> {
    let mut series = record.metrics.all(metric).peekable();
    series.peek()?;
    series.map(|series| series.growth(from_us, to_us)).sum()
}
