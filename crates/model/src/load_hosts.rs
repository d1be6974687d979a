//! The hosts that a load runs on, if it does not run on the host of its campaign: as requested, and as recorded.

use serde::Serialize;

/// The load hosts that a campaign asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RequestedHosts {
    /// This many, whichever they are.
    Number(u32),
    /// Those with these names.
    Named(Vec<String>),
}

impl RequestedHosts {
    /// Number of hosts.
    pub fn count(&self) -> u32 {
        match self {
            Self::Number(number) => *number,
            Self::Named(names) => u32::try_from(names.len()).unwrap_or(u32::MAX),
        }
    }
}

/// A load host of a trial: its part of the load, and how well its clock is known.
///
/// A time by the clock of the campaign's host is one by the load host's clock, less `offset_us`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadHost {
    /// Its name.
    pub name: String,
    /// Number of its clients, without those of background workloads.
    pub clients: u32,
    /// Its `CLOCK_MONOTONIC` less that of the campaign's host, before the load, in microseconds; none if it was not measured.
    pub offset_us: Option<i64>,
    /// Largest possible error of `offset_us` from before the load until after it, in microseconds; none if it was not measured
    /// at both times.
    pub bound_us: Option<u64>,
    /// Time from the agreed instant until it began, in microseconds; none if it did not begin.
    pub late_us: Option<u64>,
    /// Its transactions that ended in the window.
    pub transactions: u64,
    /// Share of the window in which its busiest driver thread worked, 0 to 1; none without a window.
    pub busy: Option<f64>,
    /// The largest such share of an interval of the window.
    pub busy_max: Option<f64>,
    /// Mean driver lag of all responses of a transaction in the window, in microseconds; none without transactions.
    pub lag_us: Option<f64>,
    /// Largest driver lag in the window, in microseconds.
    pub lag_max_us: Option<f64>,
    /// CPU time of its driver during the load, in microseconds; none if it did not report its end.
    pub cpu_us: Option<u64>,
    /// Why it was lost during the trial; none if it was not.
    pub lost: Option<String>,
}

impl LoadHost {
    /// That it was lost, and why; none if it was not.
    pub fn loss(&self) -> Option<String> {
        let Self { name, clients, lost, .. } = self;
        let clients = match clients {
            1 => "its client".to_owned(),
            n => format!("its {n} clients"),
        };
        Some(format!("lost load host {name} with {clients}: {}", lost.as_ref()?))
    }
}

/// The time between the first start of a load host and the last, in microseconds, apart from the errors of their clocks; none
/// if any of them did not start.
pub fn start_spread_us(hosts: &[LoadHost]) -> Option<u64> {
    let late: Vec<u64> = hosts.iter().map(|host| host.late_us).collect::<Option<_>>()?;
    Some(late.iter().max()? - late.iter().min()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(late_us: Option<u64>) -> LoadHost {
        LoadHost { late_us, ..LoadHost::default() }
    }

    #[test]
    fn the_start_spread_is_known_if_all_have_started() {
        assert_eq!(start_spread_us(&[late(Some(30)), late(Some(80)), late(Some(50))]), Some(50));
        assert_eq!(start_spread_us(&[late(Some(30)), late(None)]), None);
        assert_eq!(start_spread_us(&[]), None);
    }

    #[test]
    fn a_loss_names_the_host_its_clients_and_the_reason() {
        let lost = LoadHost { name: "b".to_owned(), clients: 4, ..LoadHost::default() };
        assert_eq!(lost.loss(), None);
        let lost = LoadHost { lost: Some("it is gone".to_owned()), ..lost };
        assert_eq!(lost.loss().unwrap(), "lost load host b with its 4 clients: it is gone");
    }
}
