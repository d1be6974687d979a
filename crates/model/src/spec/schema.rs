//! JSON schema of campaigns, docs/campaign.schema.json: generated from the types that parse them.

use std::borrow::Cow;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::{
    Campaign, CommitLevels, LoadHosts, MAX_LOAD_HOSTS, MAX_REPEATS, MIN_ADAPTIVE, Matrix, Point, Repeats,
};
use crate::definitions::Files;
use crate::factor::Factor;
use crate::profile::Unwinding;
use crate::schema::{inline_schemas, schema_of};
use crate::units::Share;
use crate::value::names;

/// The factors that a campaign can compare: virtual machines are not compared with the machine itself.
pub(crate) fn comparable() -> Vec<&'static str> {
    Factor::ALL.into_iter().filter(|factor| *factor != Factor::Acceleration).map(Factor::name).collect()
}

/// Methods of finding the callers of a function.
pub(crate) fn call_graphs() -> Vec<&'static str> {
    std::iter::once("auto").chain(names::<Unwinding>()).collect()
}

inline_schemas! {
    Files => json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
    LoadHosts => json!({
        "oneOf": [
            { "type": "integer", "minimum": 1, "maximum": MAX_LOAD_HOSTS },
            {
                "type": "array",
                "items": { "type": "string", "pattern": "^[A-Za-z0-9_.+-]{1,60}$" },
                "minItems": 1,
                "maxItems": MAX_LOAD_HOSTS,
                "uniqueItems": true,
            },
        ],
    });
    Repeats => json!({
        "oneOf": [
            { "type": "integer", "minimum": 1, "maximum": MAX_REPEATS },
            {
                "type": "object",
                "properties": {
                    "min": { "type": "integer", "minimum": MIN_ADAPTIVE, "maximum": MAX_REPEATS },
                    "max": { "type": "integer", "minimum": MIN_ADAPTIVE, "maximum": MAX_REPEATS },
                    "until_ci": schema_of::<Share>(),
                },
                "additionalProperties": false,
            },
        ],
    });
}

/// A property of each factor.
fn factor_properties(property: impl Fn(Factor) -> Value) -> Map<String, Value> {
    let with_sentence = |factor: Factor| {
        let mut schema = property(factor);
        schema["description"] = factor.description().into();
        (factor.name().to_owned(), schema)
    };
    Factor::ALL.into_iter().map(with_sentence).collect()
}

impl JsonSchema for Matrix {
    fn schema_name() -> Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let points = generator.subschema_for::<Vec<Point>>();
        let commits = generator.subschema_for::<CommitLevels>();
        let levels = |of: Value| json!({ "type": "array", "items": of, "minItems": 1, "uniqueItems": true });
        let mut properties = factor_properties(|factor| match factor {
            Factor::Server => {
                json!({ "oneOf": [levels(json!({ "oneOf": [factor.schema(), commits] })), commits] })
            }
            factor => levels(factor.schema()),
        });
        properties.insert("zip".to_owned(), json!({
            "type": "array",
            "items": { "type": "array", "items": { "enum": Factor::ALL.map(Factor::name) }, "minItems": 1 },
            "description": "Factors that go through their levels together; each has as many levels",
        }));
        for (key, sentence) in [
            ("exclude", "Cells to leave out: those with all levels of a point"),
            ("include", "Cells to add; a factor that a point leaves out has its default"),
        ] {
            let mut points = points.clone();
            points.insert("description".to_owned(), sentence.into());
            properties.insert(key.to_owned(), points.into());
        }
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

impl JsonSchema for Point {
    fn schema_name() -> Cow<'static, str> {
        "Point".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": factor_properties(Factor::schema),
            "additionalProperties": false,
            "minProperties": 1,
        })
    }
}

/// Removes what TOML lacks (null), what does not help authors (widths of integers), and line breaks of comments.
fn simplify(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("format");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(names)) = object.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Array(choices)) = object.get("anyOf")
        && let [only, null] = &choices[..]
        && *null == json!({ "type": "null" })
        && let Value::Object(only) = only.clone()
    {
        object.remove("anyOf");
        object.extend(only);
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ").trim_end_matches('.').to_owned();
    }
}

#[test]
fn the_generated_schema_of_campaigns_is_up_to_date() {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(simplify));
    let schema = settings.into_generator().into_root_schema_for::<Campaign>();
    let schema = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/campaign.schema.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == schema,
        "docs/campaign.schema.json is stale: run `make generated` and commit it"
    );
}
