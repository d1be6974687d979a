//! Results within one response, kept on request.

use crate::protocol_error::ProtocolError;

/// Kind of a statement's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// Rows, perhaps none.
    Rows,
    /// A command's end without rows.
    #[default]
    Command,
    /// An empty query.
    Empty,
}

/// One statement's result: its kind, its column names, and its last row or all of them.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    kind: ResultKind,
    rows: u64,
    /// The body of RowDescription.
    description: Vec<u8>,
    /// Bodies of the kept DataRows, each after its length in 4 bytes.
    kept: Vec<u8>,
    /// Offset of the last of them.
    last_at: usize,
}

impl ResultSet {
    /// Returns its kind.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Returns the number of its rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the names of its columns.
    pub fn columns(&self) -> Columns<'_> {
        let mut rest = self.description.as_slice();
        let left = take_count(&mut rest);
        Columns { left, rest }
    }

    /// Returns the values of its last row, as the server wrote them; none if it has no rows.
    pub fn last_row(&self) -> Option<Values<'_>> {
        KeptRows { rest: &self.kept[self.last_at..] }.next()
    }

    /// Returns the kept rows: the last one, or all of them after [`collect_all_rows`](crate::Reader::collect_all_rows).
    pub fn kept_rows(&self) -> KeptRows<'_> {
        KeptRows { rest: &self.kept }
    }

    fn clear(&mut self) {
        self.kind = ResultKind::default();
        self.rows = 0;
        self.description.clear();
        self.kept.clear();
        self.last_at = 0;
    }

    /// Checks that the kept messages are complete.
    fn check(&self) -> Result<(), ProtocolError> {
        let mut rest = self.description.as_slice();
        let columns = take_count(&mut rest);
        for _ in 0..columns {
            take_column(&mut rest).ok_or(ProtocolError::Malformed(b'T'))?;
        }
        let described = !self.description.is_empty();
        for row in self.kept_rows() {
            let values = row.left;
            if (described && values != columns) || row.count() != usize::from(values) {
                return Err(ProtocolError::Malformed(b'D'));
            }
        }
        Ok(())
    }
}

/// Names of a result's columns.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    left: u16,
    rest: &'a [u8],
}

/// Type, format and table of a column in RowDescription.
const COLUMN_TAIL: usize = 18;

impl<'a> Iterator for Columns<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        take_column(&mut self.rest)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Columns<'_> {}

/// Kept rows of a result.
#[derive(Clone, Debug)]
pub struct KeptRows<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for KeptRows<'a> {
    type Item = Values<'a>;

    fn next(&mut self) -> Option<Values<'a>> {
        let length = take_u32(&mut self.rest)? as usize;
        let mut row = self.rest.split_off(..length)?;
        let left = take_count(&mut row);
        Some(Values { left, rest: row })
    }
}

/// Values of a row; none for null.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    left: u16,
    rest: &'a [u8],
}

/// Length field of a null: -1.
const NULL: u32 = u32::MAX;

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        match take_u32(&mut self.rest)? {
            NULL => Some(None),
            length => self.rest.split_off(..length as usize).map(Some),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Values<'_> {}

/// Results that a reader keeps, and the one being read. Memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Results {
    sets: Vec<ResultSet>,
    finished: usize,
}

impl Results {
    pub(crate) fn finished(&self) -> &[ResultSet] {
        &self.sets[..self.finished]
    }

    pub(crate) fn clear(&mut self) {
        self.finished = 0;
        self.drop_unfinished();
    }

    /// Discards the parts of an unfinished result.
    pub(crate) fn drop_unfinished(&mut self) {
        if let Some(set) = self.sets.get_mut(self.finished) {
            set.clear();
        }
    }

    fn current(&mut self) -> &mut ResultSet {
        if self.sets.len() == self.finished {
            self.sets.push(ResultSet::default());
        }
        &mut self.sets[self.finished]
    }

    pub(crate) fn begin_row(&mut self, length: u32, keep_others: bool) {
        let set = self.current();
        if !keep_others {
            set.kept.clear();
        }
        set.last_at = set.kept.len();
        set.kept.extend_from_slice(&length.to_be_bytes());
    }

    pub(crate) fn add_to_row(&mut self, bytes: &[u8]) {
        self.current().kept.extend_from_slice(bytes);
    }

    pub(crate) fn add_to_description(&mut self, bytes: &[u8]) {
        self.current().description.extend_from_slice(bytes);
    }

    pub(crate) fn finish(&mut self, kind: ResultKind, rows: u64) -> Result<(), ProtocolError> {
        let set = self.current();
        set.check()?;
        set.kind = kind;
        set.rows = rows;
        self.finished += 1;
        self.drop_unfinished();
        Ok(())
    }
}

fn take_count(bytes: &mut &[u8]) -> u16 {
    match bytes.split_off(..2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    bytes.split_off(..4)?.try_into().ok().map(u32::from_be_bytes)
}

fn take_column<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = bytes.split_off(..end)?;
    bytes.split_off(..1 + COLUMN_TAIL)?;
    Some(name)
}
