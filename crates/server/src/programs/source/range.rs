//! The commits between two of a repository of PostgreSQL.

use std::path::Path;

use host::git::RangeCommit;

use crate::error::Error;

/// Directories from which nothing gets into a server's programs.
const OTHER_DIRECTORIES: [&str; 5] =
    ["doc/", "src/test/", "src/tools/ci/", "src/tools/pgindent/", "src/tutorial/"];

/// Directories of tests, anywhere.
const TESTS: [&str; 4] = ["/t/", "/sql/", "/expected/", "/specs/"];

/// Ends of the names of documentation and translations.
const TEXTS: [&str; 5] = [".md", ".po", ".sgml", "README", "COPYRIGHT"];

/// The commits of first parents from an older one, which is the first, to a newer one, with whether they can change a server: others
/// change only documentation, tests or translations.
///
/// # Errors
/// As [`host::git::commits_between`].
pub fn commits_between(repository: &Path, older: &str, newer: &str) -> Result<Vec<RangeCommit>, Error> {
    Ok(host::git::commits_between(repository, older, newer, is_of_server)?)
}

/// The commits that a merge brought, in the same way; none if the commit is no merge of one branch.
///
/// # Errors
/// As [`host::git::commits_of_merge`].
pub fn commits_of_merge(repository: &Path, merge: &str) -> Result<Option<Vec<RangeCommit>>, Error> {
    Ok(host::git::commits_of_merge(repository, merge, is_of_server)?)
}

/// Whether a server's programs are made from a file.
fn is_of_server(file: &str) -> bool {
    let is_elsewhere = OTHER_DIRECTORIES.iter().any(|directory| file.starts_with(directory));
    let is_test = TESTS.iter().any(|directory| file.contains(directory));
    let is_text = TEXTS.iter().any(|end| file.ends_with(end));
    let is_of_git = file.starts_with(".git") || file.ends_with("/.gitignore");
    !(is_elsewhere || is_test || is_text || is_of_git)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_tests_and_translations_do_not_change_programs() {
        for file in [
            "doc/src/sgml/config.sgml",
            "src/test/regress/sql/join.sql",
            "contrib/hstore/expected/hstore.out",
            "src/bin/pg_dump/t/002_pg_dump.pl",
            "src/backend/po/de.po",
            "src/backend/access/heap/README",
            "src/backend/optimizer/README",
            ".git-blame-ignore-revs",
            "contrib/pg_prewarm/.gitignore",
        ] {
            assert!(!is_of_server(file), "{file}");
        }
        for file in [
            "src/backend/executor/execMain.c",
            "src/include/catalog/pg_proc.dat",
            "src/tools/gen_keywordlist.pl",
            "src/timezone/data/tzdata.zi",
            "configure",
            "meson.build",
            "contrib/pg_prewarm/Makefile",
            "src/backend/catalog/system_views.sql",
        ] {
            assert!(is_of_server(file), "{file}");
        }
    }
}
