//! The hosts that the load came from.

use model::load_hosts::LoadHost;
use serde::Serialize;

/// A load host: its part of the load in the window, and its clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "detail.ts"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostOfLoad {
    /// Its name.
    pub name: String,
    /// Clients.
    pub clients: u32,
    /// Transactions.
    pub transactions: u64,
    /// Its clock less that of the campaign's host; null if it was not measured.
    pub offset_us: Option<i64>,
    /// The largest possible error of that.
    pub bound_us: Option<u64>,
    /// Time from the agreed instant until it began.
    pub late_us: Option<u64>,
    /// Share of the window in which its busiest driver thread worked.
    pub busy: Option<f64>,
    /// Mean driver lag of a transaction's responses.
    pub lag_us: Option<f64>,
    /// Why it was lost; null if it was not.
    pub lost: Option<String>,
}

pub(super) fn load_hosts(hosts: &[LoadHost]) -> Vec<HostOfLoad> {
    hosts
        .iter()
        .map(|host| HostOfLoad {
            name: host.name.clone(),
            clients: host.clients,
            transactions: host.transactions,
            offset_us: host.offset_us,
            bound_us: host.bound_us,
            late_us: host.late_us,
            busy: host.busy,
            lag_us: host.lag_us,
            lost: host.lost.clone(),
        })
        .collect()
}
