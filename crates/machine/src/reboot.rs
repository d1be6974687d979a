//! Other kernels on the machine itself: a kernel that is installed is booted once, and a systemd unit goes on after the
//! boot. What fails to come up falls back by itself: the boot after is the machine's usual one.
//!
//! Everything is a list of [`Step`]s, made from what the machine has; a dry run prints the list, and [`carry_out`]
//! does what it says. Before the first step a journal is on the disk ([`Journal`]) with what is to be put back.
//! Sources: GRUB's manual, "Booting once" and "The GRUB environment block"; bootparam(7); systemd.service(5);
//! kexec(8); initramfs-tools(7), `panic`.

mod boot;
mod crash_log;
mod custom;
mod grub_cfg;
mod grubenv;
mod journal;
mod machine;
mod step;
mod unit;

pub use boot::{Boot, Loader, Sysctl};
pub use crash_log::CrashLog;
pub use journal::{Asked, Campaign, Home, Journal};
pub use machine::{Installed, Machine, Prepared};
pub use step::{Step, carry_out};
