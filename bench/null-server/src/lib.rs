//! A server that speaks just enough of PostgreSQL's protocol for pgbench's select-only load, and does nothing.
//!
//! Every response is canned, so that a run costs only what the driver and the kernel's sockets cost, and the driver is
//! the bottleneck. It is a peer for measuring drivers (`bench/driver-cost`) and, with `piece` of [`Listener::serve`],
//! for testing how they read fragmented responses.
//!
//! The protocol is in `session.rs`, the sockets are in `server.rs`.

mod server;
mod session;

pub use server::Listener;
