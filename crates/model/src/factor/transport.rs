//! The transport between driver and server.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, named, names};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, one_of};
use crate::workload;

/// The factor `transport`.
#[derive(Clone, Copy, Debug)]
pub struct Transport;

impl Axis for Transport {
    type Level = workload::Transport;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "transport";
    const SENTENCE: &'static str = "what carries them: `unix`, `tcp`";
    const PLACE: Place = Place::Title;
    const COLUMN: Column = Column::text("transport", "factor transport: unix, tcp");

    fn schema() -> Value {
        names(&workload::Transport::ALL.map(workload::Transport::name))
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<workload::Transport, SpecError> {
        one_of(given, "transport", &workload::Transport::ALL.map(|level| (level.name(), level)))
    }

    fn parse(text: &str) -> Result<workload::Transport, LevelError> {
        named(Self::KEY, text, &workload::Transport::ALL, workload::Transport::name)
    }

    fn show(level: &workload::Transport) -> String {
        level.name().to_owned()
    }

    fn default() -> Option<workload::Transport> {
        Some(workload::Transport::Unix)
    }

    fn to_stored(level: &workload::Transport) -> Option<String> {
        Some(level.name().to_owned())
    }

    fn from_stored(stored: String) -> Result<workload::Transport, LevelError> {
        named(Self::KEY, &stored, &workload::Transport::ALL, workload::Transport::name)
    }
}
