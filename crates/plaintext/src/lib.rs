//! Plain text that commands print: tables in several formats, wrapped lines, figures with units, text without control
//! characters.

pub mod figures;
mod printable;
pub mod table;
mod wrap;

pub use printable::printable;
pub use table::{Format, Table};
pub use wrap::wrap;
