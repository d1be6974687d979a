//! Traces and their playbacks as text.

mod inspection;
mod playback;

pub use inspection::text as inspection_text;
pub use playback::text as playback_text;
