//! What can be wrong with a script: when it is read ([`ScriptError`]) and when it runs ([`EvalError`]).

use std::fmt;

use thiserror::Error;

use crate::sql::MAX_PARAMS;

/// A script that cannot be read, with the place and what was expected there.
///
/// ```text
/// my.sql:3:10: unexpected function name (foo) in command "set"
///   |
/// 3 | \set aid foo(1)
///   |          ^
///   = expected one of: abs, debug, double, …
/// ```
///
/// The message is worded as pgbench words it; pgbench's own line is that without the column.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScriptError(Box<Details>);

impl ScriptError {
    pub(crate) fn new(details: Details) -> Self {
        ScriptError(Box::new(details))
    }

    /// The error of a statement that the extended protocol cannot carry.
    pub(crate) fn too_many_params(script: &str, line: u32, statement: &str) -> Self {
        ScriptError::new(Details {
            script: script.to_owned(),
            line,
            column: 1,
            message: format!("statement has too many arguments (maximum is {MAX_PARAMS})"),
            near: None,
            command: None,
            source_line: statement.lines().next().unwrap_or_default().to_owned(),
            expected: "fewer :variables in the statement, or the simple protocol".to_owned(),
        })
    }

    /// The script's name, as given to [`Script::parse`](crate::Script::parse).
    pub fn script(&self) -> &str {
        &self.0.script
    }

    /// The line, counted from 1.
    pub fn line(&self) -> u32 {
        self.0.line
    }

    /// The column, counted in characters from 1.
    pub fn column(&self) -> u32 {
        self.0.column
    }

    /// What is wrong, in pgbench's words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The piece of text that is wrong, where there is one.
    pub fn near(&self) -> Option<&str> {
        self.0.near.as_deref()
    }

    /// The backslash command it is in, without the backslash.
    pub fn command(&self) -> Option<&str> {
        self.0.command.as_deref()
    }

    /// The line of the script that is wrong, without its line end.
    pub fn source_line(&self) -> &str {
        &self.0.source_line
    }

    /// What would have been right.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) script: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
    pub(crate) near: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) source_line: String,
    pub(crate) expected: String,
}

impl fmt::Display for Details {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: {}", self.script, self.line, self.column, self.message)?;
        if let Some(near) = &self.near {
            write!(out, " ({near})")?;
        }
        if let Some(command) = &self.command {
            write!(out, " in command \"{command}\"")?;
        }
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        write!(out, "\n{margin} |\n{number} | {}\n{margin} | ", self.source_line)?;
        // Tabs stay tabs, so that the caret stands under its character however wide they are shown.
        for passed in self.source_line.chars().take(self.column.saturating_sub(1) as usize) {
            write!(out, "{}", if passed == '\t' { '\t' } else { ' ' })?;
        }
        write!(out, "^\n{margin} = expected {}", self.expected)
    }
}

/// An expression that has no value, in pgbench's words.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalError {
    /// A variable that nothing has given a value.
    #[error("undefined variable \"{name}\"")]
    UndefinedVariable {
        /// The variable's name.
        name: String,
    },
    /// A text value that is no value of any type.
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    MalformedVariable {
        /// The variable's name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A text value made of a sign and no digit.
    #[error("invalid input syntax for type bigint: \"{text}\"")]
    InvalidInteger {
        /// The text.
        text: String,
    },
    /// A text value that is an integer beyond 64 bits.
    #[error("value \"{text}\" is out of range for type bigint")]
    IntegerOutOfRange {
        /// The text.
        text: String,
    },
    /// A value of a type that the function does not take.
    #[error("cannot coerce {from} to {to}")]
    Coercion {
        /// The type it has.
        from: &'static str,
        /// The type it should have.
        to: &'static str,
    },
    /// A double that is no 64-bit integer.
    #[error("double to int overflow for {}", fixed(*.0))]
    DoubleToInt(f64),
    /// An integer result beyond 64 bits.
    #[error("bigint {operation} out of range")]
    Overflow {
        /// `add`, `sub`, `mul` or `div`.
        operation: &'static str,
    },
    /// An integer divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// More arguments than pgbench takes.
    #[error("too many function arguments, maximum is {maximum}")]
    TooManyArguments {
        /// The most it takes.
        maximum: usize,
    },
    /// A lower bound above the upper one.
    #[error("empty range given to random")]
    EmptyRandomRange,
    /// Bounds that are more than 63 bits apart.
    #[error("random range is too large")]
    RandomRangeTooLarge,
    /// A parameter of `random_gaussian` below 2.
    #[error("gaussian parameter must be at least 2.000000 (not {})", fixed(*.0))]
    GaussianParameter(f64),
    /// A parameter of `random_exponential` that is not positive.
    #[error("exponential parameter must be greater than zero (not {})", fixed(*.0))]
    ExponentialParameter(f64),
    /// A parameter of `random_zipfian` outside its range.
    #[error("zipfian parameter must be in range [1.001, 1000] (not {})", fixed(*.0))]
    ZipfianParameter(f64),
    /// A size of `permute` that is not positive.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
}

/// A double as PostgreSQL's `%f` prints it.
fn fixed(value: f64) -> String {
    if value.is_finite() {
        return format!("{value:.6}");
    }
    let mut text = Vec::new();
    crate::number::write_double(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
