//! Git commands on untrusted repositories: what they say about commits.

mod commit_text;
mod commits;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

pub use commit_text::{commit_subjects, commit_text};
pub use commits::{RangeCommit, commits_between, commits_of_merge};

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

/// What a command of git prints about a repository, whoever owns it, without the space at its end; none if it fails. `input` is
/// its standard input. Nothing in the repository is changed.
///
/// # Errors
/// git can't be run.
pub fn read(repository: &Path, arguments: &[&str], input: &str) -> io::Result<Option<String>> {
    let mut git = command(repository);
    // Regardless of the repository's owner, and without refreshing its index.
    git.args(["-c", "safe.directory=*"]).args(arguments).env("GIT_OPTIONAL_LOCKS", "0");
    let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdin = git.stdin.take();
    // At the same time, as either may be longer than a pipe holds.
    let (written, output) = thread::scope(|scope| {
        let writer = scope.spawn(|| stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())));
        let output = git.wait_with_output();
        (writer.join().unwrap_or(Ok(())), output)
    });
    match written {
        // It may not read all of it.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Ok(output.status.success().then_some(text))
}
