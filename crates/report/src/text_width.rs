//! The width of text that is not fitted to a terminal.

/// Columns of text in a file or pipe.
pub(crate) const TEXT_WIDTH: usize = 100;

/// A line wrapped at [`TEXT_WIDTH`]; continuation lines are indented.
pub(crate) fn wrapped(line: &str) -> String {
    plaintext::wrap(line, TEXT_WIDTH)
}
