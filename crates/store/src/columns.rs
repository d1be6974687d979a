//! Column tables as Parquet files: the basis of all `.parquet` files of a bundle.
//!
//! Readers find columns by name, ignore unknown ones, and treat an absent one as null in every row.

mod pages;

use std::io::{self, Write};
use std::panic;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};

use crate::error::Defect;
use crate::format::MAX_INTEGER;
use pages::Pages;

/// A column of a table.
pub struct Column {
    name: String,
    required: bool,
    values: Values,
}

impl Column {
    /// A column that has a value in every row.
    pub fn required(name: impl Into<String>, values: Values) -> Self {
        Self { name: name.into(), required: true, values }
    }

    /// A column that may be null.
    pub fn optional(name: impl Into<String>, values: Values) -> Self {
        Self { name: name.into(), required: false, values }
    }
}

/// A text shared by many rows.
pub type Text = Rc<str>;

/// One value per row; `None` is null.
pub enum Values {
    /// Integers.
    Integer(Vec<Option<i64>>),
    /// Floating-point numbers.
    Real(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<Text>>),
    /// Times, in microseconds since the Unix epoch.
    Time(Vec<Option<i64>>),
}

impl Values {
    /// Counts, of at most 2⁶³−1: the column's type is a signed 64-bit integer.
    pub(crate) fn counts(file: &str, values: impl Iterator<Item = Option<u64>>) -> Result<Self, Defect> {
        let stored = |value: u64| {
            i64::try_from(value).map_err(|_| {
                Defect::damaged(file, format!("{value} does not fit a column of 64-bit integers"))
            })
        };
        values.map(|value| value.map(stored).transpose()).collect::<Result<_, _>>().map(Self::Integer)
    }

    fn len(&self) -> usize {
        match self {
            Self::Integer(values) | Self::Time(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    fn has_null(&self) -> bool {
        match self {
            Self::Integer(values) | Self::Time(values) => values.iter().any(Option::is_none),
            Self::Real(values) => values.iter().any(Option::is_none),
            Self::Text(values) => values.iter().any(Option::is_none),
        }
    }

    /// Whether no value is NaN or infinite.
    fn is_finite(&self) -> bool {
        match self {
            Self::Real(values) => values.iter().flatten().all(|value| value.is_finite()),
            Self::Integer(_) | Self::Text(_) | Self::Time(_) => true,
        }
    }
}

/// Key of the trial's id in the file's metadata: identifies the trial of a file that was copied out of its bundle.
const TRIAL_KEY: &str = "pgdyno.trial";

/// Encodes columns of equal length as a file.
pub(crate) fn write(file: &str, trial: &str, columns: &[Column]) -> Result<Vec<u8>, Defect> {
    check(file, columns)?;
    encode(file, trial, columns).map_err(|error| Defect::damaged(file, error))
}

/// Reads a file into a table.
pub(crate) fn read(file: &'static str, content: Vec<u8>) -> Result<Table, Defect> {
    // The crate `parquet` 60 panics on some malformed files. Checksums protect from accidents, not from crafted files.
    let room = Room::of_file(content.len());
    panic::catch_unwind(|| decode(file, content, room)).unwrap_or_else(|_| {
        Err(Defect::damaged(file, "it can't be read: it is not a well-formed Parquet file"))
    })
}

/// The columns of a file.
pub(crate) struct Table {
    file: &'static str,
    rows: usize,
    columns: Vec<Column>,
}

impl Table {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Names of the columns, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// A column of integers.
    pub(crate) fn whole(&self, name: &str) -> Result<Vec<Option<i64>>, Defect> {
        match self.values(name) {
            None => Ok(vec![None; self.rows]),
            Some(Values::Integer(values)) => Ok(values.clone()),
            Some(_) => Err(self.wrong_type(name, "integers")),
        }
    }

    /// A column of times in microseconds.
    pub(crate) fn times(&self, name: &str) -> Result<Vec<Option<i64>>, Defect> {
        let values = self.whole(name)?;
        if values.iter().flatten().any(|value| value.unsigned_abs() > MAX_INTEGER) {
            return Err(self.wrong_type(name, "times"));
        }
        Ok(values)
    }

    /// A column of times that are not negative.
    pub(crate) fn later_times(&self, name: &str) -> Result<Vec<Option<u64>>, Defect> {
        let time =
            |value: i64| u64::try_from(value).map_err(|_| self.wrong_type(name, "times after the start"));
        self.times(name)?.into_iter().map(|value| value.map(time).transpose()).collect()
    }

    /// A column of counts, whose sum is in range, too.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<Option<u64>>, Defect> {
        let mut sum = 0_u64;
        let mut count = |value: i64| {
            let count = u64::try_from(value).ok()?;
            sum = sum.checked_add(count).filter(|sum| *sum <= MAX_INTEGER)?;
            Some(count)
        };
        let mut count = |value: i64| count(value).ok_or_else(|| self.wrong_type(name, "counts"));
        self.whole(name)?.into_iter().map(|value| value.map(&mut count).transpose()).collect()
    }

    /// As [`Table::counts`], up to 32 bits.
    pub(crate) fn small_counts(&self, name: &str) -> Result<Vec<Option<u32>>, Defect> {
        let count = |value: i64| u32::try_from(value).map_err(|_| self.wrong_type(name, "counts of 32 bits"));
        self.whole(name)?.into_iter().map(|value| value.map(count).transpose()).collect()
    }

    /// A column of floating-point numbers.
    pub(crate) fn reals(&self, name: &str) -> Result<Vec<Option<f64>>, Defect> {
        match self.values(name) {
            None => Ok(vec![None; self.rows]),
            Some(values @ Values::Real(reals)) if values.is_finite() => Ok(reals.clone()),
            Some(_) => Err(self.wrong_type(name, "numbers")),
        }
    }

    /// A column of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<Option<Text>>, Defect> {
        match self.values(name) {
            None => Ok(vec![None; self.rows]),
            Some(Values::Text(values)) => Ok(values.clone()),
            Some(_) => Err(self.wrong_type(name, "texts")),
        }
    }

    /// A column with a value in every row, read by one of the methods above.
    pub(crate) fn required<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<Vec<Option<T>>, Defect>,
    ) -> Result<Vec<T>, Defect> {
        let missing =
            |row: usize| Defect::damaged(self.file, format!("row {}: column {name} has no value", row + 1));
        read(self, name)?
            .into_iter()
            .enumerate()
            .map(|(row, value)| value.ok_or_else(|| missing(row)))
            .collect()
    }

    fn values(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    fn wrong_type(&self, name: &str, what: &str) -> Defect {
        Defect::damaged(self.file, format!("column {name} does not contain {what}"))
    }
}

fn check(file: &str, columns: &[Column]) -> Result<(), Defect> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    for Column { name, required, values } in columns {
        if values.len() != rows {
            return Err(Defect::damaged(
                file,
                format!("column {name} has a different length from the others"),
            ));
        }
        if *required && values.has_null() {
            return Err(Defect::damaged(file, format!("column {name} must have a value in every row")));
        }
        if !values.is_finite() {
            return Err(Defect::damaged(
                file,
                format!("column {name} contains a value that is not a finite number"),
            ));
        }
    }
    Ok(())
}

fn encode(file: &str, trial: &str, columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let metadata = (TRIAL_KEY.to_owned(), trial.to_owned());
    let mut content = Vec::new();
    let mut writer = begin(&mut content, file.trim_end_matches(".parquet"), Some(metadata), columns)?;
    append_group(&mut writer, columns)?;
    writer.close()?;
    Ok(content)
}

/// Writes a file in pieces, for tables larger than memory.
pub struct Writer<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> Writer<W> {
    /// Begins a file of columns with these names and types; their values are ignored.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, name: &str, columns: &[Column]) -> io::Result<Self> {
        begin(out, name, None, columns).map(Self).map_err(io_error)
    }

    /// Appends rows: one value per row in each column.
    ///
    /// # Errors
    /// Writing fails.
    pub fn append(&mut self, columns: &[Column]) -> io::Result<()> {
        append_group(&mut self.0, columns).map_err(io_error)
    }

    /// Ends the file, and returns the underlying writer.
    ///
    /// # Errors
    /// Writing fails.
    pub fn end(self) -> io::Result<W> {
        self.0.into_inner().map_err(io_error)
    }
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

fn begin<W: Write + Send>(
    out: W,
    name: &str,
    metadata: Option<(String, String)>,
    columns: &[Column],
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = columns.iter().map(|column| schema_field(column).map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
    let metadata = metadata.map(|(key, value)| vec![KeyValue::new(key, value)]);
    let mut properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(metadata);
    for Column { name, values, .. } in columns {
        // Values differ mostly in their last bytes: with the first bytes grouped, a metrics file is half as large.
        if let Values::Real(_) = values {
            let path = ColumnPath::from(name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
        }
    }
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

fn append_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &[Column],
) -> Result<(), ParquetError> {
    let mut rows = writer.next_row_group()?;
    for column in columns {
        encode_column(&mut rows, column)?;
    }
    rows.close()?;
    Ok(())
}

fn schema_field(column: &Column) -> Result<Type, ParquetError> {
    let physical = match column.values {
        Values::Integer(_) | Values::Time(_) => PhysicalType::INT64,
        Values::Real(_) => PhysicalType::DOUBLE,
        Values::Text(_) => PhysicalType::BYTE_ARRAY,
    };
    let repetition = if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
    match column.values {
        Values::Text(_) => field
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String))
            .build(),
        Values::Time(_) => {
            field.with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MICROS))).build()
        }
        Values::Integer(_) | Values::Real(_) => field.build(),
    }
}

fn encode_column<W: Write + Send>(
    rows: &mut SerializedRowGroupWriter<'_, W>,
    Column { required, values, .. }: &Column,
) -> Result<(), ParquetError> {
    let Some(mut column) = rows.next_column()? else {
        return Err(ParquetError::General("there are more columns than the schema has".to_owned()));
    };
    match values {
        Values::Integer(values) | Values::Time(values) => {
            let (present, levels) = present(values, |value| *value);
            column.typed::<Int64Type>().write_batch(&present, (!required).then_some(&levels), None)?
        }
        Values::Real(values) => {
            let (present, levels) = present(values, |value| *value);
            column.typed::<DoubleType>().write_batch(&present, (!required).then_some(&levels), None)?
        }
        Values::Text(values) => {
            let (present, levels) = present(values, |text| ByteArray::from(&**text));
            column.typed::<ByteArrayType>().write_batch(&present, (!required).then_some(&levels), None)?
        }
    };
    column.close()
}

/// The non-null values, and the definition level of each row: 1 for a value, 0 for null.
fn present<V, T>(values: &[Option<V>], of: impl Fn(&V) -> T) -> (Vec<T>, Vec<i16>) {
    (
        values.iter().flatten().map(of).collect(),
        values.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}

/// Most values of a table, and those of the smallest file: rows that repeat each other take an eighth of a byte each.
const MAX_VALUES: usize = 1 << 30;
const VALUES_OF_ANY_FILE: usize = 8 << 20;
const VALUES_PER_BYTE: usize = 64;
/// The same of the bytes of its texts.
const TEXT_BYTES_OF_ANY_FILE: usize = 64 << 20;
const TEXT_BYTES_PER_BYTE: usize = 64;

/// The amount that a file may still be unpacked to.
struct Room {
    values: usize,
    text_bytes: usize,
}

impl Room {
    fn of_file(bytes: usize) -> Self {
        let values = VALUES_OF_ANY_FILE.saturating_add(bytes.saturating_mul(VALUES_PER_BYTE));
        let text_bytes = TEXT_BYTES_OF_ANY_FILE.saturating_add(bytes.saturating_mul(TEXT_BYTES_PER_BYTE));
        Self { values: values.min(MAX_VALUES), text_bytes }
    }
}

/// Takes a part of the remaining amount.
fn take(remaining: &mut usize, amount: usize, what: &str) -> Result<(), ParquetError> {
    let rest = remaining.checked_sub(amount);
    *remaining = rest.ok_or_else(|| {
        ParquetError::General(format!("it has more {what} than a file of its size can have"))
    })?;
    Ok(())
}

fn decode(file: &'static str, content: Vec<u8>, mut room: Room) -> Result<Table, Defect> {
    let unreadable = |error: ParquetError| Defect::damaged(file, format!("it can't be read: {error}"));
    let content = Bytes::from(content);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&content).map_err(unreadable)?;
    let pages = Pages::new(content);
    let mut columns = Vec::new();
    for (number, field) in metadata.file_metadata().schema_descr().columns().iter().enumerate() {
        if let Some(values) = values_of(field) {
            let values = decode_column(&metadata, &pages, number, values, &mut room).map_err(unreadable)?;
            columns.push(Column {
                name: field.name().to_owned(),
                required: field.max_def_level() == 0,
                values,
            });
        }
    }
    let rows = columns.first().map_or(0, |column| column.values.len());
    if columns.iter().any(|column| column.values.len() != rows) {
        return Err(Defect::damaged(file, "its columns have different lengths"));
    }
    Ok(Table { file, rows, columns })
}

/// An empty column of the field's type; `None` if the field is nested or of an unsupported type.
fn values_of(field: &ColumnDescriptor) -> Option<Values> {
    match (field.max_rep_level(), field.max_def_level(), field.physical_type()) {
        (0, 0 | 1, PhysicalType::INT64) => Some(Values::Integer(Vec::new())),
        (0, 0 | 1, PhysicalType::DOUBLE) => Some(Values::Real(Vec::new())),
        (0, 0 | 1, PhysicalType::BYTE_ARRAY) => Some(Values::Text(Vec::new())),
        _ => None,
    }
}

fn decode_column(
    metadata: &ParquetMetaData,
    pages: &Pages,
    number: usize,
    mut values: Values,
    room: &mut Room,
) -> Result<Values, ParquetError> {
    let Room { values: room, text_bytes: room_of_texts } = room;
    for group in 0..metadata.num_row_groups() {
        match (pages.column(metadata, group, number)?, &mut values) {
            (ColumnReader::Int64ColumnReader(column), Values::Integer(values)) => {
                append(column, values, room, Ok)?;
            }
            (ColumnReader::DoubleColumnReader(column), Values::Real(values)) => {
                append(column, values, room, Ok)?;
            }
            (ColumnReader::ByteArrayColumnReader(column), Values::Text(values)) => {
                let mut last: Text = Rc::from("");
                append(column, values, room, |bytes| {
                    let text = bytes.as_utf8()?;
                    if *last != *text {
                        take(room_of_texts, text.len(), "text")?;
                        last = Rc::from(text);
                    }
                    Ok(Rc::clone(&last))
                })?;
            }
            _ => return Err(ParquetError::General(format!("column {number} has two types"))),
        }
    }
    Ok(values)
}

/// Appends the rows of a column in a row group.
fn append<D: DataType, V>(
    mut column: ColumnReaderImpl<D>,
    to: &mut Vec<Option<V>>,
    room: &mut usize,
    mut value: impl FnMut(D::T) -> Result<V, ParquetError>,
) -> Result<(), ParquetError> {
    const AT_ONCE: usize = 8192;
    loop {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (rows, ..) = column.read_records(AT_ONCE, Some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        take(room, rows, "rows")?;
        // A required column has no levels.
        levels.resize(rows, 1);
        let mut values = values.into_iter();
        for level in levels {
            let value = if level > 0 { values.next().map(&mut value).transpose()? } else { None };
            to.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "x.parquet";

    /// A table of 3,000 rows in a few hundred bytes, two texts alternating.
    fn repetitive() -> Vec<u8> {
        let texts = ["a".repeat(100), "b".repeat(100)].map(|text| Some(Text::from(text)));
        let column = Values::Text(texts.iter().cycle().take(3000).cloned().collect());
        write(FILE, "trial", &[Column::required("text", column)]).unwrap()
    }

    fn refusal(content: Vec<u8>, room: Room) -> String {
        decode(FILE, content, room).map(|table| table.rows()).unwrap_err().reason
    }

    #[test]
    fn a_file_is_not_unpacked_to_more_than_its_size_allows() {
        let file = repetitive();
        assert!(file.len() < 2000, "{}", file.len());
        let room = |values, text_bytes| Room { values, text_bytes };
        assert_eq!(decode(FILE, file.clone(), room(3000, 300_000)).unwrap().rows(), 3000);
        assert!(refusal(file.clone(), room(2999, 300_000)).contains("more rows than"));
        assert!(refusal(file, room(3000, 299_999)).contains("more text than"));
    }

    #[test]
    fn a_page_that_asks_for_more_memory_than_its_data_can_fill_is_refused() {
        let file = repetitive();
        // The first page follows the four bytes of the format's mark: field 1 is its kind, field 2 its unpacked size.
        assert_eq!((file[4], file[6], file[9]), (0x15, 0x15, 0x15), "{:?}", &file[..16]);
        let mut larger = file.clone();
        larger[7..9].copy_from_slice(&[0xfe, 0x7f]);
        assert!(refusal(larger, Room::of_file(2000)).contains("larger than it can be"));
    }
}
