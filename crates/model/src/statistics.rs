//! Statistics of one run: its steadiness, and the precision of its figures. They can't show how runs differ.

use std::collections::BTreeMap;

use serde::Serialize;

/// Statistics of one measured window. Figures that it is too short or too unsteady for are none, with reasons in
/// `missing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statistics {
    /// Full seconds of the window, the basis of all figures except percentiles.
    pub seconds: u64,
    /// Mean of their transactions per second; none without full seconds.
    pub tps_mean: Option<f64>,
    /// 95% confidence interval of this mean, lower and upper end; none if the window is not stationary.
    pub tps_interval: Option<(f64, f64)>,
    /// Number of independent seconds that would give the mean with the same precision.
    pub effective_seconds: Option<f64>,
    /// Whether throughput is stationary; none for less than five minutes.
    pub stationary: Option<bool>,
    /// Drift of throughput over the window, as a share of its mean: −0.05 is a loss of 5%.
    pub drift_share: Option<f64>,
    /// p-value of the drift by the Mann-Kendall test.
    pub trend_p: Option<f64>,
    /// Warm-up by MSER-5, in microseconds after the load's start: to be compared with the requested warm-up. None if it
    /// is half of the load or more, which means that the load has not settled.
    pub warmup_cut_us: Option<u64>,
    /// Seconds with almost no transactions; none if too few seconds to tell.
    pub stalls: Option<Vec<Stall>>,
    /// Percentiles of latency from the intended start, ascending; empty if not recorded.
    pub percentiles: Vec<Percentile>,
    /// Reasons for missing figures, by the names above, or by `p99` and the like.
    pub missing: BTreeMap<String, String>,
}

/// Consecutive seconds with less than 20% of the baseline throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// Start, in microseconds after the load's start.
    pub start_us: u64,
    /// Length in microseconds.
    pub length_us: u64,
    /// The baseline, transactions per second.
    #[serde(rename = "usual_tps")]
    pub baseline_tps: f64,
}

/// A percentile of the window's latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// Its rank: 0.99 for the 99th.
    pub share: f64,
    /// The latency that this share of transactions did not exceed, in microseconds.
    pub value_us: f64,
    /// Its 95% confidence interval, lower and upper end, in microseconds.
    pub interval_us: Option<(f64, f64)>,
}

impl Percentile {
    /// `p99`, `p99.9`.
    pub fn name(share: f64) -> String {
        // 99.9 is not exactly 0.999 × 100.
        format!("p{}", (share * 1e6).round() / 1e4)
    }
}
