//! Profiles by function and group of functions, and their limitations.

mod callers;
mod functions;
mod groups;
mod limitations;

pub use callers::{Callers, callers};
pub use functions::{Function, base_name, frames, functions, is_named, normalize_names};
pub use groups::{GroupShare, Groups};
pub use limitations::limitations;
