//! The load generator: clients that run a script against a server, event loops, recording.
//!
//! It runs as a process of its own. The runner's side is [`Process`]; the child's side is [`serve`], which `pgdyno
//! driver` calls. In between go the lines of `model::message`.
//!
//! Inside the child, in the way of the data: `serve` reads a load → `engine` starts the threads and merges what they
//! tell → each `worker` has its clients connected (`connect`), runs the script (`program`, `client`) in its
//! `event_loop` over `poll`, and its `recorder` hands over one `record` an interval → `intervals` and `summary` make
//! replies of them.

mod client;
mod clock;
mod connect;
mod engine;
mod error;
mod event;
mod event_loop;
mod intervals;
mod limits;
mod poll;
mod process;
mod program;
mod record;
mod recorder;
mod replies;
mod schedule;
mod serve;
mod summary;
mod worker;

pub use error::DriverError;
pub use process::{Next, Process};
pub use serve::{Ended, serve};
