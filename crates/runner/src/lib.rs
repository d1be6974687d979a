//! Executes a plan: one trial after another, each on a server in a known state, each stored as a bundle as soon as it
//! ends.
//!
//! [`campaign_file`] reads and plans a campaign, [`resume`] finds the run to continue, [`preview`] checks a plan, and
//! [`run()`] executes it; [`reboots`] boots the kernels of a campaign on the machine itself and runs the trials of each.
//!
//! [`campaign`] runs the trials that [`schedule`] chooses on this host ([`host_context`]), or those of one of its [`blocks`]; [`repeats`] decides whether
//! a cell needs more of them, [`outage`] waits for the end of what keeps trials from running, [`provision`] provides the levels of
//! a bisection, [`background_build`] builds them while others are measured. [`servers`] holds the one running server, a [`server_handle`]; [`trial`] runs one trial
//! on it, with the user's [`hooks`]: [`load`] talks to the driver process, or to those on several [`load_hosts`] as to one, [`collect`] collects during the load,
//! [`summary`] computes the load's figures; [`rig`] is the interface to server, driver and collectors, which tests
//! replace. [`machines`] boots a virtual machine for a trial, which [`guest`] runs there; [`without_kernel`] is a trial
//! whose kernel failed to boot. Progress is reported to an [`observer`], which [`live_file`] writes for readers of the
//! store.

mod alternation;
mod background_build;
mod bisection;
mod block;
pub mod blocks;
pub mod campaign;
pub mod campaign_file;
mod driver_handle;
mod error;
pub mod guest;
mod hooks;
mod host_context;
mod live_file;
mod load;
mod load_hosts;
mod machines;
pub mod observer;
mod outage;
pub mod preview;
mod provision;
pub mod reboots;
mod repeats;
pub mod resume;
mod rig;
mod run;
mod schedule;
mod server_handle;
mod servers;
mod session;
mod sessions;
mod sliced_load;
mod summary;
mod topology;
mod trial;
mod without_kernel;

pub use driver_handle::Driver;
pub use error::RunError;
pub use hooks::HookError;
pub use host_context::HostContext;
pub use load_hosts::{LoadHosts, LoadHostsError, NamedDriver};
pub use rig::DRIVER_COMMAND;
pub use run::{Claimed, run};
pub use schedule::{ComparisonState, Progress};
