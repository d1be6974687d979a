//! Queries to a PostgreSQL server during a load, from 9.6 to 18, each with what it has.
//!
//! [`Session`] is the way to the server: it marks statements, bounds their time and counts the commits that they cost.
//! [`Statistics`] and [`Tables`] are read again and again; [`WaitSampler`] looks at the sessions many times a second and
//! keeps who held others back; [`Statements`] and [`buffers`] are asked before and after a load.

mod buffers;
mod holders;
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
pub use session::{Commits, Session};
pub use statements::Statements;
pub use statistics::Statistics;
pub use tables::Tables;
pub use waits::{LoadSessions, WaitSampler};
