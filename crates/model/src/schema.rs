//! Parts of the campaigns' JSON schema that the types refer to.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::units::{Rate, Share, Span, Throughput};
use crate::value::Spanned;

/// Pattern of a CPU list.
pub(crate) const PROCESSORS: &str = "^ *[0-9]+ *(- *[0-9]+ *)?(, *[0-9]+ *(- *[0-9]+ *)?)*$";

/// Requires exactly one of these keys.
pub(crate) fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({ "required": [key] })).collect()
}

/// Allowed combinations of a workload's keys: one source of scripts, or a workload that has them.
pub(crate) fn sources_of_scripts() -> Value {
    json!([
        { "not": { "required": ["builtin", "directory"] } },
        { "not": { "required": ["script", "scripts"] } },
        { "not": { "required": ["phases"], "anyOf": one_of(&["script", "scripts", "builtin", "directory"]) } },
        { "not": { "required": ["trace"], "anyOf": one_of(&["script", "scripts", "builtin", "directory", "phases"]) } },
        { "anyOf": one_of(&["builtin", "script", "scripts", "directory", "phases", "trace"]) },
    ])
}

/// Adds the former name of a workload's key `background`.
pub(crate) fn add_former_background(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).unwrap();
    let mut former = properties["background"].clone();
    former["description"] = "Former name of `background`".into();
    former["deprecated"] = true.into();
    properties.insert("beside".to_owned(), former);
}

/// Disallows negative numbers.
pub(crate) fn no_negative_numbers(schema: &mut Schema) {
    for property in schema.get_mut("properties").and_then(Value::as_object_mut).unwrap().values_mut() {
        property["minimum"] = 0.into();
    }
}

/// A value that is neither a list nor a table.
pub(crate) struct Scalar;

/// Named sets of server settings.
pub(crate) struct Settings;

/// Named sets of kernel parameters.
pub(crate) struct Sysctls;

/// Implements [`JsonSchema`] by an inline schema.
macro_rules! inline_schemas {
    ($($type:ty => $schema:expr;)*) => {
        $(
            impl JsonSchema for $type {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($type).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    Schema::try_from($schema).unwrap()
                }
            }
        )*
    };
}

pub(crate) use inline_schemas;

inline_schemas! {
    Span => json!({ "type": "string", "pattern": Span::PATTERN });
    Rate => json!({ "oneOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "const": "max" }] });
    Share => json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *%$" });
    Throughput => json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|TB) ?/s$" });
    Scalar => json!({ "type": ["string", "number", "boolean"] });
    Settings => json!({
        "type": "object",
        "properties": { "inherits": { "type": "string", "description": "Settings to start from" } },
        "additionalProperties": schema_of::<Scalar>(),
    });
    Sysctls => json!({
        "type": "object",
        "propertyNames": { "not": { "const": "default" } },
        "additionalProperties": {
            "type": "object",
            "propertyNames": {
                "pattern": "^(/sys(/[A-Za-z0-9_:@-][A-Za-z0-9_:@.-]*)+|[A-Za-z0-9_:@-]+(\\.[A-Za-z0-9_:@-]+)+)$",
            },
            "additionalProperties": { "type": ["string", "integer"] },
        },
    });
}

pub(crate) fn schema_of<T: JsonSchema>() -> Schema {
    T::json_schema(&mut SchemaGenerator::default())
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
