//! Threads of the driver.

use serde::Serialize;
use serde_json::Value;

use super::{Axis, Column, Figure, LevelError, Place, integer_schema, parse_count};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, integer};

/// Maximum number of driver threads.
pub(crate) const MAX_THREADS: i64 = 1024;

/// Default number of the driver's threads, for so many clients on so many CPUs: one for each client if there are at most two
/// clients for each CPU, else one for each CPU. docs/bench.md has the measurements.
pub fn default_threads(clients: u32, processors: u32) -> u32 {
    if clients <= processors.saturating_mul(2) { clients } else { processors }.max(1)
}

/// The factor `threads`.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Axis for Threads {
    type Level = u32;
    type Written = i64;
    type Stored = u32;

    const KEY: &'static str = "threads";
    const DESCRIPTION: &'static str = "event-loop threads of the driver, never more than clients";
    const EXAMPLE: &'static str = "2";
    const DEFAULT_RULE: Option<&'static str> = Some("`run.threads`");
    const PLACE: Place = Place::Condition;
    const IS_NUMBER: bool = true;
    const COLUMN: Column = Column::integer("threads", "factor threads: driver threads");

    fn schema() -> Value {
        integer_schema(MAX_THREADS)
    }

    fn check(given: &Spanned<i64>, _: &Definitions<'_>) -> Result<u32, SpecError> {
        integer(given, Self::KEY, 1, MAX_THREADS).map(|number| number as u32)
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
