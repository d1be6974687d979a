//! Errors in planning and running a load.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use driver::LoadError;
use script::{BuiltinError, EvalError, ScriptError};
use wire::blocking::SessionError;

/// A request that can't be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A script does not parse.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// No built-in script has this name.
    #[error(transparent)]
    Builtin(#[from] BuiltinError),
    /// A variable does not take its value.
    #[error(transparent)]
    Variable(#[from] EvalError),
    /// More variables than a script can have.
    #[error("the scripts have too many variables; the maximum is 65536")]
    TooManyVariables,
    /// Neither a file nor a built-in script has this name.
    #[error(
        "there is no script \"{name}\": it is neither a file nor one of the built-in tpcb-like, simple-update and \
         select-only; use -d {name} for a database"
    )]
    NoScript {
        /// The name.
        name: String,
    },
    /// A script can't be read.
    #[error("the script {} can't be read: {source}", .path.display())]
    UnreadableScript {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No script would ever be chosen.
    #[error("every script has weight 0; give at least one a higher weight")]
    NoWeight,
    /// More threads than clients.
    #[error("{threads} threads (-j) exceed {clients} clients (-c); use fewer threads")]
    IdleThreads {
        /// Threads.
        threads: u32,
        /// Clients.
        clients: u32,
    },
    /// Spacing without a rate.
    #[error("--arrivals requires a rate: use --rate, --stage or --find-max")]
    SpacingWithoutRate,
    /// A rate, and arrivals of a file.
    #[error("--arrivals file:PATH cannot be used with --rate, --stage or --find-max")]
    RateOfArrivalFile,
    /// A warm-up, and arrivals of a file.
    #[error("--arrivals file:PATH cannot be used with --warmup")]
    WarmupOfArrivalFile,
    /// A schedule on which nothing starts.
    #[error("the rate of every stage is 0; at least one must be greater")]
    ZeroRate,
    /// A file of arrivals can't be read.
    #[error("the arrivals file {} can't be read: {source}", .path.display())]
    UnreadableArrivals {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line of a file of arrivals is wrong.
    #[error("{}:{line}: `{text}` {why}", .path.display())]
    Arrival {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Its text.
        text: String,
        /// The problem.
        why: &'static str,
    },
    /// A file of arrivals is empty.
    #[error("the arrivals file {} contains no arrivals", .path.display())]
    NoArrivals {
        /// The file.
        path: PathBuf,
    },
}

/// A plan that can't be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server can't be reached.
    #[error(transparent)]
    Connect(#[from] SessionError),
    /// pgbench's tables can't be counted.
    #[error(
        "could not read the scale of pgbench's tables; if they do not exist, create them with `pgdyno pgbench -i {database}`"
    )]
    Scale {
        /// The database.
        database: String,
        /// The cause.
        source: SessionError,
    },
    /// The variable `:scale` does not take its value.
    #[error(transparent)]
    Variable(#[from] EvalError),
    /// The user ended it before the load began.
    #[error("interrupted while {doing}: no load began")]
    Interrupted {
        /// What was done at that time.
        doing: String,
    },
    /// The thread that connects can't be started.
    #[error("cannot start a thread to connect to the server: {0}")]
    Thread(io::Error),
    /// The load failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The script of setup or teardown failed.
    #[error("the {phase} failed")]
    Script {
        /// `setup` or `teardown`.
        phase: &'static str,
        /// The cause.
        source: ScriptFailure,
    },
    /// The interval log can't be created.
    #[error("the interval log {} can't be created", .path.display())]
    CreateLog {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The interval log can't be written.
    #[error("the interval log {} can't be written; is the disk full?", .path.display())]
    WriteLog {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A client was aborted in a load of a probe.
    #[error("a client was aborted in a load with {threads} threads: {cause}")]
    ProbeAborted {
        /// The number of threads.
        threads: u32,
        /// The first message.
        cause: String,
    },
    /// In a load of a probe, no transaction ended.
    #[error("transactions take too long: none ended in a load of {length:?}")]
    ProbeTooShort {
        /// Length of the load.
        length: Duration,
    },
}

impl RunError {
    /// Whether the user ended it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted { .. })
    }
}

/// Failure of a script of setup or teardown.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFailure {
    /// It could not be run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its commands failed: the messages.
    #[error("{0}")]
    Commands(String),
}
