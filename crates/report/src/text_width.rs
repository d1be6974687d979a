//! The width of text.

use plaintext::wrap;

use crate::chart::Terminal;

/// Most columns of text, and those in a file or pipe.
pub(crate) const TEXT_WIDTH: usize = 100;

/// Columns of text on a terminal, or in a file.
pub(crate) fn text_width(terminal: Option<Terminal>) -> usize {
    terminal.map_or(TEXT_WIDTH, |terminal| terminal.width.min(TEXT_WIDTH))
}

/// A line wrapped to [`text_width`]; continuation lines are indented.
pub(crate) fn wrapped(line: &str, terminal: Option<Terminal>) -> String {
    wrap(line, text_width(terminal))
}

/// Lines wrapped to the width of a terminal; in a file they are not wrapped.
pub(crate) fn fitted(text: &str, terminal: Option<Terminal>) -> String {
    match terminal {
        Some(terminal) => text.lines().map(|line| wrap(line, terminal.width)).collect(),
        None => text.to_owned(),
    }
}

/// A text in one line, shortened to a number of characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
