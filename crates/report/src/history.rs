//! Histories as text, CSV and JSON, and for continuous integration.

mod ci;
mod csv;
mod document;
mod text;

pub use ci::{bencher, github_benchmark, junit};
pub use document::Document;
pub use text::{gates_in_words, text};
