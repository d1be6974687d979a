//! Words and numbers, each checked at its place.

use std::fmt::Display;

use toml::Spanned;

use crate::spec::SpecError;

/// A word that is fit for tables, file names and environments.
pub(super) fn plain(given: &Spanned<String>, what: &str) -> Result<(), SpecError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let text = given.get_ref();
    if !text.is_empty() && text.len() <= 60 && text.chars().all(fits) {
        return Ok(());
    }
    Err(SpecError::at(
        given,
        format!("\"{text}\" can't be the {what}"),
        "expected 1 to 60 letters, digits, `-`, `_`, `.` or `+`",
    ))
}

pub(super) fn whole(given: &Spanned<i64>, what: &str, least: i64, most: i64) -> Result<i64, SpecError> {
    in_range(given, *given.get_ref(), what, least, most)
}

pub(super) fn in_range<T>(
    given: &Spanned<T>,
    value: i64,
    what: impl Display,
    least: i64,
    most: i64,
) -> Result<i64, SpecError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(
        given,
        format!("{what} = {value} is out of range"),
        format!("expected a whole number from {least} to {most}"),
    ))
}

pub(super) fn one_of<T: Copy>(
    given: &Spanned<String>,
    what: &str,
    known: &[(&str, T)],
) -> Result<T, SpecError> {
    let name = given.get_ref();
    if let Some((_, value)) = known.iter().find(|(known, _)| known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(SpecError::at(
        given,
        format!("there is no {what} \"{name}\""),
        format!("expected {}", names.join(", ")),
    ))
}
