//! Text charts: bars, sparklines, plots over time. Their figures are printed next to them, so that a terminal that is
//! too narrow, or a file, loses no information without them.

mod bar;
mod levels;
mod plot;

pub(crate) use bar::{Change, Ratios};
pub(crate) use bar::{bar, log_bar, ranged_bar, signed_bar};
pub(crate) use levels::Columns;
pub(crate) use plot::{lane, plot, sparkline};

/// The output terminal. Charts are drawn on terminals only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns of characters.
    pub width: usize,
    /// Whether output is coloured.
    pub colours: bool,
}

impl Terminal {
    /// Columns left for a chart next to `used` columns; none if they are too few.
    pub(crate) fn width_left(self, used: usize) -> Option<usize> {
        const MIN_WIDTH: usize = 8;
        const MAX_WIDTH: usize = 60;
        let left = self.width.saturating_sub(used);
        (left >= MIN_WIDTH).then_some(left.min(MAX_WIDTH))
    }

    /// A text in an SGR rendition, such as `1;31`, if output is coloured.
    pub(crate) fn painted(self, text: &str, rendition: &str) -> String {
        if self.colours { format!("\x1b[{rendition}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Bars of one eighth of a character's height to the full height.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
