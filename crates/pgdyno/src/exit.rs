//! Exit codes, documented in docs/exit-codes.md.

use std::fmt;
use std::process::ExitCode;

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// Failure, already reported.
    Error,
    /// Wrong command line or campaign; nothing was started.
    Usage,
    /// A gate is hit: a change beyond what is allowed.
    RegressionGate,
    /// No usable measurement.
    InvalidMeasurement,
    /// Only a part was done.
    Partial,
    /// Ctrl-C.
    Interrupted,
    /// Exit code of pgbench, or of a command.
    Code(u8),
}

impl Exit {
    /// Outcome of a comparison: a gate that is hit takes precedence over unusable cells.
    pub(crate) fn from_gates(is_hit: bool, is_invalid: bool) -> Self {
        if is_hit {
            Self::RegressionGate
        } else if is_invalid {
            Self::InvalidMeasurement
        } else {
            Self::Ok
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::RegressionGate => 3,
            Self::InvalidMeasurement => 4,
            Self::Partial => 5,
            Self::Interrupted => 130,
            Self::Code(code) => code,
        }
    }
}

/// Error in the command line or the campaign, found before anything starts: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl Usage {
    /// An error as the user's mistake.
    pub(crate) fn from_error(error: impl fmt::Display) -> Self {
        Self(format!("error: {error}"))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error with the causes that its text does not contain.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Prints an error with its causes to standard error.
#[allow(clippy::print_stderr)]
pub(crate) fn print_error(error: &anyhow::Error) {
    eprintln!("error: {}", with_causes(error));
}

/// Prints an error to standard error and returns the process's exit code.
#[allow(clippy::print_stderr)]
pub(crate) fn report(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => match error.downcast_ref::<Usage>() {
            Some(usage) => {
                eprintln!("{usage}");
                ExitCode::from(Exit::Usage.code())
            }
            None => {
                print_error(&error);
                ExitCode::FAILURE
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_printed_twice() {
        let error = anyhow::anyhow!("disk full").context("could not write x: disk full").context("trial 7");
        assert_eq!(with_causes(&error), "trial 7: could not write x: disk full");
    }
}
