//! How the trials of a campaign run, and what is collected and called around them: checked.

use std::fmt;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::factor::Factor;
use crate::units::Span;

/// How the trials of a plan run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunSettings {
    /// Trials of each cell.
    pub repeats: Repeats,
    /// Order of the trials.
    pub order: Order,
    /// Seed of the order and of the scripts' random numbers.
    pub seed: u64,
    /// The factor whose levels are to be compared with its first; none where there is nothing to compare.
    pub compare: Option<Factor>,
    /// The change of throughput that the comparison is to show, as a share.
    pub effect: f64,
    /// How often an invalid trial is run again.
    pub retries: u32,
    /// What is vacuumed or analyzed before each trial.
    pub vacuum: Vacuum,
    /// Whether each trial begins with a checkpoint.
    pub checkpoint: bool,
    /// Pause between the preparation of a trial and its load.
    pub settle: Span,
}

/// Metrics collected during each load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Collect {
    /// How often a second figures of the machine and of the server are read; 0 for never.
    pub metrics_hz: f64,
    /// How often a second it is looked what the server's sessions wait for; 0 for never.
    pub waits_hz: f64,
    /// What each statement cost, where the server can tell.
    pub statements: bool,
    /// Which tables fill the shared buffers, where the server can tell.
    pub buffers: bool,
}

/// Trials of each cell: from `min`, which are planned, to `max`, where those that were run ask for more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeats {
    /// Planned.
    pub min: u32,
    /// At most.
    pub max: u32,
    /// Run more until the 95 % confidence interval of the mean is no wider than this to either side, as a share.
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
pub enum Order {
    /// One block a repeat, each with every cell once, in random order: slow drift of the machine then falls on all
    /// cells alike.
    RandomizedBlocks,
    /// The cells in the order of the file, all repeats of a cell one after the other.
    Sequential,
}

/// What is done to the tables before each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Vacuum {
    /// Nothing: the data set has been vacuumed and analyzed when it was filled.
    None,
    /// `ANALYZE`.
    Analyze,
    /// `VACUUM ANALYZE`.
    Vacuum,
    /// `VACUUM FREEZE ANALYZE`.
    Freeze,
}

impl Vacuum {
    /// The statement that does it, for all tables of a database.
    pub const fn statement(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Analyze => Some("analyze"),
            Self::Vacuum => Some("vacuum (analyze)"),
            Self::Freeze => Some("vacuum (freeze, analyze)"),
        }
    }
}

/// Shell commands around a campaign and its trials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// Before the first trial; the campaign does not begin where it fails.
    pub before_campaign: Option<String>,
    /// After the last trial.
    pub after_campaign: Option<String>,
    /// Before each trial, its server running; the trial is invalid where it fails.
    pub before_trial: Option<String>,
    /// After each trial, its server still running.
    pub after_trial: Option<String>,
}
