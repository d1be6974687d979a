//! Kernels, and the machines that run them: [`kernel()`] makes a kernel available, [`vm`] boots one in a virtual machine,
//! [`reboot`] on the machine itself. [`sweep`] removes what a killed pgdyno left.

mod error;
mod kernel;
pub mod reboot;
pub mod vm;

pub use error::{Error, ImageError, ModuleError};
pub use kernel::{
    Fetched, Kernel, KernelBuild, KernelOrigin, KernelRange, ModuleFile, StoredKernel, commits_between,
    commits_of_merge, fetch_kernel, is_to_be_built, kernel, kernel_range, kernels, kernels_in, modules,
    release, remove_kernel, sweep,
};
