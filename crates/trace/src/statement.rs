//! Sessions and statements of a trace.

use std::fmt;
use std::sync::Arc;

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its time, in microseconds since 1970: of a statement, its start.
    pub at_us: i64,
    /// The session, from 0, in the order of their starts.
    pub session: u32,
    /// What happened.
    pub action: Action,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The session began.
    Begin(Identity),
    /// A statement was executed.
    Execute(Statement),
    /// The session ended. Sessions that were open at the end of the log have no end.
    End,
}

/// Who a session was. What the log does not have is None.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Role.
    pub user: Option<Arc<str>>,
    /// Database.
    pub database: Option<Arc<str>>,
    /// `application_name`.
    pub application: Option<Arc<str>>,
}

/// An execution of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its shape: an index of the trace's [`Shape`](crate::Shape)s.
    pub shape: u32,
    /// Its text.
    pub text: Arc<str>,
    /// How it was sent.
    pub call: Call,
    /// Duration in microseconds: of all steps, without the time between them.
    pub duration_us: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Statements of other sessions that had ended before, on whose commits it depends; not in order.
    pub after: Vec<StatementRef>,
}

/// Longest recorded time from the end of a statement to the start of one that depends on it, in microseconds: what is later
/// by more than that when it is played has lost its order anyway.
pub const MAX_DEPENDENCY_US: i64 = 60_000_000;

/// A statement of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementRef {
    /// The session.
    pub session: u32,
    /// Its number among the statements of the session, from 0.
    pub number: u64,
}

/// How a statement was sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// By the simple protocol; the text may have several statements.
    Simple,
    /// By the extended protocol.
    Extended {
        /// Name of the prepared statement; empty: the unnamed one.
        name: Arc<str>,
        /// Values of the parameters, as text.
        parameters: Vec<Option<Arc<str>>>,
    },
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Without an error.
    Success,
    /// With an error; its SQLSTATE, if the log has it.
    Failure(Option<SqlState>),
    /// The log ends before.
    Unknown,
}

/// Five digits or capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// Parses one.
    pub fn parse(text: &str) -> Option<Self> {
        let state: [u8; 5] = text.as_bytes().try_into().ok()?;
        state.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).then_some(Self(state))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Event {
    /// Memory that it needs, in bytes, about.
    pub fn size(&self) -> usize {
        let base = size_of::<Self>();
        let Action::Execute(statement) = &self.action else { return base };
        let parameters = match &statement.call {
            Call::Simple => 0,
            Call::Extended { parameters, .. } => {
                let value =
                    |value: &Option<Arc<str>>| value.as_ref().map_or(0, |value| value.len() + 16) + 16;
                parameters.iter().map(value).sum()
            }
        };
        base + statement.text.len() + parameters + statement.after.len() * size_of::<StatementRef>()
    }
}
