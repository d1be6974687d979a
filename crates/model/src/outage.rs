//! Failures of what a trial depends on.

use serde::{Deserialize, Serialize};

/// A failure of what a trial depends on, which says nothing about the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// The server can't be reached: nothing listens, it starts up or shuts down, or it does not answer.
    Unreachable,
    /// The host or the server is out of disk space, open files, processes or memory.
    Exhausted,
}
