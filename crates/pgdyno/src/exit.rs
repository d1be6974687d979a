//! Exit codes, documented in docs/exit-codes.md.

use std::fmt;
use std::process::ExitCode;

use analysis::compare::{CompareError, Gates};
use analysis::history::HistoryError;
use analysis::power::NoiseError;
use clap::ValueEnum;
use fleet::FleetError;
use import::{ImportError, PersistError};
use model::secret::mask;
use runner::RunError;
use runner::campaign_file::CampaignFileError;
use runner::campaign_file::overrides::OverrideError;
use runner::reboots::RebootError;
use runner::resume::ResumeError;

use crate::output::note;
use crate::snippet;

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// Failure, already reported.
    Error,
    /// Wrong command line or campaign; nothing was started.
    Usage,
    /// A gate is hit: a change exceeds its bound.
    RegressionGate,
    /// No usable measurement.
    InvalidMeasurement,
    /// Incomplete.
    Partial,
    /// No gate is hit, but one is not decided.
    UndecidedGate,
    /// Ctrl-C.
    Interrupted,
    /// Exit code of pgbench, or of a command.
    Code(u8),
}

impl Exit {
    /// Outcome of a comparison: a gate that is hit takes precedence over unusable cells, and these over gates that are
    /// not decided.
    pub(crate) fn from_gates(gates: Gates, undecided: Option<Undecided>, is_invalid: bool) -> Self {
        match (gates, undecided) {
            (Gates { hit: true, .. }, _) | (Gates { undecided: true, .. }, Some(Undecided::Fail)) => {
                Self::RegressionGate
            }
            _ if is_invalid => Self::InvalidMeasurement,
            (Gates { undecided: true, .. }, None) => Self::UndecidedGate,
            _ => Self::Ok,
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
            Self::UndecidedGate => 6,
            Self::Interrupted => 130,
            Self::Code(code) => code,
        }
    }
}

/// What a gate that is not decided means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Undecided {
    /// As if it were not hit
    Pass,
    /// As if it were hit
    Fail,
}

/// Error in the command line or the campaign, found before anything starts: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl Usage {
    /// Converts an error that the user caused.
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

/// Prints an error with its causes, without secrets, to standard error.
pub(crate) fn print_error(error: &anyhow::Error) {
    note(&format!("error: {}\n", mask(&with_causes(error))));
}

/// Prints an error to standard error and returns the process's exit code.
pub(crate) fn report(outcome: anyhow::Result<Exit>) -> ExitCode {
    let exit = outcome.unwrap_or_else(|error| {
        if let Some(message) = usage(&error) {
            note(&format!("{message}\n"));
            return Exit::Usage;
        }
        if let Some(RunError::Server(server::Error::Identical { .. })) = error.downcast_ref() {
            note(&format!("{error}\n"));
            return Exit::Ok;
        }
        let is_interrupt = matches!(error.downcast_ref(), Some(RunError::Interrupted))
            || matches!(error.downcast_ref(), Some(FleetError::Interrupted));
        if is_interrupt {
            note("interrupted before the first trial\n");
            return Exit::Interrupted;
        }
        print_error(&error);
        Exit::Error
    });
    ExitCode::from(exit.code())
}

/// Message of an error that the user can correct on the command line or in the campaign.
fn usage(error: &anyhow::Error) -> Option<String> {
    if let Some(Usage(message)) = error.downcast_ref() {
        return Some(message.clone());
    }
    let campaign = match error.downcast_ref() {
        Some(ResumeError::Campaign(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    match campaign {
        Some(CampaignFileError::Invalid { path, text, error }) => {
            return Some(snippet::render(path, text, error));
        }
        Some(CampaignFileError::Script(message)) => return Some(mask(message)),
        _ => {}
    }
    let is_usage = campaign.is_some_and(CampaignFileError::is_usage)
        || error.is::<OverrideError>()
        || error.downcast_ref().is_some_and(ResumeError::is_usage)
        || error.downcast_ref().is_some_and(RebootError::is_usage)
        || error.downcast_ref().is_some_and(FleetError::is_usage)
        || error.downcast_ref().is_some_and(CompareError::is_usage)
        || error.downcast_ref().is_some_and(HistoryError::is_usage)
        || matches!(error.downcast_ref(), Some(RunError::Confounded { .. }))
        || matches!(error.downcast_ref(), Some(ImportError::NoColumn { .. } | ImportError::Level(_)))
        || matches!(error.downcast_ref(), Some(PersistError::AlreadyStored { .. }))
        || matches!(error.downcast_ref(), Some(NoiseError::Unknown { .. }));
    is_usage.then(|| format!("error: {}", mask(&error.to_string())))
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
