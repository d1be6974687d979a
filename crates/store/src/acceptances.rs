//! Accepted shifts of histories: `accepted/<id>.json`, one file each, so that stores can be merged by copying.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::acceptance::Acceptance;

use crate::bundle::{sync_directory, write_synced};
use crate::error::{Defect, Problem, StoreError};
use crate::files;
use crate::format::acceptance;
use crate::id::is_id;

/// Directory within the store.
const DIRECTORY: &str = "accepted";
const ENDING: &str = ".json";

/// Writes an acceptance atomically: temporary file, sync, rename.
pub(crate) fn write(root: &Path, acceptance: &Acceptance) -> Result<(), StoreError> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(StoreError::io("create the directory", &directory))?;
    let path = path_of(root, acceptance);
    let text = acceptance::write(&name(&path), acceptance)
        .map_err(|defect| StoreError::NotStorable { what: defect.in_bundle("").reason })?;
    let partial = directory.join(format!(".partial-{}", acceptance.id));
    let written = write_synced(&partial, &text)
        .map_err(StoreError::io("write", &partial))
        .and_then(|()| fs::rename(&partial, &path).map_err(StoreError::io("rename", &partial)));
    written.inspect_err(|_| {
        // A leftover is never read as an acceptance.
        let _ = fs::remove_file(&partial);
    })?;
    sync_directory(&directory)
}

/// Reads all acceptances, oldest first.
pub(crate) fn read(root: &Path) -> Result<Vec<Acceptance>, StoreError> {
    let (acceptances, problems) = list(root)?;
    match problems.into_iter().next() {
        None => Ok(acceptances),
        Some(problem) => Err(StoreError::Unreadable(Box::new(problem))),
    }
}

/// The acceptances that can't be read, and why.
pub(crate) fn problems(root: &Path) -> Result<Vec<Problem>, StoreError> {
    Ok(list(root)?.1)
}

/// Removes an acceptance.
pub(crate) fn remove(root: &Path, acceptance: &Acceptance) -> Result<(), StoreError> {
    let path = path_of(root, acceptance);
    fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    sync_directory(&root.join(DIRECTORY))
}

fn path_of(root: &Path, acceptance: &Acceptance) -> PathBuf {
    root.join(DIRECTORY).join(format!("{}{ENDING}", acceptance.id))
}

/// Path of a file relative to the store.
fn name(path: &Path) -> String {
    format!("{DIRECTORY}/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

fn list(root: &Path) -> Result<(Vec<Acceptance>, Vec<Problem>), StoreError> {
    let directory = root.join(DIRECTORY);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        entries => entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths: Vec<PathBuf> = entries.map_err(StoreError::io("list", &directory))?;
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_suffix(ENDING)).is_some_and(is_id)
    });
    paths.sort();
    let (mut acceptances, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        let read = files::read_own(&path).map_err(|error| Defect::damaged(&name(&path), error));
        match read.and_then(|text| acceptance::read(&name(&path), &text)) {
            Ok(acceptance) => acceptances.push(acceptance),
            Err(defect) => problems.push(Problem {
                bundle: None,
                advice: "restore it from a copy, read it with a newer release, or remove it and accept the shift again"
                    .to_owned(),
                ..defect.in_bundle("")
            }),
        }
    }
    Ok((acceptances, problems))
}
