//! Generates the JSON Schemas of the documents from their types: `docs/schemas/`.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

fn schema<T: JsonSchema>(command: &str) -> Value {
    // Of what is written, not of what could be read: a key that is always there is required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), format!("pgdyno {command} --format json").into());
    let mut schema = schema.to_value();
    join_lines(&mut schema);
    schema
}

/// Descriptions without the line ends of the source.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            if let Some(Value::String(text)) = keys.get_mut("description") {
                let paragraphs: Vec<String> =
                    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
                *text = paragraphs.join("\n\n");
            }
            keys.values_mut().for_each(join_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        _ => {}
    }
}

/// `BLESS=1` writes the files instead.
#[test]
fn generated_schemas_are_those_of_the_documents() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    for (command, schema) in [
        ("report", schema::<analysis::overview::view::View>("report")),
        ("show", schema::<crate::show::Document<'static>>("show")),
        ("compare", schema::<crate::compare::Document>("compare")),
        ("history", schema::<crate::history::Document>("history")),
        ("explain", schema::<crate::explain::Document>("explain")),
        ("power", schema::<analysis::power::Answer>("power")),
        ("bisect", schema::<crate::bisect::Document>("bisect")),
        ("bisect-run", schema::<crate::bisect::tested::TestBisection>("bisect --run")),
        ("doctor", schema::<crate::doctor::DoctorDocument<'static>>("doctor")),
        ("plan", schema::<crate::plan::Document<'static>>("plan")),
        ("fleet-status", schema::<crate::fleet::Document<'static>>("fleet status")),
        ("store-list", schema::<crate::bundles::ListDocument<'static>>("store list")),
        ("store-show", schema::<crate::bundles::ShowDocument<'static>>("store show")),
        ("store-check", schema::<crate::bundles::CheckDocument<'static>>("store check")),
        ("store-reindex", schema::<crate::bundles::ReindexDocument<'static>>("store reindex")),
        ("replay-inspect", schema::<::replay::Inspection>("replay inspect")),
        ("replay-play", schema::<::replay::PlayReport>("replay play")),
    ] {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = directory.join(format!("{command}.schema.json"));
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, text).unwrap();
        } else {
            let known = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(known, text, "{} is stale: run `make generated`", path.display());
        }
    }
}
