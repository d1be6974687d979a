//! A server that speaks just enough of PostgreSQL's protocol for pgbench's select-only load, and does nothing.
//!
//! Every answer is canned, so that what a run costs is the driver's cost and that of the kernel's sockets, and the
//! driver, not a server, is what is at its limit. It is a peer for measuring drivers (`bench/driver-cost`), and with
//! [`Listening::serve`]'s `piece` a nasty one for testing how they read.
//!
//! The bytes are in `session.rs`, the sockets in `server.rs`.

mod server;
mod session;

pub use server::Listening;
