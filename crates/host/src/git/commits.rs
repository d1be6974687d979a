//! The commits between two of a repository, which is only read, as one of somebody else.

use std::path::Path;

use super::{NO_DIFF_PROGRAMS, read};
use crate::error::Error;

/// Digits by which a commit is named.
const DIGITS: usize = 12;

/// What the line of a commit begins with.
const COMMIT: &str = "commit ";

/// A commit of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCommit {
    /// Its first digits.
    pub id: String,
    /// Whether it changes a file that the programs are made from: others change only documentation or tests.
    pub can_change_programs: bool,
}

/// The commits of first parents from an older one, which is the first, to a newer one. `is_of_programs` says whether the programs
/// are made from a file.
///
/// # Errors
/// git can't be run; a name is no commit of the repository; or the older one is not an ancestor of the newer one.
pub fn commits_between(
    repository: &Path,
    older: &str,
    newer: &str,
    is_of_programs: impl Fn(&str) -> bool,
) -> Result<Vec<RangeCommit>, Error> {
    let repository = Repository(repository);
    let (first, last) = (repository.commit(older)?, repository.commit(newer)?);
    if first == last {
        return Err(repository.refuse(format!("{older} and {newer} are the same commit")));
    }
    if repository.is_ancestor(&last, &first)? {
        return Err(repository.refuse(format!("{newer} is older than {older}: the older end comes first")));
    }
    if !repository.is_ancestor(&first, &last)? {
        let advice = repository.git(&["merge-base", &first, &last])?.map(|base| {
            format!("; both come from {}: begin there, and end at {newer} or {older}", shortened(&base))
        });
        let advice = advice.unwrap_or_default();
        return Err(repository.refuse(format!("{older} is not an ancestor of {newer}{advice}")));
    }
    repository.range(&first, &last, is_of_programs)
}

/// The commits that a merge brought to its first parent: those of first parents from where its branch began, which is the first, to
/// the branch's last one. None if the commit is no merge of one branch.
///
/// # Errors
/// git can't be run, or the name is no commit of the repository.
pub fn commits_of_merge(
    repository: &Path,
    merge: &str,
    is_of_programs: impl Fn(&str) -> bool,
) -> Result<Option<Vec<RangeCommit>>, Error> {
    let repository = Repository(repository);
    let merge = repository.commit(merge)?;
    let parents = repository.git(&["rev-parse", &format!("{merge}^@")])?.unwrap_or_default();
    let [into, branch] = parents.lines().collect::<Vec<_>>()[..] else { return Ok(None) };
    // Without one, both have nothing in common.
    let Some(begin) = repository.git(&["merge-base", into, branch])? else { return Ok(None) };
    if begin == branch { Ok(None) } else { repository.range(&begin, branch, is_of_programs).map(Some) }
}

/// A git repository.
struct Repository<'a>(&'a Path);

impl Repository<'_> {
    fn refuse(&self, why: String) -> Error {
        Error::Commits { repository: self.0.to_owned(), why }
    }

    fn git(&self, arguments: &[&str]) -> Result<Option<String>, Error> {
        read(self.0, arguments, "")
            .map_err(|error| self.refuse(format!("git can't be run: {error} (Debian: apt-get install git)")))
    }

    /// The commit of a name.
    fn commit(&self, name: &str) -> Result<String, Error> {
        let commit = format!("{name}^{{commit}}");
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?
            .ok_or_else(|| self.refuse(format!("there is no commit \"{name}\"")))
    }

    fn is_ancestor(&self, one: &str, other: &str) -> Result<bool, Error> {
        self.git(&["merge-base", "--is-ancestor", one, other]).map(|found| found.is_some())
    }

    /// The commits of first parents from one, which is the first, to another one.
    fn range(
        &self,
        first: &str,
        last: &str,
        is_of_programs: impl Fn(&str) -> bool,
    ) -> Result<Vec<RangeCommit>, Error> {
        let range = format!("{first}..{last}");
        // Of a merge, what it brought to its first parent.
        let log = ["log", "--first-parent", "-m", "--reverse", "--no-renames", "--name-only", "--no-color"];
        let format = format!("--format={COMMIT}%H");
        let listed = self.git(&[&log[..], &NO_DIFF_PROGRAMS, &[&format, &range]].concat())?;
        let listed = listed.ok_or_else(|| self.refuse(format!("the commits {range} can't be listed")))?;
        let mut found = vec![RangeCommit { id: shortened(first), can_change_programs: true }];
        for line in listed.lines().filter(|line| !line.is_empty()) {
            if let Some(commit) = line.strip_prefix(COMMIT) {
                found.push(RangeCommit { id: shortened(commit), can_change_programs: false });
            } else if let Some(last) = found.last_mut() {
                last.can_change_programs |= is_of_programs(line);
            }
        }
        Ok(found)
    }
}

fn shortened(commit: &str) -> String {
    commit.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn commits_of_first_parents_are_listed_with_whether_they_change_code() {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
            let output =
                Command::new("git").arg("-C").arg(repository).args(identity).args(arguments).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let commit = |file: &str, text: &str| {
            let path = repository.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            git(&["add", "-A"]);
            git(&["commit", "-q", "-m", text]);
            git(&["rev-parse", "HEAD"])[..DIGITS].to_owned()
        };
        git(&["init", "-q", "-b", "main"]);
        let base = commit("src/a.c", "1");
        let code = commit("src/a.c", "2");
        let text = commit("doc/a.sgml", "3");
        git(&["checkout", "-q", "-b", "side"]);
        let side = [commit("src/b.c", "4"), commit("doc/b.sgml", "5")];
        git(&["checkout", "-q", "main"]);
        git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
        let merge = git(&["rev-parse", "HEAD"])[..DIGITS].to_owned();
        git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
        let empty = git(&["rev-parse", "HEAD"])[..DIGITS].to_owned();
        let is_of_programs = |file: &str| !file.starts_with("doc/");
        let between = |older: &str, newer: &str| commits_between(repository, older, newer, is_of_programs);
        let found = between(&base, "main").unwrap();
        let range = |commits: &[(&String, bool)]| -> Vec<RangeCommit> {
            let commit = |(id, can_change_programs): &(&String, bool)| RangeCommit {
                id: (*id).clone(),
                can_change_programs: *can_change_programs,
            };
            commits.iter().map(commit).collect()
        };
        let expected =
            range(&[(&base, true), (&code, true), (&text, false), (&merge, true), (&empty, false)]);
        assert_eq!(found, expected);
        let merged = commits_of_merge(repository, &merge, is_of_programs).unwrap();
        assert_eq!(merged, Some(range(&[(&text, true), (&side[0], true), (&side[1], false)])));
        assert_eq!(commits_of_merge(repository, &code, is_of_programs).unwrap(), None);
        assert_eq!(commits_of_merge(repository, &base, is_of_programs).unwrap(), None, "it has no parent");
        for (older, newer, message) in [
            ("main", "nowhere", "there is no commit \"nowhere\""),
            ("main", "main~1", "main~1 is older than main"),
            ("main", "main", "are the same commit"),
            ("main~1", "side~0^{tree}", "there is no commit"),
        ] {
            let error = between(older, newer).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
