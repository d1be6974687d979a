//! What clients connect to, and what receives the changes of the server under test.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, parse_word, word_schema};
use crate::definitions::Definitions;
use crate::topology;
use crate::value::{Spanned, SpecError, word};

/// The factor `topology`.
#[derive(Clone, Copy, Debug)]
pub struct Topology;

impl Axis for Topology {
    type Level = topology::Topology;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "topology";
    const DESCRIPTION: &'static str = "what runs next to the server: `single`, `standby-async`, `standby-sync`, \
                                       `standby-remote-apply`, `logical`, `pgbouncer-transaction`, `pgbouncer-session`";
    const EXAMPLE: &'static str = "standby-sync";
    const PLACE: Place = Place::Column;
    const COLUMN: Column = Column::text(
        "topology",
        "factor topology: single, standby-async, standby-sync, standby-remote-apply, logical, pgbouncer-transaction, \
         pgbouncer-session",
    );
    const IS_OMITTED: bool = true;

    fn schema() -> Value {
        word_schema::<topology::Topology>()
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<topology::Topology, SpecError> {
        word(given, Self::KEY)
    }

    fn parse(text: &str) -> Result<topology::Topology, LevelError> {
        parse_word(Self::KEY, text)
    }

    fn show(level: &topology::Topology) -> String {
        level.as_str().to_owned()
    }

    fn default() -> Option<topology::Topology> {
        Some(topology::Topology::Single)
    }

    fn to_stored(level: &topology::Topology) -> Option<String> {
        (*level != topology::Topology::Single).then(|| level.as_str().to_owned())
    }

    fn from_stored(stored: String) -> Result<topology::Topology, LevelError> {
        parse_word(Self::KEY, &stored)
    }

    fn absent() -> Option<topology::Topology> {
        Some(topology::Topology::Single)
    }
}
