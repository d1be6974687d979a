//! JSON, an object per line, with every column in each.

use std::io::{self, Write};

use crate::export_tables::{Kind, Table, Value};

use super::Rows;

struct Lines {
    out: Box<dyn Write + Send>,
    columns: Vec<(String, Kind)>,
}

pub(super) fn rows(out: Box<dyn Write + Send>, table: Table) -> Box<dyn Rows> {
    let name = |name: &str| serde_json::Value::from(name).to_string();
    let columns = table.columns().iter().map(|column| (name(column.name), column.kind)).collect();
    Box::new(Lines { out, columns })
}

impl Rows for Lines {
    fn add(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        for (at, ((name, kind), value)) in self.columns.iter().zip(values).enumerate() {
            self.out.write_all(if at == 0 { b"{" } else { b"," })?;
            write!(self.out, "{name}:")?;
            match value {
                Value::Null => self.out.write_all(b"null")?,
                Value::Integer(value) => write!(self.out, "{value}")?,
                Value::Real(value) => serde_json::to_writer(&mut self.out, value)?,
                Value::Time(value) => write!(self.out, "\"{value}\"")?,
                // The text is JSON already.
                Value::Text(text) if *kind == Kind::Json => self.out.write_all(text.as_bytes())?,
                Value::Text(text) => serde_json::to_writer(&mut self.out, text)?,
            }
        }
        self.out.write_all(b"}\n")
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
