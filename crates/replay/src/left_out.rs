//! What of a log or a snapshot is not in its trace.

use std::collections::BTreeMap;

use pglog::{Place, Tally};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Reason why something of a log or a snapshot is not in the trace, or not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum LeftOut {
    /// `COPY … FROM STDIN`.
    CopyIn,
    /// A call by the fast-path protocol.
    FunctionCall,
    /// Parameters that were not logged.
    NoParameters,
    /// A further fetch from a portal.
    PortalFetch,
    /// An error without its statement.
    FailureWithoutText,
    /// A duration without its statement.
    DurationWithoutText,
    /// Of a snapshot: a statement that a function executed.
    Nested,
    /// Of a snapshot: no query, no change of rows.
    Utility,
    /// Of a snapshot: a statement without its text.
    NoText,
    /// Of a snapshot: a text that can't be parsed.
    NotSql,
    /// Of a snapshot: a statement that the database of the values refuses.
    Refused,
    /// Of a snapshot: a statement that is too rare.
    TooRare,
    /// Of a snapshot: an entry that was evicted or reset.
    Evicted,
    /// Of a snapshot: a list of which only the first element is known.
    ShortenedList,
    /// Of a snapshot: an execution with a value that is of no column.
    TypedValue,
}

impl LeftOut {
    /// Its name in documents.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What it is, and what to do about it, for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::CopyIn => "COPY FROM STDIN: logs do not have the data",
            Self::FunctionCall => {
                "function calls by the fast-path protocol (large objects): logs do not have them"
            }
            Self::NoParameters => {
                "statements without their parameters; log with log_parameter_max_length = -1, and those of failed \
                 statements with log_parameter_max_length_on_error = -1"
            }
            Self::PortalFetch => "further fetches from a portal: its first execution fetches all rows",
            Self::FailureWithoutText => {
                "errors without their statement; log with log_min_error_statement = error"
            }
            Self::DurationWithoutText => {
                "durations without their statement; log with log_min_duration_statement = 0 or log_statement = all"
            }
            Self::Nested => {
                "calls of statements in functions: the statements that called these are in the trace"
            }
            Self::Utility => {
                "calls of utility statements, such as COMMIT: each statement of the trace is a transaction of its own"
            }
            Self::NoText => {
                "calls of statements without text; take snapshots as a member of pg_read_all_stats"
            }
            Self::NotSql => "calls of statements that can't be parsed",
            Self::Refused => "calls of statements that the database of the values refuses",
            Self::TooRare => {
                "calls of statements that are too rare for a trace of this length; make it longer by --duration"
            }
            Self::Evicted => {
                "entries that were evicted or reset between the snapshots; take them more often, or raise \
                 pg_stat_statements.max"
            }
            Self::ShortenedList => {
                "executions with one element of a list, whose others are not in the snapshot"
            }
            Self::TypedValue => "executions with a value that belongs to no column: one of its type",
        }
    }
}

/// How often each was left out, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOutTally(BTreeMap<LeftOut, Tally>);

impl LeftOutTally {
    /// Counts one at this place.
    pub(crate) fn add(&mut self, reason: LeftOut, place: impl FnOnce() -> Place) {
        self.add_many(reason, 1, place);
    }

    /// Counts several at this place.
    pub(crate) fn add_many(&mut self, reason: LeftOut, count: u64, place: impl FnOnce() -> Place) {
        let tally = self.0.entry(reason).or_insert_with(|| Tally { count: 0, first: place() });
        tally.count = tally.count.saturating_add(count);
    }

    /// The reasons, in the order of their declaration.
    pub fn iter(&self) -> impl Iterator<Item = (LeftOut, &Tally)> {
        self.0.iter().map(|(reason, tally)| (*reason, tally))
    }
}
