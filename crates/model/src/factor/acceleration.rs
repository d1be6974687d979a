//! What executes the instructions of kernel and server.

use serde_json::Value;

use super::{Axis, Column, LevelError, Place, named, names};
use crate::definitions::Definitions;
use crate::machine;
use crate::value::{Spanned, SpecError, one_of};

/// The factor `acceleration`.
#[derive(Clone, Copy, Debug)]
pub struct Acceleration;

impl Axis for Acceleration {
    type Level = machine::Acceleration;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "acceleration";
    const SENTENCE: &'static str = "what executes a kernel's instructions: `icount`, `tcg`, `kvm`; `none`: the machine itself, when it runs that kernel";
    const DEFAULT_RULE: Option<&'static str> = Some("`[\"icount\"]` of named kernels, else `[\"none\"]`");
    const PLACE: Place = Place::Condition;
    const COLUMN: Column = Column::text("acceleration", "factor acceleration: none, kvm, tcg, icount");

    fn schema() -> Value {
        names(&machine::Acceleration::ALL.map(machine::Acceleration::name))
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<machine::Acceleration, SpecError> {
        one_of(given, "acceleration", &machine::Acceleration::ALL.map(|level| (level.name(), level)))
    }

    fn parse(text: &str) -> Result<machine::Acceleration, LevelError> {
        named(Self::KEY, text, &machine::Acceleration::ALL, machine::Acceleration::name)
    }

    fn show(level: &machine::Acceleration) -> String {
        level.name().to_owned()
    }

    fn default() -> Option<machine::Acceleration> {
        Some(machine::Acceleration::None)
    }

    fn to_stored(level: &machine::Acceleration) -> Option<String> {
        Some(level.name().to_owned())
    }

    fn from_stored(stored: String) -> Result<machine::Acceleration, LevelError> {
        named(Self::KEY, &stored, &machine::Acceleration::ALL, machine::Acceleration::name)
    }

    fn absent() -> Option<machine::Acceleration> {
        Some(machine::Acceleration::None)
    }
}
