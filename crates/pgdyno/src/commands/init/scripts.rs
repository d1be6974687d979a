//! SQL files in a directory, as workloads.

use std::io;
use std::path::Path;

use runner::campaign_file::draft::DraftWorkload;

/// Files that create the tables of the others.
const SETUP: [&str; 4] = ["schema.sql", "tables.sql", "setup.sql", "data.sql"];

/// A workload for each `*.sql` file, by name; all have the setup files that there are.
///
/// # Errors
/// The directory can't be listed.
pub(super) fn in_directory(directory: &Path) -> io::Result<Vec<DraftWorkload>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // Names that are not UTF-8 can't be in a campaign.
        let name = entry.file_name();
        let name = name.to_str().filter(|name| name.ends_with(".sql") && entry.path().is_file());
        files.extend(name.map(str::to_owned));
    }
    files.sort();
    let setup: Vec<String> =
        SETUP.into_iter().filter(|name| files.iter().any(|file| file == name)).map(str::to_owned).collect();
    let scripts = files.into_iter().filter(|file| !SETUP.contains(&file.as_str()));
    Ok(scripts
        .map(|file| DraftWorkload::Script { name: workload_name(&file), file, setup: setup.clone() })
        .collect())
}

/// The file's name without its extension; not that of a workload that pgdyno knows.
fn workload_name(file: &str) -> String {
    let stem = file.trim_end_matches(".sql");
    let is_taken = script::builtin(stem).is_some() || workload::shipped().any(|bundled| bundled == stem);
    if is_taken { format!("my-{stem}") } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn scripts_are_workloads_and_setup_files_make_their_tables() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["orders.sql", "select-only.sql", "setup.sql", "schema.sql", "notes.txt"] {
            fs::write(directory.path().join(file), "").unwrap();
        }
        let setup = vec!["schema.sql".to_owned(), "setup.sql".to_owned()];
        let script = |name: &str, file: &str| DraftWorkload::Script {
            name: name.into(),
            file: file.into(),
            setup: setup.clone(),
        };
        let expected = [script("orders", "orders.sql"), script("my-select-only", "select-only.sql")];
        assert_eq!(in_directory(directory.path()).unwrap(), expected);
        assert!(in_directory(Path::new("/nonexistent")).is_err());
    }
}
