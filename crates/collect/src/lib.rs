//! What is read beside a trial: the machine it runs on, and the server.
//!
//! [`Host`] looks at the machine once and then, before each trial, at what may have changed: it gives a
//! [`model::record::Environment`] and logs. [`fitness()`] watches the machine for a few seconds, for `pgdyno doctor`.
//! Each source has a file of its own. A source that can't be read, or is not what was expected, gives none: never
//! zero, never an error.

mod clock;
mod environment;
mod fitness;
pub mod postgres;
mod reading;
mod root;
mod sampler;
pub mod server_log;

pub use clock::now;
pub use environment::Host;
pub use fitness::fitness;
pub use reading::{Reading, Source};
pub use sampler::{Sampled, Sampler, Window};
