//! The handle on a driver.

use std::time::Duration;

use driver::{DriverError, Process, ProcessEvent};
use model::load_hosts::LoadHost;
use model::message::Request;

/// A driver process, killed when dropped: on this host, or on another one that relays its messages ([`LoadHosts`](crate::LoadHosts)).
pub trait Driver {
    /// Its process id; none if it runs on another host.
    fn pid(&self) -> Option<u32>;

    /// Sends a request.
    fn send(&mut self, request: &Request) -> Result<(), DriverError>;

    /// Waits for its next reply or its end, no longer than `timeout`.
    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError>;

    /// The load hosts whose drivers it joins to one; empty for one process.
    fn load_hosts(&self) -> Vec<LoadHost> {
        Vec::new()
    }
}

impl Driver for Process {
    fn pid(&self) -> Option<u32> {
        Some(self.pid())
    }

    fn send(&mut self, request: &Request) -> Result<(), DriverError> {
        self.send(request)
    }

    fn next(&mut self, timeout: Duration) -> Result<ProcessEvent, DriverError> {
        self.next(timeout)
    }
}

/// That a driver process died, and what it left on standard error.
pub(crate) fn died(status: &str, stderr: &str) -> String {
    match stderr.trim() {
        "" => format!("the driver process died ({status}) and left no message"),
        text => format!("the driver process died ({status}): {text}"),
    }
}
