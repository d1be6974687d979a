//! Copying the content of large files, with several threads and, if possible, bypassing the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rustix::fs::FallocateFlags;

use crate::error::Error;
use host::IoContext;
use host::{Progress, check_interrupted};

/// Unit of work of a thread, small enough that all end together.
const PIECE_BYTES: u64 = 64 << 20;
/// Size of a read and a write.
const CHUNK_BYTES: usize = 4 << 20;
/// Alignment that `O_DIRECT` requires of offsets, lengths and memory: at most this, on any file system.
const ALIGNMENT: usize = 4096;
/// Two threads were one and a half times as fast as one, on a machine with two processors.
const MAX_THREADS: usize = 4;

/// A file whose content is copied into another, existing one.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) bytes: u64,
}

/// Reserves the space that a file will need, so that a full disk is detected immediately, if the file system supports
/// it.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Copies; progress is reported in bytes, as the step `what`. On return all is written to disk, if the system can
/// report that.
///
/// # Errors
/// A file can't be read or written; the user wants to stop.
pub(crate) fn copy_blocks(jobs: &[Job], what: &str, progress: &dyn Progress) -> Result<(), Error> {
    let pieces: Vec<(&Job, u64)> = jobs
        .iter()
        .flat_map(|job| (0..job.bytes.div_ceil(PIECE_BYTES)).map(move |piece| (job, piece * PIECE_BYTES)))
        .collect();
    let total = jobs.iter().map(|job| job.bytes).sum();
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let mut memory = Vec::new();
        let buffer = aligned(&mut memory, CHUNK_BYTES);
        while let Some((job, start)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = job.piece(*start, buffer, &mut |bytes| {
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                progress.step(what, done, Some(total));
                Ok(check_interrupted(progress)?)
            });
            if outcome.is_err() {
                // Stops the others as well.
                next.store(pieces.len(), Ordering::Relaxed);
                return outcome;
            }
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(pieces.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // All are joined; the first failure is returned.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .fold(Ok(()), Result::and)
    })
}

/// A part of `memory` of so many bytes, aligned for `O_DIRECT`.
pub(crate) fn aligned(memory: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    memory.resize(bytes + ALIGNMENT, 0);
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    &mut memory[start..start + bytes]
}

impl Job {
    /// Copies the piece that begins at an offset.
    fn piece(
        &self,
        start: u64,
        buffer: &mut [u8],
        copied: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.bytes.is_multiple_of(ALIGNMENT as u64) {
            match self.range(start, libc::O_DIRECT, buffer, copied) {
                // This file system does not support it.
                Err(Error::Host(host::Error::File { source, .. }))
                    if source.kind() == ErrorKind::InvalidInput => {}
                outcome => return outcome,
            }
        }
        self.range(start, 0, buffer, copied)
    }

    fn range(
        &self,
        start: u64,
        flags: i32,
        buffer: &mut [u8],
        copied: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut options = OpenOptions::new();
        options.custom_flags(flags);
        let source = options.read(true).open(&self.from).doing("read", &self.from)?;
        let copy = options
            .read(false)
            .write(true)
            .custom_flags(flags | libc::O_NOFOLLOW)
            .open(&self.to)
            .doing("write", &self.to)?;
        let end = self.bytes.min(start + PIECE_BYTES);
        let mut at = start;
        while at < end {
            let wanted = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let bytes = match source.read_at(&mut buffer[..wanted], at).doing("read", &self.from)? {
                0 => return Ok(Err(io::Error::from(ErrorKind::UnexpectedEof)).doing("read", &self.from)?),
                bytes => bytes,
            };
            copy.write_all_at(&buffer[..bytes], at).doing("write", &self.to)?;
            at += bytes as u64;
            copied(bytes as u64)?;
        }
        write_back(&copy, start, end - start);
        Ok(())
    }
}

/// Waits until a range is on disk; immediate if it bypassed the page cache. If the kernel or the file system can't do
/// this, it is left to them.
fn write_back(file: &File, start: u64, bytes: u64) {
    let flags = libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: only the file descriptor is used, which lives as long as `file`.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), start as libc::off64_t, bytes as libc::off64_t, flags);
    }
}
