//! What the operating system counts: of the machine, and of processes by their role in a trial.
//!
//! Every counter is told as the kernel has it, and every figure that the kernel does not have is left out.
//! `docs/metrics.md` says what each one means and where it is from.

mod cgroup;
mod cpu;
mod disk;
mod kernel_file;
mod machine;
mod memory;
mod network;
mod pressure;
mod proc_files;
mod process;
mod processes;
mod role;
mod roster;
mod sensors;
mod threads;
mod watched;

pub use machine::Machine;
pub use processes::Processes;
pub(crate) use roster::Roster;
pub use watched::{Backends, Watched};
