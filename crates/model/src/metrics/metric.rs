//! A metric's description: one entry of the catalogue.

use std::fmt;

use strum::{EnumString, IntoStaticStr};

/// Interpretation of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// Counts up from an arbitrary start: only its growth is meaningful. A value below the previous one means a reset.
    Counter,
    /// The value at the time of the reading.
    Gauge,
}

impl Kind {
    /// Its name in bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Undecided: more may be good or bad.
    Neither,
}

impl Better {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Unit of a metric's values: the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things, such as reads or processes: names without a unit.
    Count,
    /// `_us`.
    Microseconds,
    /// `_bytes`, or `.bytes`.
    Bytes,
    /// `_hz`.
    Hertz,
    /// `.celsius`.
    Celsius,
}

impl Unit {
    /// The unit at the end of a metric's name, whether or not the catalogue has the metric.
    pub fn from_name(metric: &str) -> Self {
        match metric.rsplit(['_', '.']).next() {
            Some("us") => Self::Microseconds,
            Some("bytes") => Self::Bytes,
            Some("hz") => Self::Hertz,
            Some("celsius") => Self::Celsius,
            _ => Self::Count,
        }
    }

    /// Its symbol; empty for plain counts.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Microseconds => "µs",
            Self::Bytes => "B",
            Self::Hertz => "Hz",
            Self::Celsius => "°C",
        }
    }
}

/// PostgreSQL majors that have a metric, 9 for 9.6. Metrics that are not read from the server are in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Majors {
    first: u32,
    last: u32,
}

impl Majors {
    /// All of them.
    pub const ALL: Self = Self { first: 0, last: u32::MAX };

    /// A major and those after it.
    pub const fn since(first: u32) -> Self {
        Self { first, last: u32::MAX }
    }

    /// Those before a major.
    pub const fn before(major: u32) -> Self {
        Self { first: 0, last: major - 1 }
    }

    /// Those from the first to the last, inclusive.
    pub const fn between(first: u32, last: u32) -> Self {
        Self { first, last }
    }

    /// Whether a major is one of them.
    pub const fn contains(self, major: u32) -> bool {
        self.first <= major && major <= self.last
    }
}

impl fmt::Display for Majors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.last) {
            (0, u32::MAX) => f.write_str("all"),
            (0, last) => write!(f, "9.6–{last}"),
            (first, u32::MAX) => write!(f, "{first}+"),
            (first, last) => write!(f, "{first}–{last}"),
        }
    }
}

/// Condition under which a metric is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A setting of the server is on.
    Setting(&'static str),
    /// The kernel is Linux of this version or later.
    Linux(u32, u32),
    /// Anything else, in words.
    If(&'static str),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(name) => write!(f, "`{name}`"),
            Self::Linux(major, minor) => write!(f, "Linux {major}.{minor}+"),
            Self::If(words) => f.write_str(words),
        }
    }
}

/// A metric that collectors read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// `<source>.<name>` with its unit at the end, such as `cpu.user_us` or `pg.database.blks_hit`.
    pub name: &'static str,
    /// Interpretation of its values.
    pub kind: Kind,
    /// Direction in which it improves.
    pub better: Better,
    /// The file, view or function that it is read from, in Markdown.
    pub from: &'static str,
    /// Its meaning, in Markdown.
    pub meaning: &'static str,
    /// PostgreSQL majors that have it.
    pub majors: Majors,
    /// Other condition; none if it is always read.
    pub condition: Option<Condition>,
}

/// Metrics that belong together: a table of the documentation.
#[derive(Debug)]
pub struct Group {
    /// Name of the table in the documentation.
    pub name: &'static str,
    /// Objects that its labels name, such as `processor`; none if each metric has one series.
    pub label: Option<&'static str>,
    /// Its metrics, in the order of the table.
    pub metrics: &'static [Metric],
}

/// A counter.
pub(super) const fn counter(name: &'static str, from: &'static str, meaning: &'static str) -> Metric {
    let (better, majors) = (Better::Neither, Majors::ALL);
    Metric { name, kind: Kind::Counter, better, from, meaning, majors, condition: None }
}

/// A gauge.
pub(super) const fn gauge(name: &'static str, from: &'static str, meaning: &'static str) -> Metric {
    Metric { kind: Kind::Gauge, ..counter(name, from, meaning) }
}

impl Metric {
    /// Unit of its values.
    pub fn unit(&self) -> Unit {
        Unit::from_name(self.name)
    }

    pub(super) const fn higher_is_better(self) -> Self {
        Self { better: Better::Higher, ..self }
    }

    pub(super) const fn lower_is_better(self) -> Self {
        Self { better: Better::Lower, ..self }
    }

    pub(super) const fn only(self, majors: Majors) -> Self {
        Self { majors, ..self }
    }

    pub(super) const fn when(self, condition: Condition) -> Self {
        Self { condition: Some(condition), ..self }
    }
}
