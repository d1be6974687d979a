//! A load on several hosts: where the drivers come from, and one driver over all of them.
//!
//! [`joined_driver`] splits the load over its [`host`]s, starts the parts at one instant and sums what they report, so that a trial
//! has one driver; [`clock_offset`] is how far the clocks of two hosts are apart.

mod clock_offset;
mod host;
mod joined_driver;
#[cfg(test)]
mod tests;

use std::error::Error;

use model::load_hosts::RequestedHosts;

use crate::driver_handle::Driver;

pub(crate) use joined_driver::JoinedDriver;

/// A driver with the name of its host.
pub type NamedDriver = (String, Box<dyn Driver>);

/// Why load hosts can't be used.
pub type LoadHostsError = Box<dyn Error + Send + Sync>;

/// A source of drivers on other hosts.
pub trait LoadHosts: Sync {
    /// Starts a driver on each of these hosts; returns them with the names of their hosts, in the order in which they have the
    /// clients.
    ///
    /// A driver has sent at most its `Hello`, and answers requests in their order and without a delay of its own: of thirty
    /// exchanges about its clock, the shortest bounds the error of every time that it reports.
    ///
    /// # Errors
    /// The hosts are not there, or can't start a driver.
    fn start(&self, hosts: &RequestedHosts) -> Result<Vec<NamedDriver>, LoadHostsError>;
}
