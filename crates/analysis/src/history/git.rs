//! The order of commits in a git repository.

use std::collections::HashMap;
use std::path::Path;

/// Sorts refs by the repository's history, ancestors first; `None` if git, the repository or a ref is missing.
pub(super) fn order_refs(repository: &Path, refs: &[String]) -> Option<Vec<String>> {
    let commits: Vec<String> = refs.iter().map(|name| format!("{name}^{{commit}}")).collect();
    let resolve = ["rev-parse", "--end-of-options"].into_iter().chain(commits.iter().map(String::as_str));
    // Before 2.30, rev-parse also prints the option.
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
    let output = host::git::command(repository).args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").arg("-C").arg(directory).args(identity).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A repository whose missing commit would be fetched from a remote that is a command.
    #[test]
    fn a_crafted_repository_runs_no_command() {
        let place = tempfile::tempdir().unwrap();
        let (repository, mark) = (place.path().join("repository"), place.path().join("mark"));
        fs::create_dir(&repository).unwrap();
        git(&repository, &["init", "-q"]);
        let commits = [1, 2].map(|_| {
            git(&repository, &["commit", "-q", "--allow-empty", "-m", "x"]);
            git(&repository, &["rev-parse", "HEAD"])
        });
        assert_eq!(order_refs(&repository, &commits), Some(commits.to_vec()));
        let reversed = [commits[1].clone(), commits[0].clone()];
        assert_eq!(order_refs(&repository, &reversed), Some(commits.to_vec()));

        let (directory, file) = commits[0].split_at(2);
        fs::remove_file(repository.join(".git/objects").join(directory).join(file)).unwrap();
        let command = format!("ext::touch {}", mark.display());
        for (name, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", &command),
            ("protocol.allow", "always"),
            ("protocol.ext.allow", "always"),
        ] {
            git(&repository, &["config", name, value]);
        }
        assert_eq!(order_refs(&repository, &commits), None);
        assert!(!mark.exists(), "the remote's command was run");
        git(&repository, &["rev-list", &commits[1]]);
        assert!(mark.exists(), "the remote's command is run where nothing prevents it");
    }
}
