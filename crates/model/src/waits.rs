//! States and wait events of the server's sessions and processes, sampled many times per second.

use crate::wait_events::canonical;

/// Number of times that sessions of one kind were sampled in one state, in one second.
///
/// `seen` ÷ `samples` is the mean number of sessions in this state; over a window, its share of the time. Source:
/// PostgreSQL manual, "The Cumulative Statistics System", `pg_stat_activity`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waits {
    /// Start of the second, in microseconds after the load's start by the monotonic clock; negative before it.
    pub at_us: i64,
    /// Length of the span, in microseconds.
    pub width_us: u64,
    /// Number of samples in this span.
    pub samples: u32,
    /// Kind of the sessions.
    pub session: SessionKind,
    /// `state` of `pg_stat_activity`: `active`, `idle`, `idle in transaction`, …; none for the server's own processes.
    pub state: Option<String>,
    /// `wait_event_type`, such as `LWLock`; none if it did not wait.
    pub event_type: Option<String>,
    /// `wait_event`, such as `WALWrite`.
    pub event: Option<String>,
    /// Number of sessions in this state, summed over all samples.
    pub seen: u32,
}

impl Waits {
    /// Gives its wait event the name that it has in PostgreSQL 18.
    pub fn rename_event(&mut self) {
        if let (Some(event_type), Some(event)) = (&mut self.event_type, &mut self.event) {
            let (new_type, new) = canonical(event_type, event);
            (*event_type, *event) = (new_type.to_owned(), new.to_owned());
        }
    }

    /// Its activity: wait event type, `CPU` if active without waiting, or its state if not active; and the wait event,
    /// if active and waiting. Wait events have the names of PostgreSQL 18.
    pub fn activity(&self) -> (&str, Option<&str>) {
        match (self.state.as_deref(), self.event_type.as_deref(), self.event.as_deref()) {
            (Some(state), ..) if !ACTIVE_STATES.contains(&state) => (state, None),
            (_, Some(event_type), Some(event)) => {
                let (event_type, event) = canonical(event_type, event);
                (event_type, Some(event))
            }
            (_, Some(event_type), None) => (event_type, None),
            (_, None, _) => (CPU, None),
        }
    }
}

/// Name of the activity of a session that is active and does not wait.
pub const CPU: &str = "CPU";

/// States in which a session works for its client.
///
/// Source: PostgreSQL manual, `pg_stat_activity`.
const ACTIVE_STATES: [&str; 2] = ["active", "fastpath function call"];

/// Kinds of sessions and processes that are sampled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionKind {
    /// One of the load's clients.
    Load,
    /// A client of a background workload.
    Background,
    /// Another client.
    Other,
    /// A process of the server, by `backend_type`: `checkpointer`, `autovacuum worker`, …; before PostgreSQL 10 only
    /// autovacuum workers are visible.
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

    /// The kind with a name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "load" => Self::Load,
            "beside" => Self::Background,
            "other" => Self::Other,
            name => Self::Server(name.to_owned()),
        }
    }
}

/// Cost of one statement during the load, from `pg_stat_statements`.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementUse {
    /// `queryid`.
    pub query_id: i64,
    /// Query text, normalized by the server.
    pub query: String,
    /// Number of executions.
    pub calls: u64,
    /// Total execution time, in microseconds.
    pub total_us: f64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Blocks found in shared buffers.
    pub shared_hit_blocks: u64,
    /// Blocks read into shared buffers.
    pub shared_read_blocks: u64,
    /// Blocks dirtied.
    pub shared_dirtied_blocks: u64,
    /// Bytes of WAL; none before PostgreSQL 13.
    pub wal_bytes: Option<f64>,
}
