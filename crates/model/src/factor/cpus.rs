//! CPUs of the virtual machine.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Axis, Column, Figure, LevelError, Place, integer_schema, parse_count};
use crate::definitions::Definitions;
use crate::machine::HOST;
use crate::value::{CountOrWord, Spanned, SpecError};

/// Maximum number of CPUs: the limit of QEMU's default machine for x86.
const MAX_CPUS: i64 = 255;

/// The factor `cpus`.
#[derive(Clone, Copy, Debug)]
pub struct Cpus;

impl Axis for Cpus {
    type Level = Option<u32>;
    type Written = CountOrWord;
    type Stored = u32;

    const KEY: &'static str = "cpus";
    const DESCRIPTION: &'static str =
        "numbers of processors of the virtual machine, or `host`: as many as the machine has";
    const EXAMPLE: &'static str = "4";
    const DEFAULT_RULE: Option<&'static str> = Some("`[1]` with `icount`, else `[\"host\"]`");
    const PLACE: Place = Place::Condition;
    const IS_NUMBER: bool = true;
    const COLUMN: Column = Column::integer(
        "cpus",
        "factor cpus: processors of the virtual machine; null for all of the machine's",
    );

    fn schema() -> Value {
        json!({ "anyOf": [integer_schema(MAX_CPUS), { "const": HOST }] })
    }

    fn check(given: &Spanned<CountOrWord>, _: &Definitions<'_>) -> Result<Option<u32>, SpecError> {
        CountOrWord::check(given, Self::KEY, HOST, MAX_CPUS)
    }

    fn parse(text: &str) -> Result<Option<u32>, LevelError> {
        if text == HOST {
            return Ok(None);
        }
        parse_count(Self::KEY, text).map(Some)
    }

    fn show(level: &Option<u32>) -> String {
        level.map_or_else(|| HOST.to_owned(), |cpus| cpus.to_string())
    }

    fn default() -> Option<Option<u32>> {
        Some(None)
    }

    fn json(level: &Option<u32>) -> impl Serialize + '_ {
        level
    }

    fn figure(level: &Option<u32>) -> Figure {
        level.map_or(Figure::Null, |cpus| Figure::Integer(cpus.into()))
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
