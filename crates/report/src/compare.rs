//! Comparisons as text, CSV and JSON, and for continuous integration.

mod ci;
mod csv;
mod design;
mod document;
pub(crate) mod rows;
mod statements;
mod text;

pub use ci::{bencher, github_benchmark, junit};
pub use document::Document;
pub use statements::statements_text;
pub use text::text;
