//! Executes a plan: one trial after the other, each on a server in a known state, each kept as a bundle as soon as it
//! has ended.
//!
//! [`schedule`] says which trial is next, and [`repeats`] whether a cell wants more of them; [`campaign`] goes through
//! them; [`servers`] holds the one server that runs ([`serving`] is whosever it is); [`trial`] is the life of one trial,
//! with the user's [`hooks`]; [`machines`] boots a kernel for a trial, which [`guest`] runs there; [`without_kernel`] is a
//! trial whose kernel did not come up. [`load`] talks to the driver process, and [`collect`] collects meanwhile; [`summary`]
//! is what a load came to. What happens is told to a [`progress::Observer`].

pub mod campaign;
mod error;
pub mod guest;
mod hooks;
pub mod live_file;
mod load;
pub mod machines;
pub mod progress;
mod repeats;
mod schedule;
mod servers;
mod serving;
mod summary;
mod trial;
pub mod without_kernel;

pub use error::RunError;
pub use schedule::{BootedFor, Here, Standing, is_release};
pub use servers::build_facts;
