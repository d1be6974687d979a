//! This host: the cache directory, locks between processes, turns to measure, checksums, child processes, kernel
//! settings, the user that servers run as. PostgreSQL is in the crate `server`, kernels are in `machine`.

mod build_log;
mod cache;
mod contents;
mod cpus;
mod error;
pub mod files;
pub mod git;
mod hash;
mod kernel_settings;
mod lock;
pub mod process;
mod progress;
mod scratch;
pub mod tools;
mod turn;
mod user;

pub use build_log::{BuildLog, is_exhausted_output};
pub use cache::Cache;
pub use contents::Contents;
pub use cpus::{halves_of_cpus, pin_to_cpus, usable_cpus};
pub use error::{DISK_FULL_ADVICE, Error, IoContext, is_exhausted};
pub use hash::{Fingerprint, sha256, sha256_of_bytes};
pub use kernel_settings::{ChangedKernel, KernelSetting, Restored, kernel_settings, restore_kernel_settings};
pub use lock::Lock;
pub use progress::{NoProgress, Progress, check_interrupted};
pub use scratch::Scratch;
pub use turn::{Measuring, Turn};
pub use user::{ServerUser, current_user_name};
