//! Errors of pgbench's output and logs.

use hdrhistogram::serialization::V2DeflateSerializeError;
use hdrhistogram::{AdditionError, CreationError, RecordError};

/// Error of a file that is not the output or log of one run of pgbench.
#[derive(Debug, thiserror::Error)]
pub enum PgbenchError {
    /// An empty log.
    #[error("the log is empty")]
    Empty,
    /// The output of several runs.
    #[error("the file contains {0} runs of pgbench: put each run into a separate file")]
    SeveralRuns(usize),
    /// An output without its last lines.
    #[error("there is no line \"tps = …\": pgbench was interrupted, or this is not its output")]
    NoThroughput,
    /// A run without transactions.
    #[error("pgbench processed no transactions (tps = 0)")]
    NoTransactions,
    /// A log without a transaction that succeeded.
    #[error("no transaction succeeded")]
    NoSuccess,
    /// Neither an output nor a log from which to derive the throughput.
    #[error("there is neither an output of pgbench nor a log of two or more intervals")]
    NothingMeasured,
    /// No progress report.
    #[error("there is no progress report of pgbench (\"progress: 1.0 s, 512.3 tps, …\")")]
    NoProgress,
    /// A line that pgbench does not write.
    #[error(
        "not a line of a pgbench log: expected one such as \"0 199 2241 0 1175850568 995598\" (-l), or \
         \"1345828501 5601 1542744 483552416 61 2573\" (--aggregate-interval)"
    )]
    InvalidLine,
    /// A log of transactions and a log of intervals.
    #[error("the format of the log differs from that of the previous ones: give the logs of one run")]
    MixedFormats,
    /// Transactions or intervals of more than one run.
    #[error("its {what} span {seconds} s, which is too long for one run: give the logs of one run")]
    TooLong {
        /// Transactions or intervals.
        what: &'static str,
        /// From the first to the last.
        seconds: i64,
    },
    /// A histogram that could not be made.
    #[error("the histogram of its latencies can't be computed: {0}")]
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
