//! Commits of a repository. It is read only, as one of somebody else.

use std::path::Path;

use crate::exit::Usage;

/// Digits of a commit.
const DIGITS: usize = 12;

/// The commits of first parents from the good one to the bad one, both included, each by its first digits.
pub(super) fn range(repository: &Path, good: &str, bad: &str) -> Result<Vec<String>, Usage> {
    let resolve = |name: &str| {
        let commit = format!("{name}^{{commit}}");
        run(repository, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?
            .ok_or_else(|| Usage(format!("error: there is no commit \"{name}\" in {}", repository.display())))
    };
    let (first, last) = (resolve(good)?, resolve(bad)?);
    if first == last {
        return Err(Usage(format!(
            "error: {good} and {bad} are the same commit: there is nothing to search"
        )));
    }
    let is_ancestor = |one: &str, other: &str| {
        run(repository, &["merge-base", "--is-ancestor", one, other]).map(|found| found.is_some())
    };
    if is_ancestor(&last, &first)? {
        return Err(Usage(format!(
            "error: {bad} is older than {good}: GOOD is the older end, so exchange them"
        )));
    }
    if !is_ancestor(&first, &last)? {
        let base = run(repository, &["merge-base", &first, &last])?;
        let advice = base.map(|base| {
            format!(
                "; both come from {}: search from there to {bad}, or to {good}",
                base.chars().take(DIGITS).collect::<String>()
            )
        });
        return Err(Usage(format!(
            "error: {good} is not an ancestor of {bad}{}",
            advice.unwrap_or_default()
        )));
    }
    let between = run(repository, &["rev-list", "--first-parent", "--reverse", &format!("{first}..{last}")])?;
    let all = std::iter::once(first.as_str()).chain(between.iter().flat_map(|between| between.lines()));
    Ok(all.map(|commit| commit.chars().take(DIGITS).collect()).collect())
}

/// What a command of git prints; none if it fails.
fn run(repository: &Path, arguments: &[&str]) -> Result<Option<String>, Usage> {
    host::git::read(repository, arguments, "").map_err(|error| {
        Usage(format!(
            "error: commits are read by git, which can't be run: {error} (Debian: apt-get install git)"
        ))
    })
}
