//! The frames of a trace, and its end.
//!
//! The end is a skippable frame (RFC 8878, 3.1.2), which `zstd` ignores: its magic number and size, then `pgdyno trace`, the
//! version, the place of the last line's frame, and the SHA-256 of everything before the end.

use std::io::{self, Read, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::format::VERSION;

/// Bytes of a frame before compression, about.
const FRAME_BYTES: usize = 1 << 20;
/// zstd's default level.
const LEVEL: i32 = 3;

const SKIPPABLE: u32 = 0x184d_2a50;
const NAME: &[u8; 12] = b"pgdyno trace";
const SUM_BYTES: usize = 32;
const CONTENT_BYTES: usize = NAME.len() + 4 + 8 + SUM_BYTES;
/// Length of the end.
pub(super) const END_BYTES: usize = 8 + CONTENT_BYTES;

/// Writes lines as frames.
pub(super) struct FrameWriter<W> {
    out: W,
    sum: Sha256,
    /// Bytes written.
    pub(super) at: u64,
    frame: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, sum: Sha256::new(), at: 0, frame: Vec::with_capacity(FRAME_BYTES) }
    }

    /// Whether the current frame is long enough.
    pub(super) fn is_full(&self) -> bool {
        self.frame.len() >= FRAME_BYTES
    }

    pub(super) fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.frame, line)?;
        self.frame.push(b'\n');
        Ok(())
    }

    /// Ends the current frame, if it has lines.
    pub(super) fn end_frame(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(self.frame.len() as u64))?;
        encoder.write_all(&self.frame)?;
        let compressed = encoder.finish()?;
        self.frame.clear();
        self.write(&compressed)
    }

    /// Writes the end. `last` is the place of the last line's frame.
    pub(super) fn finish(mut self, last: u64) -> io::Result<(W, u64)> {
        self.end_frame()?;
        let sum = self.sum.finalize();
        let mut end = Vec::with_capacity(END_BYTES);
        end.extend_from_slice(&SKIPPABLE.to_le_bytes());
        end.extend_from_slice(&(CONTENT_BYTES as u32).to_le_bytes());
        end.extend_from_slice(NAME);
        end.extend_from_slice(&VERSION.to_le_bytes());
        end.extend_from_slice(&last.to_le_bytes());
        end.extend_from_slice(&sum);
        self.out.write_all(&end)?;
        Ok((self.out, self.at + END_BYTES as u64))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

/// The end of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) version: u32,
    /// Place of the last line's frame.
    pub(super) last: u64,
    pub(super) sum: [u8; SUM_BYTES],
}

impl End {
    /// Parses the end of a file.
    pub(super) fn parse(bytes: &[u8; END_BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&SKIPPABLE.to_le_bytes())?;
        let rest = rest.strip_prefix(&(CONTENT_BYTES as u32).to_le_bytes())?;
        let rest = rest.strip_prefix(NAME)?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (last, sum) = rest.split_first_chunk::<8>()?;
        Some(Self {
            version: u32::from_le_bytes(*version),
            last: u64::from_le_bytes(*last),
            sum: sum.try_into().ok()?,
        })
    }
}

/// SHA-256 of what is read.
pub(super) fn sum(mut reader: impl Read) -> io::Result<[u8; SUM_BYTES]> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(sum.finalize().into()),
            count => sum.update(&buffer[..count]),
        }
    }
}
