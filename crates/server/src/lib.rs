//! PostgreSQL servers: obtains their programs, fills, starts and configures them, and removes everything afterwards.
//!
//! In the order of a trial: [`installation`] makes a server's programs available; [`template`] fills a data directory
//! once; [`Template::clone_cluster`] copies it for a trial; [`Cluster::start`] runs a [`Server`] on it; dropping it
//! removes all. [`CompanionStart`] adds what a topology has next to a server. [`sweep`] removes what a killed pgdyno left. [`instance`] manages servers that outlive the command
//! which started them. [`ExternalServer`] is a server that pgdyno does not own; changes to it are undone, by
//! [`restore_settings`] if a killed pgdyno could not. [`guest`] packs a server with its data for a virtual machine.

mod access;
mod cluster;
mod companion;
mod control;
mod count;
mod data;
mod dataset;
mod error;
mod external;
pub mod guest;
mod inspect;
pub mod instance;
mod launch;
mod limits;
mod process;
mod programs;
mod provide;
mod raw_read;
mod readiness;
mod remove;
mod server;
mod size_limit;
mod sockets;
mod sweep;

pub use cluster::Cluster;
pub use companion::pooler::{Pgbouncer, pgbouncer};
pub use companion::{Companion, CompanionStart, MARKER};
pub use data::copy::Copied;
pub use dataset::content::{Content, Setup};
pub use dataset::disk::{Dataset, DiskNeed, DiskPart, disk_need};
pub use dataset::filling::template;
pub use dataset::own::check_source;
pub use dataset::size::BYTES_PER_SCALE;
pub use dataset::template::{Facts, Template, templates};
pub use error::{DISK_FULL, Error, LimitError, exhaustion_in};
pub use external::{
    ExternalServer, Restoration, RestoredSettings, check_template, restore_settings, transport,
};
pub use limits::check_limits;
pub use programs::archives::{allow_insecure_mirror, insecure_mirror_is_allowed};
pub use programs::build_flags::BuildFlags;
pub use programs::identical::are_identical;
pub use programs::install::{Release, install, install_newest, resolve};
pub use programs::installation::{BuildRecord, ExtensionRecord, Installation, Origin, find, installed};
pub use programs::pins::{known_majors, known_releases};
pub use programs::source::{
    ExtensionSource, catalogs_of_commits, commit, commits_between, commits_of_merge, is_built, with_extension,
};
pub use provide::installation;
pub use raw_read::{RawReadError, RawReading, ReadError, read_files};
pub use readiness::Warmed;
pub use remove::{limit_builds, remove};
pub use server::{Server, StopMode};
pub use size_limit::bytes;
pub use sweep::{Swept, sweep};

/// The tested database. Control connections use `postgres`, so that they do not count in it.
pub const DATABASE: &str = "pgdyno";
/// The superuser of every cluster.
pub const USER: &str = "postgres";
