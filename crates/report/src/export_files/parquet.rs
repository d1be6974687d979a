//! Parquet: rows are collected by column and written in groups, so that no whole table is in memory.

use std::io::{self, Write};
use std::rc::Rc;

use crate::export_tables::{Kind, Table, Value};
use store::columns::{Column, Text, Values, Writer};

use super::Rows;

/// Rows of a group: few enough to use little memory, enough to be read fast.
const AT_ONCE: usize = 65_536;

struct Groups {
    writer: Writer<Box<dyn Write + Send>>,
    columns: Vec<crate::export_tables::Column>,
    values: Vec<Values>,
    rows: usize,
    /// The last text of each column, which many rows share.
    last: Vec<Text>,
}

pub(super) fn rows(out: Box<dyn Write + Send>, table: Table) -> io::Result<Box<dyn Rows>> {
    let columns = table.columns();
    let writer = Writer::new(out, table.name(), &named(&columns, empty(&columns)))?;
    let last = columns.iter().map(|_| Rc::from("")).collect();
    let values = empty(&columns);
    Ok(Box::new(Groups { writer, columns, values, rows: 0, last }))
}

fn empty(columns: &[crate::export_tables::Column]) -> Vec<Values> {
    let values = |column: &crate::export_tables::Column| match column.kind {
        Kind::Integer => Values::Integer(Vec::new()),
        Kind::Real => Values::Real(Vec::new()),
        Kind::Text | Kind::Json => Values::Text(Vec::new()),
        Kind::Time => Values::Time(Vec::new()),
    };
    columns.iter().map(values).collect()
}

fn named(columns: &[crate::export_tables::Column], values: Vec<Values>) -> Vec<Column> {
    columns.iter().zip(values).map(|(column, values)| Column::optional(column.name, values)).collect()
}

impl Groups {
    fn write(&mut self) -> io::Result<()> {
        let values = std::mem::replace(&mut self.values, empty(&self.columns));
        self.rows = 0;
        self.writer.append(&named(&self.columns, values))
    }
}

impl Rows for Groups {
    fn add(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        for ((column, last), value) in self.values.iter_mut().zip(&mut self.last).zip(values) {
            match (column, value) {
                (Values::Integer(column), Value::Integer(value)) => column.push(Some(*value)),
                (Values::Real(column), Value::Real(value)) => column.push(Some(*value)),
                (Values::Time(column), Value::Time(value)) => column.push(Some(value.as_microsecond())),
                (Values::Text(column), Value::Text(text)) => {
                    if **last != **text {
                        *last = Rc::from(&**text);
                    }
                    column.push(Some(Rc::clone(last)));
                }
                (Values::Integer(column) | Values::Time(column), _) => column.push(None),
                (Values::Real(column), _) => column.push(None),
                (Values::Text(column), _) => column.push(None),
            }
        }
        self.rows += 1;
        if self.rows == AT_ONCE { self.write() } else { Ok(()) }
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.write()?;
        }
        self.writer.end()?.flush()
    }
}
