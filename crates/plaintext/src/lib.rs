//! Plain text that commands print: tables in several formats, lines wrapped to a width, figures with their units.

pub mod figures;
pub mod table;
mod wrap;

pub use table::{Format, Table};
pub use wrap::wrap;
