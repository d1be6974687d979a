//! What the server's sessions and processes were doing, by looking at them many times a second.

/// How often a kind of session was seen doing one thing, in one second.
///
/// Seen ÷ looks is the mean number of sessions that did it; over a window, its share of the time.
/// Source: PostgreSQL manual, "The Cumulative Statistics System", `pg_stat_activity`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waits {
    /// The start of the second, in microseconds after the load's start by the monotonic clock; negative before it.
    pub at_us: i64,
    /// How long the span was, in microseconds.
    pub width_us: u64,
    /// How often it was looked in this span.
    pub samples: u32,
    /// Kind of the sessions.
    pub session: SessionKind,
    /// `state` of `pg_stat_activity`: `active`, `idle`, `idle in transaction`, …; none of the server's own processes.
    pub state: Option<String>,
    /// `wait_event_type`, such as `LWLock`; none where it did not wait.
    pub event_type: Option<String>,
    /// `wait_event`, such as `WALWrite`.
    pub event: Option<String>,
    /// How many sessions were seen doing so, over all looks.
    pub seen: u32,
}

impl Waits {
    /// What it did: the wait event's type, `CPU` where it was active and did not wait, or its state where it was not active;
    /// and the wait event, where it was active and waited.
    pub fn doing(&self) -> (&str, Option<&str>) {
        match (self.state.as_deref(), self.event_type.as_deref()) {
            (Some(state), _) if !IS_ACTIVE.contains(&state) => (state, None),
            (_, Some(event_type)) => (event_type, self.event.as_deref()),
            (_, None) => ("CPU", None),
        }
    }
}

/// States in which a session does something for its client.
///
/// Source: PostgreSQL manual, `pg_stat_activity`.
const IS_ACTIVE: [&str; 2] = ["active", "fastpath function call"];

/// Kinds of sessions and processes that are sampled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionKind {
    /// One of the load's clients.
    Load,
    /// A client of a background workload.
    Background,
    /// Another client.
    Other,
    /// A process of the server, by `backend_type`: `checkpointer`, `autovacuum worker`, …; before PostgreSQL 10 there
    /// are none to be seen but autovacuum's workers.
    Server(String),
}

impl SessionKind {
    /// Its name in bundles: `load`, `beside`, `other`, or the server's own.
    pub fn name(&self) -> &str {
        match self {
            Self::Load => "load",
            Self::Background => "beside",
            Self::Other => "other",
            Self::Server(name) => name,
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "load" => Self::Load,
            "beside" => Self::Background,
            "other" => Self::Other,
            name => Self::Server(name.to_owned()),
        }
    }
}

/// What one statement cost during the load, as `pg_stat_statements` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementUse {
    /// `queryid`.
    pub query_id: i64,
    /// The text, normalised by the server.
    pub query: String,
    /// How often it ran.
    pub calls: u64,
    /// Time it took to execute, in all, in microseconds.
    pub total_us: f64,
    /// Rows it brought or changed.
    pub rows: u64,
    /// Blocks found in shared buffers.
    pub shared_hit_blocks: u64,
    /// Blocks read from outside them.
    pub shared_read_blocks: u64,
    /// Blocks it made dirty.
    pub shared_dirtied_blocks: u64,
    /// Bytes of WAL; none before PostgreSQL 13.
    pub wal_bytes: Option<f64>,
}
