//! Git on a repository that may be anybody's.

use std::path::Path;
use std::process::{Command, Stdio};

/// Configuration that a repository cannot override: it fetches nothing, since a remote may be a command (`ext::`), and runs no
/// hook and no file system monitor.
const HARMLESS: [&str; 6] =
    ["-c", "protocol.allow=never", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

/// A git command that runs no program of the repository. Its subcommand is to be added; its messages are not shown.
pub fn command(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(HARMLESS).arg("-C").arg(repository).stdin(Stdio::null()).stderr(Stdio::null());
    git.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1").env("GIT_CONFIG_NOSYSTEM", "1");
    git
}
