//! Charts of text: bars, sparklines, a plot over time. What they show stands next to them in figures, so that a terminal
//! that is too narrow, or a file, loses nothing without them.

mod bar;
mod levels;
mod plot;

pub(crate) use bar::{Change, Ratios};
pub(crate) use bar::{bar, log_bar, ranged_bar, signed_bar};
pub(crate) use levels::Columns;
pub(crate) use plot::{lane, plot, sparkline};

/// The terminal that is printed to. There are charts on terminals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns of characters.
    pub width: usize,
    /// Whether it is to be in colours.
    pub colours: bool,
}

impl Terminal {
    /// The columns that are left next to so many; none where a chart would say nothing in them.
    pub(crate) fn width_left(self, used: usize) -> Option<usize> {
        const LEAST: usize = 8;
        const MOST: usize = 60;
        let left = self.width.saturating_sub(used);
        (left >= LEAST).then_some(left.min(MOST))
    }

    /// A text in a rendition of SGR, such as `1;31`, where colours are wanted.
    pub(crate) fn painted(self, text: &str, rendition: &str) -> String {
        if self.colours { format!("\x1b[{rendition}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// An eighth of a character's height to the whole of it.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
