//! Limits of the shell on this process (`ulimit`) that would otherwise end it without a message.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

use crate::exit::Usage;

/// Address space in bytes with which all commands can start their threads.
const ADDRESS_SPACE: u64 = 256 << 20;

/// Has too large a file reported as an error of the write, and checks the address space.
///
/// # Errors
/// The address space is too small.
pub(crate) fn prepare() -> anyhow::Result<()> {
    // A handler, unlike an ignored signal, is not inherited by programs that this one starts.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .context("could not handle the limit on file sizes")?;
    match getrlimit(Resource::As).current {
        Some(bytes) if bytes < ADDRESS_SPACE => Err(Usage(format!(
            "error: the address space of this process is limited to {} MB (ulimit -v), and pgdyno needs {} MB; raise the \
             limit, for example with `ulimit -v unlimited`",
            bytes >> 20,
            ADDRESS_SPACE >> 20
        ))
        .into()),
        _ => Ok(()),
    }
}
