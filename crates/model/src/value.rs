//! Values of a campaign: words and numbers, each checked with its place in the text.

use std::borrow::Borrow;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, de};
use strum::VariantArray;

/// A value of a campaign with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct Spanned<T>(toml::Spanned<T>);

impl<T> Spanned<T> {
    /// A value with its byte range in the text.
    pub fn new(span: Range<usize>, value: T) -> Self {
        Self(toml::Spanned::new(span, value))
    }

    /// Its byte range in the text.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// The value, without its place.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl Borrow<str> for Spanned<String> {
    fn borrow(&self) -> &str {
        self.get_ref()
    }
}

/// Reason why a campaign can't be used, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// Description of the error.
    pub message: String,
    /// Byte range of the error in the campaign's text; none for the whole file.
    pub at: Option<Range<usize>>,
    /// Expected value, or what to do.
    pub help: Option<String>,
}

impl SpecError {
    /// An error at the place of a value.
    pub fn at<T>(place: &Spanned<T>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(place.span()), help: Some(help.into()) }
    }
}

/// Parses TOML strictly.
pub(crate) fn parse<T: de::DeserializeOwned>(text: &str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| {
        let (message, help) = split_expectation(error.message());
        SpecError { message, at: error.span(), help }
    })
}

/// Splits "description, expected …" at the comma, to show the expectation as help.
fn split_expectation(message: &str) -> (String, Option<String>) {
    let message = message.trim_end();
    match message.split_once(", expected ") {
        Some((what, "a sequence")) => (what.to_owned(), Some("expected a list in [brackets]".to_owned())),
        Some((what, expected)) => (what.to_owned(), Some(format!("expected {expected}"))),
        None => (message.to_owned(), None),
    }
}

/// Accepts a word that is safe in tables, file names and environment variables.
pub(crate) fn check_name(given: &Spanned<String>, what: &str) -> Result<(), SpecError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let text = given.get_ref();
    if !text.is_empty() && text.len() <= 60 && text.chars().all(is_allowed) {
        return Ok(());
    }
    Err(SpecError::at(
        given,
        format!("\"{text}\" is not a valid {what}"),
        "expected 1 to 60 letters, digits, `-`, `_`, `.` or `+`",
    ))
}

/// Accepts an integer in a range.
pub(crate) fn integer(given: &Spanned<i64>, what: &str, min: i64, max: i64) -> Result<i64, SpecError> {
    in_range(given, *given.get_ref(), what, min, max)
}

/// Accepts the number of a value if it is in a range.
pub(crate) fn in_range<T>(
    given: &Spanned<T>,
    value: i64,
    what: impl Display,
    min: i64,
    max: i64,
) -> Result<i64, SpecError> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(
        given,
        format!("{what} = {value} is out of range"),
        format!("expected a whole number from {min} to {max}"),
    ))
}

/// A number, or a word for a number that follows from the machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "a number or a word")]
pub enum CountOrWord {
    /// The number.
    Count(i64),
    /// The word.
    Word(String),
}

impl CountOrWord {
    /// The number, from 1 to `max`; none for this word.
    pub(crate) fn check(
        given: &Spanned<Self>,
        what: &str,
        word: &str,
        max: i64,
    ) -> Result<Option<u32>, SpecError> {
        match given.get_ref() {
            Self::Count(number) => in_range(given, *number, what, 1, max).map(|number| Some(number as u32)),
            Self::Word(text) if text == word => Ok(None),
            Self::Word(text) => Err(SpecError::at(
                given,
                format!("{what} = \"{text}\" is not a number"),
                format!("expected a whole number from 1 to {max}, or \"{word}\""),
            )),
        }
    }
}

/// Values named by a fixed list of words in campaigns and bundles.
pub(crate) trait Word: Copy + Into<&'static str> + FromStr + VariantArray {}

impl<T: Copy + Into<&'static str> + FromStr + VariantArray> Word for T {}

/// All words of a list.
pub(crate) fn names<T: Word>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|value| (*value).into()).collect()
}

/// The value named by a word of a fixed list.
pub(crate) fn word<T: Word>(given: &Spanned<String>, what: &str) -> Result<T, SpecError> {
    let known: Vec<(&str, T)> = T::VARIANTS.iter().map(|value| ((*value).into(), *value)).collect();
    one_of(given, what, &known)
}

/// The value named by a word.
pub(crate) fn one_of<T: Copy>(
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
