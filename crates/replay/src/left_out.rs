//! What of a log is not in its trace.

use std::collections::BTreeMap;

use pglog::{Place, Tally};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Reason why a statement of a log is not in the trace.
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
        }
    }
}

/// How often each was left out, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOutTally(BTreeMap<LeftOut, Tally>);

impl LeftOutTally {
    /// Counts one at this place.
    pub(crate) fn add(&mut self, reason: LeftOut, place: impl FnOnce() -> Place) {
        self.0.entry(reason).or_insert_with(|| Tally { count: 0, first: place() }).count += 1;
    }

    /// The reasons, in the order of their declaration.
    pub fn iter(&self) -> impl Iterator<Item = (LeftOut, &Tally)> {
        self.0.iter().map(|(reason, tally)| (*reason, tally))
    }
}
