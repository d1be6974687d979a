//! The output: a Markdown table.

use std::fmt;

pub(crate) const HEAD: &str = "\
| figure | simulated | bound | |
|---|---:|---:|---|";

/// The bound that a figure must meet.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// It is only reported.
    Unbounded,
}

pub(crate) struct Row {
    what: String,
    figure: f64,
    shown: String,
    bound: Bound,
    show: fn(f64) -> String,
}

impl Row {
    /// A figure, formatted by `show`.
    pub(crate) fn new(what: impl Into<String>, figure: f64, bound: Bound, show: fn(f64) -> String) -> Self {
        Self { what: what.into(), figure, shown: show(figure), bound, show }
    }

    /// The share of simulations in which something happened.
    pub(crate) fn share(
        what: impl Into<String>,
        times: usize,
        bound: Bound,
        mut happens: impl FnMut() -> bool,
    ) -> Self {
        let share = (0..times).filter(|_| happens()).count() as f64 / times as f64;
        let error = 2.0 * (share * (1.0 - share) / times as f64).sqrt();
        let shown = format!("{} ± {:.2}", percent(share), 100.0 * error);
        Self { what: what.into(), figure: share, shown, bound, show: percent }
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bound_text, is_met) = match self.bound {
            Bound::AtMost(max) => (format!("≤ {}", (self.show)(max)), Some(self.figure <= max)),
            Bound::AtLeast(min) => (format!("≥ {}", (self.show)(min)), Some(self.figure >= min)),
            Bound::Unbounded => (String::new(), None),
        };
        let verdict = match is_met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        write!(f, "| {} | {} | {bound_text} | {verdict} |", self.what, self.shown)
    }
}
