//! Copying the data of a base backup into a new data directory.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use tar::{Archive, EntryType};

use super::Form;
use crate::error::Error;
use host::files::open_regular;
use host::{IoContext, Progress, check_interrupted};

/// What a data directory's own files are, apart from settings, access rules, keys, logs, and the state of a standby.
const DATA: [&str; 21] = [
    "PG_VERSION",
    "backup_label",
    "base",
    "global",
    "pg_clog",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_logical",
    "pg_multixact",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal",
    "pg_xact",
    "pg_xlog",
];
/// Directories whose content belongs to a running server, or to its standbys, and is not taken over.
const TRANSIENT: [&str; 7] =
    ["pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"];
/// Directories of the WAL, the second up to PostgreSQL 9.6.
const WAL: [&str; 2] = ["pg_wal", "pg_xlog"];
/// Mode of the files of a data directory.
const FILE_MODE: u32 = 0o600;

/// Copies the data of a base backup into the empty directory `data`.
///
/// # Errors
/// A file can't be copied, or is not one of a base backup; the user wants to stop.
pub(crate) fn unpack(backup: &Path, data: &Path, what: &str, progress: &dyn Progress) -> Result<(), Error> {
    let mut target = Target { backup, data, what, progress, done: 0 };
    match Form::of(backup)? {
        Form::Plain => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = openat(CWD, backup, flags, Mode::empty()).doing("open", backup)?;
            target.copy_tree(&opened, Path::new(""))
        }
        Form::Tar { base, wal } => {
            target.unpack_archive(&base, Path::new(""))?;
            let directory = if data.join("pg_xlog").is_dir() { "pg_xlog" } else { "pg_wal" };
            wal.map_or(Ok(()), |wal| target.unpack_archive(&wal, Path::new(directory)))
        }
    }
}

/// Opens an archive, which may be compressed.
pub(super) fn open(path: &Path) -> Result<Archive<Box<dyn Read>>, Error> {
    let file = BufReader::with_capacity(1 << 20, open_regular(path).doing("read", path)?);
    Ok(Archive::new(match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => Box::new(MultiGzDecoder::new(file)),
        Some("zst") => Box::new(zstd::Decoder::with_buffer(file).doing("decompress", path)?),
        _ => Box::new(file) as Box<dyn Read>,
    }))
}

struct Target<'a> {
    backup: &'a Path,
    data: &'a Path,
    what: &'a str,
    progress: &'a dyn Progress,
    /// Bytes written.
    done: u64,
}

impl Target<'_> {
    /// Copies what is below an open directory, whose path in the data directory is `path`. What is opened is checked, so that
    /// somebody who changes the backup meanwhile leads nowhere else.
    fn copy_tree(&mut self, from: &OwnedFd, path: &Path) -> Result<(), Error> {
        let place = self.backup.join(path);
        for entry in Dir::read_from(from).doing("read the directory", &place)? {
            let entry = entry.doing("read the directory", &place)?;
            let name = entry.file_name().to_bytes();
            let path = path.join(OsStr::from_bytes(name));
            if matches!(name, b"." | b"..") || !is_data(&path) {
                continue;
            }
            let from_place = self.backup.join(&path);
            // WAL may have a place of its own.
            let is_wal = WAL.iter().any(|wal| path == Path::new(wal));
            let link = if is_wal { OFlags::DIRECTORY } else { OFlags::NOFOLLOW };
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | link;
            let opened = match openat(from, entry.file_name(), flags, Mode::empty()) {
                // A link, a socket or, of WAL, a file.
                Err(Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => return Err(self.irregular(&path)),
                opened => opened.doing("read", &from_place)?,
            };
            match FileType::from_raw_mode(fstat(&opened).doing("inspect", &from_place)?.st_mode) {
                FileType::Directory => {
                    self.directory(&path)?;
                    self.copy_tree(&opened, &path)?;
                }
                FileType::RegularFile => self.file(&path, &mut File::from(opened))?,
                _ => return Err(self.irregular(&path)),
            }
        }
        Ok(())
    }

    /// Unpacks an archive of the directory whose path in the data directory is `below`.
    fn unpack_archive(&mut self, archive: &Path, below: &Path) -> Result<(), Error> {
        let damaged = |error: io::Error| Error::BaseBackup {
            directory: self.backup.to_owned(),
            why: format!("{} is truncated or damaged ({error}); take the backup again", archive.display()),
        };
        for entry in open(archive)?.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            let name = entry.path().map_err(damaged)?.into_owned();
            let mut path = below.to_owned();
            for part in name.components() {
                match part {
                    Component::Normal(part) => path.push(part),
                    Component::CurDir => {}
                    _ => return Err(self.irregular(&name)),
                }
            }
            if path.as_os_str().is_empty() || !is_data(&path) {
                continue;
            }
            match entry.header().entry_type() {
                EntryType::Directory => self.directory(&path)?,
                EntryType::Regular => self.file(&path, &mut entry)?,
                _ => return Err(self.irregular(&path)),
            }
        }
        Ok(())
    }

    fn directory(&self, path: &Path) -> Result<(), Error> {
        let to = self.data.join(path);
        if !to.is_dir() {
            fs::create_dir(&to).doing("create the directory", &to)?;
            fs::set_permissions(&to, Permissions::from_mode(0o700)).doing("close to others", &to)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, from: &mut impl Read) -> Result<(), Error> {
        check_interrupted(self.progress)?;
        self.progress.step(self.what, self.done, None);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.directory(parent)?;
        }
        let to = self.data.join(path);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&to).doing("write", &to)?;
        self.done += io::copy(from, &mut file).doing("copy to", &to)?;
        Ok(())
    }

    fn irregular(&self, path: &Path) -> Error {
        Error::BaseBackup {
            directory: self.backup.to_owned(),
            why: format!(
                "{} is neither a file nor a directory; pgdyno follows no links in a base backup",
                path.display()
            ),
        }
    }
}

/// Whether a path in a data directory is taken over.
fn is_data(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    match parts.split_first() {
        Some((first, [])) => DATA.contains(first),
        Some((first, below)) if WAL.contains(first) => is_wal(below),
        Some((first, _)) => DATA.contains(first) && !TRANSIENT.contains(first),
        None => false,
    }
}

/// Whether a path below the directory of the WAL is one of PostgreSQL's: that directory may be a link to any other.
///
/// Source: PostgreSQL's `xlog_internal.h`, `xlogarchive.c` and `walsummary.c`.
fn is_wal(path: &[&str]) -> bool {
    match path {
        ["archive_status" | "summaries"] => true,
        ["archive_status", name] => {
            name.strip_suffix(".ready").or(name.strip_suffix(".done")).is_some_and(is_wal_file)
        }
        ["summaries", name] => name.strip_suffix(".summary").is_some_and(|range| is_hexadecimal(range, 40)),
        [name] => is_wal_file(name),
        _ => false,
    }
}

/// Whether a name is that of a segment, of the history of a timeline, or of that of a backup.
fn is_wal_file(name: &str) -> bool {
    match name.split_once('.') {
        None => is_hexadecimal(name, 24),
        Some((segment, "partial")) => is_hexadecimal(segment, 24),
        Some((timeline, "history")) => is_hexadecimal(timeline, 8),
        Some((segment, rest)) => {
            let offset = rest.strip_suffix(".backup");
            is_hexadecimal(segment, 24) && offset.is_some_and(|offset| is_hexadecimal(offset, 8))
        }
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_data_are_taken_over() {
        for path in [
            "PG_VERSION",
            "base/5/1234",
            "pg_replslot",
            "global/pg_control",
            "pg_wal/archive_status",
            "pg_wal/summaries",
            "pg_wal/000000010000000A000000FE",
            "pg_xlog/000000010000000A000000FE.partial",
            "pg_wal/00000002.history",
            "pg_wal/000000010000000A000000FE.00000028.backup",
            "pg_wal/archive_status/000000010000000A000000FE.ready",
            "pg_wal/archive_status/00000002.history.done",
            "pg_wal/archive_status/000000010000000A000000FE.00000028.backup.done",
            "pg_wal/summaries/0000000100000000010000280000000001000120.summary",
        ] {
            assert!(is_data(Path::new(path)), "{path}");
        }
        for path in [
            "postgresql.conf",
            "postgresql.auto.conf",
            "pg_hba.conf",
            "standby.signal",
            "recovery.signal",
            "recovery.conf",
            "server.key",
            "pg_replslot/standby/state",
            "backup_manifest",
            "log/x",
            "pg_wal/id_rsa",
            "pg_wal/000000010000000a000000fe",
            "pg_wal/000000010000000A000000FE.backup",
            "pg_wal/000000010000000A000000FE/x",
            "pg_wal/archive_status/x.ready",
            "pg_wal/summaries/x.summary",
            "pg_wal/base/5/1234",
        ] {
            assert!(!is_data(Path::new(path)), "{path}");
        }
    }

    /// A base backup as far as copying it goes, and an empty directory for the copy.
    fn backup() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (backup, data) = (place.path().join("backup"), place.path().join("data"));
        fs::create_dir_all(backup.join("base/5")).unwrap();
        fs::create_dir(&data).unwrap();
        fs::write(backup.join("PG_VERSION"), "18\n").unwrap();
        fs::write(backup.join("base/5/1234"), "table").unwrap();
        (place, backup, data)
    }

    #[test]
    fn of_a_linked_directory_only_wal_is_copied() {
        let (place, backup, data) = backup();
        let wal = place.path().join("wal");
        fs::create_dir_all(wal.join("archive_status")).unwrap();
        let segment = "000000010000000000000001";
        fs::write(wal.join(segment), "segment").unwrap();
        fs::write(wal.join(format!("archive_status/{segment}.done")), "").unwrap();
        fs::write(wal.join("id_rsa"), "secret").unwrap();
        fs::create_dir(wal.join("keys")).unwrap();
        fs::write(wal.join("keys/000000010000000000000002"), "secret").unwrap();
        symlink(&wal, backup.join("pg_wal")).unwrap();
        unpack(&backup, &data, "test", &host::NoProgress).unwrap();
        assert_eq!(fs::read(data.join("base/5/1234")).unwrap(), b"table");
        assert_eq!(fs::read(data.join("pg_wal").join(segment)).unwrap(), b"segment");
        assert_eq!(fs::read_dir(data.join("pg_wal")).unwrap().count(), 2, "the segment and archive_status");
        assert_eq!(fs::read_dir(data.join("pg_wal/archive_status")).unwrap().count(), 1);
    }

    #[test]
    fn links_and_fifos_are_refused_wherever_they_are() {
        let fifo = |path: &Path| {
            rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        };
        for name in ["base/5/1", "base/6", "pg_wal", "PG_VERSION"] {
            for is_link in [true, false] {
                let (place, backup, data) = backup();
                let secret = place.path().join("secret");
                fs::write(&secret, "secret").unwrap();
                let path = backup.join(name);
                let _ = fs::remove_file(&path);
                if is_link {
                    symlink(&secret, &path).unwrap()
                } else {
                    fifo(&path)
                }
                // What has no version is no base backup, which is checked before.
                let form = Form::of(&backup);
                let what = format!("{name}, {is_link}");
                match form {
                    Ok(Form::Plain) => {
                        let error = unpack(&backup, &data, "test", &host::NoProgress).unwrap_err();
                        assert!(error.to_string().contains("follows no links"), "{what}: {error}");
                    }
                    form => assert!(form.is_err() && name == "PG_VERSION", "{what}: {form:?}"),
                }
                assert!(!data.join(name).exists(), "{what}");
            }
        }
    }
}
