//! Metrics of a trial: of the machine it runs on, and of the server.
//!
//! [`Host`] reads the machine's facts once and then, before each trial, those that may have changed, as a
//! [`model::record::Environment`] and logs. [`fitness()`] observes the machine for a few seconds, for `pgdyno doctor`.
//!
//! During a load a [`Collection`] runs: the collectors, each behind one trait. Some read a [`Source`] at exact times
//! ([`Machine`] and [`Processes`] of the operating system, those in [`postgres`] of the server), one samples the
//! server's sessions many times per second, others compare before and after, or use [`Perf`] to sample the functions
//! that CPUs execute. [`server_log`] parses the server's log after the load.
//!
//! Each source has its own file. A source that can't be read, or has an unexpected format, yields none: never zero,
//! never an error.

mod clock;
mod collection;
mod environment;
mod error;
mod fitness;
mod load_clock;
mod os;
mod pgbouncer;
pub mod postgres;
mod profile;
mod reading;
mod root;
pub mod server_log;

pub use clock::now;
pub use collection::{Collected, Collection, Companion, MarkerTable, Subject};
pub use environment::Host;
pub use error::{CollectError, ProfileError, RecordingProblem};
pub use fitness::{activity, fitness};
pub use load_clock::Window;
pub use os::{Backends, Machine, Processes, ServerCpu, ServerInstructions, Watched, dropped_datagrams};
pub use profile::Perf;
pub use reading::{Reading, Source, Value};
