//! The catalogs of commits of PostgreSQL, by which a bisection knows before it builds them which commits share data sets.

use std::path::Path;

/// What initdb fills a data directory from.
const CATALOG: [&str; 5] = [
    "src/include/catalog",
    "src/backend/catalog/system_views.sql",
    "src/backend/catalog/information_schema.sql",
    "src/bin/initdb/initdb.c",
    "src/include/access/xlog_internal.h",
];

/// What a data directory depends on in commits of PostgreSQL, in their order: the objects with the catalog, `initdb` and the format of
/// the WAL, a line each. Commits of the same share data sets, unless only comments differ; none if git or the repository is missing.
pub fn catalogs_of_commits(repository: &Path, names: &[&str]) -> Option<Vec<String>> {
    let objects =
        |name: &&str| CATALOG.map(|path| format!("{}:{path}\n", name.replace(['\n', ' '], ""))).concat();
    let asked: String = names.iter().map(objects).collect();
    let found = host::git::read(repository, &["cat-file", "--batch-check=%(objectname)"], &asked).ok()??;
    // A missing one is reported by its name.
    let lines = found.lines().map(|line| if line.ends_with(" missing") { "" } else { line });
    let lines: Vec<&str> = lines.collect();
    Some(lines.chunks(CATALOG.len()).map(|objects| objects.join("\n")).collect())
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
        let catalogs = catalogs_of_commits(directory.path(), &names).unwrap();
        let is_changed: Vec<bool> = catalogs.windows(2).map(|both| both[0] != both[1]).collect();
        assert_eq!(is_changed, [false, false, true, true]);
        // More than a pipe holds.
        let many = catalogs_of_commits(directory.path(), &[names[0]; 2000]).unwrap();
        assert!(many.len() == 2000 && many.iter().all(|catalog| *catalog == catalogs[0]));
        let with_unknown = catalogs_of_commits(directory.path(), &["gone", names[0]]).unwrap();
        assert_eq!(with_unknown[1], catalogs[0]);
        assert_eq!(catalogs_of_commits(&directory.path().join("missing"), &names), None);
    }
}
