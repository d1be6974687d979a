//! A fleet: machines that share the blocks of campaigns, over NATS JetStream.
//!
//! A [coordinator] queues the [blocks](runner::blocks) of a run, [agent]s take those whose [requirement]s they meet, run their
//! trials, and send each bundle back as soon as its trial has ended. What happens to a block is a sequence of [events], which
//! everybody reads; nobody needs to be there all the time. The [connection] has the events and the bundles, the [queue] blocks;
//! [message] has what is sent, [signature] shows who sent it, `load_hosts` are drivers on agents for loads of others, and [status] collects what agents
//! and runs do.

pub mod agent;
pub mod connection;
pub mod coordinator;
mod error;
pub mod events;
mod load_hosts;
pub mod message;
pub mod queue;
pub mod requirement;
pub mod signature;
pub mod status;
mod subjects;

pub use connection::{Connection, ConnectionOptions, Login};
pub use error::FleetError;
