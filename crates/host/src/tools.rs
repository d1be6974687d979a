//! Tools of a build from source: found in `PATH`, or reported missing with their package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// Variables that a build may see. Others, such as `CFLAGS` and `MAKEFLAGS`, would affect the build without being
/// recorded.
const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];

/// A tool in a plain environment.
pub fn command(tool: &str) -> Command {
    let mut command = Command::new(tool);
    command.env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    for (name, value) in std::env::vars_os() {
        let is_for_ccache = name.to_str().is_some_and(|name| name.starts_with("CCACHE_"));
        if is_for_ccache || ENVIRONMENT.iter().any(|known| name == *known) {
            command.env(name, value);
        }
    }
    command
}

/// A git command on a repository of any owner, in a plain environment; what it runs is as of [`crate::git::command`].
pub fn git(repository: &Path) -> Command {
    let mut git = git_of_build(repository);
    crate::git::restrict(&mut git);
    git
}

/// As [`git`], for a build, which runs the scripts of the source anyway: what a partial clone lacks is fetched.
pub fn git_of_build(repository: &Path) -> Command {
    let mut git = command("git");
    git.args(["-c", "safe.directory=*", "-C"]).arg(repository);
    git
}

/// Path of a tool; none if it is not in `PATH`.
pub fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(tool)).find(|place| place.is_file())
}

/// Fails if a tool is missing.
///
/// # Errors
/// [`Error::Tool`].
pub fn require(tool: &str) -> Result<(), Error> {
    match find(tool) {
        Some(_) => Ok(()),
        None => Err(Error::Tool { tool: tool.to_owned(), package: package(tool).to_owned() }),
    }
}

/// The Debian package of a tool.
pub fn package(tool: &str) -> &str {
    match tool {
        "cc" => "gcc",
        "ld" | "as" | "objcopy" | "strip" => "binutils",
        "ninja" => "ninja-build",
        "xz" => "xz-utils",
        other => other,
    }
}

/// First line of a compiler's `--version`. The compiler may be a command with arguments.
///
/// # Errors
/// [`Error::Tool`].
pub fn compiler_version(compiler: &str) -> Result<String, Error> {
    let mut words = compiler.split_whitespace();
    let program = words.next().unwrap_or_default();
    if !program.contains('/') {
        require(program)?;
    }
    let output = command(program).args(words).arg("--version").output();
    let stdout =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    match stdout.lines().next() {
        Some(line) => Ok(line.to_owned()),
        None => Err(Error::Tool { tool: program.to_owned(), package: package(program).to_owned() }),
    }
}
