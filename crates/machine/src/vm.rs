//! Virtual machines: a kernel booted by QEMU on its own file systems, with pgdyno as its first process.
//!
//! In the order of a boot: [`Initramfs`] packs the guest's files into an initramfs (`initramfs.rs`, `programs.rs`);
//! [`Vm::boot`] runs QEMU (`qemu.rs`); in the guest, [`guest::Guest`] is the first process, which reports over a serial
//! port (`link.rs`), because every kernel has its driver. The crate `server` lists the files of a PostgreSQL server;
//! `disk.rs` puts its data onto a disk; `virtiofs.rs` provides this machine's files as the root. [`probe_kvm`] tests
//! whether KVM really runs kernels (`probe.rs`).

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
pub use initramfs::Initramfs;
pub use link::Frame;
pub use probe::{Kvm, probe_kvm};
pub use qemu::{Hardware, Vm, cpu_model, emulator};
