//! Secrets in the text of a campaign.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    MASK, SECRET_SUBSTRINGS, SECRET_WORDS, mask, mask_kernel_parameter, mask_setting, mask_variable,
};

/// Keys that are for people: a run does not need them.
const KEYS_FOR_PEOPLE: [&str; 3] = ["description", "notes", "tags"];

/// A place in a campaign that contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// The key, as in `settings.replica.primary_conninfo`; none for a comment.
    pub key: Option<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key.as_deref().unwrap_or("a comment"))
    }
}

/// The text of a campaign with its secrets masked. It stays a campaign with the same cells, except for their masked
/// values.
pub fn mask_campaign(text: &str) -> String {
    if !may_contain_secrets(text) {
        return text.to_owned();
    }
    let Ok(table) = DeTable::parse(text) else { return mask(text) };
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for Edit { range, replacement, .. } in edits(text, &table) {
        masked.push_str(&text[from..range.start]);
        masked.push_str(&replacement);
        from = range.end;
    }
    masked + &text[from..]
}

/// The places of a campaign's text that [`mask_campaign`] changes, in order.
pub fn campaign_secrets(text: &str) -> Vec<SecretPlace> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let mut places: Vec<SecretPlace> = edits(text, &table)
        .into_iter()
        .map(|edit| SecretPlace { key: edit.key, line: line(edit.range.start) })
        .collect();
    places.dedup();
    places
}

/// Keys of a stored campaign whose values are masked, and without which it can't be run.
pub fn masked_keys(text: &str) -> Vec<String> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let is_needed = |leaf: &&Leaf<'_>| !leaf.path.iter().any(|key| KEYS_FOR_PEOPLE.contains(key));
    let is_masked =
        |leaf: &&Leaf<'_>| leaf.value.get_ref().as_str().is_some_and(|value| value.contains(MASK));
    let mut keys: Vec<String> = Content::of(&table)
        .leaves
        .iter()
        .filter(is_needed)
        .filter(is_masked)
        .map(|leaf| leaf.path.join("."))
        .collect();
    keys.dedup();
    keys
}

/// Whether a text can contain anything that is masked: most campaigns need not be parsed.
fn may_contain_secrets(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SECRET_SUBSTRINGS.iter().chain(&SECRET_WORDS).any(|word| text.contains(word))
        || text.contains("://")
        || text.contains("primary_conninfo")
}

/// A change of the text.
struct Edit {
    key: Option<String>,
    range: Range<usize>,
    replacement: String,
}

/// The changes that mask a campaign, in order.
fn edits(text: &str, table: &Spanned<DeTable<'_>>) -> Vec<Edit> {
    let content = Content::of(table);
    let mut edits = Vec::new();
    for Leaf { path, value } in &content.leaves {
        let written = value.get_ref().as_str().unwrap_or(&text[value.span()]);
        let masked = masked_value(path, written);
        if masked != written {
            let replacement = toml::Value::String(masked).to_string();
            edits.push(Edit { key: Some(path.join(".")), range: value.span(), replacement });
        }
    }
    for comment in content.comments(text) {
        let replacement = mask(&text[comment.clone()]);
        if replacement != text[comment.clone()] {
            edits.push(Edit { key: None, range: comment, replacement });
        }
    }
    edits.sort_by_key(|edit| edit.range.start);
    edits
}

fn masked_value(path: &[&str], value: &str) -> String {
    match path {
        ["settings", _, name] => mask_setting(name, value),
        ["sysctls", _, name] => mask_kernel_parameter(name, value),
        ["workloads", _, "parameters", name] => mask_variable(name, value),
        // Options of initdb and of builds are no secrets, though some are called `--auth`.
        ["servers", _, key, ..] if *key != "dsn" => value.to_owned(),
        _ => mask(value),
    }
}

/// A value that is neither a table nor a list.
struct Leaf<'t> {
    /// Keys on the way to it.
    path: Vec<&'t str>,
    value: &'t Spanned<DeValue<'t>>,
}

/// The values of a campaign in the order of the text, and the places of its keys.
#[derive(Default)]
struct Content<'t> {
    leaves: Vec<Leaf<'t>>,
    keys: Vec<Range<usize>>,
}

impl<'t> Content<'t> {
    fn of(table: &'t Spanned<DeTable<'t>>) -> Self {
        let mut content = Self::default();
        content.add_table(table.get_ref(), &[]);
        content.leaves.sort_by_key(|leaf| leaf.value.span().start);
        content
    }

    fn add_table(&mut self, table: &'t DeTable<'t>, path: &[&'t str]) {
        for (key, value) in table {
            self.keys.push(key.span());
            self.add_value(value, &[path, &[key.get_ref()]].concat());
        }
    }

    fn add_value(&mut self, value: &'t Spanned<DeValue<'t>>, path: &[&'t str]) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_table(table, path),
            DeValue::Array(list) => list.iter().for_each(|item| self.add_value(item, path)),
            _ => self.leaves.push(Leaf { path: path.to_vec(), value }),
        }
    }

    /// The comments of the text.
    fn comments(&self, text: &str) -> Vec<Range<usize>> {
        let mut others: Vec<Range<usize>> = self.leaves.iter().map(|leaf| leaf.value.span()).collect();
        others.extend(self.keys.iter().cloned());
        others.sort_by_key(|other| other.start);
        // After the last one.
        others.push(text.len()..text.len());
        let mut comments = Vec::new();
        let mut from = 0;
        for other in others {
            while let Some(at) = text.get(from..other.start).and_then(|between| between.find('#')) {
                let start = from + at;
                from = text[start..].find('\n').map_or(text.len(), |length| start + length);
                comments.push(start..from);
            }
            from = from.max(other.end);
        }
        comments
    }
}
