//! Other kernels on the machine itself: an installed kernel is booted once, and a systemd unit continues after the
//! boot. If it does not come up, the next boot is the machine's default again.
//!
//! Everything is a list of [`Step`]s, derived from the machine's state; a dry run prints the list, and [`execute`]
//! executes it. Before the first step, a journal ([`Journal`]) of what must be restored is on disk. Sources: GRUB's
//! manual, "Booting once" and "The GRUB environment block"; bootparam(7); systemd.service(5); kexec(8);
//! initramfs-tools(7), `panic`.

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
pub use journal::{BootRequest, Campaign, Journal, RunningKernel};
pub use machine::{InstalledKernel, Machine, Prepared};
pub use step::{Step, execute};
