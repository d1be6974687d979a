//! An extension of the server.

use serde_json::{Value, json};

use super::{Axis, Column, LevelError, Place};
use crate::definitions::Definitions;
use crate::extension;
use crate::value::{Spanned, SpecError};

/// The factor `extension`.
#[derive(Clone, Copy, Debug)]
pub struct Extension;

impl Axis for Extension {
    type Level = extension::Extension;
    type Written = String;
    type Stored = String;

    const KEY: &'static str = "extension";
    const DESCRIPTION: &'static str = "an extension that the data set has: `none`, a name with or without a version, a directory \
                                       with its source";
    const EXAMPLE: &'static str = "pg_trgm";
    const PLACE: Place = Place::Column;
    const COLUMN: Column =
        Column::text("extension", "factor extension: none, NAME, NAME@VERSION, ./SOURCE, NAME=./SOURCE");
    const IS_OMITTED: bool = true;

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }

    fn check(given: &Spanned<String>, _: &Definitions<'_>) -> Result<extension::Extension, SpecError> {
        let text = given.get_ref();
        text.parse()
            .map_err(|_| SpecError::at(given, format!("`{text}` is no extension"), extension::EXPECTED))
    }

    fn parse(text: &str) -> Result<extension::Extension, LevelError> {
        Ok(text.parse()?)
    }

    fn show(level: &extension::Extension) -> String {
        level.to_string()
    }

    fn default() -> Option<extension::Extension> {
        Some(extension::Extension::default())
    }

    fn to_stored(level: &extension::Extension) -> Option<String> {
        level.named().map(|_| level.to_string())
    }

    fn from_stored(stored: String) -> Result<extension::Extension, LevelError> {
        Ok(stored.parse()?)
    }

    fn absent() -> Option<extension::Extension> {
        Some(extension::Extension::default())
    }
}
