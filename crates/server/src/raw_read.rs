//! Speed of the disk for a relation's files, without the server: the control for scans.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::num::ParseIntError;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::record::RawRead;
use model::secret::is_secret_name;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use wire::quote_literal;

use crate::data::blocks::aligned;
use crate::error::Error;
use crate::limits::Group;
use crate::server::Server;
use host::files::open_regular;
use host::process::{enter_cgroups, spawn, withhold_variables};
use host::{IoContext, ServerUser};

/// Size of a read.
const CHUNK_BYTES: usize = 4 << 20;
/// Share of the bytes that the kernel must have read from the disk; the rest may be due to rounding.
const FROM_DISK_SHARE: f64 = 0.95;
/// Interval between checks for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reason that the process that reads a relation's files returned no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawReadError {
    /// Its output has no figures.
    #[error("its output is invalid: {0}")]
    Output(#[source] ParseIntError),
    /// It ended without output.
    #[error("{0}")]
    Exit(ExitStatus),
    /// It failed, with this error output.
    #[error("{0}")]
    Failed(String),
}

/// Reason that files could not be read from the disk.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system has no direct I/O.
    #[error("the file system of {file} does not support reads that bypass the page cache (O_DIRECT)")]
    NoDirectIo {
        /// A file on it.
        file: PathBuf,
    },
    /// A file can't be read.
    #[error("{file} can't be read: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The rights of the server's user can't be assumed.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The bytes did not come from a disk.
    #[error(
        "the kernel read only {from_disk} of {bytes} bytes from a disk: this file system stores the others elsewhere (as \
         tmpfs), or does not support reads that bypass the page cache"
    )]
    NotFromDisk {
        /// Bytes read.
        bytes: u64,
        /// Bytes that the kernel read from a disk meanwhile.
        from_disk: u64,
    },
}

/// Outcome of reading a relation without the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawReading {
    /// Figures of the disk, or why they can't be determined here.
    pub outcome: Result<RawRead, RawReadError>,
    /// Commits in the tested database for finding the files, including the connection's own.
    pub commits: u64,
}

impl Server {
    /// Reads the files of a relation of the tested database from the disk, one after the other, and leaves the page
    /// cache unchanged. A child process within the server's limits does it: `program` with `arguments`, which then
    /// calls [`read_files`] with the paths that follow.
    ///
    /// # Errors
    /// There is no such relation, or it has no files; the server does not answer; the user wants to stop.
    pub fn raw_read(
        &self,
        relation: &str,
        program: &Path,
        arguments: &[&str],
        interrupt: &AtomicBool,
    ) -> Result<RawReading, Error> {
        let (files, commits) = self.files_of(relation)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(&files)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        withhold_variables(&mut command, is_secret_name);
        let groups = self.group().map_or_else(|| Ok(Vec::new()), Group::procs_files)?;
        enter_cgroups(&mut command, groups);
        let mut child = spawn(command, Signal::KILL).doing("run", program)?;
        let status = wait_for_exit(&mut child, interrupt).doing("wait for", program)?;
        if interrupt.load(Ordering::Relaxed) {
            return Err(host::Error::Interrupted.into());
        }
        let (output, stderr) = (text(child.stdout.take()), text(child.stderr.take()));
        let outcome = match output.split_once(' ').filter(|_| status.success()) {
            Some((bytes, elapsed)) => bytes
                .parse()
                .and_then(|bytes| Ok((bytes, elapsed.trim().parse()?)))
                .map(|(bytes, elapsed_us)| RawRead { relation: relation.to_owned(), bytes, elapsed_us })
                .map_err(RawReadError::Output),
            None if stderr.trim().is_empty() => Err(RawReadError::Exit(status)),
            None => Err(RawReadError::Failed(stderr.trim().to_owned())),
        };
        Ok(RawReading { outcome, commits })
    }

    /// Segments of a relation's main fork, in order, and the commits of the query.
    ///
    /// Source: PostgreSQL manual, "Database File Layout".
    fn files_of(&self, relation: &str) -> Result<(Vec<PathBuf>, u64), Error> {
        let doing = format!("find the files of \"{relation}\"");
        let control = &self.control;
        let mut session = control.connect(crate::DATABASE)?;
        let query = format!("SELECT pg_relation_filepath({}::regclass)", quote_literal(relation));
        let first: Option<String> =
            session.query_one(&query).map_err(|error| control.error(&*doing, &error))?;
        let first = first.ok_or_else(|| control.failed(&*doing, "it has none".to_owned()))?;
        let first = self.data_directory().join(first);
        let mut files = vec![first.clone()];
        ServerUser::choose()?.run_as(|| {
            loop {
                let mut next = first.clone().into_os_string();
                next.push(format!(".{}", files.len()));
                match fs::symlink_metadata(&next) {
                    Ok(_) => files.push(next.into()),
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok((files, 2)),
                    Err(error) => Err(error).doing("inspect", Path::new(&next))?,
                }
            }
        })?
    }
}

/// Waits for a child, which is killed if the user wants to stop.
fn wait_for_exit(child: &mut Child, interrupt: &AtomicBool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.load(Ordering::Relaxed) {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// A short text, which fits into a pipe.
fn text(from: Option<impl Read>) -> String {
    let mut text = String::new();
    // An unreadable message counts as empty.
    let _ = from.map(|mut from| from.read_to_string(&mut text));
    text
}

/// Reads files from the disk to their ends, bypassing the page cache; returns the number of bytes, and the duration. They are
/// opened with the rights of the server's user, who may have put anything in their places.
///
/// # Errors
/// A file is not a regular one, or can't be read; or can't bypass the page cache; or the bytes did not come from a disk.
pub fn read_files(files: &[PathBuf]) -> Result<(u64, Duration), ReadError> {
    let user = ServerUser::choose()?;
    let mut memory = Vec::new();
    let buffer = aligned(&mut memory, CHUNK_BYTES);
    let (from_disk, start) = (bytes_from_disk(), Instant::now());
    let mut bytes = 0;
    for file in files {
        bytes += read_file(file, &user, buffer)?;
    }
    let elapsed = start.elapsed();
    let from_disk = from_disk.zip(bytes_from_disk()).map(|(before, after)| after.saturating_sub(before));
    match from_disk {
        Some(from_disk) if (from_disk as f64) < FROM_DISK_SHARE * bytes as f64 => {
            Err(ReadError::NotFromDisk { bytes, from_disk })
        }
        _ => Ok((bytes, elapsed)),
    }
}

fn read_file(path: &Path, user: &ServerUser, buffer: &mut [u8]) -> Result<u64, ReadError> {
    let failed = |source: io::Error| ReadError::Read { file: path.to_owned(), source };
    let not_direct = |source: io::Error| match source.kind() {
        ErrorKind::InvalidInput => ReadError::NoDirectIo { file: path.to_owned() },
        _ => failed(source),
    };
    let file = user.run_as(|| open_regular(path))?.map_err(failed)?;
    fcntl_setfl(&file, OFlags::DIRECT).map_err(|error| not_direct(error.into()))?;
    let length = file.metadata().map_err(failed)?.len();
    let mut at = 0;
    while at < length {
        match file.read_at(buffer, at).map_err(not_direct)? {
            0 => return Err(failed(ErrorKind::UnexpectedEof.into())),
            bytes => at += bytes as u64,
        }
    }
    Ok(at)
}

/// Bytes that block devices have read for this thread. Source: proc(5), `/proc/thread-self`, `/proc/pid/io`.
fn bytes_from_disk() -> Option<u64> {
    let io = fs::read_to_string("/proc/thread-self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_on_a_disk_have_no_rate() {
        let memory = Path::new("/dev/shm");
        let Ok(mut file) = tempfile::NamedTempFile::new_in(memory) else {
            return skip::skip("there is no /dev/shm to write to");
        };
        io::Write::write_all(&mut file, &vec![7; 1 << 20]).unwrap();
        ServerUser::choose().unwrap().chown(file.path()).unwrap();
        let why = read_files(&[file.path().to_owned()]).unwrap_err().to_string();
        assert!(why.contains("bypass the page cache"), "{why}");
        let why = read_files(&[memory.join("no such file")]).unwrap_err().to_string();
        assert!(why.contains("no such file"), "{why}");
    }
}
