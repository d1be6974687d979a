//! `series.parquet`: the trial's metrics, one row for each interval of the load (1 s, the last of a phase shorter).
//!
//! `start_us`, `width_us` and `phase` are in every row. Every other column is a metric that may be null, named
//! `<source>.<metric>[.<of what>]` with its unit at the end of the metric's name. Readers find columns by name and
//! ignore those they do not know. docs/bundle.md lists them.

use std::panic;
use std::sync::Arc;

use bytes::Bytes;
use model::message::{Interval, Phase, ScriptInterval};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use crate::error::Defect;

/// Name of the file within a bundle.
pub(crate) const FILE: &str = "series.parquet";

const START: &str = "start_us";
const WIDTH: &str = "width_us";
const PHASE: &str = "phase";
const TRANSACTIONS: &str = "driver.transactions.";
const FAILED: &str = "driver.failed.";
const BUSY: &str = "driver.busy_share";
const LAG_MAX: &str = "driver.lag_max_us";
const RESPONSES: &str = "driver.responses";
const LAG_MEAN: &str = "driver.lag_mean_us";
const SEND_LAG_MAX: &str = "driver.send_lag_max_us";

/// Key of the trial's id in the file's metadata: a file that was copied out of its bundle still says whose it is.
const TRIAL_KEY: &str = "pgdyno.trial";

/// The series of these intervals.
pub(crate) fn write(trial: &str, intervals: &[Interval]) -> Result<Vec<u8>, Defect> {
    encode(trial, &columns(intervals)?).map_err(|error| Defect::damaged(FILE, error))
}

/// Reads a series. The histograms are in `latency.hlog`: `latency_ns` is empty in every interval.
pub(crate) fn read(file: Vec<u8>) -> Result<Vec<Interval>, Defect> {
    // The crate `parquet` 60 panics on some malformed files. The sums keep accidents away from it, not makers of files.
    panic::catch_unwind(|| decode(file)).unwrap_or_else(|_| {
        Err(Defect::damaged(FILE, "it can't be read: it is not a well-formed Parquet file"))
    })
}

fn decode(file: Vec<u8>) -> Result<Vec<Interval>, Defect> {
    let unreadable = |error: ParquetError| Defect::damaged(FILE, format!("it can't be read: {error}"));
    let reader = SerializedFileReader::new(Bytes::from(file)).map_err(unreadable)?;
    let rows = reader.get_row_iter(None).map_err(unreadable)?;
    rows.enumerate()
        .map(|(number, row)| {
            interval(&row.map_err(unreadable)?)
                .map_err(|reason| Defect::damaged(FILE, format!("row {}: {reason}", number + 1)))
        })
        .collect()
}

struct Column {
    name: String,
    values: Values,
}

/// One value for each interval.
enum Values {
    Whole(Vec<i64>),
    Text(Vec<&'static str>),
    MaybeWhole(Vec<Option<i64>>),
    MaybeReal(Vec<Option<f64>>),
}

fn columns(intervals: &[Interval]) -> Result<Vec<Column>, Defect> {
    let whole = |of: fn(&Interval) -> u64| intervals.iter().map(|i| stored(of(i))).collect::<Result<_, _>>();
    let real = |of: fn(&Interval) -> Option<f64>| Values::MaybeReal(intervals.iter().map(of).collect());
    let mut columns = vec![
        Column { name: START.to_owned(), values: Values::Whole(whole(|i| i.start_us)?) },
        Column { name: WIDTH.to_owned(), values: Values::Whole(whole(|i| i.width_us)?) },
        Column {
            name: PHASE.to_owned(),
            values: Values::Text(intervals.iter().map(|i| phase_name(i.phase)).collect()),
        },
    ];
    for script in scripts(intervals) {
        let of_script = |of: fn(&ScriptInterval) -> u64| {
            let value =
                |i: &Interval| i.scripts.iter().find(|s| s.script == script).map(of).map(stored).transpose();
            intervals.iter().map(value).collect::<Result<_, _>>().map(Values::MaybeWhole)
        };
        columns
            .push(Column { name: format!("{TRANSACTIONS}{script}"), values: of_script(|s| s.transactions)? });
        columns.push(Column { name: format!("{FAILED}{script}"), values: of_script(|s| s.failed)? });
    }
    columns.push(Column { name: BUSY.to_owned(), values: real(|i| Some(i.busy)) });
    columns.push(Column { name: LAG_MAX.to_owned(), values: real(|i| Some(i.lag_max_us)) });
    columns.push(Column { name: LAG_MEAN.to_owned(), values: real(|i| i.lag_mean_us) });
    let responses = |i: &Interval| i.responses.map(stored).transpose();
    let responses = intervals.iter().map(responses).collect::<Result<_, _>>()?;
    columns.push(Column { name: RESPONSES.to_owned(), values: Values::MaybeWhole(responses) });
    columns.push(Column { name: SEND_LAG_MAX.to_owned(), values: real(|i| i.send_lag_max_us) });
    Ok(columns)
}

/// Every script's name, once, in the load's order.
fn scripts(intervals: &[Interval]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for script in intervals.iter().flat_map(|interval| &interval.scripts) {
        if !names.contains(&script.script.as_str()) {
            names.push(&script.script);
        }
    }
    names
}

fn stored(value: u64) -> Result<i64, Defect> {
    i64::try_from(value)
        .map_err(|_| Defect::damaged(FILE, format!("{value} does not fit a column of 64-bit integers")))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}

fn phase_by_name(name: &str) -> Option<Phase> {
    [Phase::Warmup, Phase::Measure, Phase::Drain].into_iter().find(|phase| phase_name(*phase) == name)
}

fn encode(trial: &str, columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| schema_field(column).map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("series").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(TRIAL_KEY.to_owned(), trial.to_owned())]))
        .build();
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for column in columns {
        encode_column(&mut rows, &column.values)?;
    }
    rows.close()?;
    writer.close()?;
    Ok(file)
}

fn schema_field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, repetition) = match column.values {
        Values::Whole(_) => (PhysicalType::INT64, Repetition::REQUIRED),
        Values::MaybeWhole(_) => (PhysicalType::INT64, Repetition::OPTIONAL),
        Values::MaybeReal(_) => (PhysicalType::DOUBLE, Repetition::OPTIONAL),
        Values::Text(_) => (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED),
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
    match column.values {
        Values::Text(_) => field
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String))
            .build(),
        _ => field.build(),
    }
}

fn encode_column(
    rows: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: &Values,
) -> Result<(), ParquetError> {
    let Some(mut column) = rows.next_column()? else {
        return Err(ParquetError::General("there are more columns than the schema has".to_owned()));
    };
    match values {
        Values::Whole(values) => column.typed::<Int64Type>().write_batch(values, None, None)?,
        Values::Text(values) => {
            let values: Vec<ByteArray> = values.iter().map(|value| ByteArray::from(*value)).collect();
            column.typed::<ByteArrayType>().write_batch(&values, None, None)?
        }
        Values::MaybeWhole(values) => {
            let (present, levels) = present(values);
            column.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?
        }
        Values::MaybeReal(values) => {
            let (present, levels) = present(values);
            column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?
        }
    };
    column.close()
}

/// The values that are there, and for each row its definition level: 1 where there is one, 0 for null.
fn present<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (
        values.iter().flatten().copied().collect(),
        values.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}

fn interval(row: &Row) -> Result<Interval, String> {
    let mut scripts: Vec<ScriptInterval> = Vec::new();
    for (column, value) in row.get_column_iter() {
        if let Some(script) = column.strip_prefix(TRANSACTIONS)
            && let Some(transactions) = whole(column, value)?
        {
            let failed = required(&format!("{FAILED}{script}"), row, whole)?;
            let script = script.to_owned();
            scripts.push(ScriptInterval {
                script,
                transactions,
                failed,
                latency_ns: String::new(),
                service_ns: None,
            });
        }
    }
    Ok(Interval {
        start_us: required(START, row, whole)?,
        width_us: required(WIDTH, row, whole)?,
        phase: required(PHASE, row, phase)?,
        scripts,
        busy: required(BUSY, row, real)?,
        lag_max_us: required(LAG_MAX, row, real)?,
        lag_mean_us: optional(LAG_MEAN, row, real)?,
        responses: optional(RESPONSES, row, whole)?,
        send_lag_max_us: optional(SEND_LAG_MAX, row, real)?,
    })
}

/// Reads one field: `Ok(None)` for null.
type Read<T> = fn(&str, &Field) -> Result<Option<T>, String>;

fn optional<T>(column: &str, row: &Row, read: Read<T>) -> Result<Option<T>, String> {
    match row.get_column_iter().find(|(name, _)| name.as_str() == column) {
        Some((_, value)) => read(column, value),
        None => Ok(None),
    }
}

fn required<T>(column: &str, row: &Row, read: Read<T>) -> Result<T, String> {
    optional(column, row, read)?.ok_or_else(|| format!("column {column} has no value"))
}

fn whole(column: &str, value: &Field) -> Result<Option<u64>, String> {
    match value {
        Field::Null => Ok(None),
        Field::Long(value) if *value >= 0 => Ok(Some(value.unsigned_abs())),
        other => Err(format!("column {column} holds {other}, which is not a count")),
    }
}

fn real(column: &str, value: &Field) -> Result<Option<f64>, String> {
    match value {
        Field::Null => Ok(None),
        Field::Double(value) => Ok(Some(*value)),
        other => Err(format!("column {column} holds {other}, which is not a number")),
    }
}

fn phase(column: &str, value: &Field) -> Result<Option<Phase>, String> {
    match value {
        Field::Str(name) => match phase_by_name(name) {
            Some(phase) => Ok(Some(phase)),
            None => Err(format!("column {column} holds \"{name}\", which is not a phase")),
        },
        other => Err(format!("column {column} holds {other}, which is not a phase")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn intervals() -> Vec<Interval> {
        let interval = |n: u64| Interval {
            start_us: n * 1_000_000,
            width_us: 1_000_000,
            phase: if n == 0 { Phase::Warmup } else { Phase::Measure },
            scripts: vec![ScriptInterval {
                script: "select-only".to_owned(),
                transactions: 1000 + n,
                failed: 0,
                latency_ns: String::new(),
                service_ns: None,
            }],
            busy: 0.5,
            lag_max_us: n as f64,
            lag_mean_us: n.is_multiple_of(2).then_some(0.25),
            responses: (n > 2).then_some(1000 + n),
            send_lag_max_us: (n > 3).then_some(2.0),
        };
        (0..30).map(interval).collect()
    }

    #[test]
    fn a_script_that_began_late_is_null_before() {
        let mut intervals = intervals();
        intervals[0].scripts.clear();
        intervals[1].lag_mean_us = None;
        assert_eq!(read(write("trial", &intervals).unwrap()).unwrap(), intervals);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn no_file_brings_the_reader_down(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
            let mut file = write("trial", &intervals()).unwrap();
            for (at, byte) in changes {
                let at = at.index(file.len());
                file[at] = byte;
            }
            let _ = read(file);
        }
    }
}
