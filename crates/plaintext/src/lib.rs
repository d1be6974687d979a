//! Plain text that commands print: tables in several formats, lines wrapped to a width.

pub mod table;
mod wrap;

pub use table::{Format, Table};
pub use wrap::wrap;
