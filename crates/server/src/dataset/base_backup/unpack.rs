//! Copying the data of a base backup into a new data directory.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::Form;
use crate::error::Error;
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
/// Mode of the files of a data directory.
const FILE_MODE: u32 = 0o600;

/// Copies the data of a base backup into the empty directory `data`.
///
/// # Errors
/// A file can't be copied, or is not one of a base backup; the user wants to stop.
pub(crate) fn unpack(backup: &Path, data: &Path, what: &str, progress: &dyn Progress) -> Result<(), Error> {
    let mut target = Target { backup, data, what, progress, done: 0 };
    match Form::of(backup)? {
        Form::Plain => target.copy_tree(backup, Path::new("")),
        Form::Tar { base, wal } => {
            target.unpack_archive(&base, Path::new(""))?;
            let directory = if data.join("pg_xlog").is_dir() { "pg_xlog" } else { "pg_wal" };
            wal.map_or(Ok(()), |wal| target.unpack_archive(&wal, Path::new(directory)))
        }
    }
}

/// Opens an archive, which may be compressed.
pub(super) fn open(path: &Path) -> Result<Archive<Box<dyn Read>>, Error> {
    let file = BufReader::with_capacity(1 << 20, File::open(path).doing("read", path)?);
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
    /// Copies what is below a directory, whose path in the data directory is `path`.
    fn copy_tree(&mut self, from: &Path, path: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(from).doing("read the directory", from)? {
            let entry = entry.doing("read the directory", from)?;
            let path = path.join(entry.file_name());
            if !is_data(&path) {
                continue;
            }
            let from = entry.path();
            // WAL may have a place of its own.
            let is_wal = ["pg_wal", "pg_xlog"].iter().any(|wal| path == Path::new(wal));
            let meta = if is_wal { fs::metadata(&from) } else { fs::symlink_metadata(&from) };
            let meta = meta.doing("inspect", &from)?;
            if meta.is_dir() {
                self.directory(&path)?;
                self.copy_tree(&from, &path)?;
            } else if meta.is_file() {
                let mut file = File::open(&from).doing("read", &from)?;
                self.file(&path, &mut file)?;
            } else {
                return Err(self.irregular(&path));
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
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let first = parts.next().unwrap_or_default();
    DATA.contains(&first.as_ref()) && (parts.next().is_none() || !TRANSIENT.contains(&first.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_are_taken_over() {
        for path in
            ["PG_VERSION", "base/5/1234", "pg_replslot", "global/pg_control", "pg_wal/archive_status/x"]
        {
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
        ] {
            assert!(!is_data(Path::new(path)), "{path}");
        }
    }
}
