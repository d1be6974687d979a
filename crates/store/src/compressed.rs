//! Texts compressed with Zstandard: logs and stacks.

use std::borrow::Cow;
use std::io::Read as _;

use crate::error::Defect;

/// zstd's default: texts are small and written while the next trial is prepared.
const LEVEL: i32 = 3;
/// Most bytes of a text that is written. A longer one is a server's log with every statement.
pub(crate) const MAX_WRITTEN_BYTES: usize = 64 << 20;
/// Most bytes of all texts of a bundle, unpacked. Zeros shrink to a ten-thousandth.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// Compresses a text.
pub(crate) fn pack(file: &str, text: &str) -> Result<Vec<u8>, Defect> {
    zstd::encode_all(text.as_bytes(), LEVEL).map_err(|error| Defect::damaged(file, error))
}

/// The text as it is written: if it is too long, its beginning and its end.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_WRITTEN_BYTES {
        return Cow::Borrowed(text);
    }
    let begin = &text[..text.floor_char_boundary(MAX_WRITTEN_BYTES / 2)];
    let end = &text[text.ceil_char_boundary(text.len() - MAX_WRITTEN_BYTES / 2)..];
    let omitted = text.len() - begin.len() - end.len();
    Cow::Owned(format!("{begin}\n[pgdyno: {omitted} bytes omitted]\n{end}"))
}

/// Decompresses the texts of one bundle, which share an upper limit.
#[derive(Debug)]
pub(crate) struct Unpacker {
    remaining: u64,
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self { remaining: MAX_UNPACKED_BYTES }
    }

    /// Decompresses a text.
    pub(crate) fn unpack(&mut self, file: &str, content: &[u8]) -> Result<String, Defect> {
        let undone = |error| Defect::damaged(file, format!("it can't be decompressed: {error}"));
        let mut plain = Vec::new();
        let decoder = zstd::Decoder::with_buffer(content).map_err(undone)?;
        decoder.take(self.remaining + 1).read_to_end(&mut plain).map_err(undone)?;
        self.remaining = self.remaining.checked_sub(plain.len() as u64).ok_or_else(|| {
            let reason = format!(
                "it is too large: the logs and stacks of a bundle have at most {MAX_UNPACKED_BYTES} bytes, decompressed"
            );
            Defect::damaged(file, reason)
        })?;
        String::from_utf8(plain).map_err(|error| Defect::damaged(file, format!("it is not UTF-8: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_shrink_to_nothing_are_refused_before_they_fill_the_memory() {
        let zeros = pack("a", &"\0".repeat(700_000)).unwrap();
        assert!(zeros.len() < 200, "{}", zeros.len());
        let mut unpacker = Unpacker { remaining: 1_000_000 };
        assert_eq!(unpacker.unpack("a", &zeros).unwrap().len(), 700_000);
        let refused = unpacker.unpack("logs/b.log.zst", &zeros).unwrap_err();
        assert_eq!(refused.file, "logs/b.log.zst");
        assert!(refused.reason.contains("at most 536870912 bytes"), "{}", refused.reason);
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shortened("short"), "short");
        let long = format!("first{}last", "ü".repeat(MAX_WRITTEN_BYTES));
        let short = shortened(&long);
        assert!(
            short.len() < MAX_WRITTEN_BYTES + 100 && short.starts_with("first") && short.ends_with("last")
        );
        let omitted = long.len() - MAX_WRITTEN_BYTES;
        let lines: Vec<&str> = short.lines().skip(1).collect();
        assert_eq!(lines[0], format!("[pgdyno: {} bytes omitted]", omitted + 1));
        assert_eq!(lines.len(), 2);
    }
}
