//! Checked settings of a campaign's run: its trials, the data collected, and the hooks.

use std::fmt;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::factor::Factor;
use crate::paired::PairedFigure;
use crate::units::Span;

/// Default change that a comparison should detect: smaller ones count as equivalent (`stats::MARGIN`).
pub const DEFAULT_EFFECT: f64 = 0.05;

/// Default probability at which a bisection names a level.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// What a run's cells and trials follow from, in addition to its campaign's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The seed, if the campaign has none.
    pub seed: u64,
    /// CPUs that the driver may use; none if unknown.
    pub processors: Option<u32>,
}

/// Run settings of a plan's trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSettings {
    /// Trials of each cell.
    pub repeats: Repeats,
    /// Order of the trials.
    pub order: Order,
    /// Seed of the order and of the scripts' random numbers.
    pub seed: u64,
    /// CPUs that the driver may use, from which its default number of threads follows; none if unknown.
    #[serde(skip)]
    pub processors: Option<u32>,
    /// The factor whose levels are compared with its first; none if there is nothing to compare.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub compare: Option<Factor>,
    /// The change of throughput that the comparison should detect, as a share.
    pub effect: f64,
    /// Time for the sessions of paired trials: after it none begins; none without a limit.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub max_time: Option<Span>,
    /// Whether the server's CPU time per transaction decides paired trials next to the figure of merit.
    pub cpu_decides: bool,
    /// The figure whose change a bisection searches; none for the figure of merit.
    pub figure: Option<PairedFigure>,
    /// The probability at which a bisection names a level, as a share.
    pub confidence: f64,
    /// Whether a bisection over commits compares the commit that it found with the one before it once more, in builds with another
    /// order of their functions.
    pub link_order: bool,
    /// Whether a bisection builds servers while sessions run, which this may disturb.
    pub build_while_measuring: bool,
    /// Maximum repeats of an invalid trial.
    pub retries: u32,
    /// Maintenance before each trial.
    pub vacuum: Vacuum,
    /// Whether each trial begins with a checkpoint.
    pub checkpoint: bool,
    /// Pause between the preparation of a trial and its load.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub settle: Span,
}

impl RunSettings {
    /// With this, the campaign's text has the same cells and trials again.
    pub fn basis(&self) -> Basis {
        Basis { seed: self.seed, processors: self.processors }
    }
}

/// Metrics collected during each load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Collect {
    /// Readings of the machine's and the server's metrics per second; 0 for none.
    pub metrics_hz: f64,
    /// Samples of the sessions' wait events per second; 0 for none.
    pub waits_hz: f64,
    /// Cost of each statement, if the server reports it.
    pub statements: bool,
    /// Contents of the shared buffers, if the server reports them.
    pub buffers: bool,
}

/// Trials of each cell: `min` are planned, and up to `max` run if the results require it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeats {
    /// Planned trials.
    pub min: u32,
    /// Maximum trials.
    pub max: u32,
    /// Add trials until the 95 % confidence interval of the mean is no wider than this to either side, as a share.
    pub until_ci: Option<f64>,
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

/// Order of the trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// One block per repeat, each with every cell once, in random order: slow drift of the machine then affects all
    /// cells alike.
    RandomizedBlocks,
    /// The cells in the order of the file, with all repeats of a cell in succession.
    Sequential,
    /// Sessions of two servers, a level and the baseline of the compared factor, whose load alternates in short slices
    /// ([`crate::paired`]), until every comparison is decided.
    Paired,
    /// The same sessions, of the first level with one that is chosen after each session, until it is known at which of the levels, in
    /// their order, the performance changed.
    Bisect,
}

impl Order {
    /// Whether trials are sides of sessions.
    pub const fn is_paired(self) -> bool {
        matches!(self, Self::Paired | Self::Bisect)
    }
}

/// Maintenance of the tables before each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Vacuum {
    /// None: the data set was vacuumed and analyzed when it was filled.
    None,
    /// `ANALYZE`.
    Analyze,
    /// `VACUUM ANALYZE`.
    Vacuum,
    /// `VACUUM FREEZE ANALYZE`.
    Freeze,
}

impl Vacuum {
    /// Its statement for all tables of a database.
    pub const fn statement(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Analyze => Some("analyze"),
            Self::Vacuum => Some("vacuum (analyze)"),
            Self::Freeze => Some("vacuum (freeze, analyze)"),
        }
    }
}

/// Shell commands before and after a campaign and its trials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// Before the first trial; if it fails, the campaign does not start.
    pub before_campaign: Option<String>,
    /// After the last trial.
    pub after_campaign: Option<String>,
    /// Before each trial, with its server running; if it fails, the trial is invalid.
    pub before_trial: Option<String>,
    /// After each trial, with its server still running.
    pub after_trial: Option<String>,
}
