//! JSON Schema of cells in documents: each factor's level, with the types that its default and its example have.

#![allow(clippy::unwrap_used, reason = "only tests generate schemas")]

use std::borrow::Cow;
use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{Cell, RecordedCell};
use crate::factor::{self, Axis, Factor};
use crate::factors;

/// JSON types of a factor's levels.
fn types(factor: Factor) -> BTreeSet<&'static str> {
    let mut cell = RecordedCell::default();
    cell.set(factor, factor.example()).unwrap();
    let example = serde_json::to_value(&cell).unwrap()[factor.name()].clone();
    let types = default_level(factor).into_iter().chain([example]).map(|level| match level {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    });
    types.collect()
}

macro_rules! default_levels {
    ($($name:ident $key:ident,)*) => {
        /// The level in documents of campaigns that leave a factor out; none if there is none.
        fn default_level(factor: Factor) -> Option<Value> {
            match factor {
                $(Factor::$name => <factor::$key::$name as Axis>::default()
                    .map(|level| serde_json::to_value(<factor::$key::$name as Axis>::json(&level)).unwrap()),)*
            }
        }
    };
}

factors!(default_levels);

fn cell_schema(unknown: Option<&'static str>) -> Schema {
    let level = |factor: Factor| {
        let types: BTreeSet<&str> = types(factor).into_iter().chain(unknown).collect();
        json!({ "description": factor.description(), "type": types })
    };
    let properties: Map<String, Value> =
        Factor::ALL.into_iter().map(|factor| (factor.name().to_owned(), level(factor))).collect();
    let required: Vec<&str> = Factor::ALL.iter().map(|factor| factor.name()).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Schema::try_from(schema).unwrap()
}

impl JsonSchema for Cell {
    fn schema_name() -> Cow<'static, str> {
        "Cell".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        cell_schema(None)
    }
}

/// Levels of imported trials may be unknown.
impl JsonSchema for RecordedCell {
    fn schema_name() -> Cow<'static, str> {
        "RecordedCell".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        cell_schema(Some("null"))
    }
}
