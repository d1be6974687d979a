//! Counters of the operating system: of the machine, and of processes by their role in a trial.
//!
//! Counters are reported as the kernel has them; those that the kernel lacks are omitted. `docs/metrics.md` describes
//! their meanings and sources.

mod cgroup;
mod cpu;
mod disk;
mod foreign;
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
mod server_cpu;
mod server_instructions;
mod threads;
mod watched;

pub use machine::Machine;
pub use network::dropped_datagrams;
pub use processes::Processes;
pub(crate) use roster::Roster;
pub use server_cpu::ServerCpu;
pub use server_instructions::ServerInstructions;
pub use watched::{Backends, Watched};
