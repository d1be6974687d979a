//! Tables with a header, whose errors name line and column.

use std::cell::RefCell;
use std::collections::BTreeSet;

use ::csv::{ByteRecord, ReaderBuilder, Trim};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use model::record::ImportedFile;

use crate::error::{BadRow, ImportError};
use crate::file::Source;

/// A table whose first line names its columns; separated by commas, semicolons, tabs or vertical bars, whichever the
/// first line has most of (otherwise as RFC 4180).
pub(crate) struct Table {
    /// The file it was read from.
    pub(crate) file: ImportedFile,
    shown: String,
    header: Vec<String>,
    rows: Vec<Result<Row, BadRow>>,
    used: RefCell<BTreeSet<usize>>,
}

/// A row with as many fields as the header.
pub(crate) struct Row {
    /// Line at which it starts, from 1.
    pub(crate) line: u64,
    fields: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    at: usize,
    /// Its name.
    pub(crate) name: String,
}

impl Table {
    pub(crate) fn read(source: &Source) -> Result<Self, ImportError> {
        let (content, file) = source.read()?;
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content);
        let invalid = |message: String| ImportError::InvalidFile { file: source.shown(), message };
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .delimiter(delimiter(content))
            .from_reader(content);
        let mut records = reader.byte_records();
        let first = records.next().transpose().map_err(|error| invalid(error.to_string()))?;
        let header: Vec<String> =
            first.iter().flat_map(ByteRecord::iter).map(|name| text(name).into_owned()).collect();
        if header.iter().all(String::is_empty) {
            return Err(invalid("the file is empty: its first line must name the columns".to_owned()));
        }
        let mut lines = Lines { content, at: 0, line: 1 };
        let mut rows = Vec::new();
        for record in records {
            let record = record.map_err(|error| invalid(error.to_string()))?;
            rows.push(row(&record, lines.line_of(&record), &header));
        }
        Ok(Self { file, shown: source.shown(), header, rows, used: RefCell::default() })
    }

    /// The column with a name.
    pub(crate) fn column(&self, name: &str) -> Result<Column, ImportError> {
        let mut found = self.header.iter().enumerate().filter(|(_, column)| *column == name);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => {
                self.used.borrow_mut().insert(at);
                Ok(Column { at, name: name.to_owned() })
            }
            (Some(_), Some(_)) => Err(ImportError::InvalidFile {
                file: self.shown.clone(),
                message: format!("there are two columns \"{name}\": rename one of them"),
            }),
            (None, _) => Err(ImportError::NoColumn {
                file: self.shown.clone(),
                column: name.to_owned(),
                known: self.header.clone(),
            }),
        }
    }

    /// The same for a column that the table may lack.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<Column>, ImportError> {
        if self.header.iter().any(|column| column == name) { self.column(name).map(Some) } else { Ok(None) }
    }

    /// Converts each row. If some are bad, fails, or with `skip_bad` returns the others with the bad ones.
    pub(crate) fn each<T>(
        &self,
        skip_bad: bool,
        mut make: impl FnMut(&Row) -> Result<T, BadRow>,
    ) -> Result<(Vec<T>, Vec<BadRow>), ImportError> {
        let (mut made, mut bad) = (Vec::new(), Vec::new());
        for row in &self.rows {
            match row.as_ref().map_err(BadRow::clone).and_then(&mut make) {
                Ok(one) => made.push(one),
                Err(row) => bad.push(row),
            }
        }
        if !bad.is_empty() && (!skip_bad || made.is_empty()) {
            return Err(ImportError::BadRows { file: self.shown.clone(), bad });
        }
        if made.is_empty() {
            let message = "the table has a header but no rows".to_owned();
            return Err(ImportError::InvalidFile { file: self.shown.clone(), message });
        }
        Ok((made, bad))
    }

    /// Names of the columns that were not requested.
    pub(crate) fn unused(&self) -> Vec<String> {
        let used = self.used.borrow();
        self.header
            .iter()
            .enumerate()
            .filter(|(at, _)| !used.contains(at))
            .map(|(_, name)| name.clone())
            .collect()
    }
}

impl Row {
    /// Text of a column; none if empty.
    pub(crate) fn text(&self, column: &Column) -> Option<&str> {
        self.fields.get(column.at).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Text of a column, which must not be empty.
    pub(crate) fn required(&self, column: &Column) -> Result<&str, BadRow> {
        self.text(column).ok_or_else(|| self.bad(column, "the field is empty"))
    }

    /// A number that is not negative; none if the field is empty.
    pub(crate) fn number(&self, column: &Column) -> Result<Option<f64>, BadRow> {
        let Some(text) = self.text(column) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            Ok(_) => Err(self.bad(column, format!("`{text}` is negative or not finite"))),
            Err(_) => Err(self.bad(column, format!("`{text}` is not a number"))),
        }
    }

    /// A throughput: greater than zero, as its ratio to others is undefined otherwise.
    pub(crate) fn tps(&self, column: &Column) -> Result<f64, BadRow> {
        match self.number(column)? {
            Some(tps) if tps > 0.0 => Ok(tps),
            Some(_) => Err(self.bad(column, "0 transactions per second are not a measurement")),
            None => Err(self.bad(column, "the field is empty")),
        }
    }

    /// A count; none if the field is empty.
    pub(crate) fn count(&self, column: &Column) -> Result<Option<u64>, BadRow> {
        let Some(text) = self.text(column) else { return Ok(None) };
        match text.parse() {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(self.bad(column, format!("`{text}` is not a whole number"))),
        }
    }

    /// A time; none if the field is empty. Without an offset, it is UTC.
    pub(crate) fn time(&self, column: &Column) -> Result<Option<Timestamp>, BadRow> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let expected =
            || format!("`{text}` is not a time: expected one such as 2016-03-01 12:00:00+01 or 2016-03-01");
        time(text).map(Some).ok_or_else(|| self.bad(column, expected()))
    }

    /// An error in a column of this row.
    pub(crate) fn bad(&self, column: &Column, message: impl ToString) -> BadRow {
        BadRow { line: self.line, column: Some(column.name.clone()), message: message.to_string() }
    }
}

fn time(text: &str) -> Option<Timestamp> {
    let utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    match text.parse::<DateTime>() {
        Ok(time) => utc(time),
        Err(_) => utc(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight())),
    }
}

/// Counts lines up to the start of records. The reader's own line number precedes blank lines.
struct Lines<'a> {
    content: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn line_of(&mut self, record: &ByteRecord) -> u64 {
        let start = record.position().map_or(0, |position| position.byte() as usize);
        while let Some(byte) = self.content.get(self.at) {
            if self.at >= start && !matches!(byte, b'\r' | b'\n') {
                break;
            }
            self.line += u64::from(*byte == b'\n');
            self.at += 1;
        }
        self.line
    }
}

fn row(record: &ByteRecord, line: u64, header: &[String]) -> Result<Row, BadRow> {
    if record.len() != header.len() {
        let message = format!("the row has {} fields, the header {}", record.len(), header.len());
        return Err(BadRow { line, column: None, message });
    }
    let fields = record.iter().map(|field| text(field).into_owned()).collect();
    Ok(Row { line, fields })
}

fn text(field: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(field)
}

fn delimiter(content: &[u8]) -> u8 {
    let first = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let times = |delimiter: u8| first.iter().filter(|byte| **byte == delimiter).count();
    // On a tie, the last one wins.
    [b'|', b'\t', b';', b','].into_iter().max_by_key(|delimiter| times(*delimiter)).unwrap_or(b',')
}
