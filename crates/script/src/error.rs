//! Errors of a script: in parsing ([`ScriptError`]) and in execution ([`EvalError`]).

use std::fmt;

use thiserror::Error;

/// An error in parsing a script, in pgbench's form and words, with the expected input.
///
/// ```text
/// my.sql:3: unexpected function name (foo) in command "set"
/// \set aid foo(1)
///          ^ error found here
/// expected one of: abs, debug, double, …
/// ```
///
/// The caret marks the beginning of the error (pgbench's its end), and for a command of several lines the line of the
/// error is shown and counted (pgbench shows all of them, and counts the first).
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

    /// The problem, in pgbench's words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The wrong piece of text, if there is one.
    pub fn near(&self) -> Option<&str> {
        self.0.near.as_deref()
    }

    /// The backslash command that contains it, without the backslash.
    pub fn command(&self) -> Option<&str> {
        self.0.command.as_deref()
    }

    /// The wrong line of the script, without its line end.
    pub fn source_line(&self) -> &str {
        &self.0.source_line
    }

    /// The expected input.
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
    /// The first line of the message, if it is not the usual one.
    pub(crate) headline: Option<String>,
}

impl fmt::Display for Details {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = format!("{}:{}: ", self.script, self.line);
        match &self.headline {
            Some(headline) => write!(out, "{headline}")?,
            None => {
                write!(out, "{location}{}", self.message)?;
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
            // Tabs stay tabs, so that the caret is below its character at any tab width.
            for passed in self.source_line.chars().take(self.column.saturating_sub(1) as usize) {
                write!(out, "{}", if passed == '\t' { '\t' } else { ' ' })?;
            }
            write!(out, "^ error found here")?;
        }
        let location = if self.headline.is_some() { location.as_str() } else { "" };
        write!(out, "\n{location}expected {}", self.expected)
    }
}

/// Errors of running a command, in pgbench's words: mostly expressions that have no value.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalError {
    /// An undefined variable.
    #[error("undefined variable \"{name}\"")]
    UndefinedVariable {
        /// The variable's name.
        name: String,
    },
    /// An assignment to a variable with an invalid name. pgbench puts the command's name before the message.
    #[error("invalid variable name: \"{name}\"")]
    InvalidVariableName {
        /// Its name.
        name: String,
    },
    /// An undefined variable outside of an expression.
    #[error("{command}: undefined variable \"{name}\"")]
    UndefinedIn {
        /// `sleep`, or the name of the shell command.
        command: String,
        /// The variable's name, in a shell command with its colon.
        name: String,
    },
    /// A variable whose value is not a sleep time.
    #[error("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")]
    InvalidSleep {
        /// Its text.
        text: String,
        /// Its name.
        name: String,
    },
    /// A shell command longer than pgbench accepts.
    #[error("{command}: shell command is too long")]
    ShellTooLong {
        /// Its name.
        command: String,
    },
    /// A shell command without output.
    #[error("{command}: could not read result of shell command")]
    ShellNoResult {
        /// Its name.
        command: String,
    },
    /// A shell command whose output is not an integer.
    #[error("{command}: shell command must return an integer (not \"{text}\")")]
    ShellResult {
        /// Its name.
        command: String,
        /// Its output.
        text: String,
    },
    /// A text that is not a value of any type.
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    MalformedVariable {
        /// The variable's name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A text with a sign and no digit.
    #[error("invalid input syntax for type bigint: \"{text}\"")]
    InvalidInteger {
        /// The text.
        text: String,
    },
    /// A text with an integer beyond 64 bits.
    #[error("value \"{text}\" is out of range for type bigint")]
    IntegerOutOfRange {
        /// The text.
        text: String,
    },
    /// A value of a type that the function does not accept.
    #[error("cannot coerce {from} to {to}")]
    Coercion {
        /// Actual type.
        from: &'static str,
        /// Expected type.
        to: &'static str,
    },
    /// A double that does not fit a 64-bit integer.
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
    /// More arguments than pgbench accepts.
    #[error("too many function arguments, maximum is {maximum}")]
    TooManyArguments {
        /// Maximum number of arguments.
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
