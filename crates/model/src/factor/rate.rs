//! Transactions started per second.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Axis, Column, Figure, LevelError, Place};
use crate::definitions::Definitions;
use crate::units;
use crate::value::{Spanned, SpecError};

/// The factor `rate`.
#[derive(Clone, Copy, Debug)]
pub struct Rate;

impl Axis for Rate {
    type Level = units::Rate;
    type Written = units::Rate;
    type Stored = f64;

    const KEY: &'static str = "rate";
    const DESCRIPTION: &'static str = "transactions started per second by all clients together, at random intervals; `\"max\"`: as many as possible";
    const EXAMPLE: &'static str = "500";
    const PLACE: Place = Place::Condition;
    const IS_NUMBER: bool = true;
    const COLUMN: Column =
        Column::real("rate_per_s", "factor rate: transactions started per second; null for max");

    fn schema() -> Value {
        json!({ "oneOf": [{ "type": "number", "minimum": 0.001 }, { "const": "max" }] })
    }

    fn check(given: &Spanned<units::Rate>, _: &Definitions<'_>) -> Result<units::Rate, SpecError> {
        Ok(*given.get_ref())
    }

    fn parse(text: &str) -> Result<units::Rate, LevelError> {
        if text == units::Rate::MAX.to_string() {
            return Ok(units::Rate::MAX);
        }
        text.parse().ok().and_then(units::Rate::per_second).ok_or_else(|| LevelError::UnknownLevel {
            factor: Self::KEY,
            text: text.to_owned(),
            expected: "a number of transactions per second, or max".to_owned(),
        })
    }

    fn show(level: &units::Rate) -> String {
        level.to_string()
    }

    fn default() -> Option<units::Rate> {
        Some(units::Rate::MAX)
    }

    fn json(level: &units::Rate) -> impl Serialize + '_ {
        level
    }

    fn figure(level: &units::Rate) -> Figure {
        level.get().map_or(Figure::Null, Figure::Real)
    }

    fn to_stored(level: &units::Rate) -> Option<f64> {
        level.get()
    }

    fn from_stored(stored: f64) -> Result<units::Rate, LevelError> {
        units::Rate::per_second(stored).ok_or(LevelError::InvalidRate(stored))
    }

    fn absent() -> Option<units::Rate> {
        Some(units::Rate::MAX)
    }
}
