//! SQL commands and the variables in them.

use crate::ScriptError;
use crate::Slot;
use crate::names::{self, Names};
use crate::source::Source;

/// How many parameters a statement of the extended protocol may have (pgbench's `MAX_ARGS` less the statement).
pub const MAX_PARAMS: usize = 255;

/// One SQL command, sent whole: a statement, or several that are joined by `\;`.
///
/// A variable is a colon and a name, anywhere: in strings, quoted identifiers and comments as well. Two colons or more
/// in a row begin none, so `::int` stays a cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    line: u32,
    parts: Vec<SqlPart>,
    parameterised: String,
    params: Vec<Slot>,
}

/// A piece of an SQL command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlPart {
    /// Text to send as it is.
    Text(String),
    /// A variable, whose text takes its place if it is defined; if not, its `:name` stays.
    Var(Slot),
}

impl Sql {
    /// The line of its first word, counted from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The command for the simple protocol: its text in pieces, the variables between them.
    /// [`Variables::write_statement`](crate::Variables::write_statement) puts them together.
    pub fn parts(&self) -> &[SqlPart] {
        &self.parts
    }

    /// The command for the extended protocol, with `$1`, `$2` … in place of the variables.
    pub fn parameterised(&self) -> &str {
        &self.parameterised
    }

    /// The variables of `$1`, `$2` …, one for every occurrence; may be more than [`MAX_PARAMS`], see
    /// [`Script::check_params`](crate::Script::check_params).
    pub fn params(&self) -> &[Slot] {
        &self.params
    }

    /// The command of a text that stands at an offset of the source (which is where errors are then found).
    pub(crate) fn parse(
        source: Source<'_>,
        offset: usize,
        line: u32,
        text: &str,
        names: &mut Names,
    ) -> Result<Sql, ScriptError> {
        let mut sql = Sql { line, parts: Vec::new(), parameterised: String::new(), params: Vec::new() };
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            let slot = names.slot(name).ok_or_else(|| source.too_many_variables(offset))?;
            sql.push_text(before);
            sql.parts.push(SqlPart::Var(slot));
            sql.params.push(slot);
            sql.parameterised.push('$');
            sql.parameterised.push_str(&sql.params.len().to_string());
            rest = after;
        }
        sql.push_text(rest);
        Ok(sql)
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(SqlPart::Text(text.to_owned()));
            self.parameterised.push_str(text);
        }
    }
}

/// The text before the first variable, its name, and the text behind it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b':')?;
        let colons = bytes[at..].iter().take_while(|byte| **byte == b':').count();
        let start = at + colons;
        if colons == 1 && bytes.get(start).is_some_and(|byte| names::is_start(*byte)) {
            let length = bytes[start..].iter().take_while(|byte| names::is_part(**byte)).count();
            return Some((&text[..at], &text[start..start + length], &text[start + length..]));
        }
        at = start;
    }
}
