//! The host on which the server runs.

use serde::Serialize;

use super::{ANY, Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::value::{Spanned, SpecError, check_name};

/// The factor `host`.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Axis for Host {
    type Level = Option<String>;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "host";
    const DESCRIPTION: &'static str = "names of hosts on which trials run, or `any`";
    const EXAMPLE: &'static str = "db1";
    const PLACE: Place = Place::Column;
    const COLUMN: Column = Column::text("host", "factor host: requested host, or any");

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<Option<String>, SpecError> {
        if given.get_ref() == ANY {
            return Ok(None);
        }
        check_name(given, "label")?;
        Ok(Some(given.get_ref().clone()))
    }

    fn parse(text: &str) -> Result<Option<String>, LevelError> {
        Ok(Some(text.to_owned()))
    }

    fn show(level: &Option<String>) -> String {
        level.as_deref().unwrap_or(ANY).to_owned()
    }

    fn default() -> Option<Option<String>> {
        Some(None)
    }

    fn json(level: &Option<String>) -> impl Serialize + '_ {
        level
    }

    fn to_stored(level: &Option<String>) -> Option<String> {
        level.clone()
    }

    fn from_stored(stored: String) -> Result<Option<String>, LevelError> {
        Ok(Some(stored))
    }

    fn absent() -> Option<Option<String>> {
        Some(None)
    }
}
