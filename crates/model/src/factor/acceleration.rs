//! The executor of the instructions of kernel and server.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, parse_word, word_schema};
use crate::definitions::Definitions;
use crate::machine;
use crate::value::{Spanned, SpecError, word};

/// The factor `acceleration`.
#[derive(Clone, Copy, Debug)]
pub struct Acceleration;

impl Axis for Acceleration {
    type Level = machine::Acceleration;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "acceleration";
    const DESCRIPTION: &'static str = "what executes a kernel's instructions: `icount`, `tcg`, `kvm`; `none`: the machine itself, when it runs that kernel";
    const EXAMPLE: &'static str = "icount";
    const DEFAULT_RULE: Option<&'static str> = Some("`[\"icount\"]` of named kernels, else `[\"none\"]`");
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("acceleration", "factor acceleration: none, kvm, tcg, icount");

    fn schema() -> Value {
        word_schema::<machine::Acceleration>()
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<machine::Acceleration, SpecError> {
        word(given, Self::KEY)
    }

    fn parse(text: &str) -> Result<machine::Acceleration, LevelError> {
        parse_word(Self::KEY, text)
    }

    fn show(level: &machine::Acceleration) -> String {
        level.as_str().to_owned()
    }

    fn default() -> Option<machine::Acceleration> {
        Some(machine::Acceleration::None)
    }

    fn to_stored(level: &machine::Acceleration) -> Option<String> {
        Some(level.as_str().to_owned())
    }

    fn from_stored(stored: String) -> Result<machine::Acceleration, LevelError> {
        parse_word(Self::KEY, &stored)
    }

    fn absent() -> Option<machine::Acceleration> {
        Some(machine::Acceleration::None)
    }
}
