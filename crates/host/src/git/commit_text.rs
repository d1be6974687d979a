//! What a git repository says about commits that are built, as text for a trial's bundle: whoever reads the result may not have
//! the repository, and reading a store asks none.

use std::path::Path;

use super::{NO_DIFF_PROGRAMS, read};

/// The most files of a commit that are listed.
const MAX_FILES: usize = 12;

/// A commit of a repository in lines: its subject, author and date, and its files with their numbers of changed lines. None
/// if git or the commit is missing.
pub fn commit_text(repository: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let arguments = ["show", "--format=%s%n%an, %as", "--stat=74", "--no-color"];
    let arguments = [&arguments[..], &NO_DIFF_PROGRAMS, &["--end-of-options", &commit]].concat();
    let shown = output(repository, &arguments, "")?;
    let mut lines = shown.lines().map(str::trim_end);
    let head: Vec<&str> = lines.by_ref().take(2).collect();
    let mut files: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let sum = files.pop();
    if files.len() > MAX_FILES {
        files.truncate(MAX_FILES);
        files.push(" …");
    }
    files.extend(sum);
    Some([head, files].concat().join("\n"))
}

/// The subjects of commits of a repository, a line each, after the name that it is given by and a space. Those that it does not have
/// are left out; none if git or the repository is missing.
pub fn commit_subjects(repository: &Path, names: &[&str]) -> Option<String> {
    // What is no name of a commit would be an option, a range or several lines.
    let is_name = |name: &&&str| {
        !name.starts_with(['-', '^']) && !name.contains("..") && !name.contains(char::is_whitespace)
    };
    let names: Vec<&str> = names.iter().filter(is_name).copied().collect();
    let arguments =
        ["log", "--no-walk=unsorted", "--ignore-missing", "--format=%S %s", "--no-color", "--stdin"];
    output(repository, &arguments, &names.join("\n")).filter(|subjects| !subjects.is_empty())
}

fn output(repository: &Path, arguments: &[&str], input: &str) -> Option<String> {
    read(repository, arguments, input).ok().flatten()
}
