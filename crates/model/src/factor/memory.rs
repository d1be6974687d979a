//! The limit of the server's memory.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Axis, Column, Figure, LevelError, Place};
use crate::definitions::Definitions;
use crate::limits::MemoryLimit;
use crate::units::Size;
use crate::value::{Spanned, SpecError};

/// Minimum memory limit of a server.
const MIN_BYTES: u64 = 8 << 20;

/// The factor `memory`.
#[derive(Clone, Copy, Debug)]
pub struct Memory;

impl Axis for Memory {
    type Level = MemoryLimit;
    type Written = MemoryLimit;
    type Stored = u64;

    const KEY: &'static str = "memory";
    const DESCRIPTION: &'static str = "limit of the server's memory, its page cache included: a number and `kB`, `MB`, `GB` or `TB` as in PostgreSQL's settings (`\"512MB\"`), or `none`";
    const EXAMPLE: &'static str = "512MB";
    const PLACE: Place = Place::Condition;
    const STORED_KEY: &'static str = "memory_bytes";
    const COLUMN: Column =
        Column::integer("memory_bytes", "factor memory: memory limit of the server; null for none");

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(none|[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|TB))$" })
    }

    fn check(given: &Spanned<MemoryLimit>, _: &Definitions<'_>) -> Result<MemoryLimit, SpecError> {
        match given.get_ref().bytes() {
            Some(bytes) if bytes < MIN_BYTES => Err(SpecError::at(
                given,
                format!("memory of {} is too little for any server", given.get_ref()),
                "expected at least \"8MB\", or \"none\"",
            )),
            _ => Ok(*given.get_ref()),
        }
    }

    fn parse(text: &str) -> Result<MemoryLimit, LevelError> {
        Ok(text.parse()?)
    }

    fn show(level: &MemoryLimit) -> String {
        level.to_string()
    }

    fn default() -> Option<MemoryLimit> {
        Some(MemoryLimit::NONE)
    }

    fn json(level: &MemoryLimit) -> impl Serialize + '_ {
        level
    }

    fn figure(level: &MemoryLimit) -> Figure {
        level.bytes().map_or(Figure::Null, Figure::Integer)
    }

    fn to_stored(level: &MemoryLimit) -> Option<u64> {
        level.bytes()
    }

    fn from_stored(stored: u64) -> Result<MemoryLimit, LevelError> {
        Ok(MemoryLimit::new(Size::from_bytes(stored)))
    }

    fn absent() -> Option<MemoryLimit> {
        Some(MemoryLimit::NONE)
    }
}
