//! `summary.statistics` in `trial.json`: statistics within the run.

use std::collections::BTreeMap;

use model::statistics;
use serde::{Deserialize, Serialize};

/// The statistics of the measured window. `missing` gives the reason for each null figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Full seconds of the window.
    pub seconds: u64,
    /// Mean of their transactions per second.
    pub tps_mean: Option<f64>,
    /// 95% interval of the mean; null if the window is not stationary.
    pub tps_interval: Option<Bounds>,
    /// Number of independent seconds that would give the mean the same precision.
    pub effective_seconds: Option<f64>,
    /// Whether throughput was stationary.
    pub stationary: Option<bool>,
    /// Drift over the window, as a share of the mean.
    pub drift_share: Option<f64>,
    /// Mann and Kendall's p of that drift.
    pub trend_p: Option<f64>,
    /// Time that MSER-5 would cut as warm-up, in microseconds after the load's start.
    pub warmup_cut_us: Option<u64>,
    /// Stalls.
    pub stalls: Option<Vec<Stall>>,
    /// Percentiles of latency.
    pub percentiles: Vec<Percentile>,
    /// Reasons for null figures, by name.
    pub missing: BTreeMap<String, String>,
}

/// Ends of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A stall: consecutive seconds with almost no throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Start, in microseconds after the load's start.
    pub start_us: u64,
    /// Length in microseconds.
    pub length_us: u64,
    /// The baseline, transactions per second.
    #[serde(rename = "usual_tps")]
    pub baseline_tps: f64,
}

/// A percentile of latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The percentile as a share: 0.99 is the 99th.
    pub share: f64,
    /// Value in microseconds.
    pub value_us: f64,
    /// 95% interval in microseconds.
    pub interval_us: Option<Bounds>,
}

impl From<(f64, f64)> for Bounds {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}

impl From<Bounds> for (f64, f64) {
    fn from(Bounds { low, high }: Bounds) -> Self {
        (low, high)
    }
}

mirrors!(Stall, statistics::Stall { start_us, length_us, baseline_tps });

impl From<statistics::Percentile> for Percentile {
    fn from(percentile: statistics::Percentile) -> Self {
        let statistics::Percentile { share, value_us, interval_us } = percentile;
        Self { share, value_us, interval_us: interval_us.map(Into::into) }
    }
}

impl From<Percentile> for statistics::Percentile {
    fn from(percentile: Percentile) -> Self {
        let Percentile { share, value_us, interval_us } = percentile;
        Self { share, value_us, interval_us: interval_us.map(Into::into) }
    }
}

impl From<statistics::Statistics> for Statistics {
    fn from(of: statistics::Statistics) -> Self {
        Self {
            seconds: of.seconds,
            tps_mean: of.tps_mean,
            tps_interval: of.tps_interval.map(Into::into),
            effective_seconds: of.effective_seconds,
            stationary: of.stationary,
            drift_share: of.drift_share,
            trend_p: of.trend_p,
            warmup_cut_us: of.warmup_cut_us,
            stalls: of.stalls.map(|stalls| stalls.into_iter().map(Into::into).collect()),
            percentiles: of.percentiles.into_iter().map(Into::into).collect(),
            missing: of.missing,
        }
    }
}

impl From<Statistics> for statistics::Statistics {
    fn from(of: Statistics) -> Self {
        Self {
            seconds: of.seconds,
            tps_mean: of.tps_mean,
            tps_interval: of.tps_interval.map(Into::into),
            effective_seconds: of.effective_seconds,
            stationary: of.stationary,
            drift_share: of.drift_share,
            trend_p: of.trend_p,
            warmup_cut_us: of.warmup_cut_us,
            stalls: of.stalls.map(|stalls| stalls.into_iter().map(Into::into).collect()),
            percentiles: of.percentiles.into_iter().map(Into::into).collect(),
            missing: of.missing,
        }
    }
}
