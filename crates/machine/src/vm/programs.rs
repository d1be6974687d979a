//! Programs with their shared libraries, as on this machine.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::error::Error;
use host::{IoContext, ServerUser};

/// Shared libraries of a program, by the paths at which the dynamic linker finds them here.
pub(crate) fn libraries(file: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    // One that only root can reach is no program of a server.
    let user = ServerUser::choose()?;
    let is_reached = file.parent().is_some_and(|directory| user.can_reach(directory));
    let (dependencies, messages) = ldd(&[file], if is_reached { &user } else { &ServerUser::Current })?;
    let missing = dependencies.lines().find(|line| line.contains("not found"));
    let missing = missing.map(|line| format!("a library is missing: {}", line.trim()));
    let unreadable = messages.contains("read permission").then(|| {
        "the user that servers run as can't read it; make it readable by all users (chmod o+r)".to_owned()
    });
    match missing.or(unreadable) {
        None => Ok(paths(&dependencies)),
        Some(why) => Ok(Err(io::Error::other(why)).doing("load", file)?),
    }
}

/// Libraries that a server's loadable ones need, as far as they exist here and it can read them: one that needs others can't be
/// loaded here either.
pub(crate) fn libraries_of_all(files: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let (dependencies, _) = ldd(&files, &ServerUser::choose()?)?;
    Ok(paths(&dependencies))
}

/// What `ldd` prints, and its messages. It runs as a user who may run the files: they may be somebody else's, and the dynamic linker
/// runs code that they name (`DT_AUDIT`).
fn ldd(files: &[&Path], user: &ServerUser) -> Result<(String, String), Error> {
    let mut command = Command::new("ldd");
    command.args(files).env("LC_ALL", "C");
    user.apply_to(&mut command);
    let output = command.output().doing("run ldd on", files[0])?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}

/// Paths in lines such as `libm.so.6 => /lib/libm.so.6 (0x…)` and `/lib64/ld-linux.so.2 (0x…)`; with several files,
/// each is headed by `/path:`. A static program has none.
fn paths(dependencies: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let right = line.split_once("=> ").map_or(line, |(_, right)| right).trim();
        let path = right.split_whitespace().next()?;
        (path.starts_with('/') && !path.ends_with(':')).then(|| PathBuf::from(path))
    };
    dependencies.lines().filter_map(path).collect()
}

/// A program without anything after its last segment: symbols and debug information, which are most of it. A file other
/// than 64-bit ELF is unchanged.
pub(crate) fn strip(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_segments(&bytes) else { return bytes };
    bytes.truncate(end);
    // The section header table is gone: e_shoff, and e_shnum with e_shstrndx. Source: elf(5).
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    bytes
}

fn end_of_segments(bytes: &[u8]) -> Option<usize> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok().filter(|segments| !segments.is_empty())?;
    let table = header.e_phoff(endian).checked_add(size_of_val(segments) as u64)?;
    let ends = segments.iter().map(|segment| segment.p_offset(endian).checked_add(segment.p_filesz(endian)));
    let end = ends.chain([Some(table)]).try_fold(0, |last, end| end.map(|end| last.max(end)))?;
    usize::try_from(end).ok().filter(|end| *end <= bytes.len())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_stripped_program_runs_and_is_smaller() {
        let own = std::env::current_exe().unwrap();
        let whole = fs::read(&own).unwrap();
        let stripped = strip(whole.clone());
        assert!(stripped.len() < whole.len() / 2, "{} of {}", stripped.len(), whole.len());
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join("copy");
        fs::write(&copy, stripped).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        let listed = Command::new(&copy).arg("--list").output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("a_stripped_program_runs"));
    }

    #[test]
    fn other_files_are_not_changed() {
        for text in [b"#!/bin/sh".to_vec(), b"\x7fELF\x02\x01".to_vec(), vec![0; 64], Vec::new()] {
            assert_eq!(strip(text.clone()), text);
        }
    }

    #[test]
    fn files_that_the_servers_user_cannot_read_are_not_loaded() {
        if !rustix::process::geteuid().is_root() {
            return skip::skip("libraries that root alone can read: this test does not run as root");
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = place.path().join("copy");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(libraries_of_all(std::slice::from_ref(&copy)).unwrap().is_empty());
        let error = libraries(&copy).unwrap_err().to_string();
        assert!(error.contains("servers run as can't read it; make it readable"), "{error}");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!libraries(&copy).unwrap().is_empty(), "it is root's");
    }

    #[test]
    fn libraries_are_those_of_the_dynamic_linker() {
        let all = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(all.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{all:?}");
        assert!(all.iter().any(|path| path.to_string_lossy().contains("ld-linux")), "{all:?}");
        let own = std::env::current_exe().unwrap();
        assert_eq!(libraries_of_all(&[own.clone(), own]).unwrap(), all);
        assert!(libraries_of_all(&[]).unwrap().is_empty());
    }
}
