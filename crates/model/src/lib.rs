//! What pgdyno talks about: the campaign as written, the plan made of it, and the records a trial leaves.
//!
//! Plain data on the ground floor: nothing here opens a file, a socket or a process. Read in the way of the data:
//! [`spec`] (the TOML as written) → [`plan`] ([`cell`]s and trials, laid out by the [`factor`]s) → [`message`] (what runner
//! and driver say to each other) → [`record`] (what is known when a trial has ended) with the [`environment`] it ran in,
//! the [`metrics`] that were collected during the load, the [`waits`] that the server was seen in, the [`profile`] of its functions,
//! and the [`statistics`] of the run itself. [`machine`] is what a kernel runs on, [`limits`] are what a server is put under. [`fitness`] is what is looked at to judge a machine,
//! [`acceptance`] what somebody made of a shift, [`version`] a version of PostgreSQL.

pub mod acceptance;
pub mod cell;
pub mod changes;
mod check;
pub mod definitions;
pub mod environment;
pub mod factor;
pub mod fitness;
pub mod limits;
pub mod machine;
mod matrix;
pub mod message;
pub mod metrics;
pub mod plan;
pub mod profile;
pub mod record;
mod run;
#[cfg(test)]
mod schema;
pub mod secret;
pub mod server;
pub mod shuffle;
pub mod spec;
pub mod statistics;
pub mod units;
pub mod validity;
mod value;
pub mod version;
pub mod waits;
pub mod workload;
