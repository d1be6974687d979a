//! The variables of one client.

use std::sync::Arc;

use crate::number::{self, IntError};
use crate::sql::{Sql, SqlPart};
use crate::{EvalError, Script, Slot, Value};

/// The values of a script's variables for one client, by [`Slot`].
///
/// A variable is undefined until it gets a value. Slots are those of the script that it was made for; another script's
/// slots mean other variables, and one beyond the script's variables panics.
#[derive(Debug, Clone)]
pub struct Variables {
    names: Arc<[String]>,
    values: Vec<Stored>,
}

#[derive(Debug, Clone, PartialEq)]
enum Stored {
    Undefined,
    Value(Value),
    /// A text, and what it is in an expression.
    Text(Box<(String, Result<Value, EvalError>)>),
}

impl Variables {
    /// The variables of a script, none of them defined.
    pub fn for_script(script: &Script) -> Self {
        let names = script.shared_names();
        let values = vec![Stored::Undefined; names.len()];
        Variables { names, values }
    }

    /// Gives a variable a value.
    pub fn set(&mut self, slot: Slot, value: Value) {
        self.values[slot.index()] = Stored::Value(value);
    }

    /// Gives a variable a text, as `-D` does. SQL gets the text as it is; an expression takes it for null, a boolean
    /// (`t`, `tru`, `yes`, `on`, `f`, `no`, `off`, …), an integer or a double, whichever it looks like first, and fails
    /// if it looks like none.
    pub fn set_text(&mut self, slot: Slot, text: &str) {
        let value = typed(&self.names[slot.index()], text);
        self.values[slot.index()] = Stored::Text(Box::new((text.to_owned(), value)));
    }

    /// The value of a variable in an expression.
    #[inline]
    pub fn get(&self, slot: Slot) -> Result<Value, EvalError> {
        match &self.values[slot.index()] {
            Stored::Value(value) => Ok(*value),
            Stored::Text(text) => text.1.clone(),
            Stored::Undefined => Err(self.undefined(slot)),
        }
    }

    /// Whether a variable has a value.
    pub fn is_defined(&self, slot: Slot) -> bool {
        self.values[slot.index()] != Stored::Undefined
    }

    /// Appends the text of a variable's value, as pgbench sends it: see [`Value::write_text`]. An undefined variable
    /// writes nothing and is an error; as a parameter of the extended protocol pgbench sends null for it.
    #[inline]
    pub fn write_text(&self, slot: Slot, out: &mut Vec<u8>) -> Result<(), EvalError> {
        match &self.values[slot.index()] {
            Stored::Value(value) => value.write_text(out),
            Stored::Text(text) => out.extend_from_slice(text.0.as_bytes()),
            Stored::Undefined => return Err(self.undefined(slot)),
        }
        Ok(())
    }

    /// Appends a statement with the variables' values in it, as the simple protocol sends it. Like pgbench, leaves
    /// undefined `:name`s as they are, for they may be no variables at all (`'HH24:MI'`).
    pub fn write_statement(&self, sql: &Sql, out: &mut Vec<u8>) {
        for part in sql.parts() {
            match part {
                SqlPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                SqlPart::Var(slot) => {
                    if self.write_text(*slot, out).is_err() {
                        out.push(b':');
                        out.extend_from_slice(self.names[slot.index()].as_bytes());
                    }
                }
            }
        }
    }

    #[cold]
    fn undefined(&self, slot: Slot) -> EvalError {
        EvalError::UndefinedVariable { name: self.names[slot.index()].clone() }
    }
}

/// What a text is in an expression.
fn typed(name: &str, text: &str) -> Result<Value, EvalError> {
    let malformed = || EvalError::MalformedVariable { name: name.to_owned(), text: text.to_owned() };
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    let begins = |word: &str| word.get(..text.len()).is_some_and(is);
    if text.is_empty() {
        return Err(malformed());
    }
    if is("null") {
        return Ok(Value::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Ok(Value::Bool(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Ok(Value::Bool(false));
    }
    let unspaced = text.trim_start_matches([' ', '\t', '\n', '\x0B', '\x0C', '\r']);
    match number::parse_int(unspaced) {
        Ok(value) => Ok(Value::Int(value)),
        Err(IntError::Range) => Err(EvalError::IntegerOutOfRange { text: text.to_owned() }),
        Err(IntError::Syntax) if matches!(unspaced, "" | "+" | "-") => {
            Err(EvalError::InvalidInteger { text: text.to_owned() })
        }
        Err(IntError::Syntax) => number::parse_double(unspaced).map(Value::Double).ok_or_else(malformed),
    }
}
