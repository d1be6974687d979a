//! Profiles by function and group of functions, and their limitations.

mod callers;
mod functions;
mod groups;
mod reservations;

pub use callers::{Callers, callers};
pub use functions::{Function, frames, functions, is_named, plain, plainly};
pub use groups::{GroupShare, Groups};
pub use reservations::reservations;
