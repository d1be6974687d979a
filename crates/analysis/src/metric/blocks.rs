//! What was done to blocks in a trial's window, as the server counts it.
//!
//! Source: PostgreSQL manual, "The Cumulative Statistics System": `pg_statio_user_tables`, `pg_stat_user_tables`,
//! `pg_stat_bgwriter`, `pg_stat_checkpointer`, `pg_stat_io`; docs/metrics-postgres.md has which of them in which major.

use model::record::TrialRecord;

/// One figure of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFigure {
    /// Accesses to blocks of user tables and their indexes, in shared buffers or not, per second.
    LogicalReads,
    /// Those that were not in shared buffers, per second.
    PhysicalReads,
    /// Share of the accesses that found their block in shared buffers, 0 to 1.
    HitRatio,
    /// Buffers that the server wrote, by any of its processes, per second.
    Writes,
    /// Rows of user tables that were fetched by an index, per second: in the workload `blocks`, blocks.
    Visited,
}

const HITS: [&str; 2] = ["pg.table.heap_blks_hit", "pg.table.index_blks_hit"];
const READS: [&str; 2] = ["pg.table.heap_blks_read", "pg.table.index_blks_read"];
const WRITES: [&str; 3] =
    ["pg.checkpoint.buffers_written", "pg.bgwriter.buffers_written", "pg.backend.buffers_written"];

impl BlockFigure {
    /// What it is, for people.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::LogicalReads => "accesses to blocks of user tables and indexes per second",
            Self::PhysicalReads => "reads of such blocks from outside shared buffers per second",
            Self::HitRatio => "share of block accesses that shared buffers had",
            Self::Writes => "buffers written per second, by all processes of the server",
            Self::Visited => "rows fetched by an index per second (of the workload blocks: blocks)",
        }
    }

    /// Its value in a span after the load's start; none where that can't be known.
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

/// What a counter grew by, over all that it is counted of; none where one of them can't be known, and where there are none.
fn growth(record: &TrialRecord, metric: &str, from_us: i64, to_us: i64) -> Option<f64> {
    let mut series = record.metrics.all(metric).peekable();
    series.peek()?;
    series.map(|series| series.growth(from_us, to_us)).sum()
}
