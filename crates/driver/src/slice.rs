//! The scheduler's slice: how long a driver thread that has work may go on while others wait for its processor.
//!
//! Where driver and server share processors, each answer that the driver sends a new statement for makes a server
//! process runnable, which with the default slice soon takes the driver's processor: the driver then handles a few
//! answers at a time, and pays for a wait and a switch with each few. It gives its processor up by itself as soon as it
//! has handled what there is.

use std::mem;

use rustix::io::Errno;

/// The slice that is asked for; the longest that the kernel gives.
const SLICE_NS: u64 = 100_000_000;

/// What `sched_getattr` and `sched_setattr` take: the kernel's `struct sched_attr`, first version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for a long slice for the calling thread. Kernels before 6.12 take no notice.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn lengthen() -> Result<(), Errno> {
    let mut attributes = Attributes::default();
    let size = mem::size_of::<Attributes>();
    // Safety: the kernel writes no more than `size` bytes.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    check(got)?;
    // Others than the usual policies have no slice, or one that someone has chosen.
    if !matches!(attributes.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
        return Ok(());
    }
    attributes.size = size as u32;
    attributes.runtime = SLICE_NS;
    // Safety: the kernel reads `size` bytes.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) })
}

fn check(result: i64) -> Result<(), Errno> {
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Err(Errno::from_raw_os_error(error))
}
