//! Git commands on untrusted repositories.

use std::path::Path;
use std::process::{Command, Stdio};

/// Options that a repository cannot override: no fetching, since a remote may be a command (`ext::`), no hooks, and no
/// file system monitor.
const SAFE_OPTIONS: [&str; 6] =
    ["-c", "protocol.allow=never", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

/// A git command that runs no program of the repository. The caller adds the subcommand; its messages are discarded.
pub fn command(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(SAFE_OPTIONS).arg("-C").arg(repository).stdin(Stdio::null()).stderr(Stdio::null());
    git.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1").env("GIT_CONFIG_NOSYSTEM", "1");
    git
}
