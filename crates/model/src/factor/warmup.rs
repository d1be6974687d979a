//! The load before the measured window.

use serde_json::Value;

use super::{Axis, Column, Figure, LevelError, Place, duration_schema, parse_duration};
use crate::definitions::Definitions;
use crate::units::Span;
use crate::value::{Spanned, SpecError};

/// The factor `warmup`.
#[derive(Clone, Copy, Debug)]
pub struct Warmup;

impl Axis for Warmup {
    type Level = Span;
    type Written = Span;
    type Stored = u64;

    const KEY: &'static str = "warmup";
    const DESCRIPTION: &'static str = "lengths of the load before the window, not counted";
    const EXAMPLE: &'static str = "500ms";
    const DEFAULT_RULE: Option<&'static str> = Some("`run.warmup`");
    const PLACE: Place = Place::Condition;
    const STORED_KEY: &'static str = "warmup_us";
    const COLUMN: Column = Column::integer("warmup_us", "factor warmup: load before the window");

    fn schema() -> Value {
        duration_schema()
    }

    fn check(given: &Spanned<Span>, _: &Definitions<'_>) -> Result<Span, SpecError> {
        Ok(*given.get_ref())
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
