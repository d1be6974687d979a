//! Plain text that commands print: tables in several formats, lines wrapped to a width, figures with their units, text without control
//! characters.

pub mod figures;
mod printable;
pub mod table;
mod wrap;

pub use printable::printable;
pub use table::{Format, Table};
pub use wrap::wrap;
