//! The bytes of a log, decompressed, line by line.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use memchr::memchr;

/// Longest entry that is read. No server writes one: a statement has at most 1 GiB.
pub(crate) const MAX_ENTRY_BYTES: usize = 1 << 30;

/// Bytes that are read at once, at least.
const READ_BYTES: usize = 256 * 1024;

/// The lines of a log. It holds the lines since the last [`Input::consume`] and a part of what follows.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The bytes of the buffer that are read and not consumed.
    from: usize,
    to: usize,
    ended: bool,
    /// Whether the input ended before its format's end.
    is_cut: bool,
    /// The line last found: its start and end after `from`.
    found: Option<(usize, usize)>,
    /// Bytes read of the file.
    progress: Arc<AtomicU64>,
}

impl Input {
    /// Reads a stream, which may be compressed by gzip or zstd.
    pub(crate) fn new(reader: impl Read + Send + 'static) -> io::Result<Self> {
        let progress = Arc::new(AtomicU64::new(0));
        let mut reader = Counted { reader, count: Arc::clone(&progress) };
        let mut magic = [0; 4];
        let mut length = 0;
        while length < magic.len() {
            match reader.read(&mut magic[length..])? {
                0 => break,
                count => length += count,
            }
        }
        let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
        let is_zstd = magic == [0x28, 0xb5, 0x2f, 0xfd];
        let whole = io::Cursor::new(magic[..length].to_vec()).chain(reader);
        let reader: Box<dyn Read + Send> = if is_gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else if is_zstd {
            Box::new(zstd::stream::read::Decoder::new(whole)?)
        } else {
            Box::new(whole)
        };
        Ok(Self::of_decompressed(reader, progress))
    }

    fn of_decompressed(reader: Box<dyn Read + Send>, progress: Arc<AtomicU64>) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            from: 0,
            to: 0,
            ended: false,
            is_cut: false,
            found: None,
            progress,
        }
    }

    /// The same input through a filter.
    pub(crate) fn through<R: Read + Send + 'static>(
        self,
        filter: impl FnOnce(Box<dyn Read + Send>) -> R,
    ) -> Self {
        let buffered = self.buffer[self.from..self.to].to_vec();
        let reader: Box<dyn Read + Send> = Box::new(io::Cursor::new(buffered).chain(self.reader));
        Self::of_decompressed(Box::new(filter(reader)), self.progress)
    }

    /// Bytes read of the file, before decompression.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Whether a compressed input ended too early or is damaged.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The line that starts `start` bytes after what was consumed: its end, after its line break. Lines longer than an entry
    /// may be are cut.
    pub(crate) fn line(&mut self, start: usize) -> io::Result<Option<usize>> {
        if let Some((known, end)) = self.found
            && known == start
        {
            return Ok(Some(end));
        }
        let mut searched = start;
        loop {
            let available = self.to - self.from;
            if let Some(at) =
                memchr(b'\n', self.buffer.get(self.from + searched..self.to).unwrap_or_default())
            {
                let end = searched + at + 1;
                self.found = Some((start, end));
                return Ok(Some(end));
            }
            if self.ended || available >= MAX_ENTRY_BYTES {
                return Ok((available > start).then_some(available));
            }
            searched = available.max(start);
            self.fill()?;
        }
    }

    /// Bytes of the held lines.
    pub(crate) fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(self.from + from..self.from + to).unwrap_or_default()
    }

    /// Drops the first bytes of the held lines.
    pub(crate) fn consume(&mut self, length: usize) {
        self.from = (self.from + length).min(self.to);
        self.found = self.found.and_then(|(start, end)| Some((start.checked_sub(length)?, end - length)));
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.buffer.len() - self.to < READ_BYTES {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
            let size = self.buffer.len();
            if size - self.to < READ_BYTES {
                self.buffer.resize((size * 2).max(4 * READ_BYTES), 0);
            }
        }
        match self.reader.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.ended = true,
            Ok(count) => self.to += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_damage(&error) => {
                self.ended = true;
                self.is_cut = true;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Whether an error is that of compressed data, not of the file. zstd reports damage as `Other`.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput | Other)
        && error.raw_os_error().is_none()
}

/// A reader that counts its bytes.
struct Counted<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(input: &mut Input) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        while let Some(end) = input.line(0).unwrap() {
            lines.push(input.bytes(0, end).to_vec());
            input.consume(end);
        }
        lines
    }

    /// A reader of one byte at a time.
    struct Dripping(io::Cursor<Vec<u8>>);

    impl Read for Dripping {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let end = buffer.len().min(1);
            self.0.read(&mut buffer[..end])
        }
    }

    fn input(bytes: &[u8]) -> Input {
        Input::new(io::Cursor::new(bytes.to_vec())).unwrap()
    }

    #[test]
    fn compressed_logs_have_the_lines_of_plain_ones() {
        let plain = b"one\ntwo\n\nfour".repeat(1000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        // Two members, as from `cat a.gz b.gz`.
        let gzip = gzip.finish().unwrap().repeat(2);
        let zstd = zstd::encode_all(&plain[..], 1).unwrap();
        let expected = lines(&mut input(&plain));
        assert_eq!(expected.len(), 3001);
        assert_eq!(lines(&mut input(&zstd)), expected);
        assert_eq!(lines(&mut input(&gzip)), lines(&mut input(&plain.repeat(2))));
        let dripping = Dripping(io::Cursor::new(plain));
        assert_eq!(lines(&mut Input::new(dripping).unwrap()), expected);
    }

    #[test]
    fn a_truncated_compressed_log_is_used_as_far_as_it_goes() {
        let plain = b"a line of the log\n".repeat(10_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(&plain).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut cut = input(&gzip[..gzip.len() / 2]);
        let found = lines(&mut cut).len();
        assert!(cut.is_cut() && found > 3000, "{found}");
    }

    #[test]
    fn lines_after_a_held_one_are_found_without_consuming_it() {
        let mut input = input(b"one\n\ttwo\nthree\n");
        assert_eq!(
            (input.line(0).unwrap(), input.line(4).unwrap(), input.line(9).unwrap()),
            (Some(4), Some(9), Some(15))
        );
        input.consume(9);
        let end = input.line(0).unwrap().unwrap();
        assert_eq!(input.bytes(0, end), b"three\n");
        assert_eq!(input.line(6).unwrap(), None);
    }
}
