//! What a profile says: which functions and groups of functions processors were in, and what is different in another.

mod callers;
mod functions;
mod groups;
mod reservations;

pub use callers::{Callers, callers};
pub use functions::{Function, frames, functions, is_named, plain, plainly};
pub use groups::{GroupShare, Groups};
pub use reservations::reservations;
