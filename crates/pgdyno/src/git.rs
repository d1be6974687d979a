//! The order of commits, as git has it.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The refs in the order of the repository's history, ancestors first; none where git, the repository or one of them is
/// not there. A relative path is beside the store, as it is beside the campaign.
pub(crate) fn in_order(store: &Path, repository: &Path, refs: &[String]) -> Option<Vec<String>> {
    let repository = store.parent().unwrap_or(Path::new("")).join(repository);
    let commits: Vec<String> = refs.iter().map(|name| format!("{name}^{{commit}}")).collect();
    let resolve = ["rev-parse", "--end-of-options"].into_iter().chain(commits.iter().map(String::as_str));
    // Before 2.30, rev-parse says back what ends its options.
    let hashes: Vec<String> =
        lines(&repository, resolve)?.into_iter().filter(|line| line != "--end-of-options").collect();
    let walk = ["rev-list", "--topo-order", "--reverse"].into_iter().chain(hashes.iter().map(String::as_str));
    let history = lines(&repository, walk)?;
    let places: HashMap<&str, usize> =
        history.iter().enumerate().map(|(place, hash)| (hash.as_str(), place)).collect();
    if hashes.len() != refs.len() {
        return None;
    }
    let mut ordered: Vec<(usize, &String)> = hashes
        .iter()
        .zip(refs)
        .map(|(hash, name)| Some((*places.get(hash.as_str())?, name)))
        .collect::<Option<_>>()?;
    ordered.sort();
    Some(ordered.into_iter().map(|(_, name)| name.clone()).collect())
}

fn lines<'a>(repository: &Path, args: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    // A path that is not there is an answer here, and not for the terminal.
    git.arg("-C").arg(repository).args(args).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}
