//! The number of clients.

use serde::Serialize;
use serde_json::Value;

use super::{Axis, Column, Figure, LevelError, Place, integer_schema, parse_count};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, integer};

/// Maximum number of clients: above PostgreSQL's own limit on connections.
const MAX_CLIENTS: i64 = 262_143;

/// The factor `clients`.
#[derive(Clone, Copy, Debug)]
pub struct Clients;

impl Axis for Clients {
    type Level = u32;
    type Written = i64;
    type Stored = u32;

    const KEY: &'static str = "clients";
    const DESCRIPTION: &'static str = "numbers of clients";
    const EXAMPLE: &'static str = "8";
    const PLACE: Place = Place::Row;
    const IS_NUMBER: bool = true;
    const REQUIRED: Option<&'static str> = Some("clients = [1, 4, 16]");
    const COLUMN: Column = Column::integer("clients", "factor clients: number of clients");

    fn schema() -> Value {
        integer_schema(MAX_CLIENTS)
    }

    fn check(given: &Spanned<i64>, _: &Definitions<'_>) -> Result<u32, SpecError> {
        integer(given, Self::KEY, 1, MAX_CLIENTS).map(|number| number as u32)
    }

    fn parse(text: &str) -> Result<u32, LevelError> {
        parse_count(Self::KEY, text)
    }

    fn show(level: &u32) -> String {
        level.to_string()
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
