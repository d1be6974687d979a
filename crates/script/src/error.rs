//! What can be wrong with a script: when it is read ([`ScriptError`]) and when it runs ([`EvalError`]).

use std::fmt;

use thiserror::Error;

/// A script that cannot be read, in pgbench's form and words, with what was expected.
///
/// ```text
/// my.sql:3: unexpected function name (foo) in command "set"
/// \set aid foo(1)
///          ^ error found here
/// expected one of: abs, debug, double, …
/// ```
///
/// The caret stands at the beginning of what is wrong (pgbench's at its end), and of a command that goes over several
/// lines the line of the error is shown and counted (by pgbench all of them, and the first counted).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScriptError(Box<Details>);

impl ScriptError {
    pub(crate) fn new(details: Details) -> Self {
        ScriptError(Box::new(details))
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
    /// The first line of the message, where it is not the usual one.
    pub(crate) headline: Option<String>,
}

impl fmt::Display for Details {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = format!("{}:{}: ", self.script, self.line);
        match &self.headline {
            Some(headline) => write!(out, "{headline}")?,
            None => {
                write!(out, "{place}{}", self.message)?;
                if let Some(near) = &self.near {
                    write!(out, " ({near})")?;
                }
                if let Some(command) = &self.command {
                    write!(out, " in command \"{command}\"")?;
                }
            }
        }
        if !self.source_line.is_empty() {
            write!(out, "\n{}\n", self.source_line)?;
            // Tabs stay tabs, so that the caret stands under its character however wide they are shown.
            for passed in self.source_line.chars().take(self.column.saturating_sub(1) as usize) {
                write!(out, "{}", if passed == '\t' { '\t' } else { ' ' })?;
            }
            write!(out, "^ error found here")?;
        }
        let place = if self.headline.is_some() { place.as_str() } else { "" };
        write!(out, "\n{place}expected {}", self.expected)
    }
}

/// What goes wrong when a command runs, in pgbench's words: most often an expression that has no value.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalError {
    /// A variable that nothing has given a value.
    #[error("undefined variable \"{name}\"")]
    UndefinedVariable {
        /// The variable's name.
        name: String,
    },
    /// A variable that cannot have a value. pgbench puts the command's name before the message.
    #[error("invalid variable name: \"{name}\"")]
    InvalidVariableName {
        /// Its name.
        name: String,
    },
    /// A variable that nothing has given a value, elsewhere than in an expression.
    #[error("{command}: undefined variable \"{name}\"")]
    UndefinedIn {
        /// `sleep`, or the name of the shell command.
        command: String,
        /// The variable's name, in a shell command with its colon.
        name: String,
    },
    /// A variable that is no time to sleep.
    #[error("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")]
    InvalidSleep {
        /// Its text.
        text: String,
        /// Its name.
        name: String,
    },
    /// A shell command longer than pgbench takes.
    #[error("{command}: shell command is too long")]
    ShellTooLong {
        /// Its name.
        command: String,
    },
    /// A shell command that writes nothing.
    #[error("{command}: could not read result of shell command")]
    ShellNoResult {
        /// Its name.
        command: String,
    },
    /// A shell command that writes something else than an integer.
    #[error("{command}: shell command must return an integer (not \"{text}\")")]
    ShellResult {
        /// Its name.
        command: String,
        /// What it writes.
        text: String,
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
