//! Profiles as tables, flame graphs and JSON.

mod document;
mod flame;
mod text;

pub use document::{Document, ProfiledDocument};
pub use flame::{FlameError, difference_svg, svg};
pub use text::{difference_text, function_text, text};
