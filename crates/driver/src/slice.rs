//! The scheduler's slice: how long a driver thread may keep its CPU while others wait for it.
//!
//! If driver and server share CPUs, each statement that the driver sends wakes a server process, which soon preempts
//! the driver with the default slice: the driver then handles only a few responses at a time, and pays for a wait and a
//! context switch each time. It yields its CPU by itself once it has handled all responses.

use std::mem;

use rustix::io::Errno;

/// The requested slice; the longest that the kernel allows.
const SLICE_NS: u64 = 100_000_000;

/// The kernel's `struct sched_attr`, first version, for `sched_getattr` and `sched_setattr`.
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

/// Requests a long slice for the calling thread. Kernels before 6.12 ignore it.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn lengthen() -> Result<(), Errno> {
    let mut attributes = Attributes::default();
    let size = mem::size_of::<Attributes>();
    // Safety: the kernel writes no more than `size` bytes.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    check(got)?;
    // Other scheduling policies have no slice, or one that the user has chosen.
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
