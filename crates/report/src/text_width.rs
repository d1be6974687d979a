//! The width of text that is not fitted to a terminal.

/// Columns of text in a file or pipe.
pub(crate) const TEXT_WIDTH: usize = 100;

/// A line broken before words that would go beyond [`TEXT_WIDTH`]; what follows is indented.
pub(crate) fn wrapped(line: &str) -> String {
    plaintext::wrap(line, TEXT_WIDTH)
}
