//! The order of commits in a git repository.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use store::Store;

/// Orders refs by the history of their repository, ancestors first, as [`super::GitOrder`]. Relative paths of repositories
/// are relative to the directory of the store, as to that of the campaign.
pub fn git_order(store: &Store) -> impl Fn(&Path, &[String]) -> Option<Vec<String>> + Send + Sync + use<> {
    let directory = store.root().parent().unwrap_or(Path::new("")).to_owned();
    move |repository, refs| in_order(&directory.join(repository), refs)
}

/// The refs in order; none if git, the repository or a ref is missing.
fn in_order(repository: &Path, refs: &[String]) -> Option<Vec<String>> {
    let commits: Vec<String> = refs.iter().map(|name| format!("{name}^{{commit}}")).collect();
    let resolve = ["rev-parse", "--end-of-options"].into_iter().chain(commits.iter().map(String::as_str));
    // Before 2.30, rev-parse echoes the end of its options.
    let hashes: Vec<String> =
        lines(repository, resolve)?.into_iter().filter(|line| line != "--end-of-options").collect();
    let walk = ["rev-list", "--topo-order", "--reverse"].into_iter().chain(hashes.iter().map(String::as_str));
    let history = lines(repository, walk)?;
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
    // A missing repository is no error here, and not for the terminal.
    git.arg("-C").arg(repository).args(args).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}
