//! What pgdyno talks about: the campaign as written, the plan made of it, and the records a trial leaves.
//!
//! Plain data on the ground floor: nothing here opens a file, a socket or a process. Read in the way of the data:
//! [`spec`] (the TOML as written) → [`plan`] (cells and trials) → [`message`] (what runner and driver say to each
//! other) → [`record`] (what is known when a trial has ended).

mod check;
pub mod message;
pub mod plan;
pub mod record;
pub mod spec;
pub mod units;
pub mod workload;
