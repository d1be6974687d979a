//! Errors of pgbench's output and logs.

use hdrhistogram::serialization::V2DeflateSerializeError;
use hdrhistogram::{AdditionError, CreationError, RecordError};

/// Error of a file that is not the output or log of one run of pgbench.
#[derive(Debug, thiserror::Error)]
pub enum PgbenchError {
    /// An empty log.
    #[error("it is empty")]
    Empty,
    /// The output of several runs.
    #[error("it has {0} runs of pgbench; put each into a file of its own")]
    SeveralRuns(usize),
    /// An output without its last lines.
    #[error("it has no line \"tps = …\": pgbench did not come to its end, or this is not what it printed")]
    NoThroughput,
    /// A run without transactions.
    #[error("pgbench did no transaction (tps = 0)")]
    NoTransactions,
    /// A log without a transaction that succeeded.
    #[error("no transaction succeeded in it")]
    NoSuccess,
    /// Neither an output nor a log from which to derive the throughput.
    #[error("neither what pgbench printed nor a log of two intervals is there")]
    NothingMeasured,
    /// No progress report.
    #[error("it has no progress report of pgbench (\"progress: 1.0 s, 512.3 tps, …\")")]
    NoProgress,
    /// A line that pgbench does not write.
    #[error(
        "it is not a line of pgbench's log; expected one such as \"0 199 2241 0 1175850568 995598\" (-l), or \
         \"1345828501 5601 1542744 483552416 61 2573\" (--aggregate-interval)"
    )]
    NotALine,
    /// A log of transactions and a log of intervals.
    #[error("it is of another kind of log than those before: give the logs of one run")]
    Mixed,
    /// Transactions or intervals of more than one run.
    #[error("its {what} lie {seconds} s apart: it is not of one run")]
    Apart {
        /// Transactions or intervals.
        what: &'static str,
        /// From the first to the last.
        seconds: i64,
    },
    /// A histogram that could not be made.
    #[error("its latencies can't be counted: {0}")]
    Histogram(#[from] HistogramError),
}

/// Error of a histogram of latencies.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum HistogramError {
    /// It could not be created.
    Creation(#[from] CreationError),
    /// A latency is too long.
    Record(#[from] RecordError),
    /// Two could not be added.
    Addition(#[from] AdditionError),
    /// It could not be compressed.
    Serialization(#[from] V2DeflateSerializeError),
}
