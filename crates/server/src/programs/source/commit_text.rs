//! What a git repository says about commits that are built, as text for a trial's bundle: whoever reads the result may not have
//! the repository, and reading a store asks none.

use std::path::Path;

/// What initdb fills a data directory from.
const CATALOG: [&str; 5] = [
    "src/include/catalog",
    "src/backend/catalog/system_views.sql",
    "src/backend/catalog/information_schema.sql",
    "src/bin/initdb/initdb.c",
    "src/include/access/xlog_internal.h",
];

/// The most files of a commit that are listed.
const MAX_FILES: usize = 12;

/// A commit of a repository in lines: its subject, author and date, and its files with their numbers of changed lines. None
/// if git or the commit is missing.
pub fn commit_text(repository: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let arguments = ["show", "--format=%s%n%an, %as", "--stat=74", "--no-color", "--no-show-signature"];
    let shown = read(repository, &[&arguments[..], &["--end-of-options", &commit]].concat(), "")?;
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
    let arguments = ["log", "--no-walk=unsorted", "--ignore-missing", "--format=%S %s", "--no-color"];
    let arguments = [&arguments[..], &["--no-show-signature", "--stdin"]].concat();
    read(repository, &arguments, &names.join("\n")).filter(|subjects| !subjects.is_empty())
}

/// What a data directory depends on in commits of PostgreSQL, in their order: the objects with the catalog, `initdb` and the format of
/// the WAL, a line each. Commits of the same share data sets, unless only comments differ; none if git or the repository is missing.
pub fn commit_catalogs(repository: &Path, names: &[&str]) -> Option<Vec<String>> {
    let objects =
        |name: &&str| CATALOG.map(|path| format!("{}:{path}\n", name.replace(['\n', ' '], ""))).concat();
    let asked: String = names.iter().map(objects).collect();
    let found = read(repository, &["cat-file", "--batch-check=%(objectname)"], &asked)?;
    // A missing one is reported by its name.
    let lines = found.lines().map(|line| if line.ends_with(" missing") { "" } else { line });
    let lines: Vec<&str> = lines.collect();
    Some(lines.chunks(CATALOG.len()).map(|objects| objects.join("\n")).collect())
}

fn read(repository: &Path, arguments: &[&str], input: &str) -> Option<String> {
    host::git::read(repository, arguments, input).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn commits_share_a_catalog_until_one_changes_it() {
        let directory = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
            let mut git = Command::new("git");
            let output = git.arg("-C").arg(directory.path()).args(identity).args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        let files = [
            "src/include/catalog/pg_proc.dat",
            "src/backend/executor/execMain.c",
            "src/backend/catalog/pg_type.c",
            "src/bin/initdb/initdb.c",
            "src/backend/catalog/system_views.sql",
        ];
        let commits = files.map(|file| {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
            git(&["add", "-A"]);
            git(&["commit", "-qm", file]);
            git(&["rev-parse", "HEAD"])
        });
        let names: Vec<&str> = commits.iter().map(String::as_str).collect();
        let catalogs = commit_catalogs(directory.path(), &names).unwrap();
        let is_changed: Vec<bool> = catalogs.windows(2).map(|both| both[0] != both[1]).collect();
        assert_eq!(is_changed, [false, false, true, true]);
        // More than a pipe holds.
        let many = commit_catalogs(directory.path(), &[names[0]; 2000]).unwrap();
        assert!(many.len() == 2000 && many.iter().all(|catalog| *catalog == catalogs[0]));
        let with_unknown = commit_catalogs(directory.path(), &["gone", names[0]]).unwrap();
        assert_eq!(with_unknown[1], catalogs[0]);
        assert_eq!(commit_catalogs(&directory.path().join("missing"), &names), None);
    }
}
