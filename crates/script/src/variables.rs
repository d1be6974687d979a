//! The variables of one client.

use crate::names::{Names, is_valid_variable_name};
use crate::number::{self, IntError};
use crate::sql::{Sql, SqlPart};
use crate::{EvalError, Slot, Value};

/// The values of a load's variables for one client, by [`Slot`].
///
/// A variable is undefined until it gets a value. Slots are those of the [`Names`] passed to [`Variables::new`]; a slot
/// allocated later panics.
#[derive(Debug, Clone)]
pub struct Variables {
    names: Names,
    values: Box<[Stored]>,
    /// The texts of [`Stored::Text`]. A variable keeps its own, and its capacity, while it has another value.
    texts: Vec<(Slot, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stored {
    Undefined,
    /// Undefined forever: its name is invalid.
    Invalid,
    Value(Value),
    /// A text, by its index.
    Text(u16),
}

impl Variables {
    /// The variables of a load, none of them defined.
    pub fn new(names: &Names) -> Self {
        let undefined =
            |(_, name)| if is_valid_variable_name(name) { Stored::Undefined } else { Stored::Invalid };
        Variables { names: names.clone(), values: names.iter().map(undefined).collect(), texts: Vec::new() }
    }

    /// Assigns a value to a variable.
    ///
    /// # Errors
    ///
    /// When its name is not [valid](is_valid_variable_name), which pgbench detects only now (`\set . 1`).
    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) -> Result<(), EvalError> {
        let stored = &mut self.values[slot.index()];
        if *stored == Stored::Invalid {
            return Err(self.invalid(slot));
        }
        *stored = Stored::Value(value);
        Ok(())
    }

    /// Assigns a text to a variable, as `-D`, `\gset` and `\aset` do. SQL gets the text as it is; an expression
    /// converts it to null, a boolean (`t`, `tru`, `yes`, `on`, `f`, `no`, `off`, …), an integer or a double, the first
    /// that it matches, and fails if it matches none. Allocates only when the variable has had no text as long as this
    /// one.
    ///
    /// # Errors
    ///
    /// Same as [`Variables::set`].
    pub fn set_text(&mut self, slot: Slot, text: impl AsRef<[u8]>) -> Result<(), EvalError> {
        let index = match self.values[slot.index()] {
            Stored::Text(index) => usize::from(index),
            Stored::Invalid => return Err(self.invalid(slot)),
            Stored::Undefined | Stored::Value(_) => {
                let known = self.texts.iter().position(|(owner, _)| *owner == slot);
                let index = known.unwrap_or(self.texts.len());
                if known.is_none() {
                    self.texts.push((slot, Vec::new()));
                }
                // There are no more texts than slots.
                self.values[slot.index()] = Stored::Text(index as u16);
                index
            }
        };
        let kept = &mut self.texts[index].1;
        kept.clear();
        kept.extend_from_slice(text.as_ref());
        Ok(())
    }

    /// Returns the value of a variable in an expression.
    ///
    /// # Errors
    ///
    /// When it is undefined, or a text that is not a value.
    #[inline]
    pub fn get(&self, slot: Slot) -> Result<Value, EvalError> {
        match self.values[slot.index()] {
            Stored::Value(value) => Ok(value),
            Stored::Text(index) => parse_value(self.names.name(slot), &self.texts[usize::from(index)].1),
            Stored::Undefined | Stored::Invalid => Err(self.undefined(slot)),
        }
    }

    /// Returns the value of a variable, unless it is a text.
    pub(crate) fn value(&self, slot: Slot) -> Option<Value> {
        match self.values[slot.index()] {
            Stored::Value(value) => Some(value),
            Stored::Undefined | Stored::Invalid | Stored::Text(_) => None,
        }
    }

    /// Whether a variable has a value.
    pub fn is_defined(&self, slot: Slot) -> bool {
        !matches!(self.values[slot.index()], Stored::Undefined | Stored::Invalid)
    }

    /// Returns the names that it was created for.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Appends the text of a variable's value, as pgbench sends it: see [`Value::write_text`]. An undefined variable
    /// writes nothing and is an error; as a parameter of the extended protocol pgbench sends null for it.
    #[inline]
    pub fn write_text(&self, slot: Slot, out: &mut Vec<u8>) -> Result<(), EvalError> {
        match self.values[slot.index()] {
            Stored::Value(value) => value.write_text(out),
            Stored::Text(index) => out.extend_from_slice(&self.texts[usize::from(index)].1),
            Stored::Undefined | Stored::Invalid => return Err(self.undefined(slot)),
        }
        Ok(())
    }

    /// Appends a statement with the variables' values in it, as the simple protocol sends it. Like pgbench, leaves
    /// undefined `:name`s as they are, for they may not be variables (`'HH24:MI'`).
    pub fn write_statement(&self, sql: &Sql, out: &mut Vec<u8>) {
        for part in sql.parts() {
            match part {
                SqlPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                SqlPart::Var(slot) => {
                    if self.is_defined(*slot) && self.write_text(*slot, out).is_ok() {
                        continue;
                    }
                    out.push(b':');
                    out.extend_from_slice(self.names.name(*slot).as_bytes());
                }
            }
        }
    }

    #[cold]
    fn undefined(&self, slot: Slot) -> EvalError {
        EvalError::UndefinedVariable { name: self.names.name(slot).to_owned() }
    }

    #[cold]
    fn invalid(&self, slot: Slot) -> EvalError {
        EvalError::InvalidVariableName { name: self.names.name(slot).to_owned() }
    }
}

/// The value of a text in an expression.
fn parse_value(name: &str, bytes: &[u8]) -> Result<Value, EvalError> {
    let shown = || String::from_utf8_lossy(bytes).into_owned();
    let malformed = || EvalError::MalformedVariable { name: name.to_owned(), text: shown() };
    let is = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
    let begins =
        |word: &str| word.as_bytes().get(..bytes.len()).is_some_and(|w| bytes.eq_ignore_ascii_case(w));
    match bytes.first() {
        None => return Err(malformed()),
        Some(first) if !first.is_ascii_alphabetic() => {}
        Some(_) if is("null") => return Ok(Value::Null),
        Some(_) if begins("true") || begins("yes") || is("on") => return Ok(Value::Bool(true)),
        Some(_) if begins("false") || begins("no") || is("off") || is("of") => return Ok(Value::Bool(false)),
        Some(_) => {}
    }
    let text = str::from_utf8(bytes).map_err(|_| malformed())?;
    let unspaced = text.trim_start_matches([' ', '\t', '\n', '\x0B', '\x0C', '\r']);
    match number::parse_int(unspaced) {
        Ok(value) => Ok(Value::Int(value)),
        Err(IntError::Range) => Err(EvalError::IntegerOutOfRange { text: shown() }),
        Err(IntError::Syntax) if matches!(unspaced, "" | "+" | "-") => {
            Err(EvalError::InvalidInteger { text: shown() })
        }
        Err(IntError::Syntax) => number::parse_double(unspaced).map(Value::Double).ok_or_else(malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_small() {
        assert_eq!(size_of::<Stored>(), 16);
    }

    #[test]
    fn texts_keep_their_capacity() {
        let mut names = Names::default();
        let (a, b) = (names.slot("a").unwrap(), names.slot("b").unwrap());
        let mut variables = Variables::new(&names);
        variables.set_text(a, "a long text").unwrap();
        let buffer = variables.texts[0].1.as_ptr();
        variables.set(a, Value::Int(1)).unwrap();
        variables.set_text(b, "b").unwrap();
        assert_eq!(variables.get(a), Ok(Value::Int(1)));
        variables.set_text(a, b"17").unwrap();
        assert_eq!(variables.get(a), Ok(Value::Int(17)));
        assert_eq!((variables.texts.len(), variables.texts[0].1.as_ptr()), (2, buffer));
    }

    #[test]
    fn a_text_in_an_unknown_encoding_is_sent_unchanged() {
        let mut names = Names::default();
        let slot = names.slot("latin1").unwrap();
        let mut variables = Variables::new(&names);
        variables.set_text(slot, b"\xE4").unwrap();
        let mut out = Vec::new();
        variables.write_text(slot, &mut out).unwrap();
        assert_eq!(out, b"\xE4");
        assert!(matches!(variables.get(slot), Err(EvalError::MalformedVariable { .. })));
    }

    #[test]
    fn variables_with_invalid_names_have_no_value() {
        let mut names = Names::default();
        let slot = names.slot(".").unwrap();
        let mut variables = Variables::new(&names);
        let error = EvalError::InvalidVariableName { name: ".".to_owned() };
        assert_eq!(variables.set(slot, Value::Int(1)), Err(error.clone()));
        assert_eq!(variables.set_text(slot, "1"), Err(error));
        assert!(!variables.is_defined(slot));
    }
}
