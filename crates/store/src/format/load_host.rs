//! The load hosts of a trial, in `trial.json`.

use model::load_hosts;
use serde::{Deserialize, Serialize};

/// A host that a part of the load came from. Times are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadHost {
    /// Its name.
    pub name: String,
    /// Number of its clients.
    pub clients: u32,
    /// Its clock less that of the campaign's host; null if it was not measured.
    pub offset_us: Option<i64>,
    /// Largest possible error of the offset during the load; null if it was not measured before and after.
    pub bound_us: Option<u64>,
    /// Time from the agreed instant until it began; null if it did not begin.
    pub late_us: Option<u64>,
    /// Its transactions that ended in the window.
    pub transactions: u64,
    /// Share of the window in which its busiest driver thread worked, 0 to 1.
    pub busy: Option<f64>,
    /// The largest such share of an interval.
    pub busy_max: Option<f64>,
    /// Mean driver lag of all responses of a transaction.
    pub lag_us: Option<f64>,
    /// Largest driver lag.
    pub lag_max_us: Option<f64>,
    /// CPU time of its driver.
    pub cpu_us: Option<u64>,
    /// Why it was lost; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

mirrors!(
    LoadHost,
    load_hosts::LoadHost {
        name,
        clients,
        offset_us,
        bound_us,
        late_us,
        transactions,
        busy,
        busy_max,
        lag_us,
        lag_max_us,
        cpu_us,
        lost
    }
);
