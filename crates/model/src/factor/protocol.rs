//! The protocol with which statements are sent.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, parse_word, word_schema};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, word};
use crate::workload;

/// The factor `protocol`.
#[derive(Clone, Copy, Debug)]
pub struct Protocol;

impl Axis for Protocol {
    type Level = workload::Protocol;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "protocol";
    const DESCRIPTION: &'static str = "how statements are sent: `simple`, `extended`, `prepared`";
    const EXAMPLE: &'static str = "simple";
    const PLACE: Place = Place::Title;
    const COLUMN: Column = Column::text("protocol", "factor protocol: simple, extended, prepared");

    fn schema() -> Value {
        word_schema::<workload::Protocol>()
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<workload::Protocol, SpecError> {
        word(given, Self::KEY)
    }

    fn parse(text: &str) -> Result<workload::Protocol, LevelError> {
        parse_word(Self::KEY, text)
    }

    fn show(level: &workload::Protocol) -> String {
        level.as_str().to_owned()
    }

    fn default() -> Option<workload::Protocol> {
        Some(workload::Protocol::Prepared)
    }

    fn to_stored(level: &workload::Protocol) -> Option<String> {
        Some(level.as_str().to_owned())
    }

    fn from_stored(stored: String) -> Result<workload::Protocol, LevelError> {
        parse_word(Self::KEY, &stored)
    }
}
