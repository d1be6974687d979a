//! The output: a Markdown table.

use std::fmt;

pub(crate) const HEAD: &str = "| figure | measured | limit | |\n|---|---:|---:|---|";

/// The goal of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Below(f64),
    Above(f64),
    /// It is only reported.
    Unlimited,
}

pub(crate) struct Row {
    name: String,
    /// None if the page has nothing to measure.
    figure: Option<f64>,
    limit: Limit,
    show: fn(f64) -> String,
}

impl Row {
    pub(crate) fn bytes(name: &str, bytes: f64, limit: Limit) -> Self {
        let show = |bytes: f64| match bytes < 1e6 {
            true => format!("{:.0} KB", bytes / 1e3),
            false => format!("{:.1} MB", bytes / 1e6),
        };
        Self { name: name.to_owned(), figure: Some(bytes), limit, show }
    }

    pub(crate) fn seconds(name: &str, seconds: f64, limit: Limit) -> Self {
        Self::maybe_seconds(name, Some(seconds), limit)
    }

    pub(crate) fn maybe_seconds(name: &str, figure: Option<f64>, limit: Limit) -> Self {
        Self { name: name.to_owned(), figure, limit, show: |seconds| format!("{seconds:.3} s") }
    }

    pub(crate) fn number(name: String, figure: Option<f64>, limit: Limit) -> Self {
        Self { name, figure, limit, show: |number| format!("{number:.0}") }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit_text, is_ok) = match self.limit {
            Limit::Below(limit) => (format!("< {}", (self.show)(limit)), self.figure.map(|is| is < limit)),
            Limit::Above(limit) => (format!("> {}", (self.show)(limit)), self.figure.map(|is| is > limit)),
            Limit::Unlimited => (String::new(), None),
        };
        let measured = self.figure.map_or("–".to_owned(), self.show);
        let verdict = match is_ok {
            Some(true) => "ok",
            Some(false) => "missed",
            None => "",
        };
        write!(f, "| {} | {measured} | {limit_text} | {verdict} |", self.name)
    }
}
