//! A trace without its data: values replaced by others of the same type and length, equal ones by equal ones.

mod permutation;
mod value;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use trace::{Action, Call, Event, Identity, Missing, Source, Summary, TraceReader, TraceWriter};

use crate::error::ReplayError;
use crate::shapes::Shapes;
use crate::sql::{self, Kind};
pub use permutation::Key;

/// Texts whose replacement is remembered.
const MAX_REMEMBERED: usize = 10_000;

/// Words before a number that is a part of the statement rather than a value: of rows, and of types.
const WORDS_BEFORE_NUMBERS: [&str; 4] = ["limit", "offset", "first", "next"];
const WORDS_BEFORE_MODIFIERS: [&str; 10] =
    ["varchar", "char", "character", "varying", "numeric", "decimal", "bit", "time", "timestamp", "interval"];

/// Writes a trace with the same sessions, statements and times, in which literals and parameters, comments and names of
/// applications are replaced. Whoever does not have the key can't compute the values; the same key gives the same values in
/// several traces. Names of tables, columns, roles and databases stay.
///
/// # Errors
/// The trace can't be read, or the other one not be written.
pub fn anonymize(trace: &TraceReader, key: &Key, to: &Path) -> Result<u64, ReplayError> {
    let mut writer = TraceWriter::create(to)?;
    let mut anonymizer = Anonymizer { key, shapes: Shapes::default(), remembered: HashMap::new() };
    for event in trace.events()? {
        let Event { at_us, session, action } = event?;
        let action = match action {
            Action::Begin(identity) => Action::Begin(anonymizer.identity(identity)),
            Action::End => Action::End,
            Action::Execute(mut statement) => {
                (statement.text, statement.shape) = anonymizer.text(&statement.text);
                if let Call::Extended { parameters, .. } = &mut statement.call {
                    for value in parameters.iter_mut().flatten() {
                        *value = value::replaced(key, value).into();
                    }
                }
                Action::Execute(statement)
            }
        };
        writer.push(Event { at_us, session, action })?;
    }
    let summary = trace.summary();
    Ok(writer.finish(&Summary {
        sources: summary.sources.iter().enumerate().map(|(at, source)| nameless(at, source)).collect(),
        is_anonymized: true,
        shapes: anonymizer.shapes.into_vec(),
        sessions: summary.sessions,
        statements: summary.statements,
        dependent: summary.dependent,
        left_out: summary.left_out.iter().map(pathless).collect(),
        problems: summary.problems.iter().map(pathless).collect(),
    })?)
}

/// A log without the name of its file.
fn nameless(at: usize, source: &Source) -> Source {
    Source { file: format!("log {}", at + 1), ..source.clone() }
}

fn pathless(missing: &Missing) -> Missing {
    Missing { file: "log".to_owned(), ..missing.clone() }
}

struct Anonymizer<'a> {
    key: &'a Key,
    shapes: Shapes,
    remembered: HashMap<Arc<str>, (Arc<str>, u32)>,
}

impl Anonymizer<'_> {
    fn identity(&self, identity: Identity) -> Identity {
        let application = identity.application.map(|name| value::replaced(self.key, &name).into());
        Identity { application, ..identity }
    }

    /// The replacement of a statement's text, and its shape.
    fn text(&mut self, text: &Arc<str>) -> (Arc<str>, u32) {
        if let Some((text, shape)) = self.remembered.get(text) {
            return (Arc::clone(text), *shape);
        }
        let replacement: Arc<str> = statement(self.key, text).into();
        let shape = self.shapes.of(&replacement).number;
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(Arc::clone(text), (Arc::clone(&replacement), shape));
        (replacement, shape)
    }
}

/// A statement with other literals, and without comments.
fn statement(key: &Key, text: &str) -> String {
    if is_setting(text) { text.to_owned() } else { code(key, text) }
}

/// A statement or the code of a function with other literals, and without comments.
fn code(key: &Key, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for span in sql::spans(text) {
        out.push_str(&text[from..span.inner.start]);
        let value = &text[span.inner.clone()];
        match span.kind {
            Kind::Comment => out.push(' '),
            // Code of a function, which has literals of its own.
            Kind::DollarString => out.push_str(&code(key, value)),
            Kind::Number if is_part_of_statement(&text[..span.outer.start]) => out.push_str(value),
            // In these, a digit may be a part of an escape.
            Kind::EscapeString if value.contains('\\') => {
                out.push_str(&value::replaced_letters(key, value));
            }
            Kind::String | Kind::EscapeString | Kind::Number => out.push_str(&value::replaced(key, value)),
            Kind::Bits => out.push_str(&value::replaced_bits(key, value)),
        }
        from = span.inner.end;
    }
    out.push_str(&text[from..]);
    out
}

/// Whether a statement sets one of the server's own settings, or begins a transaction, and does nothing else.
fn is_setting(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';');
    if text.contains(';') || sql::spans(text).any(|span| span.kind == Kind::Comment) {
        return false;
    }
    let mut words = text.split_ascii_whitespace().map(str::to_ascii_lowercase);
    match words.next().as_deref() {
        Some("begin" | "start" | "show" | "reset") => true,
        Some("set") => {
            let name = words.find(|word| !matches!(word.as_str(), "local" | "session")).unwrap_or_default();
            let name = name.split('=').next().unwrap_or_default();
            !name.contains(['.', '"']) && !matches!(name, "role" | "authorization")
        }
        _ => false,
    }
}

/// Whether the number after this text is a number of rows, or of a type.
fn is_part_of_statement(before: &str) -> bool {
    let last_word = |text: &str| {
        let word = text.trim_end().rsplit(|c: char| !c.is_ascii_alphabetic()).next();
        word.unwrap_or_default().to_ascii_lowercase()
    };
    if WORDS_BEFORE_NUMBERS.contains(&last_word(before).as_str()) {
        return true;
    }
    // `numeric(10, 2)`
    let within = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',' || c == ' ');
    within.strip_suffix('(').is_some_and(|word| WORDS_BEFORE_MODIFIERS.contains(&last_word(word).as_str()))
}

#[cfg(test)]
mod tests;
