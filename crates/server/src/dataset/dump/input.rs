//! The SQL of a dump as lines: of a file, also compressed, or of an archive by way of `pg_restore`.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use model::secret::mask;
use rustix::process::Signal;

use crate::error::Error;
use crate::programs::installation::Installation;
use host::IoContext;
use host::process::{last_lines, spawn};

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
}

impl<'a> Input<'a> {
    /// Opens a dump. `pg_restore` is the one next to the server's programs, or in `PATH`.
    pub(super) fn open(path: &'a Path, programs: Option<&Installation>) -> Result<Self, Error> {
        let format = Format::of(path)?;
        let read = Rc::new(Cell::new(0));
        let counted = |inner| Counted { inner, read: Rc::clone(&read) };
        let buffered = |inner| BufReader::with_capacity(BUFFER_BYTES, inner);
        let mut archive = None;
        let mut bytes = None;
        let reader: Box<dyn BufRead> = if format == Format::Archive {
            let (started, output) = Archive::start(path, programs)?;
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
    /// Starts `pg_restore`; returns its output, too.
    fn start(path: &Path, programs: Option<&Installation>) -> Result<(Self, Box<dyn Read>), Error> {
        let program = pg_restore(programs)?;
        let messages = tempfile::tempfile().doing("create a file in", &std::env::temp_dir())?;
        let mut command = Command::new(&program);
        // Without the user's PG* variables; owners and privileges are restored as by a plain dump.
        command.env_clear().env("LC_ALL", "C");
        command
            .envs(["PATH", "HOME", "TMPDIR"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.args(["-f", "-"]).arg(fs::canonicalize(path).doing("find", path)?);
        let stderr = messages.try_clone().doing("create a file in", &std::env::temp_dir())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = spawn(command, Signal::KILL).doing("run", &program)?;
        let output: Box<dyn Read> = match child.stdout.take() {
            Some(output) => Box::new(output),
            None => Box::new(io::empty()),
        };
        Ok((Self { child, messages }, output))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pg_restore(programs: Option<&Installation>) -> Result<std::path::PathBuf, Error> {
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
