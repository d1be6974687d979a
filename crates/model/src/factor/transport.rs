//! The transport between driver and server.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, parse_word, word_schema};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, word};
use crate::workload;

/// The factor `transport`.
#[derive(Clone, Copy, Debug)]
pub struct Transport;

impl Axis for Transport {
    type Level = workload::Transport;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "transport";
    const DESCRIPTION: &'static str =
        "what carries them: `unix`, `tcp`; without levels, that of a `dsn` for its server";
    const EXAMPLE: &'static str = "tcp";
    const PLACE: Place = Place::Title;
    const COLUMN: Column = Column::text("transport", "factor transport: unix, tcp");

    fn schema() -> Value {
        word_schema::<workload::Transport>()
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<workload::Transport, SpecError> {
        word(given, Self::KEY)
    }

    fn parse(text: &str) -> Result<workload::Transport, LevelError> {
        parse_word(Self::KEY, text)
    }

    fn show(level: &workload::Transport) -> String {
        level.as_str().to_owned()
    }

    fn default() -> Option<workload::Transport> {
        Some(workload::Transport::Unix)
    }

    fn to_stored(level: &workload::Transport) -> Option<String> {
        Some(level.as_str().to_owned())
    }

    fn from_stored(stored: String) -> Result<workload::Transport, LevelError> {
        parse_word(Self::KEY, &stored)
    }
}
