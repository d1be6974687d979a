//! The length of the measured window.

use serde_json::Value;

use super::{Axis, Column, Figure, LevelError, Place, duration_schema, parse_duration};
use crate::definitions::Definitions;
use crate::units::Span;
use crate::value::{Spanned, SpecError};

/// Minimum length of the window.
const MIN_DURATION_US: u64 = 100_000;

/// The factor `duration`.
#[derive(Clone, Copy, Debug)]
pub struct Duration;

impl Axis for Duration {
    type Level = Span;
    type Written = Span;
    type Stored = u64;

    const KEY: &'static str = "duration";
    const DESCRIPTION: &'static str =
        "lengths of the measured window: a number and `us`, `ms`, `s`, `min` (or `m`) or `h`";
    const EXAMPLE: &'static str = "90s";
    const DEFAULT_RULE: Option<&'static str> = Some("`run.duration`");
    const PLACE: Place = Place::Condition;
    const STORED_KEY: &'static str = "duration_us";
    const COLUMN: Column = Column::integer("duration_us", "factor duration: requested length of the window");

    fn schema() -> Value {
        duration_schema()
    }

    fn check(given: &Spanned<Span>, _: &Definitions<'_>) -> Result<Span, SpecError> {
        check(given)
    }

    fn parse(text: &str) -> Result<Span, LevelError> {
        parse_duration(text)
    }

    fn show(level: &Span) -> String {
        level.to_string()
    }

    fn figure(level: &Span) -> Figure {
        Figure::Integer(level.us())
    }

    fn to_stored(level: &Span) -> Option<u64> {
        Some(level.us())
    }

    fn from_stored(stored: u64) -> Result<Span, LevelError> {
        Ok(Span::from_us(stored))
    }
}

/// Accepts a measurable length.
pub(crate) fn check(given: &Spanned<Span>) -> Result<Span, SpecError> {
    if given.get_ref().us() >= MIN_DURATION_US {
        return Ok(*given.get_ref());
    }
    Err(SpecError::at(
        given,
        format!("a duration of {} is too short to measure", given.get_ref()),
        "expected at least 100ms",
    ))
}
