//! Logs of PostgreSQL servers as a stream of entries: csvlog, jsonlog, and stderr with any usable `log_line_prefix`;
//! plain or compressed; as the server or a cloud provider writes them.
//!
//! A [`LogFile`] holds one entry at a time, so that a log of any size needs the memory of its longest entry. Data flow:
//! `input` decompresses and finds lines → `csv`, `json` or `stderr` (with a [`Prefix`]) make one [`Entry`] of the lines
//! of a record → [`Message`] is what an entry says about statements and connections. What can't be read is counted
//! ([`Problems`]), and the rest is used.
//!
//! Source: PostgreSQL manual, "Error Reporting and Logging"; `elog.c`, `csvlog.c`, `jsonlog.c`, `postgres.c`.

mod csv;
mod entry;
mod error;
mod input;
mod json;
mod log_file;
mod message;
mod parameters;
mod prefix;
mod problems;
mod record;
mod severity;
mod stderr;
mod time;

pub use entry::{Entry, SessionKey};
pub use error::{LogError, PrefixError};
pub use log_file::{LogFile, LogFormat};
pub use message::{Message, Step};
pub use parameters::parse_parameters;
pub use prefix::{KNOWN_PREFIXES, Prefix};
pub use problems::{Place, Problem, Problems, Tally};
pub use severity::Severity;
