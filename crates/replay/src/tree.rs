//! Parse trees of libpg_query, as JSON of their protobuf form.

use serde_json::Value;

/// Depth to which a parse tree is read.
pub(crate) const MAX_DEPTH: u32 = 200;

/// The parse tree of statements. None if they can't be parsed.
pub(crate) fn parse(statement: &str) -> Option<Value> {
    let parsed = pg_query::parse(statement, pg_query::ParserOptions::DEFAULT).ok()?;
    serde_json::to_value(&parsed.protobuf).ok()
}

/// The node of this type, if a node is one.
pub(crate) fn inner<'a>(node: &'a Value, kind: &str) -> Option<&'a Value> {
    node.get("node")?.get(kind)
}

/// The nodes of a list, empty if there is none.
pub(crate) fn list(field: &Value) -> &[Value] {
    field.as_array().map_or(&[], Vec::as_slice)
}

/// The last of the names of a function, an operator or a type, which may have a schema.
pub(crate) fn last_name(names: &Value) -> Option<&str> {
    inner(list(names).last()?, "String")?["sval"].as_str()
}

/// Qualifier and name of a column.
pub(crate) fn column(tree: &Value) -> Option<(Option<String>, String)> {
    let fields = inner(tree, "ColumnRef")?["fields"].as_array()?;
    let mut names = fields.iter().rev().map(|field| inner(field, "String")?["sval"].as_str());
    let name = names.next()??;
    Some((names.next().flatten().map(str::to_owned), name.to_owned()))
}
