//! Metrics read during a trial: the machine it runs on, and the server.
//!
//! [`Host`] looks at the machine once and then, before each trial, at what may have changed: it gives a
//! [`model::record::Environment`] and logs. [`fitness()`] watches the machine for a few seconds, for `pgdyno doctor`.
//!
//! During a load a [`Collection`] runs: the list of collectors, each behind one trait. Some read a [`Source`] at exact moments
//! ([`Machine`] and [`Processes`] are the operating system's, [`postgres`] has the server's), one samples the server's sessions
//! many times a second, others compare before and after, or have [`Perf`] sample which functions processors are in.
//! [`server_log`] reads what the server wrote when the load has ended.
//!
//! Each source has a file of its own. A source that can't be read, or is not what was expected, gives none: never
//! zero, never an error.

mod clock;
mod collection;
mod environment;
mod error;
mod fitness;
mod load_clock;
mod os;
pub mod postgres;
mod profile;
mod reading;
mod root;
pub mod server_log;

pub use clock::now;
pub use collection::{Collected, Collection, Subject};
pub use environment::Host;
pub use error::{CollectError, ProfileError, RecordingProblem};
pub use fitness::fitness;
pub use load_clock::Window;
pub use os::{Backends, Machine, Processes, Watched};
pub use profile::Perf;
pub use reading::{Reading, Source, Value};
