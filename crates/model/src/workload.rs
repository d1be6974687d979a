//! What clients can be asked to do.

use serde::{Deserialize, Serialize};

/// One of pgbench's built-in scripts, by pgbench's own names.
///
/// Source: PostgreSQL manual, pgbench, "What is the 'Transaction' Actually Performed in pgbench?".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Five statements in a transaction, three of them updates ("TPC-B (sort of)").
    TpcbLike,
    /// As `tpcb-like`, without the updates of tellers and branches, which contend at small scales.
    SimpleUpdate,
    /// One primary-key lookup.
    SelectOnly,
}

impl Workload {
    /// Every workload there is.
    pub const ALL: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    /// pgbench's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }

    /// Whether it changes the data set, so that each trial has to begin with a fresh copy.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::SelectOnly)
    }

    /// The workload of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }
}

/// How statements are sent (pgbench's `--protocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One Query message, values written into the text.
    Simple,
    /// Parse, Bind, Describe, Execute and Sync for every statement.
    Extended,
    /// Parsed once per client, then Bind, Describe, Execute and Sync.
    Prepared,
}

impl Protocol {
    /// Every protocol there is.
    pub const ALL: [Self; 3] = [Self::Simple, Self::Extended, Self::Prepared];

    /// pgbench's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }

    /// The protocol of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }
}

/// What carries the bytes between driver and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A Unix-domain socket.
    Unix,
    /// TCP; on loopback where the target is local.
    Tcp,
}

impl Transport {
    /// Every transport there is.
    pub const ALL: [Self; 2] = [Self::Unix, Self::Tcp];

    /// Its name in campaigns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        }
    }

    /// The transport of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.name() == name)
    }
}
