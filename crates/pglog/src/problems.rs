//! What of a log could not be read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

/// Reason why a part of a log is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Problem {
    /// A line that neither begins an entry nor continues one.
    NotAnEntry,
    /// An entry that is cut off, by the end of the file or by another entry.
    Truncated,
    /// An entry that is longer than what a server writes.
    TooLong,
    /// An entry that is not UTF-8.
    NotUtf8,
    /// An entry in another language than English.
    NotEnglish,
    /// An entry whose time zone is not known: read as UTC.
    UnknownZone,
    /// An entry with another `log_line_prefix` than the one before.
    OtherPrefix,
}

impl Problem {
    /// Its name in documents.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What it is, and what to do about it, for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::NotAnEntry => "lines that are no entries of the log",
            Self::Truncated => "entries that are cut off",
            Self::TooLong => "entries longer than 1 GiB",
            Self::NotUtf8 => {
                "entries that are not UTF-8; convert the log first, such as with iconv -f LATIN1 -t UTF-8"
            }
            Self::NotEnglish => "entries that are not in English; log with lc_messages = 'C'",
            Self::UnknownZone => {
                "entries in an unknown time zone, read as UTC; log with log_timezone = 'UTC'"
            }
            Self::OtherPrefix => "changes of log_line_prefix, which were followed",
        }
    }
}

/// A place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// How often something was found, and where first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Number of times.
    pub count: u64,
    /// The first place.
    pub first: Place,
}

/// Problems by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(BTreeMap<Problem, Tally>);

impl Problems {
    /// Counts one.
    pub(crate) fn add(&mut self, problem: Problem, file: &Arc<str>, line: u64) {
        let first = || Tally { count: 0, first: Place { file: Arc::clone(file), line } };
        self.0.entry(problem).or_insert_with(first).count += 1;
    }

    /// Adds those of a later file.
    pub fn merge(&mut self, later: &Self) {
        for (problem, tally) in &later.0 {
            let first = || Tally { count: 0, first: tally.first.clone() };
            self.0.entry(*problem).or_insert_with(first).count += tally.count;
        }
    }

    /// The problems, in the order of their declaration.
    pub fn iter(&self) -> impl Iterator<Item = (Problem, &Tally)> {
        self.0.iter().map(|(problem, tally)| (*problem, tally))
    }

    /// How often one was found.
    pub fn count(&self, problem: Problem) -> u64 {
        self.0.get(&problem).map_or(0, |tally| tally.count)
    }
}
