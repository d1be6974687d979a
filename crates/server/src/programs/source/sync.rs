//! Synchronizes a source with its build directory: `source` there becomes a copy of the present source, and `build` is
//! kept if compiling only the changed files is equivalent to a new build.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::version::Version;

use super::content::{Content, file_list, walk};
use super::refuse;
use super::run::Runner;
use crate::error::Error;
use host::IoContext;
use host::files::remove_tree;
use host::{Progress, check_interrupted};

/// The copy of the source in a build directory.
pub(super) const SOURCE: &str = "source";
/// Directory of the build.
pub(super) const BUILD: &str = "build";
/// Files that a finished build no longer needs.
const SCRATCH: &str = "scratch";
/// Paths of all files of `source`, each terminated by a zero. Without it, `source` is incomplete.
const FILES: &str = "files";

/// Copies what has changed, and returns the version stated in the source.
pub(super) fn update(
    content: &Content,
    directory: &Path,
    runner: &Runner<'_>,
    progress: &dyn Progress,
) -> Result<Version, Error> {
    let source = directory.join(SOURCE);
    let scratch = directory.join(SCRATCH);
    remove_tree(&scratch)?;
    fs::create_dir(&scratch).doing("create the directory", &scratch)?;
    let (from, files) = content.as_directory(&scratch, runner)?;
    let version = version(&content.location, &from)?;
    progress.step(&format!("copying the source of PostgreSQL {version}"), 0, None);
    match only_code_changed(&from, &files, directory)? {
        Some(changed) => {
            for file in changed {
                let to = source.join(file);
                fs::remove_file(&to).doing("remove", &to)?;
                copy(&from.join(file), &to)?;
                // Newer than its object file, whatever its own time: otherwise make would skip it.
                let opened = File::open(&to).doing("open", &to)?;
                opened.set_modified(SystemTime::now()).doing("set the time of", &to)?;
            }
        }
        None => recopy(&from, &files, directory, progress)?,
    }
    if content.equals(&source, &files)? {
        Ok(version)
    } else {
        Err(refuse(&content.location, "it was changed while it was read; try again"))
    }
}

/// Removes what a finished build no longer needs. Not before: on ext4, creating files is slow after as many have just
/// been removed.
pub(super) fn clear(directory: &Path) -> Result<(), Error> {
    Ok(remove_tree(&directory.join(SCRATCH))?)
}

/// Files that have changed since the last time, if these are only C files and no file is new or missing; else none.
/// make and ninja know all consequences of such changes.
fn only_code_changed<'a>(
    from: &Path,
    files: &'a [PathBuf],
    directory: &Path,
) -> Result<Option<Vec<&'a PathBuf>>, Error> {
    if fs::read(directory.join(FILES)).ok().as_deref() != Some(&file_list(files)[..]) {
        return Ok(None);
    }
    let mut changed = Vec::new();
    for file in files {
        if are_equal(&from.join(file), &directory.join(SOURCE).join(file))? {
            continue;
        }
        if !file.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            return Ok(None);
        }
        changed.push(file);
    }
    Ok(Some(changed))
}

/// Replaces the copy by the present source, and puts the former build aside. Files get their times in the source: these
/// show make that generated files of a tarball are up to date.
fn recopy(from: &Path, files: &[PathBuf], directory: &Path, progress: &dyn Progress) -> Result<(), Error> {
    let (list, source) = (directory.join(FILES), directory.join(SOURCE));
    unless_missing(fs::remove_file(&list)).doing("remove", &list)?;
    let (build, aside) = (directory.join(BUILD), directory.join(SCRATCH).join(BUILD));
    unless_missing(fs::rename(&build, &aside)).doing("move away", &build)?;
    fs::create_dir_all(&source).doing("create the directory", &source)?;
    // Missing files first: a file may have become a directory.
    let wanted: HashSet<&PathBuf> = files.iter().collect();
    for file in walk(&source)?.iter().filter(|file| !wanted.contains(file)) {
        let obsolete = source.join(file);
        fs::remove_file(&obsolete).doing("remove", &obsolete)?;
        let above = file.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        // Up to the first that is not empty.
        above.map(|above| fs::remove_dir(source.join(above))).take_while(Result::is_ok).for_each(drop);
    }
    for file in files {
        check_interrupted(progress)?;
        let (from, to) = (from.join(file), source.join(file));
        if are_equal(&from, &to)? {
            copy_time(&from, &to)?;
            continue;
        }
        unless_missing(fs::remove_file(&to)).doing("remove", &to)?;
        let above = to.parent().unwrap_or(&source);
        fs::create_dir_all(above).doing("create the directory", above)?;
        copy(&from, &to)?;
    }
    Ok(fs::write(&list, file_list(files)).doing("write", &list)?)
}

/// Treats a missing file as removed or moved.
pub(super) fn unless_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Copies a file with its mode and time, or a link.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let meta = fs::symlink_metadata(from).doing("inspect", from)?;
    if meta.is_symlink() {
        let target = fs::read_link(from).doing("read", from)?;
        return Ok(symlink(target, to).doing("create the link", to)?);
    }
    fs::copy(from, to).doing("copy to", to)?;
    copy_time(from, to)
}

/// Gives a file the modification time of another, unless it is a link.
fn copy_time(from: &Path, to: &Path) -> Result<(), Error> {
    let modified = |path| fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let (wanted, is) = (modified(from).doing("inspect", from)?, modified(to).doing("inspect", to)?);
    if wanted == is || to.is_symlink() {
        return Ok(());
    }
    let opened = File::open(to).doing("open", to)?;
    Ok(opened.set_modified(wanted).doing("set the time of", to)?)
}

/// Whether two files, or links, are equal except for their times.
pub(in crate::programs) fn are_equal(one: &Path, other: &Path) -> Result<bool, Error> {
    let (Ok(first), Ok(second)) = (fs::symlink_metadata(one), fs::symlink_metadata(other)) else {
        return Ok(false);
    };
    if first.is_symlink() || second.is_symlink() {
        return Ok(fs::read_link(one).ok() == fs::read_link(other).ok());
    }
    let executable = |meta: &fs::Metadata| meta.permissions().mode() & 0o100 != 0;
    if first.len() != second.len() || executable(&first) != executable(&second) {
        return Ok(false);
    }
    Ok(fs::read(one).doing("read", one)? == fs::read(other).doing("read", other)?)
}

/// Version stated in a source.
fn version(location: &Path, source: &Path) -> Result<Version, Error> {
    let places = [("configure", "PACKAGE_VERSION="), ("meson.build", "  version:")];
    for (file, begin) in places {
        let Ok(text) = fs::read(source.join(file)) else { continue };
        let text = String::from_utf8_lossy(&text);
        let quoted = text.lines().find_map(|line| line.strip_prefix(begin)?.split('\'').nth(1));
        if let Some(Ok(version)) = quoted.map(str::parse) {
            return Ok(version);
        }
    }
    Err(refuse(
        location,
        "it is not a source of PostgreSQL: neither its `configure` nor its `meson.build` has a PostgreSQL version",
    ))
}
