//! Queries to PostgreSQL servers during a load, from 9.6 to 18, each with what its major has.
//!
//! [`Session`] is the connection: it marks statements, limits their time and counts their commits. [`Statistics`] and
//! [`Tables`] are read repeatedly; [`WaitSampler`] samples the sessions many times per second and records those that
//! block others; `ReplicaProbe` compares a replica with its server; [`Statements`] and [`buffers`] are queried before and after a load.

mod buffers;
mod holders;
mod replica;
mod session;
mod statements;
mod statistics;
mod tables;
mod view;
mod waits;

#[cfg(test)]
mod server_tests;

pub use buffers::buffers;
pub use holders::Holder;
pub(crate) use replica::{ReplayState, ReplicaProbe};
pub use session::{Commits, Session};
pub use statements::Statements;
pub use statistics::Statistics;
pub use tables::Tables;
pub use waits::{LoadSessions, WaitSampler};
