//! Git commands on untrusted repositories: what they say about commits.

mod commit_text;
mod commits;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

pub use commit_text::{commit_subjects, commit_text};
pub use commits::{RangeCommit, commits_between, commits_of_merge};

/// Options that a repository cannot override: no fetching, since a remote may be a command (`ext::`), no hooks, no file
/// system monitor, and no check of signatures.
const SAFE_OPTIONS: [&str; 10] = [
    "-c",
    "protocol.allow=never",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "log.showSignature=false",
    "-c",
    "gpg.program=false",
];
/// Keeps programs for comparing files from what shows changes.
const NO_DIFF_PROGRAMS: [&str; 2] = ["--no-ext-diff", "--no-textconv"];

/// A git command that runs no program which the repository's settings name, except filters of what it checks out, archives or
/// compares with its index. The caller adds the subcommand; its messages are discarded.
pub fn command(repository: &Path) -> Command {
    let mut git = Command::new("git");
    restrict(&mut git);
    git.arg("-C").arg(repository).stdin(Stdio::null()).stderr(Stdio::null());
    git
}

/// Adds the options and variables by which git runs no program of a repository, before the subcommand.
pub(crate) fn restrict(git: &mut Command) {
    git.args(SAFE_OPTIONS);
    git.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1").env("GIT_CONFIG_NOSYSTEM", "1");
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tools;

    /// Runs git in a repository with `input` as its standard input, whatever its settings name.
    fn git(repository: &Path, arguments: &[&str], input: &str) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        git.arg("-C").arg(repository).args(identity).args(arguments);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn reading_a_crafted_repository_runs_no_program_of_it() {
        let place = tempfile::tempdir().unwrap();
        let (repository, hooks) = (&place.path().join("repository"), place.path().join("hooks"));
        let marks = place.path().join("marks");
        for directory in [repository, &hooks, &marks] {
            fs::create_dir(directory).unwrap();
        }
        git(repository, &["init", "-q", "-b", "main"], "");
        let commits = ["1", "2"].map(|text| {
            fs::write(repository.join(".gitattributes"), "* diff=crafted\n").unwrap();
            fs::write(repository.join("a.c"), text).unwrap();
            git(repository, &["add", "-A"], "");
            git(repository, &["commit", "-q", "-m", text], "");
            git(repository, &["rev-parse", "HEAD"], "")
        });
        // A signature that only its program can check.
        let commit = git(repository, &["cat-file", "commit", "HEAD"], "");
        let (head, message) = commit.split_once("\n\n").unwrap();
        let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
        let signed = format!("{head}\n{signature}\n\n{message}\n");
        let signed = git(repository, &["hash-object", "-t", "commit", "-w", "--stdin"], &signed);
        git(repository, &["reset", "-q", "--soft", &signed], "");
        fs::write(repository.join("untracked.c"), "").unwrap();

        let program = |path: &Path, name: &str| {
            let mark = marks.join(name);
            fs::write(path, format!("#!/bin/sh\n: >'{}'\n", mark.display())).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        program(&hooks.join("post-index-change"), "hook");
        let [monitor, gpg, textconv, diff] =
            ["monitor", "gpg", "textconv", "diff"].map(|name| program(&place.path().join(name), name));
        for (name, value) in [
            ("core.hooksPath", hooks.to_str().unwrap()),
            ("core.fsmonitor", &monitor),
            ("log.showSignature", "true"),
            ("gpg.program", &gpg),
            ("diff.crafted.textconv", &textconv),
            ("diff.external", &diff),
        ] {
            git(repository, &["config", name, value], "");
        }

        let between = commits_between(repository, &commits[0], "main", |_| true).unwrap();
        assert_eq!(between.len(), 2);
        assert!(commits_of_merge(repository, "main", |_| true).unwrap().is_none());
        let text = commit_text(repository, "main").unwrap();
        assert!(text.starts_with("2\nt, ") && text.contains("a.c | 2 +-"), "{text}");
        assert_eq!(commit_subjects(repository, &["main"]).as_deref(), Some("main 2"));
        assert!(read(repository, &["status", "--porcelain"], "").unwrap().unwrap().contains("untracked.c"));
        let listed = tools::git(repository).args(["ls-files", "--cached", "--others"]).output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("untracked.c"));
        let ran = || {
            let names = fs::read_dir(&marks).unwrap();
            let mut names: Vec<String> =
                names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(ran(), [""; 0]);

        git(repository, &["log", "--ext-diff", "-p"], "");
        git(repository, &["-c", "diff.external=", "log", "-p"], "");
        git(repository, &["status"], "");
        assert_eq!(ran(), ["diff", "gpg", "hook", "monitor", "textconv"], "where nothing prevents them");
    }
}
