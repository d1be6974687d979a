//! The C library of this process.

/// Such as `glibc 2.36`; none where it is another one, which does not tell.
#[cfg(target_env = "gnu")]
pub(super) fn read() -> Option<String> {
    // SAFETY: it has no preconditions, and gives a static text that ends in a zero.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

/// Such as `glibc 2.36`; none where it is another one, which does not tell.
#[cfg(not(target_env = "gnu"))]
pub(super) fn read() -> Option<String> {
    None
}
