//! What is read beside a trial: the machine it runs on, and the server.
//!
//! [`Host`] looks at the machine once and then, before each trial, at what may have changed: it gives a
//! [`model::record::Environment`] and logs. [`fitness()`] watches the machine for a few seconds, for `pgdyno doctor`.
//!
//! Beside a load, a [`Sampler`] reads [`Source`]s at exact moments: [`Machine`] and [`Processes`] are the operating
//! system's, [`postgres`] has the server's. A [`Looker`] looks at the server's sessions many times a second.
//! A [`Profiler`] has [`Perf`] sample which functions processors are in.
//! [`server_log`] reads what the server wrote when the load has ended.
//!
//! Each source has a file of its own. A source that can't be read, or is not what was expected, gives none: never
//! zero, never an error.

mod clock;
mod environment;
mod fitness;
mod looker;
mod os;
pub mod postgres;
mod profile;
mod reading;
mod root;
mod sampler;
pub mod server_log;

pub use clock::now;
pub use environment::Host;
pub use fitness::fitness;
pub use looker::{Looked, Looker};
pub use os::{Backends, Machine, Processes, Watched};
pub use profile::{Perf, Profiler, Recorded};
pub use reading::{Reading, Source, Value};
pub use sampler::{Sampled, Sampler, Window};
