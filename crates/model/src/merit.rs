//! Figures of merit: what a cell is judged by.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::metrics::Better;

/// The script whose transactions [`Merit::NewOrders`] counts.
pub const NEW_ORDER_SCRIPT: &str = "new-order.sql";

/// Prefix of the metrics of a workload's own figures of which more is better.
pub const FIGURE_PREFIX: &str = "figure.";
/// Prefix of those of which less is better.
pub const COST_PREFIX: &str = "cost.";
/// Longest name of a workload's own figure, in characters.
const MAX_NAME: usize = 40;

/// Direction in which a metric improves that is a workload's own figure, such as `figure.recall`; none for other metrics.
pub fn own_figure(metric: &str) -> Option<Better> {
    let prefixes = [(FIGURE_PREFIX, Better::Higher), (COST_PREFIX, Better::Lower)];
    let (name, better) =
        prefixes.into_iter().find_map(|(prefix, better)| Some((metric.strip_prefix(prefix)?, better)))?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed)).then_some(better)
}

/// The figure that a cell is judged by: tables and charts show it, verdicts, repeats and noise are about it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub enum Merit {
    /// Transactions per second.
    Throughput,
    /// 99th percentile of latency from the intended start, with the mean next to it.
    Latency,
    /// Mean length of a transaction.
    Length,
    /// Blocks that the server visits per second, with those that it reads next to them.
    Blocks,
    /// Transactions of the script `new-order.sql` per minute.
    NewOrders,
    /// Instructions per transaction. No workload names it: it is known only where they are counted.
    #[serde(skip_deserializing)]
    Instructions,
}

impl Merit {
    /// Its name in campaigns and bundles.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Direction in which it improves.
    pub const fn better(self) -> Better {
        match self {
            Self::Throughput | Self::Blocks | Self::NewOrders => Better::Higher,
            Self::Latency | Self::Length | Self::Instructions => Better::Lower,
        }
    }
}

/// The figure that a workload names; none for the default. It is no part of what clients do: workloads that differ only
/// in it are equal.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedFigure(pub Option<Merit>);

impl PartialEq for NamedFigure {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NamedFigure {}

impl Ord for NamedFigure {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl PartialOrd for NamedFigure {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for NamedFigure {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
