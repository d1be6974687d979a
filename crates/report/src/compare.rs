//! Comparisons as text, CSV and JSON.

mod csv;
mod design;
mod document;
pub(crate) mod rows;
mod text;

pub use document::Document;
pub use text::text;
