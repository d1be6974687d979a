//! Threads of the driver.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Axis, Column, Figure, LevelError, Place, integer_schema, parse_count};
use crate::definitions::Definitions;
use crate::value::{CountOrWord, Spanned, SpecError};

/// Maximum number of driver threads.
pub(crate) const MAX_THREADS: i64 = 1024;

/// The level of a number that follows from clients and CPUs.
const AUTO: &str = "auto";

/// Number of the driver's threads if none is given, for so many clients on so many CPUs: one for each client if there are at
/// most two clients for each CPU, else one for each CPU. docs/bench.md has the measurements.
pub fn default_threads(clients: u32, processors: u32) -> u32 {
    if clients <= processors.saturating_mul(2) { clients } else { processors }.max(1)
}

/// Numbers of threads that may give more than `threads`: one, one for each CPU, one for each client, and the default.
pub fn other_threads(threads: u32, clients: u32, processors: u32) -> Vec<u32> {
    let mut others = vec![1, processors.min(clients), clients, default_threads(clients, processors)];
    others.retain(|other| *other != threads);
    others.sort_unstable();
    others.dedup();
    others
}

/// The factor `threads`.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Axis for Threads {
    type Level = Option<u32>;
    type Written = CountOrWord;
    type Stored = u32;

    const KEY: &'static str = "threads";
    const DESCRIPTION: &'static str = "event-loop threads of the driver, never more than clients; or `auto`: by the numbers of clients and CPUs";
    const EXAMPLE: &'static str = "2";
    const DEFAULT_RULE: Option<&'static str> = Some("`run.threads`");
    const PLACE: Place = Place::Condition;
    const IS_NUMBER: bool = true;
    const COLUMN: Column = Column::integer(
        "threads",
        "factor threads: driver threads; null if they follow from clients and CPUs",
    );

    fn schema() -> Value {
        json!({ "anyOf": [integer_schema(MAX_THREADS), { "const": AUTO }] })
    }

    fn check(given: &Spanned<CountOrWord>, _: &Definitions<'_>) -> Result<Option<u32>, SpecError> {
        CountOrWord::check(given, Self::KEY, AUTO, MAX_THREADS)
    }

    fn parse(text: &str) -> Result<Option<u32>, LevelError> {
        if text == AUTO {
            return Ok(None);
        }
        parse_count(Self::KEY, text).map(Some)
    }

    fn show(level: &Option<u32>) -> String {
        level.map_or_else(|| AUTO.to_owned(), |threads| threads.to_string())
    }

    fn default() -> Option<Option<u32>> {
        Some(None)
    }

    fn json(level: &Option<u32>) -> impl Serialize + '_ {
        level
    }

    fn figure(level: &Option<u32>) -> Figure {
        level.map_or(Figure::Null, |threads| Figure::Integer(threads.into()))
    }

    fn to_stored(level: &Option<u32>) -> Option<u32> {
        *level
    }

    fn from_stored(stored: u32) -> Result<Option<u32>, LevelError> {
        Ok(Some(stored))
    }

    fn absent() -> Option<Option<u32>> {
        Some(None)
    }
}
