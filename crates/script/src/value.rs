//! The values of expressions and variables.

use crate::EvalError;
use crate::number;

/// A value: SQL's null, a boolean, a 64-bit integer or a double.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
}

impl Value {
    /// Appends the value as pgbench puts it into a statement: `NULL`, `true`, `-7`, and doubles with 15 significant
    /// digits as PostgreSQL's `%.15g` prints them (`0.3`, `1e+15`, `Infinity`, `NaN`).
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(value) => number::write_int(value, out),
            Value::Double(value) => number::write_double(value, out),
        }
    }

    /// Appends the value with its type, as in pgbench's `debug()`: `null`, `boolean true`, `int 7`, `double 0.5`.
    pub fn write_debug(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.type_name().as_bytes());
        if self != Value::Null {
            out.push(b' ');
            self.write_text(out);
        }
    }

    /// Whether a condition of `CASE WHEN` (and `\if`) holds: null and zero do not.
    pub fn is_truthy(self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(value) => value,
            Value::Int(value) => value != 0,
            Value::Double(value) => value != 0.0,
        }
    }

    /// Returns the name of the value's type in pgbench's messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "int",
            Value::Double(_) => "double",
        }
    }

    pub(crate) fn is_null(self) -> bool {
        matches!(self, Value::Null)
    }

    pub(crate) fn to_bool(self) -> Result<bool, EvalError> {
        match self {
            Value::Bool(value) => Ok(value),
            _ => Err(self.coercion_error("boolean")),
        }
    }

    /// The value as an integer; doubles are rounded to the nearest, halves to the even one.
    pub(crate) fn to_int(self) -> Result<i64, EvalError> {
        match self {
            Value::Int(value) => Ok(value),
            Value::Double(value) => {
                let rounded = value.round_ties_even();
                // 2^63 itself is a double, the greatest i64 is not.
                let fits = (-TWO_POW_63..TWO_POW_63).contains(&rounded);
                if fits { Ok(rounded as i64) } else { Err(EvalError::DoubleToInt(rounded)) }
            }
            _ => Err(self.coercion_error("int")),
        }
    }

    pub(crate) fn to_double(self) -> Result<f64, EvalError> {
        match self {
            Value::Double(value) => Ok(value),
            Value::Int(value) => Ok(value as f64),
            _ => Err(self.coercion_error("double")),
        }
    }

    fn coercion_error(self, to: &'static str) -> EvalError {
        EvalError::Coercion { from: self.type_name(), to }
    }
}

const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
