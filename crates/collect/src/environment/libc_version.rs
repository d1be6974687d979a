//! The C library of this process.

/// Such as `glibc 2.36`; none for another library, which does not report its version.
#[cfg(target_env = "gnu")]
pub(super) fn read() -> Option<String> {
    // SAFETY: it has no preconditions, and returns a static, NUL-terminated string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

/// Such as `glibc 2.36`; none for another library, which does not report its version.
#[cfg(not(target_env = "gnu"))]
pub(super) fn read() -> Option<String> {
    None
}
