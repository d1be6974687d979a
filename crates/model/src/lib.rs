//! Data types of pgdyno: the campaign as written, the plan derived from it, and the records of trials.
//!
//! The lowest layer, plain data: nothing here opens a file, a socket or a process. In the direction of the data:
//! [`spec`] (the TOML as written) → [`plan`] ([`cell`]s and trials, laid out by the [`factor`]s) → [`message`] (between
//! runner and driver) → [`record`] (a trial that has ended) with its [`environment`], the [`metrics`] collected during
//! the load, the [`waits`] of the server's sessions, the [`profile`] of its functions, and the [`statistics`] of the
//! run itself. [`machine`] is what a kernel runs on, [`limits`] the limits imposed on a server, [`merit`] the
//! figure that a cell is judged by, [`load_hosts`] the hosts that a load runs on, [`part`] what one of them runs, [`phase`] a load of a trial that has several, [`session`] the figures of two trials that are measured together, [`dataset`] a database of the user's own, [`trace`] recorded sessions that a workload plays, [`fitness`] the facts
//! that decide whether a machine is fit to measure on, [`acceptance`] an accepted shift, [`commit_log`] what a repository says about commits, [`outage`] a failure of what a
//! trial depends on, [`version`] a version of PostgreSQL, [`release`] this
//! program's, [`secret`] the list of what is secret, with which records are
//! masked.

pub mod acceptance;
pub mod cell;
pub mod changes;
mod check;
pub mod commit_log;
pub mod dataset;
pub mod definitions;
pub mod environment;
pub mod extension;
pub mod factor;
mod figure;
pub mod fitness;
pub mod fleet;
pub mod limits;
pub mod load_hosts;
pub mod machine;
mod masked;
mod matrix;
pub mod merit;
pub mod message;
pub mod metrics;
pub mod outage;
pub mod paired;
pub mod part;
pub mod phase;
pub mod plan;
pub mod process_share;
pub mod profile;
pub mod record;
pub mod release;
mod run;
#[cfg(test)]
mod schema;
pub mod secret;
pub mod server;
pub mod session;
pub mod shuffle;
pub mod spec;
pub mod statistics;
pub mod topology;
pub mod trace;
pub mod units;
pub mod validity;
mod value;
pub mod version;
pub mod wait_events;
pub mod waits;
pub mod workload;
