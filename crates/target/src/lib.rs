//! The target: gets PostgreSQL servers, starts and configures them, fills them, and leaves nothing behind.
//!
//! In the order of a trial: [`Cache`] is where everything lives; [`installation`] makes a server's programs available; [`template`]
//! fills a data directory once; [`Template::clone_cluster`] copies it for a trial; [`Cluster::start`] runs a
//! [`Server`] on it; dropping takes it all away. [`sweep`] takes away what a killed pgdyno left. [`standing`] keeps
//! servers that outlive the command which started them. [`kernel()`] makes a kernel available. [`ExternalServer`] is one that somebody else runs; what is
//! changed on it is put back, by [`restore_settings`] where a killed pgdyno could not.

mod cache;
mod cluster;
mod control;
mod count;
mod data;
mod error;
mod external;
mod hash;
mod inspect;
mod kernel;
mod launch;
mod limits;
mod lock;
mod process;
mod programs;
mod progress;
mod readiness;
mod server;
mod sockets;
pub mod standing;
mod sweep;
mod user;
mod version;
pub mod vm;

pub use cache::Cache;
pub use cluster::Cluster;
pub use data::content::{Content, Setup};
pub use data::copy::Copied;
pub use data::disk::{Dataset, DiskNeed, DiskPart, disk_need};
pub use data::raw_read::{RawReading, read_files};
pub use data::template::{Facts, Template, template, templates};
pub use error::TargetError;
pub use external::{ExternalServer, PutBack, Restored, restore_settings};
pub use kernel::{
    Fetched, Kernel, ModuleFile, StoredKernel, fetch_kernel, kernel, kernels, modules, remove_kernel,
};
pub use limits::check_limits;
pub use programs::build_flags::BuildFlags;
pub use programs::install::{Release, install, install_newest, resolve};
pub use programs::installation::{BuildRecord, Installation, Origin, find, installation, remove};
pub use progress::Progress;
pub use readiness::Warmed;
pub use server::{Server, StopMode};
pub use sweep::{Swept, sweep};
pub use version::{Major, Version};

/// The database that is under load. Control connections go to `postgres`, so that they do not count in it.
pub const DATABASE: &str = "pgdyno";
/// The superuser of every cluster.
pub const USER: &str = "postgres";
