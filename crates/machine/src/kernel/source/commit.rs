//! The commit that a label names: `./linux@v6.6`.

use std::path::{Path, PathBuf};

use model::machine::kernel_commit;

use super::refuse;
use crate::error::Error;

/// Files that every source of Linux has.
const FILES: [&str; 2] = ["Kconfig", "Makefile"];
/// Digits by which a commit is named.
const DIGITS: usize = 12;

/// A commit of a repository of Linux.
#[derive(Clone, Debug)]
pub(in crate::kernel) struct Commit {
    /// Canonical path of the repository.
    pub(in crate::kernel) repository: PathBuf,
    /// Directory of its objects, which all of its work trees share.
    pub(super) git_directory: PathBuf,
    /// ID of the commit.
    pub(super) id: String,
    /// ID of its tree.
    pub(in crate::kernel) tree: String,
}

impl Commit {
    /// The commit of a label; none if it is the path of something that exists, or of another form. Nothing in the repository is
    /// changed.
    ///
    /// # Errors
    /// There is no such repository or commit, or it is not one of Linux; git can't be run.
    pub(in crate::kernel) fn of_label(label: &str, base: &Path) -> Result<Option<Self>, Error> {
        let given = base.join(label);
        let named = kernel_commit(label).map(|(path, name)| (base.join(path), name));
        match named {
            Some((repository, name)) if repository.is_dir() && !given.exists() => {
                Self::resolve(&repository, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn resolve(repository: &Path, name: &str) -> Result<Self, Error> {
        let git = |arguments: &[&str]| match host::git::read(repository, arguments, "") {
            Ok(printed) => Ok(printed),
            Err(error) => {
                let why = format!("git can't be run: {error} (Debian: apt-get install git)");
                Err(host::Error::Commits { repository: repository.to_owned(), why })
            }
        };
        let path = repository.canonicalize().map_err(|error| refuse(repository, error.to_string()))?;
        let git_directory = git(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        let git_directory = git_directory
            .ok_or_else(|| refuse(repository, "it is not a git repository, so that it has no commits"))?;
        let resolve = |what: &str| {
            git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{{what}}}")])?
                .ok_or_else(|| refuse(repository, format!("there is no commit \"{name}\"")))
        };
        let (id, tree) = (resolve("commit")?, resolve("tree")?);
        let listed = git(&[&["ls-tree", "--name-only", &tree][..], &FILES].concat())?.unwrap_or_default();
        if listed.lines().count() < FILES.len() {
            let why = format!("its commit \"{name}\" is no source of Linux: it lacks {}", FILES.join(" or "));
            return Err(refuse(repository, why));
        }
        Ok(Self { repository: path, git_directory: PathBuf::from(git_directory), id, tree })
    }

    /// Its repository and the first digits of its ID.
    pub(super) fn origin(&self) -> String {
        let short: String = self.id.chars().take(DIGITS).collect();
        format!("{}@{short}", self.repository.display())
    }
}
