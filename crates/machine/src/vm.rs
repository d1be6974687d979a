//! Virtual machines: a kernel booted by QEMU on file systems of its own, with pgdyno as its first process.
//!
//! In the order of a boot: [`Root`] packs what the guest is to have into an initramfs (`initramfs.rs`, `programs.rs`);
//! [`Vm::boot`] runs QEMU (`qemu.rs`); in the guest, [`guest::Guest`] is the first process; both speak over a serial port
//! (`link.rs`), because every kernel has its driver. A PostgreSQL server with its data goes into it by `server.rs`, its data
//! onto a disk by `disk.rs`; this machine's files are its root by `virtiofs.rs`. [`works_here`] finds out whether KVM
//! really runs kernels (`probe.rs`).

mod command;
mod descriptor;
mod disk;
mod error;
pub mod guest;
mod initramfs;
mod link;
mod probe;
mod programs;
mod qemu;
mod virtiofs;

pub use command::{CommandOutput, GuestFiles, VmCommand};
pub use disk::image;
pub use error::VmError;
pub use initramfs::Root;
pub use link::Frame;
pub use probe::{Kvm, works_here};
pub use qemu::{Hardware, Vm, cpu_model, emulator};
