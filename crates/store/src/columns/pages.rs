//! Pages of Parquet files, checked before they are unpacked.
//!
//! The crate `parquet` reserves the memory that the header of a page asks for: 2 GiB for a page of a few bytes, and more
//! for a dictionary. A page that cannot have been written by it is refused.
//!
//! Source: the Parquet format's `parquet.thrift`, and the Thrift compact protocol.

use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

/// The content of a file, whose pages are checked as they are read.
#[derive(Clone)]
pub(super) struct Pages(Arc<Content>);

struct Content(Bytes);

impl Pages {
    pub(super) fn new(content: Bytes) -> Self {
        Self(Arc::new(Content(content)))
    }

    /// The reader of a column in a row group.
    pub(super) fn column(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        column: usize,
    ) -> Result<ColumnReader, ParquetError> {
        let group = metadata.row_group(group);
        let rows = usize::try_from(group.num_rows())?;
        let pages = SerializedPageReader::new(Arc::clone(&self.0), group.column(column), rows, None)?;
        Ok(get_column_reader(group.column(column).column_descr_ptr(), Box::new(pages)))
    }
}

impl Length for Content {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Only pages are read: every reader starts at the header of one.
impl ChunkReader for Content {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let start = usize::try_from(start)?;
        let header = self.0.get(start..).ok_or_else(beyond_the_end)?;
        PageHeader::read(header).ok_or_else(|| malformed("it has no header"))?.check()?;
        Ok(self.0.slice(start..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let start = usize::try_from(start)?;
        let end = start.checked_add(length).filter(|end| *end <= self.0.len()).ok_or_else(beyond_the_end)?;
        Ok(self.0.slice(start..end))
    }
}

fn beyond_the_end() -> ParquetError {
    ParquetError::EOF("a page is beyond the end of the file".to_owned())
}

fn malformed(why: &str) -> ParquetError {
    ParquetError::General(format!("a page is malformed: {why}"))
}

/// A page of values, and the page of a column's distinct values: the pages that pgdyno's files have.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
/// Encodings that pgdyno's files have: plain, dictionary (two numbers), run lengths, bytes of numbers in groups.
const ENCODINGS: [i64; 5] = [0, 2, 3, 8, 9];
/// The most that Snappy expands: a copy of 64 bytes takes three.
const MAX_EXPANSION: i64 = 22;
/// Fewest bytes of a value in a dictionary: the length of a text.
const MIN_VALUE_BYTES: i64 = 4;

/// The parts of a page's header that decide how much memory the page takes.
#[derive(Clone, Copy, Debug, Default)]
struct PageHeader {
    kind: i64,
    unpacked_bytes: i64,
    packed_bytes: i64,
    data: Values,
    dictionary: Values,
}

#[derive(Clone, Copy, Debug, Default)]
struct Values {
    count: i64,
    encoding: i64,
}

impl PageHeader {
    /// As in `parquet`, the last of repeated fields counts.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = Self::default();
        let mut thrift = Thrift(bytes);
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (id, kind) {
                (1, INTEGER) => header.kind = thrift.integer()?,
                (2, INTEGER) => header.unpacked_bytes = thrift.integer()?,
                (3, INTEGER) => header.packed_bytes = thrift.integer()?,
                (5, STRUCT) => header.data = Values::read(&mut thrift)?,
                (7, STRUCT) => header.dictionary = Values::read(&mut thrift)?,
                (_, kind) => thrift.skip(kind, MAX_DEPTH)?,
            }
        }
        Some(header)
    }

    fn check(self) -> Result<(), ParquetError> {
        let values = match self.kind {
            DATA_PAGE => self.data,
            DICTIONARY_PAGE => self.dictionary,
            _ => return Err(malformed("its kind is unknown")),
        };
        if !ENCODINGS.contains(&values.encoding) {
            return Err(malformed("its encoding is unknown"));
        }
        if self.unpacked_bytes > self.packed_bytes.saturating_mul(MAX_EXPANSION).saturating_add(64) {
            return Err(malformed("its header claims that it is larger than it can be"));
        }
        if self.kind == DICTIONARY_PAGE && values.count > self.unpacked_bytes / MIN_VALUE_BYTES {
            return Err(malformed("its header claims more values than it can have"));
        }
        Ok(())
    }
}

impl Values {
    fn read(thrift: &mut Thrift<'_>) -> Option<Self> {
        let mut values = Self::default();
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (id, kind) {
                (1, INTEGER) => values.count = thrift.integer()?,
                (2, INTEGER) => values.encoding = thrift.integer()?,
                (_, kind) => thrift.skip(kind, MAX_DEPTH)?,
            }
        }
        Some(values)
    }
}

/// Types of the compact protocol.
const STOP: u8 = 0;
const BYTE: u8 = 3;
const INTEGER: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Most levels of structs and lists in a header.
const MAX_DEPTH: u8 = 8;

/// The rest of a message in the compact protocol; none is returned where it is malformed.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Id and type of the next field; the inner `None` is the end of the struct.
    #[expect(clippy::option_option, reason = "malformed, or at the end")]
    fn field(&mut self, last: &mut i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 0x0f);
        if kind == STOP {
            return Some(None);
        }
        *last = if step == 0 { self.integer()? } else { last.checked_add(step.into())? };
        Some(Some((*last, kind)))
    }

    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // A boolean field's value is its type.
            1 | 2 => {}
            BYTE => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            DOUBLE => self.0 = self.0.get(8..)?,
            BINARY => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.0 = self.0.get(length..)?;
            }
            LIST | 10 => {
                let byte = self.byte()?;
                let length = if byte >> 4 == 15 { self.varint()? } else { (byte >> 4).into() };
                for _ in 0..length {
                    match byte & 0x0f {
                        1 | 2 => drop(self.byte()?),
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of a dictionary page: two fields of sizes, then the struct of the dictionary.
    fn dictionary(unpacked: i64, packed: i64, values: i64) -> Vec<u8> {
        let mut bytes = vec![0x15, 4, 0x15];
        let number = |bytes: &mut Vec<u8>, number: i64| {
            let mut rest = number.cast_unsigned() << 1;
            while rest > 0x7f {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        };
        number(&mut bytes, unpacked);
        bytes.push(0x15);
        number(&mut bytes, packed);
        bytes.extend([0x4c, 0x15]);
        number(&mut bytes, values);
        bytes.extend([0x15, 0, 0, 0]);
        bytes
    }

    fn refusal(header: &[u8]) -> String {
        PageHeader::read(header).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn a_page_that_asks_for_more_memory_than_its_data_can_fill_is_refused() {
        PageHeader::read(&dictionary(2200, 100, 550)).unwrap().check().unwrap();
        assert!(refusal(&dictionary(i32::MAX.into(), 100, 1)).contains("larger than it can be"));
        assert!(refusal(&dictionary(2200, 100, i32::MAX.into())).contains("more values than it can have"));
    }

    #[test]
    fn a_repeated_field_hides_nothing() {
        let mut header = dictionary(2200, 100, 550);
        header.pop();
        // The struct again, with its id in full, and more values.
        header.extend([0x0c, 14, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
        assert!(refusal(&header).contains("more values"), "{header:?}");
        assert!(PageHeader::read(&header[..header.len() - 1]).is_none(), "it is cut off");
        assert!(PageHeader::read(&[0x19; 1000]).is_none(), "lists of lists without end");
    }
}
