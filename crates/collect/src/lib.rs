//! What is read beside a trial: so far, the machine it runs on.
//!
//! [`environment()`] looks once and gives a [`model::record::Environment`]; each of its sources has a file of its own
//! under `environment/`. A source that can't be read, or is not what was expected, gives none: never zero, never an
//! error.

mod environment;

pub use environment::{environment, environment_at};
