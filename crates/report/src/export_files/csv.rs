//! Comma-separated values: null is an empty field, an empty text is `""`.

use std::io::{self, Write};

use crate::export_tables::{Table, Value};

use super::Rows;

struct Csv(Box<dyn Write + Send>);

pub(super) fn rows(mut out: Box<dyn Write + Send>, table: Table) -> io::Result<Box<dyn Rows>> {
    let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join(","))?;
    Ok(Box::new(Csv(out)))
}

impl Rows for Csv {
    fn add(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.0.write_all(b",")?;
            }
            match value {
                Value::Null => {}
                Value::Integer(value) => write!(self.0, "{value}")?,
                Value::Real(value) => write!(self.0, "{value}")?,
                Value::Time(value) => write!(self.0, "{value}")?,
                Value::Text(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                    write!(self.0, "\"{}\"", text.replace('"', "\"\""))?;
                }
                Value::Text(text) => self.0.write_all(text.as_bytes())?,
            }
        }
        self.0.write_all(b"\n")
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}
