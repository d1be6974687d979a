//! Executes a plan: one trial after the other, each on a server in a known state, each kept as a bundle as soon as it
//! has ended.
//!
//! [`campaign`] goes through the plan; [`servers`] holds the one server that runs; [`trial`] is the life of one trial;
//! [`load`] talks to the driver process. What happens is told to a [`progress::Observer`].

pub mod campaign;
mod error;
mod load;
pub mod progress;
mod servers;
mod trial;

pub use error::RunError;
