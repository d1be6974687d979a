//! Confidence in an explanation.

/// Confidence in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Too few samples, or too large an unexplained part.
    Low,
    /// The order of parts is right; their sizes may be off by a tenth of the latency.
    Medium,
    /// Sizes are right within a twentieth of the latency.
    High,
}

impl Confidence {
    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// A statement of this confidence, in words.
    pub fn worded(self, statement: &str) -> String {
        match self {
            Self::Low => format!("possibly: {statement}"),
            Self::Medium => format!("probably: {statement}"),
            Self::High => statement.to_owned(),
        }
    }
}
