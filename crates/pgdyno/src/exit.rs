//! Exit codes, documented in docs/exit-codes.md.

use std::fmt;
use std::process::ExitCode;

/// How a command ended, when it did what it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// Something could not be done, and why has been said.
    Error,
    /// The command line or the campaign is wrong; nothing was started.
    Usage,
    /// What was compared changed by more than it may.
    RegressionGate,
    /// What was measured can't be used.
    InvalidMeasurement,
    /// A part was done, a part was not.
    Partial,
    /// Ctrl-C.
    Interrupted,
    /// What pgbench, or a command that was run, says.
    Code(u8),
}

impl Exit {
    /// How a comparison ends: a gate that is hit counts more than what can't be used.
    pub(crate) fn of_gates(is_hit: bool, is_invalid: bool) -> Self {
        match (is_hit, is_invalid) {
            (true, _) => Self::RegressionGate,
            (false, true) => Self::InvalidMeasurement,
            (false, false) => Self::Ok,
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

/// An error that is the user's to mend before anything starts: exits with 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error with those of its causes that its text does not contain.
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
