//! The scale factor of pgbench's tables.

use serde::Serialize;
use serde_json::Value;

use super::{Axis, Column, Figure, LevelError, Place, integer_schema, parse_count};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, integer};

/// The highest scale at which account numbers fit the integer columns of pgbench's tables.
const MAX_SCALE: i64 = 21_474;

/// The factor `scale`.
#[derive(Clone, Copy, Debug)]
pub struct Scale;

impl Axis for Scale {
    type Level = u32;
    type Written = i64;
    type Stored = u32;

    const KEY: &'static str = "scale";
    const DESCRIPTION: &'static str = "pgbench scale factors";
    const EXAMPLE: &'static str = "10";
    const PLACE: Place = Place::Title;
    const IS_NUMBER: bool = true;
    const COLUMN: Column = Column::integer("scale", "factor scale: pgbench's scale factor");

    fn schema() -> Value {
        integer_schema(MAX_SCALE)
    }

    fn check(given: &Spanned<i64>, _: &Definitions<'_>) -> Result<u32, SpecError> {
        integer(given, Self::KEY, 1, MAX_SCALE).map(|number| number as u32)
    }

    fn parse(text: &str) -> Result<u32, LevelError> {
        parse_count(Self::KEY, text)
    }

    fn show(level: &u32) -> String {
        level.to_string()
    }

    fn default() -> Option<u32> {
        Some(1)
    }

    fn json(level: &u32) -> impl Serialize + '_ {
        level
    }

    fn figure(level: &u32) -> Figure {
        Figure::Integer((*level).into())
    }

    fn to_stored(level: &u32) -> Option<u32> {
        Some(*level)
    }

    fn from_stored(stored: u32) -> Result<u32, LevelError> {
        Ok(stored)
    }
}
