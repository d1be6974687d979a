//! What is read beside a trial.
//!
//! [`Host`] looks at the machine once and then, before each trial, at what may have changed: it gives a
//! [`model::record::Environment`] and logs. [`fitness()`] watches the machine for a few seconds, for `pgdyno doctor`.
//! [`Source`]s are read again and again beside a load: [`Machine`] and [`Processes`] are the operating system's.
//! Each source has a file of its own. A source that can't be read, or is not what was expected, gives none: never
//! zero, never an error.

mod clock;
mod environment;
mod fitness;
mod os;
mod reading;
mod root;

pub use clock::now;
pub use environment::Host;
pub use fitness::fitness;
pub use os::{Machine, Processes, Watched};
pub use reading::{Reading, Source};
