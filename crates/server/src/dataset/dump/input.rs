//! The SQL of a dump as lines: of a file, also compressed, or of an archive by way of `pg_restore`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use model::secret::mask;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::process::Signal;

use crate::error::Error;
use crate::programs::installation::Installation;
use host::files::{open_regular, open_regular_at};
use host::process::{last_lines, spawn};
use host::{Cache, IoContext, Progress, Scratch, ServerUser, check_interrupted};

/// Size of the read buffer, and of the largest piece of a line of data.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes that show a file's format: up to the magic word of tar.
const HEAD_BYTES: usize = 512;
/// Lines of `pg_restore`'s messages in an error.
const MESSAGE_LINES: usize = 3;
/// The program that reads archives.
const PG_RESTORE: &str = "pg_restore";

/// Format of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// SQL.
    Plain,
    /// SQL, compressed.
    Gzip,
    /// SQL, compressed.
    Zstd,
    /// The format `custom`, `directory` or `tar`, which `pg_restore` turns into SQL.
    Archive,
}

impl Format {
    /// Format of a file or directory, by its content.
    ///
    /// # Errors
    /// It is no dump, or compressed in a way that pgdyno does not read.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return match path.join("toc.dat").is_file() {
                true => Ok(Self::Archive),
                false => Err(not_a_dump(
                    path,
                    "a directory without toc.dat, the table of contents that pg_dump writes",
                )),
            };
        }
        let mut head = Vec::new();
        File::open(path)
            .and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head))
            .doing("read", path)?;
        match head.as_slice() {
            [] => Err(not_a_dump(path, "empty")),
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Self::Zstd),
            [b'P', b'G', b'D', b'M', b'P', ..] => Ok(Self::Archive),
            _ if head.starts_with(b"toc.dat\0")
                && head.get(257..).is_some_and(|magic| magic.starts_with(b"ustar")) =>
            {
                Ok(Self::Archive)
            }
            [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] | [0x04, 0x22, 0x4d, 0x18, ..] => {
                Err(not_a_dump(
                    path,
                    "compressed by bzip2, xz or lz4, which pgdyno does not read; decompress it",
                ))
            }
            _ if head.contains(&0) => Err(not_a_dump(path, "a binary file, but no archive of pg_dump")),
            _ => Ok(Self::Plain),
        }
    }

    /// Checks that a dump can be read here, as far as its beginning shows.
    ///
    /// # Errors
    /// It can't.
    pub(crate) fn check(path: &Path, programs: Option<&Installation>) -> Result<(), Error> {
        if Self::of(path)? == Self::Archive {
            pg_restore(programs).map(drop)?;
        }
        Ok(())
    }
}

fn not_a_dump(path: &Path, why: &str) -> Error {
    Error::Dump {
        path: path.to_owned(),
        why: format!(
            "it is {why}; expected what pg_dump writes: SQL, as it is or compressed by gzip or zstd, or an archive"
        ),
    }
}

/// The lines of a dump.
pub(super) struct Input<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead>,
    /// Bytes read from the file; of an archive, of its SQL.
    read: Rc<Cell<u64>>,
    /// Size of the file; none for an archive.
    pub(super) bytes: Option<u64>,
    /// Number of lines read.
    pub(super) line: u64,
    archive: Option<Archive>,
}

/// `pg_restore` at work.
struct Archive {
    child: Child,
    messages: File,
    _copy: Option<Scratch>,
}

impl<'a> Input<'a> {
    /// Opens a dump. `pg_restore` is the one next to the server's programs, or in `PATH`.
    pub(super) fn open(
        path: &'a Path,
        programs: Option<&Installation>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let format = Format::of(path)?;
        let read = Rc::new(Cell::new(0));
        let counted = |inner| Counted { inner, read: Rc::clone(&read) };
        let buffered = |inner| BufReader::with_capacity(BUFFER_BYTES, inner);
        let mut archive = None;
        let mut bytes = None;
        let reader: Box<dyn BufRead> = if format == Format::Archive {
            let (started, output) = Archive::start(path, programs, progress)?;
            archive = Some(started);
            Box::new(buffered(counted(output)))
        } else {
            let file = File::open(path).doing("read", path)?;
            bytes = Some(file.metadata().doing("inspect", path)?.len());
            let file = counted(Box::new(file) as Box<dyn Read>);
            match format {
                Format::Gzip => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))),
                Format::Zstd => {
                    let decoder = zstd::Decoder::new(file).doing("decompress", path)?;
                    Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
                }
                _ => Box::new(buffered(file)),
            }
        };
        Ok(Self { path, reader, read, bytes, line: 0, archive })
    }

    /// Bytes read so far, of the file or of an archive's SQL.
    pub(super) fn done(&self) -> u64 {
        self.read.get()
    }

    /// Place of a line, for messages.
    pub(super) fn place(&self, line: u64) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        match self.archive {
            None => format!("{name}:{line}"),
            Some(_) => format!("{name}, line {line} of its SQL"),
        }
    }

    /// Appends the next line, with its end; false at the end of the dump.
    pub(super) fn read_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        match self.reader.read_until(b'\n', line) {
            Ok(0) => Ok(false),
            Ok(_) => {
                self.line += 1;
                Ok(true)
            }
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// Replaces `piece` with the next line of data, or a part of a long one. Empty at the end of the dump.
    pub(super) fn read_piece(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        piece.clear();
        self.reader.by_ref().take(BUFFER_BYTES as u64).read_until(b'\n', piece)?;
        self.line += u64::from(piece.ends_with(b"\n"));
        Ok(())
    }

    /// Error of a dump whose file can't be read on.
    pub(super) fn unreadable(&self, error: &io::Error) -> Error {
        let why = match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                format!(
                    "it is truncated or damaged, after line {} ({error}); dump the database again",
                    self.line
                )
            }
            _ => format!("it could not be read: {error}"),
        };
        Error::Dump { path: self.path.to_owned(), why }
    }

    /// Error of a dump that ends too early.
    pub(super) fn truncated(&mut self) -> Error {
        // pg_restore's own error is the reason.
        self.check_archive().err().unwrap_or_else(|| Error::Dump {
            path: self.path.to_owned(),
            why: format!("it is truncated, after line {}; dump the database again", self.line),
        })
    }

    /// Waits for `pg_restore`, which has written everything.
    ///
    /// # Errors
    /// It failed.
    pub(super) fn check_archive(&mut self) -> Result<(), Error> {
        let Some(archive) = &mut self.archive else { return Ok(()) };
        let status = archive.child.wait().doing("wait for pg_restore on", self.path)?;
        if status.success() {
            return Ok(());
        }
        let mut text = String::new();
        let _ = archive.messages.seek(SeekFrom::Start(0));
        let _ = archive.messages.read_to_string(&mut text);
        let advice = match text.contains("unsupported version") {
            true => {
                "; it was made by a newer pg_dump: install that release's programs (Debian: postgresql-client-18)"
            }
            false => "",
        };
        let why =
            format!("pg_restore failed ({status}): {}{advice}", mask(&last_lines(&text, MESSAGE_LINES)));
        Err(Error::Dump { path: self.path.to_owned(), why })
    }
}

impl Archive {
    /// Starts `pg_restore` as the server's user, as it may be somebody else's program, and what an archive names may be a file of
    /// root; returns its output, too. Files that only root can read are passed on open, those of a directory as a copy.
    fn start(
        path: &Path,
        programs: Option<&Installation>,
        progress: &dyn Progress,
    ) -> Result<(Self, Box<dyn Read>), Error> {
        let program = pg_restore(programs)?;
        let user = ServerUser::choose()?;
        if let (false, Some(name)) = (user.can_reach(&program), user.name()) {
            let why = format!(
                "the user \"{name}\", who runs pg_restore when pgdyno is root, can't reach {}; install it where every user can \
                 run it (Debian: apt-get install postgresql-client)",
                program.display()
            );
            return Err(Error::Dump { path: path.to_owned(), why });
        }
        let messages = tempfile::tempfile().doing("create a file in", &std::env::temp_dir())?;
        let mut command = Command::new(&program);
        // Without the user's PG* variables; owners and privileges are restored as by a plain dump.
        command.env_clear().env("LC_ALL", "C");
        command.envs(["PATH", "TMPDIR"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.args(["-f", "-"]).current_dir("/");
        user.apply_to(&mut command);
        let path = fs::canonicalize(path).doing("find", path)?;
        let mut copy = None;
        if !path.is_dir() {
            command.stdin(open_regular(&path).doing("read", &path)?);
        } else if user.run_as(|| is_readable(&path))? {
            command.stdin(Stdio::null()).arg(&path);
        } else {
            let scratch = Scratch::new(&Cache::open()?)?;
            command.stdin(Stdio::null()).arg(copy_for(&user, &path, scratch.path(), progress)?);
            copy = Some(scratch);
        }
        let stderr = messages.try_clone().doing("create a file in", &std::env::temp_dir())?;
        command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = spawn(command, Signal::KILL).doing("run", &program)?;
        let output: Box<dyn Read> = match child.stdout.take() {
            Some(output) => Box::new(output),
            None => Box::new(io::empty()),
        };
        Ok((Self { child, messages, _copy: copy }, output))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether all files of a directory can be read.
fn is_readable(directory: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(directory) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| open_regular(&entry.path()).is_ok()))
}

/// Copies the files of a directory into a new one below `into` that belongs to the server's user. Returns the copy.
fn copy_for(user: &ServerUser, from: &Path, into: &Path, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let what = format!("copying {} for pg_restore", from.display());
    let copy = into.join("archive");
    fs::create_dir(&copy).doing("create the directory", &copy)?;
    let mut done = 0;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(CWD, from, flags, Mode::empty()).doing("open", from)?;
    for entry in Dir::read_from(&opened).doing("read the directory", from)? {
        check_interrupted(progress)?;
        progress.step(&what, done, None);
        let entry = entry.doing("read the directory", from)?;
        let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let (from, to) = (from.join(name), copy.join(name));
        let mut file = open_regular_at(&opened, name).doing("read", &from)?;
        let mut to_file = File::create_new(&to).doing("write", &to)?;
        done += io::copy(&mut file, &mut to_file).doing("copy to", &to)?;
        user.chown(&to)?;
    }
    // Last, so that its processes change nothing meanwhile.
    user.chown(&copy)?;
    let close = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("restrict access to", path)
    };
    close(&copy, 0o700)?;
    close(into, 0o711)?;
    Ok(copy)
}

fn pg_restore(programs: Option<&Installation>) -> Result<PathBuf, Error> {
    let own = programs.map(|programs| programs.program(PG_RESTORE)).filter(|program| program.is_file());
    own.or_else(|| host::tools::find(PG_RESTORE)).ok_or(Error::NoPgRestore)
}

/// A reader that counts.
struct Counted<R> {
    inner: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Programs of somebody else: their `pg_restore` prints the user that runs it, and what it is given.
    fn programs(place: &Path) -> Installation {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        let print = "id -u; case $3 in '') cat ;; *) cat \"$3\"/*.dat ;; esac";
        for (name, command) in [
            ("postgres", "echo 'postgres (PostgreSQL) 18.0'"),
            ("initdb", ""),
            ("pg_ctl", ""),
            (PG_RESTORE, print),
        ] {
            fs::write(place.join(name), format!("#!/bin/sh\n{command}\n")).unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        crate::programs::in_place::in_place(&Cache::open().unwrap(), place).unwrap()
    }

    /// What `pg_restore` prints for an archive, in lines.
    fn lines(archive: &Path, programs: &Installation) -> Result<Vec<String>, Error> {
        let mut input = Input::open(archive, Some(programs), &host::NoProgress)?;
        let mut text = Vec::new();
        while input.read_line(&mut text)? {}
        input.check_archive()?;
        Ok(String::from_utf8(text).unwrap().lines().map(str::to_owned).collect())
    }

    #[test]
    fn archives_that_only_their_owner_can_read_are_read_as_the_servers_user() {
        let place = tempfile::tempdir().unwrap();
        let programs = programs(place.path());
        let user = ServerUser::choose().unwrap().uid().to_string();
        let private = place.path().join("private");
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
        let file = private.join("custom");
        fs::write(&file, "PGDMP\n").unwrap();
        assert_eq!(lines(&file, &programs).unwrap(), [&*user, "PGDMP"]);

        let directory = private.join("directory");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("toc.dat"), "PGDMP\n").unwrap();
        fs::write(directory.join("1.dat"), "data\n").unwrap();
        assert_eq!(lines(&directory, &programs).unwrap(), [&*user, "data", "PGDMP"]);
        fs::set_permissions(&private, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(lines(&directory, &programs).unwrap(), [&*user, "data", "PGDMP"], "without a copy");
    }

    #[test]
    fn a_link_in_an_archive_leads_to_no_file_that_only_root_can_read() {
        if !rustix::process::geteuid().is_root() {
            return skip::skip("archives that root reads: this test does not run as root");
        }
        let place = tempfile::tempdir().unwrap();
        let programs = programs(place.path());
        let (directory, secret) = (place.path().join("directory"), place.path().join("secret"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("toc.dat"), "PGDMP\n").unwrap();
        fs::write(&secret, "secret\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&secret, directory.join("1.dat")).unwrap();
        let error = lines(&directory, &programs).unwrap_err().to_string();
        assert!(error.contains("1.dat") && !error.contains("secret"), "{error}");
    }
}
