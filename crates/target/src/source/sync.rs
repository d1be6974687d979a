//! Bringing a source into its build directory: `source` there becomes the source as it is now, and `build` stays where
//! a compiler run on the changed files alone gives the same as a new build.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::content::Content;
use super::refuse;
use super::run::Runner;
use crate::cache::remove_tree;
use crate::error::{Doing, TargetError};
use crate::progress::{Progress, unless_interrupted};
use crate::version::Version;

/// The copy of the source in a build directory.
pub(super) const SOURCE: &str = "source";
/// Where it is built.
pub(super) const BUILD: &str = "build";
/// The paths of all files of `source`, each ended by a zero. Without it, `source` is not whole.
const FILES: &str = "files";

/// Copies what has changed, and gives the version that the source says it is.
pub(super) fn bring(
    content: &Content,
    directory: &Path,
    runner: &Runner<'_>,
    progress: &dyn Progress,
) -> Result<Version, TargetError> {
    let source = directory.join(SOURCE);
    let scratch = directory.join("scratch");
    remove_tree(&scratch)?;
    fs::create_dir(&scratch).doing("make the directory", &scratch)?;
    let (from, files) = content.as_directory(&scratch, runner)?;
    let version = version(&content.location, &from)?;
    progress.step(&format!("copying the source of PostgreSQL {version}"), 0, None);
    match only_code_changed(&from, &files, directory)? {
        Some(changed) => {
            for file in changed {
                let to = source.join(file);
                fs::remove_file(&to).doing("remove", &to)?;
                copy(&from.join(file), &to)?;
                // Newer than what was compiled of it, whatever its time was: else make would leave it.
                let opened = File::open(&to).doing("open", &to)?;
                opened.set_modified(SystemTime::now()).doing("set the time of", &to)?;
            }
        }
        None => copy_all(&from, &files, directory, progress)?,
    }
    remove_tree(&scratch)?;
    match content.is(&source, &files)? {
        true => Ok(version),
        false => Err(refuse(&content.location, "it changed while it was read; try again")),
    }
}

/// The files that have changed since the last time, where these are only C files and no file is new or gone; else
/// none. Of such changes make and ninja know all that follows.
fn only_code_changed<'a>(
    from: &Path,
    files: &'a [PathBuf],
    directory: &Path,
) -> Result<Option<Vec<&'a PathBuf>>, TargetError> {
    if fs::read(directory.join(FILES)).ok().as_deref() != Some(&listed(files)[..]) {
        return Ok(None);
    }
    let mut changed = Vec::new();
    for file in files {
        if alike(&from.join(file), &directory.join(SOURCE).join(file))? {
            continue;
        }
        if !file.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            return Ok(None);
        }
        changed.push(file);
    }
    Ok(Some(changed))
}

/// Begins anew, with nothing of what was built before. Files keep their times: by these make knows that what a tarball
/// has of generated files is up to date.
fn copy_all(
    from: &Path,
    files: &[PathBuf],
    directory: &Path,
    progress: &dyn Progress,
) -> Result<(), TargetError> {
    let (list, source) = (directory.join(FILES), directory.join(SOURCE));
    match fs::remove_file(&list) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        outcome => outcome.doing("remove", &list)?,
    }
    remove_tree(&directory.join(BUILD))?;
    remove_tree(&source)?;
    for file in files {
        unless_interrupted(progress)?;
        let to = source.join(file);
        let above = to.parent().unwrap_or(&source);
        fs::create_dir_all(above).doing("make the directory", above)?;
        copy(&from.join(file), &to)?;
    }
    fs::write(&list, listed(files)).doing("write", &list)
}

fn listed(files: &[PathBuf]) -> Vec<u8> {
    files.iter().flat_map(|file| [file.as_os_str().as_bytes(), b"\0"].concat()).collect()
}

/// Copies a file with its mode and time, or a link.
fn copy(from: &Path, to: &Path) -> Result<(), TargetError> {
    let meta = fs::symlink_metadata(from).doing("look at", from)?;
    if meta.is_symlink() {
        let target = fs::read_link(from).doing("read", from)?;
        return symlink(target, to).doing("make the link", to);
    }
    fs::copy(from, to).doing("copy to", to)?;
    let opened = File::open(to).doing("open", to)?;
    let modified = meta.modified().doing("look at", from)?;
    opened.set_modified(modified).doing("set the time of", to)
}

/// Whether two files, or links, are the same but for their times.
fn alike(one: &Path, other: &Path) -> Result<bool, TargetError> {
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

/// The version that a source says it is.
fn version(location: &Path, source: &Path) -> Result<Version, TargetError> {
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
        "it is no source of PostgreSQL: neither its `configure` nor its `meson.build` says a version of it",
    ))
}
