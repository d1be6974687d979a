//! Histories as text, CSV and JSON.

mod csv;
mod document;
mod text;

pub use document::Document;
pub use text::{gates_in_words, text};
