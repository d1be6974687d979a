//! What one run tells of itself: whether it was steady, and how sure its figures are. How runs differ it cannot say.

use std::collections::BTreeMap;

use serde::Serialize;

/// The statistics of one measured window. What it is too short for, or too unsteady, is none, and `missing` says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// Full seconds of the window, of which all but the percentiles is told.
    pub seconds: u64,
    /// Mean of their transactions per second; none where there are no full seconds.
    pub tps_mean: Option<f64>,
    /// Lower and upper end of the interval that holds this mean with 95% confidence; none where the window is not
    /// stationary.
    pub tps_interval: Option<(f64, f64)>,
    /// How many independent seconds would tell the mean as surely.
    pub effective_seconds: Option<f64>,
    /// Whether throughput stayed what it was; none of less than five minutes.
    pub stationary: Option<bool>,
    /// How far throughput drifted over the window, as a share of its mean: −0.05 is a loss of 5%.
    pub drift_share: Option<f64>,
    /// How likely a drift like this is of what does not drift: Mann and Kendall's p.
    pub trend_p: Option<f64>,
    /// How much of the load's beginning MSER-5 would leave out, in microseconds after the load's start: to be compared with the
    /// warm-up that was asked for. None where it would be half of the load or more, for then it has not settled.
    pub warmup_cut_us: Option<u64>,
    /// Seconds in which next to nothing was done; none where there are too few to tell.
    pub stalls: Option<Vec<Stall>>,
    /// Latency from the intended start, ascending; empty where it was not recorded.
    pub percentiles: Vec<Percentile>,
    /// Why a figure is none, by its name above, or by `p99` and the like.
    pub missing: BTreeMap<String, String>,
}

/// Neighbouring seconds with less than 20% of the throughput of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// When it began, in microseconds after the load's start.
    pub start_us: u64,
    /// How long it was, in microseconds.
    pub length_us: u64,
    /// The baseline, transactions per second.
    pub usual_tps: f64,
}

/// A percentile of the latencies of the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Which: 0.99 is the 99th.
    pub share: f64,
    /// The latency that this share of transactions did not exceed, in microseconds.
    pub value_us: f64,
    /// Lower and upper end of the interval that holds it with 95% confidence, in microseconds.
    pub interval_us: Option<(f64, f64)>,
}

impl Percentile {
    /// `p99`, `p99.9`.
    pub fn name(share: f64) -> String {
        // 99.9 is not exactly 0.999 × 100.
        format!("p{}", (share * 1e6).round() / 1e4)
    }
}
