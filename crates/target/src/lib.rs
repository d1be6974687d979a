//! The target: gets PostgreSQL servers, starts and configures them, fills them, and leaves nothing behind.
//!
//! In the order of a trial: [`Cache`] is where everything lives; [`install`] makes a version available; [`template`]
//! fills a data directory once; [`Template::clone_cluster`] copies it for a trial; [`Cluster::start`] runs a
//! [`Server`] on it; dropping takes it all away. [`sweep`] takes away what a killed pgdyno left. [`standing`] keeps
//! servers that outlive the command which started them.

mod archives;
mod cache;
mod cluster;
mod copy;
mod count;
mod dataset;
mod error;
mod initdb;
mod inspect;
mod install;
mod launch;
mod lock;
mod pgbench_tables;
mod process;
mod progress;
mod server;
mod sockets;
pub mod standing;
mod sweep;
mod template;
mod user;
mod version;

pub use cache::Cache;
pub use cluster::Cluster;
pub use error::TargetError;
pub use install::{Installation, Release, install, install_newest, remove, resolve};
pub use progress::Progress;
pub use server::{Server, StopMode};
pub use sweep::{Swept, sweep};
pub use template::{Template, template, templates};
pub use version::{Major, Version};

/// The database that is under load. Control connections go to `postgres`, so that they do not count in it.
pub const DATABASE: &str = "pgdyno";
/// The superuser of every cluster.
pub const USER: &str = "postgres";
