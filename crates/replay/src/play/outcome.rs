//! Comparison of what statements did with what they did when they were recorded.

use driver::PlayedEnd;

use crate::statement::Outcome;

/// Whether a statement ended as recorded; None if that is not known, or it was not executed.
pub(super) fn is_as_recorded(recorded: Outcome, played: &PlayedEnd) -> Option<bool> {
    Some(match (recorded, played) {
        (Outcome::Unknown, _) | (_, PlayedEnd::NotExecuted) => return None,
        (Outcome::Success, PlayedEnd::Success) => true,
        (Outcome::Failure(Some(recorded)), PlayedEnd::Failure(played)) => recorded.as_str() == played,
        (Outcome::Failure(None), PlayedEnd::Failure(_)) => true,
        (Outcome::Success, PlayedEnd::Failure(_)) | (Outcome::Failure(_), PlayedEnd::Success) => false,
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::SqlState;

    #[test]
    fn outcomes_are_compared_by_sqlstate() {
        let failure = |state: &str| PlayedEnd::Failure(state.to_owned());
        let recorded = Outcome::Failure(SqlState::parse("23505"));
        for (recorded, played, expected) in [
            (Outcome::Success, PlayedEnd::Success, Some(true)),
            (Outcome::Success, failure("23505"), Some(false)),
            (recorded, failure("23505"), Some(true)),
            (recorded, failure("23503"), Some(false)),
            (recorded, PlayedEnd::Success, Some(false)),
            (Outcome::Failure(None), failure("23503"), Some(true)),
            (Outcome::Unknown, PlayedEnd::Success, None),
            (Outcome::Success, PlayedEnd::NotExecuted, None),
        ] {
            assert_eq!(is_as_recorded(recorded, &played), expected, "{recorded:?} {played:?}");
        }
    }
}
