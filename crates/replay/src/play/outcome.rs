//! Outcomes of statements in words.

use driver::PlayedEnd;
use trace::Outcome;

/// A recorded outcome in words: `success`, an SQLSTATE.
pub(super) fn recorded_text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Success => "success".to_owned(),
        Outcome::Failure(Some(state)) => state.to_string(),
        Outcome::Failure(None) => "failure".to_owned(),
        Outcome::Unknown => "unknown".to_owned(),
    }
}

/// A played outcome in the same words.
pub(super) fn played_text(end: &PlayedEnd) -> String {
    match end {
        PlayedEnd::Success => "success".to_owned(),
        PlayedEnd::Failure(state) => state.clone(),
        PlayedEnd::NotExecuted => "not executed".to_owned(),
    }
}
