//! Rows of a result as Rust values. The server writes them as text.

use std::str::FromStr;

use crate::Values;

/// The text of a column does not fit the requested type, or there are too few columns.
#[derive(Debug, thiserror::Error)]
#[error("column {column} is {found}, expected {expected}")]
pub struct RowError {
    /// Number of the column, from 1.
    column: usize,
    found: String,
    expected: &'static str,
}

/// A value of a column.
pub trait FromText: Sized {
    /// Description of the type, for errors.
    const EXPECTED: &'static str;

    /// Parses a column's text, none for null; returns none if it does not fit.
    fn from_text(text: Option<&str>) -> Option<Self>;
}

macro_rules! from_str {
    ($($type:ty => $expected:literal),*) => {
        $(impl FromText for $type {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: Option<&str>) -> Option<Self> {
                <$type>::from_str(text?).ok()
            }
        })*
    };
}

from_str!(
    i32 => "an integer", i64 => "an integer", u32 => "a natural number", u64 => "a natural number",
    f64 => "a number", String => "a text"
);

impl FromText for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_text(text: Option<&str>) -> Option<Self> {
        match text? {
            "t" => Some(true),
            "f" => Some(false),
            _ => None,
        }
    }
}

impl<T: FromText> FromText for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_text(text: Option<&str>) -> Option<Self> {
        match text {
            None => Some(None),
            text => T::from_text(text).map(Some),
        }
    }
}

/// A row: one value, a tuple of values, or a vector of values of one type.
pub trait FromRow: Sized {
    /// Reads the columns in order; extra columns are ignored.
    ///
    /// # Errors
    ///
    /// If a column is missing, or does not fit its type.
    fn from_row(values: Values<'_>) -> Result<Self, RowError>;
}

impl<T: FromText> FromRow for T {
    fn from_row(mut values: Values<'_>) -> Result<Self, RowError> {
        next(1, &mut values)
    }
}

impl<T: FromText> FromRow for Vec<T> {
    fn from_row(values: Values<'_>) -> Result<Self, RowError> {
        (1..).zip(values).map(|(column, value)| parse_column(column, value)).collect()
    }
}

macro_rules! tuple {
    ($($kind:ident $column:literal),*) => {
        impl<$($kind: FromText),*> FromRow for ($($kind,)*) {
            fn from_row(mut values: Values<'_>) -> Result<Self, RowError> {
                Ok(($(next::<$kind>($column, &mut values)?,)*))
            }
        }
    };
}

tuple!(A 1, B 2);
tuple!(A 1, B 2, C 3);
tuple!(A 1, B 2, C 3, D 4);
tuple!(A 1, B 2, C 3, D 4, E 5);
tuple!(A 1, B 2, C 3, D 4, E 5, F 6);

fn next<T: FromText>(column: usize, values: &mut Values<'_>) -> Result<T, RowError> {
    let missing = || RowError { column, found: "missing".to_owned(), expected: T::EXPECTED };
    parse_column(column, values.next().ok_or_else(missing)?)
}

/// Text of a database without an encoding may be invalid UTF-8.
fn parse_column<T: FromText>(column: usize, value: Option<&[u8]>) -> Result<T, RowError> {
    let text = value.map(String::from_utf8_lossy);
    T::from_text(text.as_deref()).ok_or_else(|| {
        let found = text.map_or_else(|| "null".to_owned(), |text| format!("\"{text}\""));
        RowError { column, found, expected: T::EXPECTED }
    })
}
